"""Runs and deployments for tests of the diagnosis, with the figures that a test names and nothing else."""

from typing import Any

from app.domain.diagnosis import Setup, Subject
from app.domain.run import Distribution, Flag, MetricValue, Rate, RequestCounts, Run, Workload

METRICS = {"ttft": "ttft_s", "itl": "itl_s", "server": "server_ttft_s", "outside": "outside_server_s", "queue": "queue_s",
           "idle": "idle_before_s", "sm": "sm_clock_hz", "memory": "memory_clock_hz", "prefill": "prefill_s", "e2e": "e2e_s"}  # fmt: skip
RATES = {"rate": ("output_tokens_per_s", "aggregate"), "prefill_rate": ("prefill_tokens_per_s", "request"),
         "decode_rate": ("decode_tokens_per_s", "request"), "bytes_rate": ("bytes_per_s", "device")}  # fmt: skip


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
        workload=Workload(prompt_tokens_mean=prompt, output_tokens_mean=output, concurrency=clients),
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
