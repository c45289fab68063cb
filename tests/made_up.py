"""Predictions and devices with round numbers, built by hand so that charts and decompositions are tested without the cost model."""

import math
from collections.abc import Sequence

import numpy as np

from app.domain.hardware import HardwareProfile
from app.domain.prediction import Memory, Part, PassCost, Prediction, Request, Term
from app.domain.run import Distribution, Floats, RequestSamples, Run, Workload

H100 = HardwareProfile(
    slug="made-up-h100",
    name="Made-up H100",
    vendor="nobody",
    bandwidth_bytes_per_s=3.35e12,
    peak_flops_per_s={"bf16": 9.89e14},
    achieved_flops_per_s={"bf16": 4.2e14},
)


def pass_of(terms: Sequence[Term] = (), time_s: float | None = None, **parts: float) -> PassCost:
    """A pass from its terms, or from seconds by part; its time is their sum unless given."""
    made: tuple[Term, ...] = tuple(terms) or tuple(
        Term(part, _part(part), 1e12, 1e9, seconds, "compute" if part == "compute" else "memory") for part, seconds in parts.items()
    )
    total = math.fsum(term.time_s for term in made)
    flops, moved = math.fsum(term.flops for term in made), math.fsum(term.bytes for term in made)
    time_s = total if time_s is None else time_s
    return PassCost(
        time_s=time_s,
        floor_s=time_s / 2,
        attainable_s=time_s,
        compute_s=time_s,
        memory_s=time_s / 2,
        comm_s=0.0,
        overhead_s=0.0,
        bound="compute",
        flops=flops,
        bytes=moved,
        intensity_flops_per_byte=flops / moved if moved else 0.0,
        terms=made,
    )


def _part(name: str) -> Part:
    parts: dict[str, Part] = {part: part for part in ("compute", "attention", "weights", "kv", "communication", "overhead")}
    return parts[name]


def prediction_of(
    prefill: PassCost, decode: PassCost, output_tokens: int = 300, front_end_s: float = 0.0, interference_s: float = 0.0
) -> Prediction:
    """A prediction from two passes; sums as the domain defines them."""
    ttft, itl = front_end_s + prefill.time_s, decode.time_s + interference_s
    total = ttft + (output_tokens - 1) * itl
    return Prediction(
        request=Request(output_tokens=output_tokens),
        prefill=prefill,
        decode=decode,
        first_step_s=decode.time_s,
        last_step_s=decode.time_s,
        front_end_s=front_end_s,
        interference_s=interference_s,
        ttft_s=ttft,
        itl_s=itl,
        total_s=total,
        prefill_share=prefill.time_s / total,
        ridge_peak=295.2,
        ridge_achieved=125.4,
        request_tokens_per_s=1 / itl,
        aggregate_tokens_per_s=1 / itl,
        memory=Memory(1.6e10, 131072.0, 2.8e8, 1e8, 8e10, True, 179),
        ttft_range_s=(ttft / 2, ttft * 2),
        itl_range_s=(itl / 1.5, itl * 1.5),
        assumptions=(),
        model_version="made up",
    )


def textbook_prediction() -> Prediction:
    """The founding case: 3.2e13 FLOP at 4.2e14 FLOP/s, 1.6e10 bytes at 3.35e12 bytes/s."""
    prefill = Term("dense_weights", "compute", 3.2e13, 1.6e10, 3.2e13 / 4.2e14, "compute")
    decode = Term("dense_weights", "weights", 1.6e10, 1.6e10, 1.6e10 / 3.35e12, "memory")
    return prediction_of(pass_of([prefill]), pass_of([decode]))


def operator_prediction() -> Prediction:
    """A prediction with several operators in each pass, a front-end and interference, as the default mode gives."""
    prefill = pass_of(
        [
            Term("gate_up", "compute", 1.4e13, 2.0e9, 0.0180, "compute"),
            Term("down", "compute", 7.0e12, 1.2e9, 0.0090, "compute"),
            Term("attention", "attention", 1.0e12, 3.0e8, 0.0027, "compute"),
            Term("logits", "weights", 1.0e9, 1.05e9, 0.0004, "memory"),
            Term("gemm_launches", "overhead", 0.0, 0.0, 0.0004, "overhead"),
        ]
    )
    decode = pass_of(
        [
            Term("gate_up", "weights", 7.0e9, 7.0e9, 0.00243, "memory"),
            Term("down", "weights", 8.0e9, 8.0e9, 0.00278, "memory"),
            Term("attention", "kv", 1.1e9, 2.8e8, 0.0001, "memory"),
            Term("all_reduce", "communication", 0.0, 0.0, 0.0002, "communication"),
            Term("scheduler", "overhead", 0.0, 0.0, 0.0005, "overhead"),
        ]
    )
    return prediction_of(prefill, decode, front_end_s=0.015, interference_s=0.0001)


def measured_run(label: str = "control", concurrency: int = 1, **metrics: Distribution) -> Run:
    """A run of the founding request, 2,000 tokens in and 300 out."""
    known = {
        "ttft_s": Distribution(mean=0.0952, p50=0.0946, p90=0.0978, p95=0.0994, p99=0.112, min=0.09, max=0.131, n=200),
        "itl_s": Distribution(mean=0.00699, n=59800),
    }
    workload = Workload(prompt_tokens_mean=2000.0, output_tokens_mean=300.0, concurrency=concurrency)
    return Run(format="generic", label=label, workload=workload, metrics={**known, **metrics})


def request_samples(ttft_s: Floats) -> RequestSamples:
    """Per-request columns with the given times to the first token, 300 tokens each at 7 ms."""
    size = ttft_s.size
    return RequestSamples(
        ok=np.ones(size, dtype=np.bool_),
        prompt_tokens=np.full(size, 2000.0),
        output_tokens=np.full(size, 300.0),
        ttft_s=ttft_s,
        e2e_s=ttft_s + 299 * 0.007,
        chunk_gaps_s=np.full(10, 0.007),
    )
