"""One word for a run beside its baseline, and one for each phase: what a list shows and what a webhook fires on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.domain.comparison import NOISE_FLOOR, Comparison, MetricDelta, Verdict

# The figures that speak for a phase, the first that both runs have. Means come first, since only they add up; p99 never.
PREFILL = (("ttft_s", "mean"), ("ttft_s", "p50"), ("prefill_s", "mean"), ("server_ttft_s", "mean"))
DECODE = (("itl_s", "mean"), ("tpot_s", "mean"), ("itl_s", "p50"), ("tpot_s", "p50"), ("step_s", "mean"))

Phases = tuple[float, float]

_MOVED: tuple[Verdict, ...] = ("regressed", "improved")
_STAYED: tuple[Verdict, ...] = ("unchanged", "not comparable")


@dataclass(frozen=True)
class AgainstBaseline:
    """The verdict on both phases by the figures that speak for them (None: neither run has one), and on the run.

    `phase` names the half that the verdict is about where it is about one alone.
    """

    verdict: Verdict
    phase: Literal["prefill", "decode", ""]
    prefill: MetricDelta | None
    decode: MetricDelta | None

    @property
    def regressed(self) -> tuple[MetricDelta, ...]:
        """The figures that got worse by more than the noise."""
        return tuple(row for row in (self.prefill, self.decode) if row is not None and row.verdict == "regressed")


def against_baseline(comparison: Comparison) -> AgainstBaseline:
    """Worse in one phase is regressed, whatever the other did; a phase that is not known neither helps nor harms."""
    rows = {(row.key, row.stat): row for row in comparison.metrics}
    prefill, decode = _speaking(rows, PREFILL), _speaking(rows, DECODE)
    if not comparison.comparable.ok:
        return AgainstBaseline("not comparable", "", prefill, decode)
    known = [(phase, row.verdict) for phase, row in (("prefill", prefill), ("decode", decode)) if row is not None]
    for word in _MOVED:
        phases = [phase for phase, verdict in known if verdict == word]
        if phases:
            return AgainstBaseline(word, "" if len(phases) > 1 else "prefill" if phases == ["prefill"] else "decode", prefill, decode)
    verdicts = {verdict for _, verdict in known}
    for rest in _STAYED:
        if rest in verdicts:
            return AgainstBaseline(rest, "", prefill, decode)
    return AgainstBaseline("insufficient data", "", prefill, decode)


def phase_noise(rows: Sequence[MetricDelta]) -> Phases:
    """The noise of the figures that speak for prefill and decode: the floor, or more where repeats raise it."""
    found = {(row.key, row.stat): row for row in rows}
    speaking = (_speaking(found, PREFILL), _speaking(found, DECODE))
    first, step = (NOISE_FLOOR if row is None else row.noise for row in speaking)
    return first, step


def _speaking(rows: Mapping[tuple[str, str], MetricDelta], keys: Sequence[tuple[str, str]]) -> MetricDelta | None:
    """The first figure that could be judged, else the first that is there."""
    found = [rows[key] for key in keys if key in rows]
    judged = (row for row in found if row.verdict in (*_MOVED, "unchanged"))
    return next(judged, found[0] if found else None)
