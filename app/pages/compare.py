"""/compare: N runs side by side, differences only, and which phase moved."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.domain.errors import InvalidRequest, PhaselineError
from app.pages.compare_view import compare_values
from app.pages.form import whole
from app.pages.rendering import page_context, render
from app.services.comparing import BASELINE, base_of, compare_runs, explained
from app.services.runs import RunView, view
from app.services.runs import page as run_page
from app.store.records import RunFilters

router = APIRouter()

_CHOICES = 100


@router.get("/compare")
def compare_page(request: Request) -> Response:
    """`base` and one or more `other`; `run` twice or more (the list's ticks) means the oldest of them is the base."""
    context = page_context(request)
    show_all = request.query_params.get("all") == "1"
    try:
        run_ids = _run_ids(request)
        if len(run_ids) < 2:
            return _choose(request, base=view(context, run_ids[0]) if run_ids else None)
        views, comparisons = compare_runs(context, run_ids)
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


def _run_ids(request: Request) -> list[int]:
    if request.query_params.get("base") == BASELINE:
        others = [_run_id(text) for text in request.query_params.getlist("other")]
        if not others:
            raise InvalidRequest("other", "The baseline of which run? Name it as other, such as other=12.")
        return [base_of(page_context(request), BASELINE, others[0]), *others]
    ids: list[int] = []
    for key in ("base", "other", "run"):
        found = [_run_id(text) for text in request.query_params.getlist(key)]
        ids += sorted(found) if key == "run" else found
    return ids


def _run_id(text: str) -> int:
    number = whole(text)
    if not number:
        raise InvalidRequest("run", "A run is named by its number, such as 12.")
    return number
