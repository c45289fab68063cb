"""The change of a mean request as the comparison's page shows it: the walk by part, its table, and what differs with its share."""

from dataclasses import dataclass

from app.charts import svg
from app.charts.waterfall import waterfall_steps
from app.domain.attribution import ROUNDING_S, Attribution, AttributionPart
from app.domain.comparison import Comparison
from app.domain.observed import measured_times
from app.domain.quantity import change_seconds, seconds
from app.domain.request_parts import BY_NAME
from app.services.attribution_words import attribution_sentences

_KINDS = {"measured": "measured", "predicted": "predicted", "unexplained": "what the parts leave"}


@dataclass(frozen=True)
class AttributionRow:
    """One line of the table: a half (`level` 0), a part of it (1), or the whole (2). Empty where a column does not apply."""

    level: int
    phase: str
    key: str
    title: str
    certainty: str
    base: str
    other: str
    change: str
    workload: str
    settings: str
    unpriced: str
    why: str = ""


@dataclass(frozen=True)
class AttributionView:
    """Everything that the panel needs. `by_model` is False where only tokens and seconds a token were told apart."""

    sentences: tuple[str, ...]
    rows: tuple[AttributionRow, ...]
    factors: tuple[tuple[str, str, str, str, str, str], ...]
    waterfall: tuple[svg.WaterfallRow, ...]
    by_model: bool
    finding: str


def attribution_view(comparison: Comparison) -> AttributionView | None:
    """The panel of a pair; None where one side lacks a half or the output length."""
    found = comparison.attribution
    if found is None:
        return None
    told = attribution_sentences(found)
    return AttributionView(
        sentences=told,
        rows=tuple(_rows(found)),
        factors=tuple(
            (share.title, share.base, share.other, _moved(share.prefill_s), _moved(share.decode_s), change_seconds(share.total_s))
            for share in found.factors
        ),
        waterfall=svg.waterfall(measured_times(comparison.base.run), waterfall_steps(found), measured_times(comparison.other.run)),
        by_model=found.split_by == "model",
        finding=told[0],
    )


def _moved(value: float | None) -> str:
    """A change in words; empty where nothing is known, "0" where nothing moved."""
    return "" if value is None else "0" if abs(value) < ROUNDING_S else change_seconds(value)


def _rows(found: Attribution) -> list[AttributionRow]:
    rows = []
    for half in found.halves:
        title = "First token" if half.phase == "prefill" else "Further tokens"
        split = (_moved(half.workload_s), _moved(half.efficiency_s), _moved(half.unpriced_s))
        ends = (seconds(half.base_s), seconds(half.other_s), change_seconds(half.delta_s))
        rows.append(AttributionRow(0, half.phase, half.phase, title, "measured", *ends, *split))
        rows += [_part_row(part) for part in found.parts if part.phase == half.phase and not part.nothing]
    rest = change_seconds(found.shown_remainder_s)
    rows.append(AttributionRow(2, "", "unexplained", "In neither half", "what the halves leave", "", "", rest, "", "", ""))
    ends = (seconds(found.base_total_s), seconds(found.other_total_s), change_seconds(found.total_s))
    rows.append(AttributionRow(2, "", "", "Whole request", "measured", *ends, "", "", ""))
    return rows


def _part_row(part: AttributionPart) -> AttributionRow:
    """A part; one that is not known says so, and why."""
    name = BY_NAME[part.phase, part.part]
    key = "unexplained" if part.kind == "unexplained" else name.hue if part.kind == "measured" else f"{name.hue}-predicted"
    if part.base_s is None or part.other_s is None or part.kind is None:
        return AttributionRow(1, part.phase, "", name.title, "not known", "", "", "", "", "", "", part.why)
    ends = (seconds(part.base_s), seconds(part.other_s), _moved(part.delta_s))
    split = (_moved(part.workload_s), _moved(part.efficiency_s), _moved(part.unpriced_s))
    return AttributionRow(1, part.phase, "predicted" if key == "rest-predicted" else key, name.title, _KINDS[part.kind], *ends, *split)
