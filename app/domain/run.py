"""A run: one operating point that somebody measured, in one schema whatever tool wrote it.

Seconds inside, milliseconds only in views. `None` is "not known" and never 0. A number keeps where it comes from:
`samples` (computed here from raw samples), `reported` (the file's own figure) or `derived` (from other figures).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.domain.telemetry import Telemetry

Origin = Literal["samples", "reported", "derived"]
Scope = Literal["request", "aggregate", "device"]
LoadMode = Literal["single", "static_batch", "closed", "open", "offline"]
MeasuredAt = Literal["client", "server", "in_process"]
Floats = npt.NDArray[np.float64]

STATS = ("mean", "p50", "p90", "p95", "p99", "std", "min", "max")
CANONICAL = "canonical"


@dataclass(frozen=True)
class Distribution:
    """Statistics of one metric in its SI unit. `definition` differs from `canonical` where a tool means something else."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    n: int | None = None
    origin: Origin = "reported"
    definition: str = CANONICAL

    @classmethod
    def from_samples(cls, values: Floats, definition: str = CANONICAL) -> "Distribution | None":
        """Statistics of the finite values (linear interpolation between closest ranks); None when there are none."""
        finite = values[np.isfinite(values)]
        if finite.size == 0:
            return None
        p50, p90, p95, p99 = (float(q) for q in np.percentile(finite, (50, 90, 95, 99)))
        return cls(
            mean=float(finite.mean()),
            p50=p50,
            p90=p90,
            p95=p95,
            p99=p99,
            std=float(finite.std()),
            min=float(finite.min()),
            max=float(finite.max()),
            n=int(finite.size),
            origin="samples",
            definition=definition,
        )

    def stat(self, name: str) -> float | None:
        """The statistic called `name` (one of STATS), or None where it is not known."""
        value = getattr(self, name)
        return None if value is None else float(value)


@dataclass(frozen=True)
class Rate:
    """A rate with its scope: one request's, the whole deployment's, or one device's. Never quoted without it."""

    value: float
    scope: Scope
    origin: Origin = "reported"
    definition: str = CANONICAL


MetricValue = Distribution | Rate


@dataclass(frozen=True)
class Workload:
    """What was asked of the server. Token counts per request are means over the requests that succeeded.

    `context_depth_tokens` is the context already present before the measured tokens (llama-bench's depth); 0 when there was none.
    `shortest_length` is the shortest answer as a share of the longest, as if lengths lay evenly between: 1 where all are equal.
    """

    prompt_tokens_mean: float | None = None
    output_tokens_mean: float | None = None
    prompt_tokens_total: int | None = None
    output_tokens_total: int | None = None
    concurrency: int | None = None
    request_rate_per_s: float | None = None
    rate_unlimited: bool = False
    context_depth_tokens: int = 0
    dataset: str | None = None
    shortest_length: float | None = None


@dataclass(frozen=True)
class RequestCounts:
    """How many requests were sent, succeeded and failed; None where the file does not say."""

    sent: int | None = None
    completed: int | None = None
    failed: int | None = None


@dataclass(frozen=True, eq=False)
class RequestSamples:
    """Per-request columns, all of one length (one entry a request, sent order), NaN where a value is not known.

    `chunk_gaps_s` pools the gaps of all requests in order; `chunk_gap_counts` says how many belong to each request. Columns that a
    tool may not have are None: `scheduled_s` and `start_s` count from one moment, when a request was due and when it was sent;
    `ttft_answer_s` ends at the first visible token; `cached_tokens` are prompt tokens the server did not compute; `chunks` are those
    with content.
    """

    ok: npt.NDArray[np.bool_]
    prompt_tokens: Floats
    output_tokens: Floats
    ttft_s: Floats
    e2e_s: Floats
    start_s: Floats | None = None
    queue_s: Floats | None = None
    chunk_gaps_s: Floats = field(default_factory=lambda: np.empty(0))
    chunk_gap_counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    errors: tuple[str, ...] = ()
    scheduled_s: Floats | None = None
    ttft_answer_s: Floats | None = None
    cached_tokens: Floats | None = None
    chunks: Floats | None = None

    @property
    def size(self) -> int:
        """Number of requests."""
        return int(self.ok.size)


@dataclass(frozen=True)
class Flag:
    """A note about the data with its evidence; `withholds` lists the metrics (or `metric.stat`) it makes unusable.

    `figures` are the numbers behind the words, by name with the unit in it (`_s`, `_per_s`; a share or ratio has none), so that
    a program reads them too. A name that starts with `wrong_` is the misleading figure, given to be recognised.
    """

    flag: str
    evidence: str
    withholds: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One operating point. `model` and `hardware` are the words of the file (or of the person who uploaded it).

    `telemetry` is what the device did meanwhile, its times counted from the start of the run.
    """

    format: str
    engine: str | None = None
    engine_version: str | None = None
    model: str | None = None
    hardware: str | None = None
    devices: int | None = None
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    started_at: datetime | None = None
    duration_s: float | None = None
    load_mode: LoadMode | None = None
    measured_at: MeasuredAt | None = None
    token_count_source: str | None = None
    importer_version: int = 1
    label: str | None = None
    workload: Workload = field(default_factory=Workload)
    requests: RequestCounts = field(default_factory=RequestCounts)
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    samples: RequestSamples | None = None
    telemetry: Telemetry | None = None
    flags: tuple[Flag, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def withheld(self) -> frozenset[str]:
        """Names of metrics, or `metric.stat`, that a flag makes unusable."""
        return frozenset(name for flag in self.flags for name in flag.withholds)

    def distribution(self, key: str) -> Distribution | None:
        """The distribution stored under `key`, or None."""
        value = self.metrics.get(key)
        return value if isinstance(value, Distribution) else None

    def rate(self, key: str) -> Rate | None:
        """The rate stored under `key`, or None."""
        value = self.metrics.get(key)
        return value if isinstance(value, Rate) else None
