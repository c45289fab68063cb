"""What the load did to the figures: a cold opening wave, too few requests, filling and draining, queues on either side."""

import numpy as np

from app.domain.checks.evidence import Evidence, in_send_order, median_of
from app.domain.derive import steady_window
from app.domain.run import Flag, Floats, Run
from app.domain.text import duration, percent

REQUESTS_PER_CLIENT = 5
STEADY_SHARE = 0.6
COLD_RATIO = 3.0
SAME_DECODE = 0.2
MOVED_BY_COLD_START = 0.1
WAIT_SHARE = 0.01
QUEUE_CORRELATION = 0.95
QUEUE_REQUESTS = 5


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
    text = f"{completed} requests from {clients} clients: the opening wave is {percent(share)} of the run."
    return Flag("few_requests", text, (), {"opening_share": share})


def ramp_dominated(run: Run, evidence: Evidence) -> Flag | None:
    """All clients were busy for less than 60 % of the run, so its throughput is that of filling and draining."""
    clients = run.workload.concurrency
    window = steady_window(run.samples, clients) if run.samples is not None and clients else None
    if window is None or window.share >= STEADY_SHARE:
        return None
    figures = {"steady_from_s": window.start_s, "steady_until_s": window.end_s, "steady_share": window.share}
    text = f"All {clients} clients were busy for {percent(window.share)} of the run"
    if window.output_tokens_per_s is not None:
        text += f"; inside that window the output rate is {window.output_tokens_per_s:.4g} tokens/s"
        figures["steady_tokens_per_s"] = window.output_tokens_per_s
    return Flag("ramp_dominated", text + ".", (), figures)


def cold_start_outliers(run: Run, evidence: Evidence) -> Flag | None:
    """The opening wave (one request a client) waited three times as long for its first token, and decoded like the rest."""
    clients = run.workload.concurrency
    if run.samples is None or not clients:
        return None
    ttft, tpot = in_send_order(run.samples)
    wave, rest = ttft[:clients], ttft[clients:]
    if rest.size < clients or float(np.median(wave)) <= COLD_RATIO * float(np.median(rest)):
        return None
    decode_wave, decode_rest = median_of(tpot[:clients]), median_of(tpot[clients:])
    if decode_wave is not None and decode_rest is not None and abs(decode_wave / decode_rest - 1) > SAME_DECODE:
        return None
    figures = _with_and_without(ttft, rest)
    return Flag(
        "cold_start_outliers",
        f"The first {clients} requests have a median TTFT of {duration(float(np.median(wave)))}, the other {rest.size} of "
        f"{duration(float(np.median(rest)))}. Without them the mean is {duration(figures['mean_rest_s'])} instead of "
        f"{duration(figures['mean_all_s'])} and p95 {duration(figures['p95_rest_s'])} instead of {duration(figures['p95_all_s'])}.",
        _moved_statistics(ttft, rest),
        {"excluded": clients, **figures},
    )


def _with_and_without(everything: Floats, rest: Floats) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, values in (("all", everything), ("rest", rest)):
        found[f"mean_{name}_s"] = float(values.mean())
        found |= {f"p{level}_{name}_s": float(np.percentile(values, level)) for level in (50, 95, 99)}
    return found


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
    ttft, _ = in_send_order(run.samples)
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
        ("prefill_tokens_per_s",),
        {
            "prefill_at_most_s": float(ttft.min()),
            "slope_s_per_request": slope,
            "queue_mean_s": float(ttft.mean() - ttft.min()),
        },
    )


def client_queue_excluded(run: Run, evidence: Evidence) -> Flag | None:
    """Requests scheduled at a rate waited in the client for a free slot before the clock started."""
    workload = run.workload
    waited = _client_waits(run)
    if waited is not None:
        whole = waited + (run.samples.e2e_s[run.samples.ok] if run.samples is not None else np.nan)
        figures = {"client_queue_mean_s": float(np.nanmean(waited))}
        text = f"Requests waited {duration(figures['client_queue_mean_s'])} on average in the client before their clock started."
        if np.isfinite(whole).any():
            figures |= {"e2e_from_schedule_mean_s": float(np.nanmean(whole)), "e2e_from_schedule_max_s": float(np.nanmax(whole))}
            text += f" From the moment they were due the whole request takes {duration(figures['e2e_from_schedule_mean_s'])}."
        return Flag("client_queue_excluded", text, (), figures)
    if workload.request_rate_per_s is None or workload.concurrency is None:
        return None
    mean_s = evidence.client_queue_mean_s
    wait = f", {duration(mean_s)} on average," if mean_s is not None else ""
    return Flag(
        "client_queue_excluded",
        f"Requests due at {workload.request_rate_per_s:g} per second wait in the client{wait} for one of {workload.concurrency} slots "
        "before the clock starts: latency from the intended moment is longer.",
        (),
        {} if mean_s is None else {"client_queue_mean_s": mean_s},
    )


def _client_waits(run: Run) -> Floats | None:
    """Seconds each answered request waited in the client, where that is more than noise beside the requests themselves."""
    samples = run.samples
    if samples is None or samples.scheduled_s is None or samples.start_s is None:
        return None
    waited: Floats = (samples.start_s - samples.scheduled_s)[samples.ok]
    if not np.isfinite(waited).any():
        return None
    e2e = median_of(samples.e2e_s[samples.ok])
    return waited if e2e is None or float(np.nanmean(waited)) > WAIT_SHARE * e2e else None
