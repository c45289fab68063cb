"""Data flags: what is odd about a run's data, each with the evidence and the metrics it makes unusable.

One function a flag, listed in `CHECKS`; the tests are those of diagnosis.md section 3 and the words those of the cases' README.
A flag never changes a figure: it says what the figure is worth, and `withholds` the ones that mean nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from app.domain.derive import steady_window, tokens_per_chunk, tpot_values
from app.domain.run import CANONICAL, Distribution, Flag, Floats, RequestSamples, Run
from app.domain.text import duration, percent

DECODE_METRICS = ("tpot_s", "itl_s", "chunk_gap_s", "decode_tokens_per_s")
ALL_METRICS = (
    *("ttft_s", "e2e_s", "prefill_s", "queue_s", *DECODE_METRICS),
    *("prefill_tokens_per_s", "output_tokens_per_s", "total_tokens_per_s", "requests_per_s"),
)
TOKENS_PER_CHUNK = 1.05
MEANS_DIFFER = 0.02
LENGTHS_DIFFER = 0.02
COUNTS_DIFFER = 0.02
OUTLIER_RATIO = 1.5
REQUESTS_PER_CLIENT = 5
STEADY_SHARE = 0.6
COLD_RATIO = 3.0
SAME_DECODE = 0.2
MOVED_BY_COLD_START = 0.1
BUFFERED_SHARE = 0.95
BUFFERED_TOKENS = 8
QUEUED_SPREAD = 0.4
QUEUED_SHARE = 0.8
UNEXPLAINED_SHARE = 0.03
COALESCED_GAP_S = 1e-3
COALESCED_SHARE = 0.3
SHORTEST_TOKEN_S, LONGEST_TOKEN_S = 5e-5, 60.0
BEYOND_DURATION = 1.05
QUEUE_CORRELATION = 0.95
QUEUE_REQUESTS = 5


@dataclass(frozen=True)
class Evidence:
    """What an importer saw in a file beside the figures of the run; every field is optional.

    `not_numbers` names keys that held NaN or infinity, `negative` and `contradictions` are ready sentences. Token counts are per
    request (`requested_*`) or totals (`retokenized_output_tokens`). `tokens_per_chunk` is what the file itself says or implies.
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


Check = Callable[[Run, Evidence], Flag | None]


def data_flags(run: Run, evidence: Evidence | None = None) -> tuple[Flag, ...]:
    """Every flag that `run` and the importer's evidence give rise to, in the order of CHECKS."""
    seen = evidence or Evidence()
    if run.requests.completed == 0:
        # Nothing was measured, so nothing else can be said about the measurement.
        found = [check(run, seen) for check in (zero_completed, nan_values, negative_duration)]
    else:
        found = [check(run, seen) for check in CHECKS]
    return tuple(flag for flag in found if flag is not None)


def flagged(run: Run, evidence: Evidence | None = None) -> Run:
    """The run with its data flags."""
    return replace(run, flags=data_flags(run, evidence))


def zero_completed(run: Run, evidence: Evidence) -> Flag | None:
    """No request succeeded: every latency in the file is a placeholder."""
    if run.requests.completed != 0:
        return None
    sent = run.requests.sent if run.requests.sent is not None else run.requests.failed
    of = f" of {sent}" if sent else ""
    return Flag("zero_completed", f"0{of} requests completed: every latency and rate in the file is a placeholder.", ALL_METRICS)


def failures_excluded(run: Run, evidence: Evidence) -> Flag | None:
    """Some requests failed and are in no latency; with samples, the median that counts them as infinitely slow is given."""
    failed, completed = run.requests.failed, run.requests.completed
    if failed is None or not completed or failed <= evidence.empty_outputs:
        return None
    failed -= evidence.empty_outputs  # those have a flag of their own
    attempted = failed + completed
    text = f"{failed} of {attempted} requests ({percent(failed / attempted)}) failed and are in no latency."
    if run.samples is not None:
        text += _adjusted_median(run.samples.ttft_s[run.samples.ok], attempted)
    return Flag("failures_excluded", text)


def _adjusted_median(ttft_s: Floats, attempted: int) -> str:
    values = np.sort(ttft_s[np.isfinite(ttft_s)])
    position = (attempted - 1) / 2
    if values.size == 0:
        return ""
    if position > values.size - 1:
        return " Counted as never answered, the median TTFT would not exist."
    adjusted = float(np.interp(position, np.arange(values.size), values))
    plain = duration(float(np.median(values)))
    return f" Counted as never answered, the median TTFT would be {duration(adjusted)} instead of {plain}."


def empty_outputs(run: Run, evidence: Evidence) -> Flag | None:
    """Requests that ended without an error and without a token."""
    if evidence.empty_outputs:
        total = run.requests.sent or evidence.empty_outputs + (run.requests.completed or 0)
        return Flag("empty_outputs", f"{evidence.empty_outputs} of {total} requests produced no token; they are left out of every latency.")
    if run.workload.output_tokens_total == 0 and run.measured_at == "client":
        return Flag("empty_outputs", f"{run.requests.completed} requests completed and none produced a token.", DECODE_METRICS)
    return None


def tpot_undefined_single_token(run: Run, evidence: Evidence) -> Flag | None:
    """Requests with one output token have no time between tokens."""
    if run.samples is not None:
        single = int((run.samples.ok & (run.samples.output_tokens == 1)).sum())
        answered = int(run.samples.ok.sum())
        if single:
            withholds = DECODE_METRICS if single == answered else ()
            return Flag(
                "tpot_undefined_single_token", f"{single} of {answered} requests have a single output token and no TPOT or ITL.", withholds
            )
        return None
    completed, tokens = run.requests.completed, run.workload.output_tokens_total
    if completed and tokens == completed:
        return Flag("tpot_undefined_single_token", "Every request has a single output token: there is no TPOT or ITL.", DECODE_METRICS)
    return None


def nan_values(run: Run, evidence: Evidence) -> Flag | None:
    """Figures that are NaN or infinite in the file are left out."""
    if not evidence.not_numbers:
        return None
    return Flag("nan_values", f"Not a finite number in the file, left out: {_listed(evidence.not_numbers)}.")


def negative_duration(run: Run, evidence: Evidence) -> Flag | None:
    """Time that runs backwards: a stepped clock, or an end before the first token."""
    parts = list(evidence.negative)
    if run.samples is not None:
        with np.errstate(invalid="ignore"):
            inverted = int((run.samples.ok & (run.samples.e2e_s < run.samples.ttft_s)).sum())
        if inverted:
            parts.append(f"{inverted} requests end before their first token; they have no TPOT")
    return Flag("negative_duration", f"{'; '.join(parts)}.") if parts else None


def unit_mismatch(run: Run, evidence: Evidence) -> Flag | None:
    """A figure so far from plausible that its unit is in doubt. The unit is fixed by the format and never guessed again."""
    odd: list[str] = []
    withheld: list[str] = []
    for key in ("tpot_s", "itl_s"):
        value = _centre(run.distribution(key))
        if value is not None and not SHORTEST_TOKEN_S <= value <= LONGEST_TOKEN_S:
            odd.append(f"{key} is {value:.3g} s per token, outside {SHORTEST_TOKEN_S * 1e3:g} ms to {LONGEST_TOKEN_S:g} s")
            withheld.append(key)
    for key in ("ttft_s", "e2e_s"):
        value = _centre(run.distribution(key))
        if value is not None and run.duration_s and value > run.duration_s * BEYOND_DURATION:
            odd.append(f"{key} is {value:.4g} s in a run that lasted {run.duration_s:.4g} s")
            withheld.append(key)
    return Flag("unit_mismatch", f"{'; '.join(odd)}.", tuple(withheld)) if odd else None


def metric_bug(run: Run, evidence: Evidence) -> Flag | None:
    """A figure of the file contradicts the file's own samples, and not because empty outputs were counted in it."""
    if not evidence.contradictions or evidence.empty_outputs:
        return None
    return Flag("metric_bug", f"The file contradicts its own samples: {_listed(evidence.contradictions)}.")


def few_requests(run: Run, evidence: Evidence) -> Flag | None:
    """Too few requests for the clients: the opening wave weighs a fifth or more."""
    clients, completed = run.workload.concurrency, run.requests.completed
    if (
        run.measured_at == "in_process"
        or run.load_mode == "static_batch"
        or not clients
        or clients < 2
        or not completed
        or completed > REQUESTS_PER_CLIENT * clients
    ):
        return None
    share = min(1.0, clients / completed)
    return Flag("few_requests", f"{completed} requests from {clients} clients: the opening wave is {percent(share)} of the run.")


def ramp_dominated(run: Run, evidence: Evidence) -> Flag | None:
    """All clients were busy for less than 60 % of the run, so its throughput is that of filling and draining."""
    clients = run.workload.concurrency
    window = steady_window(run.samples, clients) if run.samples is not None and clients else None
    if window is None or window.share >= STEADY_SHARE:
        return None
    text = f"All {clients} clients were busy for {percent(window.share)} of the run"
    if window.output_tokens_per_s is not None:
        text += f"; inside that window the output rate is {window.output_tokens_per_s:.4g} tokens/s"
    return Flag("ramp_dominated", text + ".")


def mean_of_ratios(run: Run, evidence: Evidence) -> Flag | None:
    """Mean TPOT weights requests equally, mean ITL weights tokens equally; both are right and they differ."""
    tpot, itl = run.distribution("tpot_s"), run.distribution("itl_s")
    if tpot is None or itl is None or not tpot.mean or not itl.mean or abs(tpot.mean / itl.mean - 1) <= MEANS_DIFFER:
        return None
    return Flag(
        "mean_of_ratios_vs_ratio_of_means",
        f"Mean TPOT {duration(tpot.mean)} weights requests equally, mean ITL {duration(itl.mean)} weights tokens equally; "
        "both are right, and only ITL adds up to the total.",
    )


def mean_dominated_by_outlier(run: Run, evidence: Evidence) -> Flag | None:
    """A mean above p90, or above 1.5 medians, describes few requests."""
    found = []
    for key in ("ttft_s", "tpot_s", "e2e_s", "prefill_s"):
        value = run.distribution(key)
        if value is None or value.mean is None:
            continue
        if value.p90 is not None and value.mean > value.p90:
            found.append(f"{key}: mean {duration(value.mean)}, p90 {duration(value.p90)}")
        elif value.p50 and value.mean > OUTLIER_RATIO * value.p50:
            found.append(f"{key}: mean {duration(value.mean)}, median {duration(value.p50)}")
    return Flag("mean_dominated_by_outlier", f"A few requests set the mean; read the median. {'; '.join(found)}.") if found else None


def impossible_peak_below_mean(run: Run, evidence: Evidence) -> Flag | None:
    """A peak rate below the mean rate was counted in chunks, or over seconds that the run did not fill."""
    peak, mean = evidence.peak_output_tokens_per_s, run.rate("output_tokens_per_s")
    if peak is None or mean is None or peak >= mean.value * 0.99:
        return None
    text = (
        f"The file's peak output rate, {peak:.4g} per second, is below its mean of {mean.value:.4g} tokens/s: "
        "it counts chunks in whole seconds"
    )
    per_chunk = evidence.tokens_per_chunk
    if per_chunk is not None and per_chunk > TOKENS_PER_CHUNK:
        text += f"; times {per_chunk:.3g} tokens a chunk it is {peak * per_chunk:.4g} tokens/s"
    return Flag("impossible_peak_below_mean", text + ".")


def itl_is_per_chunk(run: Run, evidence: Evidence) -> Flag | None:
    """What the tool calls ITL is a gap between chunks, and chunks are not tokens here."""
    gap = run.distribution("chunk_gap_s")
    per_chunk = _chunk_tokens(run, evidence)
    if gap is None or gap.mean is None or gap.definition != CANONICAL:
        return None
    if per_chunk is not None:
        if per_chunk <= TOKENS_PER_CHUNK:
            return None
        return Flag(
            "itl_is_per_chunk",
            f"A gap between chunks, {duration(gap.mean)} on average, covers {per_chunk:.3g} tokens: it is not an inter-token latency.",
        )
    tpot = run.distribution("tpot_s")
    if tpot is None or not tpot.mean or gap.mean <= tpot.mean * TOKENS_PER_CHUNK:
        return None
    return Flag(
        "itl_is_per_chunk",
        f"The mean gap between chunks, {duration(gap.mean)}, is {gap.mean / tpot.mean:.3g} times the mean TPOT, "
        f"{duration(tpot.mean)}: chunks carry more than one token, or long answers ran slower; the file does not tell which.",
    )


def chunk_tokens_gt_1(run: Run, evidence: Evidence) -> Flag | None:
    """Chunks carry more than one token, or tokens arrive in bursts of under a millisecond."""
    per_chunk = _chunk_tokens(run, evidence)
    if per_chunk is not None and per_chunk > TOKENS_PER_CHUNK:
        return Flag("chunk_tokens_gt_1", f"{per_chunk:.3g} tokens a chunk: percentiles of the gap between tokens cannot be known.")
    gaps = np.empty(0) if run.samples is None else run.samples.chunk_gaps_s
    if gaps.size == 0 or float(gaps.mean()) < 5 * COALESCED_GAP_S:
        return None
    share = float((gaps < COALESCED_GAP_S).mean())
    if share < COALESCED_SHARE:
        return None
    return Flag(
        "chunk_tokens_gt_1",
        f"{percent(share)} of the gaps are under 1 ms, the mean is {duration(float(gaps.mean()))}: tokens arrive in bursts.",
    )


def _chunk_tokens(run: Run, evidence: Evidence) -> float | None:
    observed = None if run.samples is None else tokens_per_chunk(run.samples)
    return observed if observed is not None else evidence.tokens_per_chunk


def cold_start_outliers(run: Run, evidence: Evidence) -> Flag | None:
    """The opening wave (one request a client) waited three times as long for its first token, and decoded like the rest."""
    clients = run.workload.concurrency
    if run.samples is None or not clients:
        return None
    ttft, tpot = _in_send_order(run.samples)
    wave, rest = ttft[:clients], ttft[clients:]
    if rest.size < clients or float(np.median(wave)) <= COLD_RATIO * float(np.median(rest)):
        return None
    decode_wave, decode_rest = _median(tpot[:clients]), _median(tpot[clients:])
    if decode_wave is not None and decode_rest is not None and abs(decode_wave / decode_rest - 1) > SAME_DECODE:
        return None
    p95_all, p95_rest = float(np.percentile(ttft, 95)), float(np.percentile(rest, 95))
    return Flag(
        "cold_start_outliers",
        f"The first {clients} requests have a median TTFT of {duration(float(np.median(wave)))}, the other {rest.size} of "
        f"{duration(float(np.median(rest)))}. Without them the mean is {duration(float(rest.mean()))} instead of "
        f"{duration(float(ttft.mean()))} and p95 {duration(p95_rest)} instead of {duration(p95_all)}.",
        _moved_statistics(ttft, rest),
    )


def _moved_statistics(everything: Floats, rest: Floats) -> tuple[str, ...]:
    """The statistics of TTFT that the opening wave sets; the mean always (contract.md)."""
    moved = ["ttft_s.mean"]
    for level in (95, 99):
        before, after = float(np.percentile(everything, level)), float(np.percentile(rest, level))
        if abs(before / after - 1) > MOVED_BY_COLD_START:
            moved.append(f"ttft_s.p{level}")
    return tuple(moved)


def server_queue_in_ttft(run: Run, evidence: Evidence) -> Flag | None:
    """TTFT grows in a straight line with the order of sending: a queue in the server, not prefill."""
    if run.samples is None:
        return None
    ttft, _ = _in_send_order(run.samples)
    if ttft.size < QUEUE_REQUESTS or float(np.ptp(ttft)) <= 2 * float(ttft.min()):
        return None
    order = np.arange(ttft.size)
    if float(np.corrcoef(order, ttft)[0, 1]) < QUEUE_CORRELATION:
        return None
    slope = float(np.polyfit(order, ttft, 1)[0])
    return Flag(
        "server_queue_in_ttft",
        f"TTFT grows by {duration(slope)} with every request sent, from {duration(float(ttft.min()))}: "
        f"that smallest one bounds prefill, and {duration(float(ttft.mean() - ttft.min()))} of the mean is waiting.",
    )


def client_queue_excluded(run: Run, evidence: Evidence) -> Flag | None:
    """Requests scheduled at a rate waited in the client for a free slot before the clock started."""
    workload = run.workload
    if workload.request_rate_per_s is None or workload.concurrency is None:
        return None
    wait = f", {duration(evidence.client_queue_mean_s)} on average," if evidence.client_queue_mean_s is not None else ""
    return Flag(
        "client_queue_excluded",
        f"Requests due at {workload.request_rate_per_s:g} per second wait in the client{wait} for one of {workload.concurrency} slots "
        "before the clock starts: latency from the intended moment is longer.",
    )


def transport_buffering(run: Run, evidence: Evidence) -> Flag | None:
    """Part of a request's time is neither before its first token nor between its chunks."""
    samples = run.samples
    if samples is None or samples.chunk_gap_counts.size != samples.size or not samples.chunk_gaps_s.size:
        return None
    owner = np.repeat(np.arange(samples.size), samples.chunk_gap_counts)
    between = np.bincount(owner, weights=samples.chunk_gaps_s, minlength=samples.size)
    counted = samples.ok & (samples.chunk_gap_counts > 0) & np.isfinite(samples.e2e_s) & np.isfinite(samples.ttft_s)
    total = float(samples.e2e_s[counted].sum())
    if total <= 0:
        return None
    unexplained = float((samples.e2e_s - samples.ttft_s - between)[counted].sum()) / total
    if unexplained <= UNEXPLAINED_SHARE:
        return None
    return Flag(
        "transport_buffering",
        f"{percent(unexplained)} of the request time is neither TTFT nor a gap between chunks: "
        "something between server and client holds it back.",
    )


def ttft_equals_e2e_buffering(run: Run, evidence: Evidence) -> Flag | None:
    """The whole answer arrives with its first token: a buffer in the path, unless a queue explains the wait."""
    share = _buffered_share(run.samples) if run.samples is not None else _buffered_share_of_means(run)
    if share is None:
        return None
    return Flag(
        "ttft_equals_e2e_buffering",
        f"TTFT is {percent(share)} of the whole request: the answer arrives at once, held back by a proxy or sent unstreamed.",
        (*DECODE_METRICS, "prefill_tokens_per_s"),
    )


def _buffered_share(samples: RequestSamples) -> float | None:
    known = samples.ok & (samples.output_tokens > BUFFERED_TOKENS) & (samples.e2e_s > 0) & np.isfinite(samples.ttft_s)
    if not known.any():
        return None
    shares = samples.ttft_s[known] / samples.e2e_s[known]
    # In a queue the first requests are answered soon; through a buffer none is, but for the odd one.
    typical, soonest = (float(share) for share in np.percentile(shares, (50, 2)))
    return typical if typical > BUFFERED_SHARE and soonest > QUEUED_SHARE else None


def _buffered_share_of_means(run: Run) -> float | None:
    ttft, e2e, tokens = run.distribution("ttft_s"), run.distribution("e2e_s"), run.workload.output_tokens_mean
    if ttft is None or e2e is None or not ttft.mean or not e2e.mean or tokens is None or tokens <= BUFFERED_TOKENS:
        return None
    queued = ttft.std is not None and ttft.std > QUEUED_SPREAD * ttft.mean
    share = ttft.mean / e2e.mean
    return share if share > BUFFERED_SHARE and not queued else None


def short_outputs_eos(run: Run, evidence: Evidence) -> Flag | None:
    """Answers shorter than asked for: the model stopped by itself, so totals are not those of the requested length."""
    asked, got = evidence.requested_output_tokens, run.workload.output_tokens_mean
    if not asked or got is None or got >= asked * (1 - LENGTHS_DIFFER):
        return None
    return Flag("short_outputs_eos", f"{asked:g} output tokens were asked for, {got:.5g} came on average: answers ended early.")


def input_length_mismatch(run: Run, evidence: Evidence) -> Flag | None:
    """Prompts longer or shorter than asked for: a chat template, or another tokenizer."""
    asked, got = evidence.requested_prompt_tokens, run.workload.prompt_tokens_mean
    if not asked or got is None or abs(got / asked - 1) <= LENGTHS_DIFFER:
        return None
    return Flag("input_length_mismatch", f"{asked:g} prompt tokens were asked for, {got:.5g} were counted on average.")


def tokenizer_mismatch(run: Run, evidence: Evidence) -> Flag | None:
    """The client's count of output tokens is not the server's."""
    served, counted = run.workload.output_tokens_total, evidence.retokenized_output_tokens
    if not served or counted is None or abs(counted / served - 1) <= COUNTS_DIFFER:
        return None
    text = f"The server counts {served} output tokens, the client's tokenizer {counted}; the server's count is used."
    return Flag("tokenizer_mismatch", text)


CHECKS: tuple[Check, ...] = (
    *(zero_completed, failures_excluded, empty_outputs, nan_values, negative_duration, unit_mismatch, metric_bug),
    *(tpot_undefined_single_token, itl_is_per_chunk, chunk_tokens_gt_1, tokenizer_mismatch, impossible_peak_below_mean),
    *(ttft_equals_e2e_buffering, transport_buffering, cold_start_outliers, few_requests, ramp_dominated),
    *(client_queue_excluded, server_queue_in_ttft, mean_of_ratios, mean_dominated_by_outlier, short_outputs_eos, input_length_mismatch),
)


def _in_send_order(samples: RequestSamples) -> tuple[Floats, Floats]:
    """TTFT and TPOT of the requests that succeeded, in the order in which they were sent (the file's order where no times are known)."""
    order = np.arange(samples.size) if samples.start_s is None else np.argsort(samples.start_s, kind="stable")
    kept = order[(samples.ok & np.isfinite(samples.ttft_s))[order]]
    return samples.ttft_s[kept], tpot_values(samples)[kept]


def _median(values: Floats) -> float | None:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else None


def _centre(distribution: Distribution | None) -> float | None:
    if distribution is None:
        return None
    return distribution.mean if distribution.mean is not None else distribution.p50


def _listed(names: tuple[str, ...], most: int = 6) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
