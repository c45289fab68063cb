"""What an importer knows beside a run's figures, and what every check needs: the form of a check, the metrics a flag may withhold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from app.domain.derive import tpot_values
from app.domain.run import Distribution, Flag, Floats, RequestSamples, Run

DECODE_METRICS = ("tpot_s", "itl_s", "chunk_gap_s", "decode_tokens_per_s")
ALL_METRICS = (
    *("ttft_s", "e2e_s", "prefill_s", "queue_s", *DECODE_METRICS),
    *("prefill_tokens_per_s", "output_tokens_per_s", "total_tokens_per_s", "requests_per_s"),
)


@dataclass(frozen=True)
class Evidence:
    """What an importer saw in a file beside the figures of the run; every field is optional.

    `not_numbers` names keys that held NaN or infinity, `negative` and `contradictions` are ready sentences. Token counts are per
    request (`requested_*`) or totals (the rest). `tokens_per_chunk` is what the file itself says or implies. `contradicted` holds the
    file's own statistics (`metric.stat`) that its samples do not give.

    `streamed` is False when answers came in one piece. `answers_without_content` counts requests whose tokens were all thought, and
    `role_only_chunks` those whose TTFT ended at a chunk without a token. `rate_blocks` are rates over equal stretches of the run in
    order, `repeats` the rate or time of each repeat. `saturated` names `metric.stat` beyond the last bound of a histogram, `mixed_units`
    keys of one file in different units. `role_devices` says how many devices each part of a split deployment has.
    """

    not_numbers: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    empty_outputs: int = 0
    peak_output_tokens_per_s: float | None = None
    tokens_per_chunk: float | None = None
    requested_prompt_tokens: float | None = None
    requested_output_tokens: float | None = None
    retokenized_output_tokens: int | None = None
    client_queue_mean_s: float | None = None
    contradicted: Mapping[str, float] = field(default_factory=dict)
    streamed: bool | None = None
    cached_prompt_tokens: int | None = None
    answers_without_content: int = 0
    role_only_chunks: int = 0
    saturated: tuple[str, ...] = ()
    mixed_units: tuple[str, ...] = ()
    reported_prefill_per_s: float | None = None
    reported_output_tokens_per_s: float | None = None
    rate_blocks: tuple[float, ...] = ()
    repeats: tuple[float, ...] = ()
    role_devices: Mapping[str, int] = field(default_factory=dict)


Check = Callable[[Run, Evidence], Flag | None]


def in_send_order(samples: RequestSamples) -> tuple[Floats, Floats]:
    """TTFT and TPOT of the requests that succeeded, in the order in which they were sent (the file's order where no times are known)."""
    order = np.arange(samples.size) if samples.start_s is None else np.argsort(samples.start_s, kind="stable")
    kept = order[(samples.ok & np.isfinite(samples.ttft_s))[order]]
    return samples.ttft_s[kept], tpot_values(samples)[kept]


def median_of(values: Floats) -> float | None:
    """The median of the finite values, None when there are none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else None


def centre(distribution: Distribution | None) -> float | None:
    """The mean, or the median where there is no mean."""
    if distribution is None:
        return None
    return distribution.mean if distribution.mean is not None else distribution.p50


def listed(names: tuple[str, ...], most: int = 6) -> str:
    """The names in one line, `most` of them and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
