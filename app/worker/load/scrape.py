"""The server's own figures around a point: its /metrics read before and after, and the difference by the importer of such pairs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.domain.errors import ImportRefused, PhaselineError
from app.domain.run import Distribution, Flag, MetricValue
from app.formats import vllm_prometheus
from app.formats.document import read_document
from app.worker.load.link import Link
from app.worker.load.probe import single
from app.worker.load.request import Asking, scrape_request

_SECONDS = 10.0
# Beside the client's own figures these say what happened inside; the server's ITL stands apart, under `server`.
_INSIDE = ("queue_s", "prefill_s")
# These are set against the client's figure of the same requests, so that every request must be ours.
_OF_OURS = {"ttft_s": "server_ttft_s", "cached_prompt_tokens": "cached_prompt_tokens"}
_SHOWN = ("ttft_s", "queue_s", "prefill_s", "decode_s", "itl_s", "e2e_s")
_LABELS = ("preemptions", "kv_cache_size_tokens", "enable_lora", "spec_decode_num_drafts", "enable_prefix_caching")
# Beside a client's own prompts the server's are those of every tenant.
_NAMED = {**{key: key for key in _LABELS}, "server_prompt_tokens": "prompt_tokens"}


@dataclass(frozen=True)
class ServerFigures:
    """What the server measured during a point. `inside` are metrics of the run, `means` seconds by name, `completed` its requests.

    `of_ours` are metrics of the run where those requests are ours and no others. `labels` are counters and settings of the server.
    """

    inside: Mapping[str, MetricValue] = field(default_factory=dict)
    of_ours: Mapping[str, MetricValue] = field(default_factory=dict)
    means: Mapping[str, float] = field(default_factory=dict)
    completed: int | None = None
    cache_hits: Flag | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    kv_dtype: str | None = None

    def metrics(self, answered: int) -> Mapping[str, MetricValue]:
        """What belongs to the run of a client that got `answered` answers."""
        return {**self.inside, **(self.of_ours if self.completed == answered else {})}


async def scrape(link: Link, asking: Asking) -> str | None:
    """The text of the server's metrics, None where it has none that can be read."""
    if asking.metrics is None:
        return None
    try:
        exchange = await single(link, scrape_request(asking, asking.metrics), _SECONDS)
    except PhaselineError:
        return None
    if exchange.status != 200 or exchange.error is not None:
        return None
    return exchange.body.decode("utf-8", errors="replace")


def difference(before: str | None, after: str | None) -> ServerFigures | None:
    """What lies between two scrapes; None where they are no pair of a kind that is read here."""
    if before is None or after is None:
        return None
    try:
        document = read_document("metrics", f"{before.rstrip()}\n{after}".encode())
        if vllm_prometheus.matches(document) is not None:
            return None
        runs = vllm_prometheus.parse(document)
    except ImportRefused:
        return None
    if len(runs) != 1:
        return None
    (run,) = runs
    found = {key: value for key in _SHOWN if isinstance(value := run.metrics.get(key), Distribution)}
    return ServerFigures(
        inside={key: found[key] for key in _INSIDE if key in found},
        of_ours={name: value for key, name in _OF_OURS.items() if (value := run.metrics.get(key)) is not None},
        means={key: value.mean for key, value in found.items() if value.mean is not None},
        completed=run.requests.completed,
        cache_hits=next((flag for flag in run.flags if flag.flag == "prefix_cache_hits"), None),
        labels={name: run.labels[key] for name, key in _NAMED.items() if key in run.labels},
        kv_dtype=run.kv_dtype,
    )
