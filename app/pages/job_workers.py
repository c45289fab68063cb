"""/jobs/workers: who measures and with which token, which servers may be measured, and which jobs come back by themselves."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.errors import InvalidRequest, PhaselineError
from app.domain.job_schedule import Rhythm
from app.jobs import KINDS
from app.pages.job_form import job_query, read_job_form
from app.pages.rendering import page_context, render
from app.services import job_schedules, jobs, targets, worker_access
from app.services.context import Context
from app.services.worker_list import worker_list
from app.store.job_schedules import NewSchedule
from app.store.targets import NewTarget

router = APIRouter(prefix="/jobs")

Number = Annotated[int, Path(ge=1, le=2**63 - 1)]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}", re.ASCII)
_KEY_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_ADDRESS = re.compile(r"(?P<scheme>https?)://(?P<host>\[[^\]]+\]|[^:/?#\[\]@]+)(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^?#]*)?", re.ASCII)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Refused:
    """Why a form of the page was not taken, in which part, and what was typed there."""

    part: str
    message: str
    typed: Mapping[str, str]


@router.get("/workers")
def workers_page(request: Request) -> Response:
    """Workers, tokens, servers, schedules."""
    return _page(request, page_context(request))


@router.post("/workers/tokens")
async def post_token(request: Request) -> Response:
    """Make a token; the page that answers is the only place where it is ever shown."""
    context, typed = page_context(request), await _typed(request)
    try:
        days = _whole("expires_days", typed.get("expires_days", ""), 1, 3650)
        made = await run_in_threadpool(worker_access.make_token, context, typed.get("name", ""), days, context.clock.now())
    except PhaselineError as error:
        return await run_in_threadpool(_page, request, context, Refused("tokens", str(error), typed))
    return await run_in_threadpool(_page, request, context, None, made[0])


@router.post("/workers/tokens/{number}/revoke")
def post_revoke(request: Request, number: Number) -> Response:
    """Make a token count no more."""
    context = page_context(request)
    worker_access.revoke(context, number, context.clock.now())
    return _back(request, "tokens")


@router.post("/workers/targets")
async def post_target(request: Request) -> Response:
    """Register a server by its address."""
    return await _stored(request, "targets", lambda context, typed: targets.register(context, _target(typed)))


@router.post("/workers/targets/{number}/delete")
def post_delete_target(request: Request, number: Number) -> Response:
    """Delete one; jobs that name it end as refused."""
    targets.forget(page_context(request), number)
    return _back(request, "targets")


@router.post("/workers/schedules")
async def post_schedule(request: Request) -> Response:
    """Let a job come back: the kind and parameters of a job that was asked for before."""
    return await _stored(request, "schedules", lambda context, typed: job_schedules.add(context, _schedule(context, typed)))


@router.post("/workers/schedules/{number}/switch")
async def post_switch(request: Request, number: Number) -> Response:
    """Turn a schedule on or off."""
    typed = await _typed(request)
    await run_in_threadpool(lambda: job_schedules.switch(page_context(request), number, enabled=typed.get("enabled") == "true"))
    return _back(request, "schedules")


@router.post("/workers/schedules/{number}/delete")
def post_delete_schedule(request: Request, number: Number) -> Response:
    """Delete one; its jobs and runs stay."""
    job_schedules.forget(page_context(request), number)
    return _back(request, "schedules")


async def _typed(request: Request) -> dict[str, str]:
    async with request.form() as form:
        return {key: value.strip()[:4000] for key, value in form.items() if isinstance(value, str)}


async def _stored(request: Request, part: str, store: Callable[[Context, Mapping[str, str]], object]) -> Response:
    context, typed = page_context(request), await _typed(request)
    try:
        await run_in_threadpool(store, context, typed)
    except PhaselineError as error:
        return await run_in_threadpool(_page, request, context, Refused(part, str(error), typed))
    return _back(request, part)


def _back(request: Request, part: str) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/jobs/workers#{part}", status_code=303)


def _page(request: Request, context: Context, refused: Refused | None = None, token: str | None = None) -> Response:
    now = context.clock.now()
    schedules = [(item, job_query(item.schedule.kind, item.schedule.parameters)) for item in job_schedules.every(context)]
    values: dict[str, Any] = {
        "workers": worker_list(context),
        "tokens": [worker_access.token_json(each, now) for each in worker_access.tokens(context)],
        "targets": [(each.id, each.target) for each in targets.every(context)],
        "schedules": schedules,
        "kinds": [(kind, model.title) for kind, model in KINDS.items()],
        "refused": refused,
        "typed": refused.typed if refused else {},
        "new_token": token,
    }
    return render(request, "pages/job_workers.html", values, status=422 if refused else 200)


def _target(typed: Mapping[str, str]) -> NewTarget:
    """A target from a name and an address such as http://10.0.0.5:8000/v1."""
    name, found = typed.get("name", ""), _ADDRESS.fullmatch(typed.get("address", ""))
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            "name", "A target's name is up to 100 letters, digits, spaces, dots, hyphens, and begins with a letter or digit."
        )
    if found is None:
        raise InvalidRequest("address", "The address must be like http://10.0.0.5:8000/v1: scheme, host, port, path, and nothing else.")
    port = int(found["port"] or _PORTS[found["scheme"]])
    if not 1 <= port <= 65_535:
        raise InvalidRequest("address", "The port must be from 1 to 65535.")
    key_ref = typed.get("key_ref", "") or None
    if key_ref is not None and not _KEY_REF.fullmatch(key_ref):
        raise InvalidRequest(
            "key_ref", "The name of a key is letters, digits, dots, hyphens and underscores; the key itself stays on the worker."
        )
    networks = tuple(part.strip() for part in typed.get("networks", "").split(",") if part.strip())
    return NewTarget(name, found["scheme"], found["host"], port, base_path=found["path"] or "", networks=networks, key_ref=key_ref)


def _schedule(context: Context, typed: Mapping[str, str]) -> NewSchedule:
    number = _whole("job", typed.get("job", ""), 1, 2**63 - 1)
    if number is None:
        raise InvalidRequest("job", "Name the job that shall come back by its number.")
    asked = jobs.view(context, number).job.asked
    rhythm = Rhythm(_whole("every_hours", typed.get("every_hours", ""), 1, 24 * 366), typed.get("daily_at", "") or None)
    name = typed.get("name", "") or asked.label or f"job {number} again"
    form = read_job_form(asked.kind, {})
    kept = {**form.parameters, **asked.parameters}
    return NewSchedule(name, asked.kind, kept, rhythm, asked.wanted_device, asked.priority, asked.limit_s)


def _whole(field: str, text: str, least: int, most: int) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise InvalidRequest(field, f"{field} must be a whole number from {least:,} to {most:,}.")
    return int(text)
