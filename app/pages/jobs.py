"""/jobs: what is measured, what waits, and who measures; /jobs/new asks, with an estimate first; /jobs/{id} follows one."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.errors import InvalidRequest, PhaselineError, UnknownName
from app.domain.lease import STATES
from app.jobs import KINDS
from app.pages.job_form import JobForm, read_job_form
from app.pages.job_view import KIND_WORDS, headline, job_values, time_left
from app.pages.rendering import page_context, render
from app.services import jobs, targets
from app.services.context import Context
from app.services.first_look import first_look
from app.services.profiles import read_book
from app.services.worker_list import worker_list
from app.store.jobs import NewJob

router = APIRouter(prefix="/jobs")

JobId = Annotated[int, Path(ge=1, le=2**63 - 1)]
_PAGE = 50


@router.get("")
def jobs_page(request: Request) -> Response:
    """Jobs, newest first, and the workers that take them."""
    context = page_context(request)
    state = request.query_params.get("state", "")
    before = request.query_params.get("cursor", "")
    views, following = jobs.page(
        context,
        states=(state,) if state in STATES else (),
        before=int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None,
        limit=_PAGE,
    )
    rows = [(view, headline(view, 0), time_left((view.job.progress or {}).get("eta_s"))) for view in views]
    query = {"state": state} if state in STATES else {}
    values = {
        "rows": rows,
        "workers": worker_list(context),
        "kinds": [(kind, model.title, KIND_WORDS[kind]) for kind, model in KINDS.items()],
        "kind_words": KIND_WORDS,
        "states": STATES,
        "state": state if state in STATES else "",
        "next_link": f"/jobs?{urlencode({**query, 'cursor': following})}" if following is not None else None,
    }
    return render(request, "pages/jobs.html", values, block="results")


@router.get("/new")
def new_job_page(request: Request) -> Response:
    """The form of a kind, filled from the address, with what it would take on each device that is there."""
    kind = request.query_params.get("kind", "inprocess_sweep")
    if kind not in KINDS:
        raise InvalidRequest("kind", f"There is no such kind of measurement: there are {', '.join(KINDS)}.")
    form = read_job_form(kind, request.query_params)
    return _form(request, page_context(request), form, _extras(request.query_params), touched=len(request.query_params) > 1)


@router.post("/new")
async def post_new_job(request: Request) -> Response:
    """Put the job into the queue and follow it."""
    context = page_context(request)
    async with request.form() as sent:
        typed = {key: value for key, value in sent.items() if isinstance(value, str)}
    kind = typed.get("kind", "")
    if kind not in KINDS:
        raise InvalidRequest("kind", f"There is no such kind of measurement: there are {', '.join(KINDS)}.")
    form, extras = read_job_form(kind, typed), _extras(typed)
    try:
        made = await run_in_threadpool(lambda: jobs.submit(context, _asked(form, extras)))
    except PhaselineError as error:
        return await run_in_threadpool(_refused, request, context, form, extras, error)
    return RedirectResponse(f"{request.scope.get('root_path', '')}/jobs/{made.job.id}", status_code=303)


@router.post("/first")
def post_first(request: Request) -> Response:
    """Measure what is attached, with nothing to fill in."""
    made = first_look(page_context(request))
    return RedirectResponse(f"{request.scope.get('root_path', '')}/jobs/{made.job.id}", status_code=303)


@router.get("/{job_id}")
def job_page(request: Request, job_id: JobId) -> Response:
    """One job; htmx asks for the part that changes until the job has ended."""
    context = page_context(request)
    view = jobs.view(context, job_id)
    values = job_values(view, jobs.points(context, view), jobs.log_lines(context, job_id), context.clock.now())
    return render(request, "pages/job.html", values, block="live")


@router.post("/{job_id}/cancel")
def post_cancel(request: Request, job_id: JobId) -> Response:
    """Ask for the job's end."""
    jobs.cancel(page_context(request), job_id)
    return RedirectResponse(f"{request.scope.get('root_path', '')}/jobs/{job_id}", status_code=303)


def _extras(typed: Mapping[str, Any]) -> dict[str, str]:
    """What every job has beside its parameters, as typed."""
    return {key: str(typed.get(key, "")).strip()[:200] for key in ("label", "wanted_device", "job_limit_s", "priority")}


def _asked(form: JobForm, extras: Mapping[str, str]) -> NewJob:
    return jobs.asked(
        form.kind,
        form.parameters,
        label=extras["label"] or None,
        priority=int(_number("priority", extras["priority"], -100, 100) or 0),
        limit_s=_number("job_limit_s", extras["job_limit_s"], 1, 86_400),
        wanted_device=extras["wanted_device"] or None,
    )


def _number(field: str, text: str, least: float, most: float) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise InvalidRequest(field, f"{field} must be a number from {least:g} to {most:,.0f}.")
    return value


def _refused(request: Request, context: Context, form: JobForm, extras: Mapping[str, str], error: PhaselineError) -> Response:
    field = error.field if isinstance(error, InvalidRequest) else "model" if isinstance(error, UnknownName) else ""
    problem = "" if form.names(field) else str(error)
    return _form(request, context, form.with_error(field, str(error)), extras, touched=False, problem=problem, status=422)


def _form(
    request: Request, context: Context, form: JobForm, extras: Mapping[str, str], *, touched: bool, problem: str = "", status: int = 200
) -> Response:
    estimates: dict[str, Any] | None = None
    if not problem and not any(field.error for field in form.fields):
        try:
            estimates = jobs.estimate_json(jobs.estimate(context, _asked(form, extras)))
        except PhaselineError as error:
            field = error.field if isinstance(error, InvalidRequest) else "model" if isinstance(error, UnknownName) else ""
            if touched:
                form, problem = form.with_error(field, str(error)), "" if form.names(field) else str(error)
    workers = worker_list(context)
    values = {
        "form": form,
        "extras": extras,
        "problem": problem,
        "estimates": estimates,
        "kinds": [(kind, model.title) for kind, model in KINDS.items()],
        "models": [(entry.slug, entry.name) for _, entry in read_book(context).all_models()],
        "targets": [stored.target.name for stored in targets.every(context)],
        "devices": [(device["key"], device["name"], worker["name"]) for worker in workers for device in worker["devices"]],
    }
    return render(request, "pages/job_new.html", values, block="estimate", status=status)
