"""A series: runs of one model on one hardware with one engine that answer the same question, so that one may be the baseline of the others.

What people change on purpose (version, parallelism, number formats, flags) is no part of it: it shows as a difference within the series.
Lengths and rates are anchors: a run belongs when its own are within 5 % of them, the tolerance of a comparison.
"""

from dataclasses import dataclass, fields

from app.domain.comparison import LENGTH_TOLERANCE
from app.domain.run import Workload

_ANCHORS = ("request_rate_per_s", "prompt_tokens", "output_tokens")


@dataclass(frozen=True)
class Series:
    """What every run of a series shares. `model` and `hardware` are slugs, or the file's words where the catalog knows none."""

    project: str
    model: str
    hardware: str
    engine: str
    load_mode: str | None = None
    measured_at: str | None = None
    concurrency: int | None = None
    context_depth_tokens: int = 0
    request_rate_per_s: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None

    def holds(self, other: "Series") -> bool:
        """Whether a run of `other` belongs to this series: the same words and counts, lengths and rate within 5 % of these."""
        return all(
            _near(getattr(self, field.name), getattr(other, field.name))
            if field.name in _ANCHORS
            else getattr(self, field.name) == getattr(other, field.name)
            for field in fields(self)
        )


def _near(anchor: float | None, value: float | None) -> bool:
    if anchor is None or value is None:
        return anchor is value
    return abs(value - anchor) <= LENGTH_TOLERANCE * anchor


def series_of(
    project: str,
    identity: tuple[str | None, str | None, str | None],
    load_mode: str | None,
    measured_at: str | None,
    workload: Workload,
) -> Series | None:
    """The series of a run whose `identity` is (model, hardware, engine), anchored at its own lengths; None while one is not known."""
    model, hardware, engine = identity
    if not model or not hardware or not engine:
        return None
    return Series(
        project=project,
        model=model,
        hardware=hardware,
        engine=engine,
        load_mode=load_mode,
        measured_at=measured_at,
        concurrency=workload.concurrency,
        context_depth_tokens=workload.context_depth_tokens,
        request_rate_per_s=workload.request_rate_per_s,
        prompt_tokens=workload.prompt_tokens_mean,
        output_tokens=workload.output_tokens_mean,
    )


def missing_identity(model: str | None, hardware: str | None, engine: str | None) -> tuple[str, ...]:
    """Which of model, hardware and engine are not known: without them a run is in no series."""
    known = {"model": model, "hardware": hardware, "engine": engine}
    return tuple(name for name, word in known.items() if not word)
