"""What the reports of serving clients have in common: statistics by name, samples against aggregates, ITL, rates.

The same figure is called differently by each tool; a `Naming` says how, and with which unit. The rules for ITL are those of
formats.md section 4: exact from means where end-to-end latency is there, from the gaps between chunks only where each chunk is one token.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from app.domain.derive import ONE_TOKEN_PER_CHUNK, aggregate_rates, itl_from_means, request_distributions
from app.domain.run import CANONICAL, Distribution, MetricValue, Origin, Rate, RequestCounts, RequestSamples, Run, Workload
from app.domain.text import duration, percent
from app.formats.load import Load
from app.formats.record import Record, whole_total

T = TypeVar("T")

CONTRADICTION = 0.01
# Who counted the output tokens: the server in its usage figures, or the client's own tokenizer.
SERVER_USAGE, CLIENT_TOKENIZER = "server_usage", "client_tokenizer"
_STATS = {
    "mean": ("mean",),
    "p50": ("median", "p50"),
    "p90": ("p90",),
    "p95": ("p95",),
    "p99": ("p99",),
    "std": ("std",),
    "min": ("min",),
    "max": ("max",),
}
_COMPARED = ("mean", "p50", "p90", "p95", "p99")


@dataclass(frozen=True)
class Naming:
    """How a tool names the statistics of a latency: `{statistic}_{stem}{suffix}`, with `unit_s` seconds in one unit."""

    suffix: str
    unit_s: float


MILLISECONDS = Naming("_ms", 1e-3)
SECONDS = Naming("", 1.0)


def reported(record: Record, stem: str, naming: Naming, n: int | None = None, definition: str = CANONICAL) -> Distribution | None:
    """The file's own statistics of one latency, None when it has none.

    A mean or percentile of 0 is what these tools write for "no value"; only a gap between chunks can be 0, beside a mean above it.
    """
    values: dict[str, float | None] = {}
    for stat, words in _STATS.items():
        keys = [f"{word}_{stem}{naming.suffix}" for word in words]
        values[stat] = next((value * naming.unit_s for key in keys if (value := record.number(key)) is not None), None)
    zero_is_none = stem != "itl" or not values["mean"]
    for stat in ("mean", *(_COMPARED[1:] if zero_is_none else ())):
        values[stat] = values[stat] or None
    if all(values[stat] is None for stat in _COMPARED):
        return None
    return Distribution(**values, n=n, origin="reported", definition=definition)


@dataclass(frozen=True)
class Merged:
    """Latencies by metric key, those computed from samples in place of the file's own where both are there."""

    metrics: dict[str, Distribution]
    contradictions: tuple[str, ...] = ()
    contradicted: Mapping[str, float] = field(default_factory=dict)


def merged(own: Mapping[str, Distribution], samples: RequestSamples | None) -> Merged:
    """Set the file's statistics beside its samples. Each that differs by more than 1 % is named in `contradictions` with both values."""
    if samples is None:
        return Merged(dict(own))
    computed = request_distributions(samples)
    found: list[str] = []
    contradicted: dict[str, float] = {}
    for key, distribution in computed.items():
        if key not in own:
            continue
        for stat in _COMPARED:
            ours, theirs = distribution.stat(stat), own[key].stat(stat)
            if ours and theirs is not None and abs(theirs / ours - 1) > CONTRADICTION:
                contradicted[f"{key}.{stat}"] = theirs
                found.append(f"{key}.{stat} says {duration(theirs)} and its samples give {duration(ours)}")
    return Merged({**own, **computed}, tuple(found), contradicted)


@dataclass(frozen=True)
class ItlFinding:
    """The token-weighted ITL that aggregates allow, why it is this or absent, and the tokens a chunk carries where that follows."""

    itl: Distribution | None
    note: str | None = None
    tokens_per_chunk: float | None = None


def itl_from_report(
    metrics: Mapping[str, Distribution], completed: int | None, output_tokens: int | None, gaps_are_sound: bool = True
) -> ItlFinding:
    """Token-weighted ITL without samples. `gaps_are_sound` is False for clients whose chunk gaps hold something else too."""
    ttft, e2e, tpot = metrics.get("ttft_s"), metrics.get("e2e_s"), metrics.get("tpot_s")
    gap = metrics.get("chunk_gap_s") if gaps_are_sound else None
    gaps = output_tokens - completed if output_tokens is not None and completed else None
    if gaps is not None and gaps <= 0:
        return ItlFinding(None)
    if ttft and e2e and ttft.mean and e2e.mean and completed and output_tokens:
        exact = itl_from_means(ttft.mean, e2e.mean, completed, output_tokens)
        if exact is not None:
            return _exact(exact, gap, gaps)
    if gap and gap.mean and tpot and tpot.mean and abs(gap.mean / tpot.mean - 1) <= ONE_TOKEN_PER_CHUNK:
        note = (
            f"ITL is the gap between chunks: its mean, {duration(gap.mean)}, agrees with mean TPOT, {duration(tpot.mean)}, "
            "within 1 %, so a chunk is one token."
        )
        return ItlFinding(replace(gap, n=gaps, origin="derived"), note, 1.0)
    return ItlFinding(None, _why_no_itl(gap, tpot))


def _exact(mean: float, gap: Distribution | None, gaps: int | None) -> ItlFinding:
    if gap is None or not gap.mean:
        return ItlFinding(Distribution(mean=mean, n=gaps, origin="derived"))
    per_chunk = gap.mean / mean
    if abs(per_chunk - 1) <= ONE_TOKEN_PER_CHUNK:
        return ItlFinding(replace(gap, mean=mean, n=gaps, origin="derived"), None, per_chunk)
    return ItlFinding(Distribution(mean=mean, n=gaps, origin="derived"), None, per_chunk)


def _why_no_itl(gap: Distribution | None, tpot: Distribution | None) -> str | None:
    if tpot is None:
        return None
    if gap and gap.mean and tpot.mean:
        return (
            f"No token-weighted ITL: the mean gap between chunks, {duration(gap.mean)}, and mean TPOT, {duration(tpot.mean)}, "
            "differ by more than 1 % and the file has no mean end-to-end latency. TPOT stands."
        )
    return "No token-weighted ITL: the file has neither mean end-to-end latency nor usable gaps between tokens. TPOT stands."


@dataclass(frozen=True)
class RateFinding:
    """Rates of the whole deployment by metric key, and sentences about those that contradict the file's own totals."""

    rates: dict[str, MetricValue]
    warnings: tuple[str, ...] = ()


def deployment_rates(
    record: Record, names: Mapping[str, tuple[str, ...]], duration_s: float | None, requests: RequestCounts, workload: Workload
) -> RateFinding:
    """Requests, output and total tokens per second. The file's figure is kept where its own totals / duration agree within 1 %."""
    derived = aggregate_rates(duration_s, requests.completed, workload.prompt_tokens_total, workload.output_tokens_total)
    rates: dict[str, MetricValue] = {}
    warnings = []
    for metric, keys in names.items():
        own = next((value for key in keys if (value := record.positive(key)) is not None), None)
        follows = derived.get(metric)
        value, origin = _chosen(own, follows)
        if value is not None:
            rates[metric] = Rate(value, "aggregate", origin)
        if own is not None and follows is not None and origin == "derived":
            warnings.append(f"{metric} says {own:.5g} where totals / duration give {follows:.5g}, which is used.")
    return RateFinding(rates, tuple(warnings))


def with_figures(run: Run, latencies: Merged, record: Record, rate_names: Mapping[str, tuple[str, ...]]) -> Run:
    """The run with its latencies and the rates of the whole deployment, and with what the file contradicts and left out in its warnings."""
    rates = deployment_rates(record, rate_names, run.duration_s, run.requests, run.workload)
    contradicted = (f"The file contradicts itself: {each}; the value from the samples is used." for each in latencies.contradictions)
    warnings = (*run.warnings, *contradicted, *rates.warnings, *record.warnings)
    return replace(run, metrics={**latencies.metrics, **rates.rates}, warnings=warnings)


def _chosen(own: float | None, follows: float | None) -> tuple[float | None, Origin]:
    if own is None:
        return follows, "derived"
    if follows is None or abs(own / follows - 1) <= CONTRADICTION:
        return own, "reported"
    return follows, "derived"


@dataclass(frozen=True)
class TokenTotals:
    """Tokens of the requests that succeeded: prompt and output, None where not known."""

    prompt: int | None
    output: int | None
    warnings: tuple[str, ...] = ()


def token_totals(prompt: int | None, output: int | None, samples: RequestSamples | None) -> TokenTotals:
    """Totals from the samples where those have token counts, else the file's own."""
    if samples is None:
        return TokenTotals(prompt, output)
    warnings = []
    totals: list[int | None] = []
    for word, own, column in (("prompt", prompt, samples.prompt_tokens), ("output", output, samples.output_tokens)):
        # A request without a count makes the sum unknown, not smaller.
        counted = whole_total(float(column[samples.ok].sum()))
        total = counted if counted is not None else own
        totals.append(total)
        if own and total and word == "output" and abs(total / own - 1) > CONTRADICTION:
            warnings.append(f"The file counts {own} output tokens, its requests add up to {total} ({percent(total / own - 1)}).")
    return TokenTotals(totals[0], totals[1], tuple(warnings))


def per_request(total: int | None, completed: int | None) -> float | None:
    """Mean tokens a request, None where the total or the count is not known."""
    return total / completed if total is not None and completed else None


def served_workload(
    load: Load, totals: TokenTotals, completed: int | None, dataset: str | None, shortest_length: float | None = None
) -> Workload:
    """The load that was offered with the tokens of the requests that succeeded; `shortest_length` where the file says how it draws them."""
    return Workload(
        prompt_tokens_mean=per_request(totals.prompt, completed),
        output_tokens_mean=per_request(totals.output, completed),
        prompt_tokens_total=totals.prompt,
        output_tokens_total=totals.output,
        concurrency=load.concurrency,
        request_rate_per_s=load.request_rate_per_s,
        rate_unlimited=load.rate_unlimited,
        dataset=dataset,
        shortest_length=shortest_length,
    )


def first_known(*values: T | None) -> T | None:
    """The first value that is known."""
    return next((value for value in values if value is not None), None)
