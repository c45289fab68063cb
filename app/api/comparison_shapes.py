"""Answers of comparisons and diagnoses: what moved, why, and how that is known."""

from typing import Any

from pydantic import ConfigDict

from app.api.shapes import FlagShape, Shape


class ComparableShape(Shape):
    """Whether the runs answer the same question, and every setting that differs."""

    ok: bool
    reasons: list[str]
    differing: list[dict[str, Any]]


class HalfShape(Shape):
    """One half of a mean request on both sides; workload_s + efficiency_s + unpriced_s = delta_s where they are known."""

    phase: str
    base_s: float
    other_s: float
    delta_s: float
    workload_s: float | None
    efficiency_s: float | None
    unpriced_s: float | None


class AttributionPartShape(Shape):
    """One part of a half. `kind` is measured, predicted or unexplained; of a part that is not known all is null, and `why` says why."""

    phase: str
    part: str
    title: str
    kind: str | None
    base_s: float | None
    other_s: float | None
    delta_s: float | None
    workload_s: float | None
    efficiency_s: float | None
    unpriced_s: float | None
    factors: dict[str, float]
    why: str | None


class FactorShape(Shape):
    """One thing that differs, as it is on both sides, and the seconds that the model gives to it."""

    key: str
    title: str
    kind: str
    base: str
    other: str
    prefill_s: float
    decode_s: float
    total_s: float


class AttributionShape(Shape):
    """Where the change of a mean request lies: halves + remainder = total, and so do the parts that are known."""

    total_s: float
    base_total_s: float
    other_total_s: float
    halves: list[HalfShape]
    parts: list[AttributionPartShape]
    factors: list[FactorShape]
    unpriced_s: float | None
    remainder_s: float
    split_by: str
    before_sending_s: list[float] | None
    notes: list[str]
    sentences: list[str]


class FindingShape(Shape):
    """One cause: the signs that are there of those it asks for, its arithmetic, what would refute it, and advice with its size."""

    cause: str | None
    rule: str
    title: str
    phase: str
    rank: int | None
    signs: int
    of: int
    evidence: list[str]
    arithmetic: list[str]
    against: list[str]
    refuted_by: str
    missing: list[str]
    levers: list[dict[str, Any]]
    source: str


class ReasonShape(Shape):
    """Why: causes offered and ruled out, what would decide between them, one word for the whole, and every quantity looked at."""

    phase: str
    findings: list[FindingShape]
    ruled_out: list[FindingShape]
    undetermined: list[dict[str, Any]]
    verdict: str | None
    verdicts: dict[str, str | None]
    observables: dict[str, float | None]
    levels: list[dict[str, Any]]
    flags: list[FlagShape]
    stopped_by: str | None


class DiagnosisShape(ReasonShape):
    """A single run's diagnosis."""

    sentence: str


class RunLeverShape(Shape):
    """One lever for a run: `expected` holds pairs before and after, null with `why_not` where it has no size."""

    lever: str
    expected: dict[str, Any] | None
    why_not: str | None
    seen: list[str]


class RunLeversShape(Shape):
    """Every lever for a run in the order asked for; `reason` says why there is none where the run has no prediction."""

    sort: str
    reason: str | None
    levers: list[RunLeverShape]


class ComparisonShape(ReasonShape):
    """The explanation of a difference; the first pair stands at the top level."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "base": 1,
                    "others": [2],
                    "comparable": {"ok": True, "reasons": [], "differing": [{"key": "weight_dtype", "base": "bf16", "other": "int4"}]},
                    "metrics": [
                        {
                            "key": "itl_s",
                            "stat": "mean",
                            "base": 0.007,
                            "other": 0.005,
                            "delta": -0.002,
                            "ratio": 0.714,
                            "verdict": "improved",
                            "n": [119600, 119600],
                            "noise": 0.03,
                        }
                    ],
                    "attribution": {
                        "total_s": -0.471,
                        "halves": [
                            {"phase": "prefill", "delta_s": 0.127, "workload_s": 0.0, "efficiency_s": 0.089, "unpriced_s": 0.038},
                            {"phase": "decode", "delta_s": -0.598, "workload_s": 0.0, "efficiency_s": -1.1, "unpriced_s": 0.502},
                        ],
                        "parts": [
                            {"phase": "prefill", "part": "prefill", "kind": "predicted", "delta_s": 0.089, "efficiency_s": 0.089},
                            {"phase": "prefill", "part": "unexplained", "kind": "unexplained", "delta_s": 0.038, "unpriced_s": 0.038},
                            {"phase": "decode", "part": "weight_read", "kind": "predicted", "delta_s": -1.1, "efficiency_s": -1.1},
                            {"phase": "decode", "part": "unexplained", "kind": "unexplained", "delta_s": 0.502, "unpriced_s": 0.502},
                        ],
                        "remainder_s": 0.0,
                    },
                    "phase": "prefill",
                    "sentence": "Prefill got 3.1× slower, decode 28.6 % faster; break-even at 65 output tokens.",
                }
            ]
        },
    )

    base: int
    others: list[int]
    comparable: ComparableShape
    metrics: list[dict[str, Any]]
    attribution: AttributionShape | None
    sentence: str
    break_even_output_tokens: int | None
    comparisons: list[dict[str, Any]]
