"""The baseline of a run's series, set and taken away on the run's page."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.errors import NotFound
from app.pages.rendering import page_context
from app.pages.runs import RunId
from app.services import baselines

router = APIRouter()


@router.post("/runs/{run_id}/baseline")
async def post_baseline(request: Request, run_id: RunId) -> Response:
    """Make this run the baseline of its series, in place of the one it had."""
    async with request.form() as form:
        name = str(form.get("name", ""))[:200]
    await run_in_threadpool(baselines.make, page_context(request), run_id, name, "", datetime.now(UTC), move=True)
    return _to(request, run_id)


@router.post("/runs/{run_id}/baseline/delete")
def post_delete_baseline(request: Request, run_id: RunId) -> Response:
    """Take the baseline away; the run stays."""
    context = page_context(request)
    there = baselines.baseline_of(context, run_id)
    if there is None or there.run_id != run_id:
        raise NotFound(f"Run {run_id} is no baseline: another run of its series was made it meanwhile, or it was taken away.")
    baselines.forget(context, there.id)
    return _to(request, run_id)


def _to(request: Request, run_id: int) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/runs/{run_id}#baseline", status_code=303)
