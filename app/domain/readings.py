"""Figures that follow from those a run has, by the definitions of metrics.py, whatever tool measured it.

    decode phase of a request    d = e2e - ttft
    normalised latency           e2e / n                        not TPOT, which leaves the first token out
    interactivity                1 / mean TPOT                  what one user sees after the first token
    from schedule                start - due + e2e              coordinated omission: the client's wait belongs to the request
    outside the server           ttft - server's own ttft
    in flight                    requests/s x whole request     Little's law
    decoding                     output tokens/s x ITL          the same of the sequences in one decode step

(formats.md section 4; diagnosis.md section 4.) What does not follow is None or left out, never 0, and nothing a file states is replaced.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.domain.derive import (
    decodes,
    request_distributions,
    statistics,
    steady_window,
    tpot_values,
    with_request_rates,
)
from app.domain.observed import measured_times, observed_step
from app.domain.run import Distribution, Floats, MetricValue, Rate, RequestCounts, RequestSamples, Run, Workload
from app.domain.stream_readings import stream_readings

RATIO_OF_MEANS = "mean TTFT / mean prompt tokens"
FROM_MEANS = "difference of means"


@dataclass(frozen=True)
class LoadReading:
    """How many requests were under way, by Little's law, and the two times per token that differ by it.

    `in_flight` counts whole requests, `decoding` sequences in a decode step. `server_s_per_token` is 1 / output throughput,
    `user_s_per_token` what one request sees; `user_over_server` is their ratio.
    """

    in_flight: float | None = None
    decoding: float | None = None
    server_s_per_token: float | None = None
    user_s_per_token: float | None = None

    @property
    def user_over_server(self) -> float | None:
        """How many times slower one request's tokens come than the server's."""
        if self.user_s_per_token is None or not self.server_s_per_token:
            return None
        return self.user_s_per_token / self.server_s_per_token


def load_reading(run: Run) -> LoadReading:
    """The load that the rates and latencies of `run` imply; every part None where it does not follow."""
    requests, output = run.rate("requests_per_s"), run.rate("output_tokens_per_s")
    total_s, step = measured_times(run).total_s, observed_step(run)
    in_flight = requests.value * total_s if requests is not None and total_s is not None else None
    decoding = output.value * step.value_s if output is not None and step is not None else None
    return LoadReading(
        in_flight=in_flight,
        decoding=decoding,
        server_s_per_token=1 / output.value if output is not None and output.value else None,
        user_s_per_token=step.value_s if step is not None else None,
    )


def with_readings(run: Run) -> Run:
    """The run with every figure that follows from those it has: counts, durations and statistics of its samples, rates, bounds.

    A run without a completed request is returned as it is.
    """
    if run.requests.completed == 0:
        return run
    if run.samples is not None:
        samples = run.samples
        run = _counted(run, samples)
        run = _with(run, {**request_distributions(samples), **sample_readings(samples), **_steady(run, samples)})
    run = _with(replace(run, workload=_means(run.workload, run.requests.completed)), _between_ends(run))
    run = _with(run, _phases_from_each_other(run))
    run = with_request_rates(_with(run, _aggregates(run)))
    return _with(run, _rates_of_a_request(run))


def _with(run: Run, found: dict[str, MetricValue]) -> Run:
    return replace(run, metrics={**found, **run.metrics})


def sample_readings(samples: RequestSamples) -> dict[str, MetricValue]:
    """Statistics of the requests that succeeded which only their own rows give, by metric key."""
    ok, decoded = samples.ok, decodes(samples)
    found: dict[str, Distribution | None] = {
        "decode_s": statistics((samples.e2e_s - samples.ttft_s)[decoded]),
        "ntpot_s": statistics(_per(samples.e2e_s, samples.output_tokens)[ok]),
        "ttft_per_prompt_token_s": statistics(_per(samples.ttft_s, samples.prompt_tokens)[ok]),
        **stream_readings(samples),
        "idle_before_s": None if (idle := idle_before(samples)) is None else statistics(idle[ok]),
    }
    if samples.cached_tokens is not None:
        found["cached_prompt_tokens"] = statistics(samples.cached_tokens[ok])
    if samples.ttft_answer_s is not None:
        found["ttft_answer_s"] = statistics(samples.ttft_answer_s[ok])
    if samples.scheduled_s is not None and samples.start_s is not None:
        waited = samples.start_s - samples.scheduled_s
        found["client_queue_s"] = statistics(waited[ok])
        found["e2e_from_schedule_s"] = statistics((waited + samples.e2e_s)[ok])
    return {key: value for key, value in found.items() if value is not None}


def _per(values: Floats, counts: Floats) -> Floats:
    """Values by counts, NaN where the count is not at least 1."""
    quotient: Floats = np.divide(values, counts, out=np.full(values.size, np.nan), where=counts >= 1)
    return quotient


def idle_before(samples: RequestSamples) -> Floats | None:
    """Seconds that nothing was in flight before each request, NaN for the first. Shape (requests,).

    None where start or end times are not known, or where requests overlapped.
    """
    if samples.start_s is None or samples.size < 2 or not bool(np.isfinite(samples.start_s + samples.e2e_s).all()):
        return None
    order = np.argsort(samples.start_s, kind="stable")
    starts = samples.start_s[order]
    gaps = starts[1:] - (starts + samples.e2e_s[order])[:-1]
    if bool((gaps < -1e-3).any()):
        return None
    found = np.full(samples.size, np.nan)
    found[order[1:]] = np.maximum(gaps, 0.0)
    return found


def dispatch_times(due_s: Floats, service_s: Floats, slots: int) -> Floats:
    """When each request is sent if at most `slots` may be under way: in order, each at its time or when the earliest slot is free.

    The recursion of Kiefer and Wolfowitz for first come, first served with several servers. Shapes (requests,).
    """
    free = np.zeros(max(slots, 1))
    sent = np.empty(due_s.size)
    for index in range(due_s.size):
        slot = int(np.argmin(free))
        sent[index] = max(float(due_s[index]), float(free[slot]))
        free[slot] = sent[index] + service_s[index]
    return sent


def _counted(run: Run, samples: RequestSamples) -> Run:
    """Counts, token totals and duration that the file does not state, from its requests."""
    completed = int(samples.ok.sum())
    counts = run.requests
    if counts == RequestCounts():
        counts = RequestCounts(samples.size, completed, samples.size - completed)
    workload = run.workload
    prompt, output = _total(samples.prompt_tokens, samples), _total(samples.output_tokens, samples)
    if workload.prompt_tokens_total is None and workload.prompt_tokens_mean is None and prompt is not None:
        workload = replace(workload, prompt_tokens_total=prompt, prompt_tokens_mean=prompt / completed)
    if workload.output_tokens_total is None and workload.output_tokens_mean is None and output is not None:
        workload = replace(workload, output_tokens_total=output, output_tokens_mean=output / completed)
    return replace(run, requests=counts, workload=workload, duration_s=run.duration_s or _span(samples))


def _means(workload: Workload, completed: int | None) -> Workload:
    """The workload with tokens per request where a file has only totals."""
    prompt, output = workload.prompt_tokens_total, workload.output_tokens_total
    if not completed:
        return workload
    if workload.prompt_tokens_mean is None and prompt is not None:
        workload = replace(workload, prompt_tokens_mean=prompt / completed)
    if workload.output_tokens_mean is None and output is not None:
        workload = replace(workload, output_tokens_mean=output / completed)
    return workload


def _total(tokens: Floats, samples: RequestSamples) -> int | None:
    total = float(tokens[samples.ok].sum())
    return round(total) if samples.ok.any() and np.isfinite(total) and total < 2.0**62 else None


def _span(samples: RequestSamples) -> float | None:
    """From the first request sent to the last answered."""
    if samples.start_s is None:
        return None
    ends = (samples.start_s + samples.e2e_s)[samples.ok]
    if not ends.size or not bool(np.isfinite(ends).all()):
        return None
    return float(ends.max() - np.nanmin(samples.start_s)) or None


def _steady(run: Run, samples: RequestSamples) -> dict[str, MetricValue]:
    clients = run.workload.concurrency
    window = steady_window(samples, clients) if clients and clients > 1 else None
    if window is None or window.output_tokens_per_s is None:
        return {}
    return {"steady_output_tokens_per_s": Rate(window.output_tokens_per_s, "aggregate", "derived")}


def _phases_from_each_other(run: Run) -> dict[str, MetricValue]:
    """TTFT, decode phase and ITL where two of whole request, TTFT and decode phase are known on means."""
    ttft, decode, e2e = (_mean(run, key) for key in ("ttft_s", "decode_s", "e2e_s"))
    found: dict[str, MetricValue] = {}
    if decode is None and ttft is not None and e2e is not None and e2e > ttft:
        decode = e2e - ttft
        found["decode_s"] = Distribution(mean=decode, origin="derived")
    elif ttft is None and decode is not None and e2e is not None and e2e > decode:
        found["ttft_s"] = Distribution(mean=e2e - decode, origin="derived")
    output, completed = run.workload.output_tokens_mean, run.requests.completed
    if "decode_s" in run.metrics and _mean(run, "itl_s") is None and decode and output and output > 1:
        gaps = None if not completed else round(completed * (output - 1))
        found["itl_s"] = Distribution(mean=decode / (output - 1), n=gaps, origin="derived")
    prompt = run.workload.prompt_tokens_mean
    if "ttft_per_prompt_token_s" not in run.metrics and ttft is not None and prompt:
        found["ttft_per_prompt_token_s"] = Distribution(mean=ttft / prompt, origin="derived", definition=RATIO_OF_MEANS)
    return found


def _between_ends(run: Run) -> dict[str, MetricValue]:
    """What lies between the client's clock and the server's."""
    ttft, server = run.distribution("ttft_s"), run.distribution("server_ttft_s")
    if ttft is None or server is None:
        return {}
    mean = _difference(ttft.mean, server.mean)
    return {} if mean is None else {"outside_server_s": Distribution(mean=mean, origin="derived", definition=FROM_MEANS)}


def _difference(whole: float | None, part: float | None) -> float | None:
    return whole - part if whole is not None and part is not None and whole >= part else None


def _mean(run: Run, key: str) -> float | None:
    found = run.distribution(key)
    return None if found is None else found.mean


def _aggregates(run: Run) -> dict[str, MetricValue]:
    """Rates of the whole deployment: what was completed, by the duration. Tokens are totals, or means times requests."""
    duration_s, completed = run.duration_s, run.requests.completed
    if not duration_s or not completed:
        return {}
    prompt, output = total_tokens(run.workload, completed)
    found = {"requests_per_s": completed / duration_s}
    if prompt:
        found["input_tokens_per_s"] = prompt / duration_s
    if output:
        found["output_tokens_per_s"] = output / duration_s
    if prompt is not None and output:
        found["total_tokens_per_s"] = (prompt + output) / duration_s
    return {key: Rate(value, "aggregate", "derived") for key, value in found.items()}


def total_tokens(workload: Workload, completed: int) -> tuple[float | None, float | None]:
    """Prompt and output tokens of all requests that succeeded; None where neither total nor mean is known."""
    pairs = (
        (workload.prompt_tokens_total, workload.prompt_tokens_mean),
        (workload.output_tokens_total, workload.output_tokens_mean),
    )
    prompt, output = (float(total) if total is not None else None if mean is None else mean * completed for total, mean in pairs)
    return prompt, output


def _rates_of_a_request(run: Run) -> dict[str, MetricValue]:
    found: dict[str, MetricValue] = {}
    tpot = run.distribution("tpot_s")
    if tpot is not None and tpot.mean:
        found["interactivity_tokens_per_s"] = Rate(1 / tpot.mean, "request", "derived", tpot.definition)
    total_s, output = measured_times(run).total_s, run.workload.output_tokens_mean
    if total_s and output and run.measured_at != "in_process":
        found["e2e_output_tokens_per_s"] = Rate(output / total_s, "request", "derived")
    return found


@dataclass(frozen=True)
class ChunkStream:
    """One streamed answer as a client saw it: seconds to its first chunk, the gaps after it, and the tokens that each chunk carried.

    `tokens` has one entry more than `gaps_s`; a chunk that only names the role carries 0.
    """

    first_chunk_s: float
    gaps_s: Sequence[float]
    tokens: Sequence[int]
    prompt_tokens: float = float("nan")


def samples_of_streams(streams: Sequence[ChunkStream]) -> RequestSamples:
    """Per-request columns from streamed answers. TTFT ends at the first chunk that carries a token, whatever came before it."""
    ttft, e2e, gaps, chunks = [], [], [], []
    for stream in streams:
        times = stream.first_chunk_s + np.concatenate([[0.0], np.cumsum(stream.gaps_s)])
        filled = np.flatnonzero(np.asarray(stream.tokens) > 0)
        carrying = times[filled]
        ttft.append(float(carrying[0]) if carrying.size else np.nan)
        e2e.append(float(carrying[-1]) if carrying.size else np.nan)
        gaps.append(np.diff(carrying))
        chunks.append(float(filled.size))
    return RequestSamples(
        ok=np.array([bool(count) for count in chunks]),
        prompt_tokens=np.array([stream.prompt_tokens for stream in streams], dtype=np.float64),
        output_tokens=np.array([float(sum(stream.tokens)) for stream in streams]),
        ttft_s=np.array(ttft),
        e2e_s=np.array(e2e),
        chunk_gaps_s=np.concatenate(gaps) if gaps else np.empty(0),
        chunk_gap_counts=np.array([each.size for each in gaps], dtype=np.int64),
        chunks=np.array(chunks),
    )


def requests_without_tpot(samples: RequestSamples) -> int:
    """How many requests succeeded and have no TPOT: a single token, or an end that is not after the first token."""
    return int((samples.ok & ~np.isfinite(tpot_values(samples))).sum())
