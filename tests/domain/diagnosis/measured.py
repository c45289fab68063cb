"""Runs and deployments for tests of the diagnosis, with the figures that a test names and nothing else."""

from typing import Any

from app.domain.diagnosis import Setup, Subject
from app.domain.run import Distribution, Flag, MetricValue, Rate, RequestCounts, Run, Workload

METRICS = {"ttft": "ttft_s", "itl": "itl_s", "server": "server_ttft_s", "outside": "outside_server_s", "queue": "queue_s",
           "idle": "idle_before_s", "sm": "sm_clock_hz", "memory": "memory_clock_hz", "prefill": "prefill_s", "e2e": "e2e_s"}  # fmt: skip
RATES = {"rate": ("output_tokens_per_s", "aggregate"), "prefill_rate": ("prefill_tokens_per_s", "request"),
         "decode_rate": ("decode_tokens_per_s", "request"), "answered": ("requests_per_s", "aggregate"),
         "bytes_rate": ("bytes_per_s", "device")}  # fmt: skip


def run(
    *, clients: int | None = None, prompt: float | None = None, output: float | None = None, tp: int | None = None, **given: Any
) -> Run:
    """A run from means in seconds and rates, by the short names above; `tail` is the 99th percentile of ITL."""
    metrics: dict[str, MetricValue] = {key: Distribution(mean=given[name]) for name, key in METRICS.items() if name in given}
    if "ttft_max" in given:
        metrics["ttft_s"] = Distribution(max=given["ttft_max"])
    if "tail" in given:
        metrics["itl_s"] = Distribution(mean=given["itl"], p99=given["tail"])
    metrics |= {key: Rate(given[name], scope) for name, (key, scope) in RATES.items() if name in given}  # type: ignore[arg-type]
    return Run(
        format="generic",
        tp=tp,
        duration_s=given.get("duration"),
        workload=Workload(
            prompt_tokens_mean=prompt, output_tokens_mean=output, concurrency=clients, request_rate_per_s=given.get("offered")
        ),
        requests=RequestCounts(completed=given.get("completed")),
        metrics=metrics,
        flags=tuple(Flag(name, "", given.get("withholds", ())) for name in given.get("flags", ())),
    )


def one(*, setup: dict[str, float] | None = None, **given: Any) -> Subject:
    """A deployment of one run."""
    return Subject((run(**given),), Setup(**(setup or {})))


def loads(*points: tuple[int, dict[str, Any]], setup: dict[str, float] | None = None) -> Subject:
    """A deployment at several numbers of clients."""
    return Subject(tuple(run(clients=clients, **given) for clients, given in points), Setup(**(setup or {})))


CLIENTS, COMPLETED = 20, 50


def rows(
    *,
    fixed: float = 0.012,
    each: float = 0.0002,
    prefill: tuple[float, float] = (0.03, 5e-5),
    ttft: float = 0.13,
    itl: float = 0.018,
    decoding: float = 18.0,
    most: float = 20.0,
    stalls: tuple[int, float] = (400, 0.09),
    flags: tuple[Flag, ...] = (),
    setup: dict[str, float] | None = None,
    **more: MetricValue,
) -> Subject:
    """A deployment with what its rows gave: the step's line, the prompt's line at 1,000 tokens, stalls of 10,000 gaps, the batch."""
    lone = prefill[0] + 1000 * prefill[1]
    metrics: dict[str, MetricValue] = {
        "ttft_s": Distribution(mean=ttft, p50=ttft),
        "itl_s": Distribution(mean=itl, p50=fixed + each * decoding),
        "e2e_s": Distribution(mean=ttft + 99 * itl),
        "chunk_gap_s": Distribution(mean=itl, p50=fixed + each * decoding, max=10 * itl, n=10_000),
        "lone_ttft_s": Distribution(mean=lone, p50=lone, std=0.002, n=50),
        "prefill_fixed_s": Distribution(mean=prefill[0], std=0.0005),
        "prefill_per_token_s": Distribution(mean=prefill[1], std=5e-7),
        "step_quiet_s": Distribution(mean=fixed + each * decoding),
        "step_fixed_s": Distribution(mean=fixed, std=2e-5),
        "step_per_sequence_s": Distribution(mean=each, std=2e-6),
        "stall_s": Distribution(mean=stalls[1], n=stalls[0]),
        "decoding_requests": Distribution(mean=decoding, p50=decoding, max=most),
        **more,
    }
    workload = Workload(prompt_tokens_mean=1000, output_tokens_mean=100, concurrency=CLIENTS)
    counts = RequestCounts(completed=COMPLETED)
    return Subject((Run(format="generic", workload=workload, requests=counts, metrics=metrics, flags=flags),), Setup(**(setup or {})))
