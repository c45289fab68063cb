"""What follows from figures that a file has: statistics from raw samples, ITL from means, rates from totals.

    decode time of a request   d_i = e2e_i - ttft_i
    TPOT of a request          d_i / (n_i - 1)                 undefined below two output tokens, or when e2e <= ttft
    ITL of a run               sum d_i / sum (n_i - 1)         token-weighted: total = ttft + (n - 1) x ITL holds on means

(formats.md section 4, "Definitions to adopt"). Functions return None where a figure does not follow, never 0.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import numpy.typing as npt

from app.domain.run import CANONICAL, Distribution, Floats, MetricValue, Rate, RequestSamples, Run

FROM_TTFT = "prompt tokens / TTFT at concurrency 1: front-end and queue are inside"
# One gap per token within this share: then a chunk is a token and the gaps' percentiles are those of tokens.
ONE_TOKEN_PER_CHUNK = 0.01
# From this share of the longest on, lengths count as equal: some answers that end a little early part no clients.
EQUAL_LENGTHS = 0.98
SHORTEST_SHARE = 0.01


def statistics(values: Floats, definition: str = CANONICAL) -> Distribution | None:
    """Statistics of the finite values; the spread of a single value is not known (None, not 0)."""
    distribution = Distribution.from_samples(values, definition)
    if distribution is not None and distribution.n == 1:
        return replace(distribution, std=None)
    return distribution


def tpot_values(samples: RequestSamples) -> Floats:
    """TPOT in seconds of each request, NaN where it is undefined. Shape (requests,)."""
    defined = decodes(samples)
    values = np.full(samples.size, np.nan)
    values[defined] = (samples.e2e_s[defined] - samples.ttft_s[defined]) / (samples.output_tokens[defined] - 1)
    return values


def decodes(samples: RequestSamples) -> npt.NDArray[np.bool_]:
    """The requests whose decode phase is known: succeeded, two tokens or more, and some time after the first of them."""
    with np.errstate(invalid="ignore"):
        return samples.ok & (samples.output_tokens >= 2) & (samples.e2e_s > samples.ttft_s)


def tokens_per_chunk(samples: RequestSamples) -> float | None:
    """Output tokens per chunk with content, over the requests of two tokens or more; 1 when every chunk carried one token.

    Chunks are those counted, else one more than the gaps between them.
    """
    if samples.chunks is not None:
        chunks = samples.chunks
    elif samples.chunk_gap_counts.size == samples.size:
        chunks = np.where(samples.chunk_gap_counts > 0, samples.chunk_gap_counts + 1.0, np.nan)
    else:
        return None
    counted = samples.ok & (chunks > 0) & (samples.output_tokens >= 2)
    return float(samples.output_tokens[counted].sum() / chunks[counted].sum()) if counted.any() else None


def token_weighted_itl(samples: RequestSamples) -> Distribution | None:
    """ITL of the run: sum of decode times / sum of (output tokens - 1). `n` counts the token gaps.

    Percentiles are given only where every chunk carried one token: then the gaps between chunks are the gaps between tokens.
    """
    decoded = decodes(samples)
    gaps = float((samples.output_tokens[decoded] - 1).sum())
    if gaps <= 0:
        return None
    mean = float((samples.e2e_s[decoded] - samples.ttft_s[decoded]).sum()) / gaps
    per_chunk = tokens_per_chunk(samples)
    observed = statistics(samples.chunk_gaps_s)
    if observed is not None and per_chunk is not None and abs(per_chunk - 1) <= ONE_TOKEN_PER_CHUNK:
        return replace(observed, mean=mean, n=round(gaps))
    return Distribution(mean=mean, n=round(gaps), origin="samples")


def request_distributions(samples: RequestSamples) -> dict[str, Distribution]:
    """Every latency that raw samples give, by metric key. Requests that failed are in none of them."""
    found = {
        "ttft_s": statistics(samples.ttft_s[samples.ok]),
        "e2e_s": statistics(samples.e2e_s[samples.ok]),
        "tpot_s": statistics(tpot_values(samples)),
        "itl_s": token_weighted_itl(samples),
        "chunk_gap_s": statistics(samples.chunk_gaps_s),
        "queue_s": None if samples.queue_s is None else statistics(samples.queue_s[samples.ok]),
    }
    return {key: distribution for key, distribution in found.items() if distribution is not None}


def shortest_length(mean: float | None, std: float | None) -> float | None:
    """The shortest length as a share s of the longest, were they drawn evenly with this mean and standard deviation; 1 for equal ones.

    A uniform law from s·L to L has std/mean = (1 - s) / (1 + s) / √3; a wider spread than any such law counts as the widest.
    """
    if not mean or std is None:
        return None
    spread = sqrt(3.0) * std / mean
    share = (1.0 - spread) / (1.0 + spread)
    return 1.0 if share >= EQUAL_LENGTHS else max(round(share, 3), SHORTEST_SHARE)


def with_length_spread(run: Run) -> Run:
    """The run with the spread of its answers, where it does not say it and has two requests or more, each with its count of tokens."""
    if run.workload.shortest_length is not None or run.samples is None:
        return run
    lengths = run.samples.output_tokens[run.samples.ok]
    if lengths.size < 2 or not np.all(np.isfinite(lengths)):
        return run
    share = shortest_length(float(lengths.mean()), float(lengths.std()))
    return replace(run, workload=replace(run.workload, shortest_length=share))


def itl_from_means(ttft_mean_s: float, e2e_mean_s: float, completed: int, output_tokens: int) -> float | None:
    """Exact token-weighted ITL from means: (mean e2e - mean TTFT) x requests / (output tokens - requests)."""
    gaps = output_tokens - completed
    decode_s = e2e_mean_s - ttft_mean_s
    return decode_s * completed / gaps if gaps > 0 and decode_s > 0 else None


@dataclass(frozen=True)
class SteadyWindow:
    """The stretch of a run in which all clients were busy, seconds from its start, and the output rate inside it."""

    start_s: float
    end_s: float
    run_s: float
    output_tokens_per_s: float | None

    @property
    def share(self) -> float:
        """Length of the window as a fraction of the run."""
        return (self.end_s - self.start_s) / self.run_s


def steady_window(samples: RequestSamples, concurrency: int) -> SteadyWindow | None:
    """From the first to the last moment at which `concurrency` requests were in flight; None without start and end times.

    The rate spreads each request's tokens evenly over its time in flight.
    """
    if samples.start_s is None:
        return None
    known = samples.ok & np.isfinite(samples.start_s) & np.isfinite(samples.e2e_s)
    starts, ends = samples.start_s[known], samples.start_s[known] + samples.e2e_s[known]
    if starts.size == 0 or ends.max() <= starts.min():
        return None
    times = np.concatenate([starts, ends])
    steps = np.concatenate([np.ones(starts.size), -np.ones(ends.size)])
    # At one instant the request that ends makes room before the next one starts.
    order = np.lexsort((steps, times))
    in_flight = np.cumsum(steps[order])
    full = np.flatnonzero(in_flight >= concurrency)
    if full.size == 0:
        return None
    first, last = float(times[order][full[0]]), float(times[order][min(full[-1] + 1, times.size - 1)])
    rate = _rate_within(samples.output_tokens[known], starts, ends, first, last)
    return SteadyWindow(first, last, float(ends.max() - starts.min()), rate)


def _rate_within(tokens: Floats, starts: Floats, ends: Floats, first: float, last: float) -> float | None:
    if last <= first or not np.isfinite(tokens).all():
        return None
    overlap = np.clip(np.minimum(ends, last) - np.maximum(starts, first), 0, None)
    lasting = ends > starts
    return float((tokens[lasting] * overlap[lasting] / (ends - starts)[lasting]).sum() / (last - first))


def aggregate_rates(
    duration_s: float | None, completed: int | None, prompt_tokens: int | None, output_tokens: int | None
) -> dict[str, float]:
    """Rates of the whole deployment, by metric key: totals / duration. Absent where a total is not known or nothing was done."""
    if not duration_s or not completed:
        return {}
    rates = {"requests_per_s": completed / duration_s}
    if output_tokens:
        rates["output_tokens_per_s"] = output_tokens / duration_s
    if output_tokens and prompt_tokens is not None:
        rates["total_tokens_per_s"] = (prompt_tokens + output_tokens) / duration_s
    return rates


def with_request_rates(run: Run) -> Run:
    """The run with the rates one request sees: decode = 1 / ITL, prefill = prompt tokens / prefill (or TTFT at concurrency 1).

    Rates that the run has already are kept.
    """
    metrics: dict[str, MetricValue] = {}
    itl = run.distribution("itl_s")
    if itl is not None and itl.mean:
        metrics["decode_tokens_per_s"] = Rate(1 / itl.mean, "request", "derived", itl.definition)
    if (prefill := _prefill_rate(run)) is not None:
        metrics["prefill_tokens_per_s"] = prefill
    return replace(run, metrics={**metrics, **run.metrics})


def _prefill_rate(run: Run) -> Rate | None:
    tokens, together = run.workload.prompt_tokens_mean, 1
    if not tokens:
        return None
    if run.load_mode == "static_batch":
        # One prompt pass reads the prompts of the whole batch.
        together = run.workload.concurrency or 1
    for key, definition, holds in (
        ("prefill_s", CANONICAL, True),
        # With others in flight TTFT is mostly a wait: a rate from it would say nothing about the prompt pass.
        ("ttft_s", FROM_TTFT, run.workload.concurrency == 1),
    ):
        distribution = run.distribution(key)
        time_s = None if distribution is None else (distribution.mean or distribution.p50)
        if holds and time_s:
            return Rate(together * tokens / time_s, "request" if together == 1 else "aggregate", "derived", definition)
    return None
