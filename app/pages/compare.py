"""/compare: N runs side by side, differences only, and which phase moved."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.domain.errors import PhaselineError
from app.pages.compare_view import compare_values
from app.pages.rendering import page_context, render
from app.services.comparing import compare_runs, explained, side_ids, sides_of
from app.services.runs import RunView, view
from app.services.runs import page as run_page
from app.store.records import RunFilters

router = APIRouter()

_CHOICES = 100


@router.get("/compare")
def compare_page(request: Request) -> Response:
    """`base` and one or more `other`, each a run or repeats of one (`12,15,18`); `run` twice or more (the list's ticks) means the oldest of
    them is the base.
    """
    context = page_context(request)
    show_all = request.query_params.get("all") == "1"
    try:
        sides = _side_ids(request)
        if len(sides) < 2:
            return _choose(request, base=view(context, sides[0][0]) if sides else None)
        views, comparisons = compare_runs(context, sides)
    except PhaselineError as error:
        return _choose(request, problem=str(error))
    return render(request, "pages/compare.html", compare_values(views, comparisons, explained(views, comparisons), show_all), block="main")


def _choose(request: Request, base: RunView | None = None, problem: str = "") -> Response:
    """The choice of two runs, with `base` set already where the address names it."""
    recent = run_page(page_context(request), RunFilters(), "-created_at", None, _CHOICES).items
    base_id = base.id if base else recent[1].id if len(recent) > 1 else 0
    other_id = next((run.id for run in recent if run.id != base_id), 0)
    values = {"problem": problem, "recent": recent, "base": base, "base_id": base_id, "other_id": other_id}
    return render(request, "pages/compare_choose.html", values, status=422 if problem else 200)


def _side_ids(request: Request) -> list[tuple[int, ...]]:
    named = {key: [text.replace(" ", "") for text in request.query_params.getlist(key) if text.strip()] for key in ("base", "other", "run")}
    ticked = sorted(side_ids(text, "run") for text in named["run"])
    base, others = named["base"][:1], [*named["base"][1:], *named["other"]]
    if not base:
        return [*(side_ids(text, "other") for text in others), *ticked]
    return [*sides_of(page_context(request), base[0], others), *ticked]
