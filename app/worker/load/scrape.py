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
# Beside the client's own figures these say what happened inside; the server's TTFT and ITL stand apart, under `server`.
_INSIDE = ("queue_s", "prefill_s")
_SHOWN = ("ttft_s", "queue_s", "prefill_s", "decode_s", "itl_s", "e2e_s")


@dataclass(frozen=True)
class ServerFigures:
    """What the server measured during a point. `inside` are metrics of the run, `means` seconds by name, `completed` its requests."""

    inside: Mapping[str, MetricValue] = field(default_factory=dict)
    means: Mapping[str, float] = field(default_factory=dict)
    completed: int | None = None
    cache_hits: Flag | None = None


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
        means={key: value.mean for key, value in found.items() if value.mean is not None},
        completed=run.requests.completed,
        cache_hits=next((flag for flag in run.flags if flag.flag == "prefix_cache_hits"), None),
    )
