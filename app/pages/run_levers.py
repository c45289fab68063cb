"""/runs/{id}/levers: each lever of the vocabulary with what it would do to this run, said outright where that is nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from app.domain.errors import InvalidRequest
from app.domain.quantity import change_percent, seconds
from app.pages.causes_view import lever_title
from app.pages.rendering import page_context, render
from app.services import runs
from app.services.diagnosing import explain_run
from app.services.lever_effects import LeverEffect
from app.services.levers import ORDERS, Order, RunLevers, read_order, run_levers

router = APIRouter()

RunId = Annotated[int, Path(ge=1, le=2**63 - 1)]
COLUMNS: Mapping[Order, str] = {
    "prefill": "To the first token",
    "decode": "Each further token",
    "total": "Whole request",
    "rate": "All requests together",
    "cost": "Device time per token",
}
# A change of a rate, a cost or a whole request below this is told as none.
_NONE_BELOW = 0.005


@dataclass(frozen=True)
class LeverLine:
    """One lever as a row: a phase's cell is its change, or why there is none (`…_why`)."""

    effect: LeverEffect
    title: str
    named: bool
    prefill: str
    prefill_why: str
    decode: str
    decode_why: str
    total: str
    rate: str
    cost: str
    memory: str
    seen: tuple[str, ...]


@router.get("/runs/{run_id}/levers")
def levers_page(request: Request, run_id: RunId, sort: str = "total") -> Response:
    """All levers for one run, sorted by what they do to the whole request, a phase, the rate or the cost."""
    view = runs.view(page_context(request), run_id)
    try:
        order, problem = read_order(sort), ""
    except InvalidRequest as error:
        order, problem = "total", str(error)
    shown = run_levers(view, order)
    named = explain_run(view).diagnosis.levers
    values = {
        "run": view,
        "shown": shown,
        "rows": _lines(shown, named),
        "without": [(lever_title(lever), why, shown.seen.get(lever, ())) for lever, why in shown.without],
        "columns": [(key, COLUMNS[key]) for key in COLUMNS if key in ORDERS],
        "problem": problem,
    }
    return render(request, "pages/run_levers.html", values, status=422 if problem else 200)


def _lines(shown: RunLevers, named: Collection[str]) -> list[LeverLine]:
    """Levers that change the same thing share a line."""
    same: dict[str, list[LeverEffect]] = {}
    for effect in shown.effects:
        same.setdefault(effect.what, []).append(effect)
    return [_line(effects, named, shown.seen) for effects in same.values()]


def _line(effects: Sequence[LeverEffect], named: Collection[str], quotes: Mapping[str, tuple[str, ...]]) -> LeverLine:
    effect, levers = effects[0], [str(each.lever) for each in effects]
    title = " / ".join(lever_title(lever) for lever in levers)
    seen = tuple(dict.fromkeys(text for lever in levers for text in quotes.get(lever, ())))
    before, after = effect.before, effect.after
    prefill, decode = (
        "" if why is not None else f"{seconds(old)} → {seconds(new)}, {change_percent(new / old - 1)}"
        for (old, new), why in ((effect.ttft_s, effect.prefill_unmoved), (effect.itl_s, effect.decode_unmoved))
    )
    return LeverLine(
        effect,
        title,
        any(lever in named for lever in levers),
        prefill,
        effect.prefill_unmoved or "",
        decode,
        effect.decode_unmoved or "",
        _change(before.total_s, after.total_s),
        _change(before.output_tokens_per_s, after.output_tokens_per_s),
        _change(before.device_s_per_token, after.device_s_per_token),
        _change(before.memory_bytes, after.memory_bytes),
        seen,
    )


def _change(before: float, after: float) -> str:
    ratio = after / before - 1
    return "none" if abs(ratio) < _NONE_BELOW else change_percent(ratio)
