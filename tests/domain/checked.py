"""Runs for tests of data flags: a sound one, ones with per-request samples, and which flags they raise."""

from dataclasses import replace

import numpy as np

from app.domain.checks import READING_AIDS, Evidence, data_flags
from app.domain.run import Distribution, Flag, Floats, Rate, RequestCounts, RequestSamples, Run, Workload

SOUND = Run(
    format="vllm_bench_serve",
    measured_at="client",
    duration_s=100.0,
    workload=Workload(prompt_tokens_mean=1000.0, output_tokens_mean=100.0, output_tokens_total=100_000, concurrency=8),
    requests=RequestCounts(sent=1000, completed=1000, failed=0),
    metrics={
        "ttft_s": Distribution(mean=0.1, p50=0.098, p90=0.12, std=0.01, n=1000),
        "tpot_s": Distribution(mean=0.0101, p50=0.01, p90=0.011),
        "itl_s": Distribution(mean=0.01, p50=0.01),
        "chunk_gap_s": Distribution(mean=0.01, p50=0.01),
        "e2e_s": Distribution(mean=1.1, p50=1.09, p90=1.2),
        "output_tokens_per_s": Rate(1000.0, "aggregate"),
    },
)


def raised(run: Run, evidence: Evidence | None = None) -> dict[str, Flag]:
    return {flag.flag: flag for flag in data_flags(run, evidence)}


def doubts(run: Run, evidence: Evidence | None = None) -> set[str]:
    """The flags that put a figure in doubt, without those that only tell two right figures apart."""
    return raised(run, evidence).keys() - READING_AIDS


def many(
    ttft: Floats,
    e2e: Floats,
    output: Floats,
    *,
    ok: list[bool] | None = None,
    gaps: list[list[float]] | None = None,
    start: list[float] | None = None,
) -> RequestSamples:
    pooled = [gap for each in gaps or [] for gap in each]
    return RequestSamples(
        ok=np.array(ok if ok is not None else [True] * ttft.size),
        prompt_tokens=np.full(ttft.size, 100.0),
        output_tokens=output,
        ttft_s=ttft,
        e2e_s=e2e,
        start_s=None if start is None else np.array(start, dtype=float),
        chunk_gaps_s=np.array(pooled, dtype=float),
        chunk_gap_counts=np.array([len(each) for each in gaps], dtype=np.int64) if gaps is not None else np.empty(0, dtype=np.int64),
    )


def with_samples(samples: RequestSamples, **changes: object) -> Run:
    return replace(Run(format="x", measured_at="client", samples=samples), **changes)
