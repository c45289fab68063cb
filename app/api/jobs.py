"""Measurement jobs over HTTP: ask for one, see what it will take, follow it, cancel it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Path, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from app.api.answers import Responses, StrictJSON, changes, problems
from app.api.dependencies import ContextDep, Limit
from app.api.job_bodies import JobBody
from app.api.job_shapes import EstimateAnswer, JobDetail, JobList
from app.services import jobs
from app.services.strict_json import strict_json
from app.store.jobs import NewJob

router = APIRouter(prefix="/jobs", tags=["jobs"])

JobId = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of a job")]
_State = Literal["queued", "running", "succeeded", "failed", "cancelled", "timeout", "lost", "refused"]
_LOG: Responses = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
# How long the stream waits before it looks by itself: another server process may have heard of the job.
_LOOK_EVERY_S = 1.0


def _asked(body: JobBody) -> NewJob:
    return jobs.asked(
        body.kind,
        body.parameters,
        label=body.label,
        priority=body.priority,
        limit_s=body.limit_s,
        wanted_device=body.wanted_device,
    )


@router.post("", summary="Ask for a measurement", status_code=201, response_model=JobDetail, responses=changes(422))
def post_job(context: ContextDep, body: JobBody) -> Response:
    """Put a job into the queue. It is no error that no worker can run it yet: it waits, and `waiting_for` says for what."""
    made = jobs.submit(context, _asked(body))
    return StrictJSON({**made.as_json(), "points": []}, status_code=201)


@router.post("/estimate", summary="What a job would take", response_model=EstimateAnswer, responses=changes(422))
def post_estimate(context: ContextDep, body: JobBody) -> Response:
    """Time and memory on each device that is there, or why it cannot run on it. Nothing is stored."""
    return StrictJSON(jobs.estimate_json(jobs.estimate(context, _asked(body))))


@router.get("", summary="Jobs", response_model=JobList, responses=problems(422))
def get_jobs(
    context: ContextDep,
    state: Annotated[list[_State] | None, Query()] = None,
    kind: Annotated[str | None, Query(max_length=60)] = None,
    cursor: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    limit: Limit = 100,
) -> Response:
    """Newest first; `state` (repeatable) and `kind` narrow."""
    found, following = jobs.page(context, states=state or (), kind=kind, before=cursor, limit=limit)
    return StrictJSON({"items": [item.as_json() for item in found], "next": str(following) if following is not None else None})


# A number, so that /jobs/estimate answers to POST alone.
@router.get("/{job_id:int}", summary="One job", response_model=JobDetail, responses=problems(404, 422))
def get_job(context: ContextDep, job_id: JobId) -> Response:
    """Its state, what it waits for, progress, the points measured so far, and the runs its result became."""
    return StrictJSON(jobs.detail_json(context, job_id))


@router.post("/{job_id}/cancel", summary="Cancel a job", response_model=JobDetail, responses=changes(404, 409, 422))
def post_cancel(context: ContextDep, job_id: JobId) -> Response:
    """A job that waits ends at once; one that runs is ended by its worker within seconds and keeps the points it finished."""
    jobs.cancel(context, job_id)
    return StrictJSON(jobs.detail_json(context, job_id))


@router.get(
    "/{job_id}/log", summary="A job's log", response_class=PlainTextResponse, responses={**problems(404, 422), **_LOG}
)  # fmt: skip
def get_log(context: ContextDep, job_id: JobId) -> Response:
    """Plain text, a line each: time, attempt, what happened."""
    text = "".join(f"{line}\n" for line in jobs.log_lines(context, job_id))
    return PlainTextResponse(text.encode("utf-8", "replace"), headers={"content-security-policy": "sandbox"})


async def _existing(context: ContextDep, job_id: JobId) -> int:
    """The number, of a job that is there: a stream that has begun can no longer answer 404."""
    await run_in_threadpool(jobs.view, context, job_id)
    return job_id


@router.get(
    "/{job_id}/events", summary="Follow a job", response_class=EventSourceResponse, responses=problems(404, 422)
)  # fmt: skip
async def get_events(
    context: ContextDep,
    job_id: Annotated[int, Depends(_existing)],
    last_event_id: Annotated[str | None, Header(max_length=40)] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events `state`, `progress`, `point` and `log`, each with its number as id, from the first on or after `Last-Event-ID`.

    When the job has ended an `end` follows and the stream closes.
    """
    position = int(last_event_id) if last_event_id and last_event_id.isascii() and last_event_id.isdigit() else 0
    position = min(position, 2**63 - 1)
    while not context.bell.closing:
        rung = context.bell.rung
        events, over = await run_in_threadpool(jobs.events_after, context, job_id, position)
        for event in events:
            position = event.position
            yield ServerSentEvent(event=event.kind, id=str(event.position), raw_data=strict_json(dict(event.data)))
        if over:
            yield ServerSentEvent(event="end", id=str(position), raw_data="{}")
            return
        if not events:
            await context.bell.wait(rung, _LOOK_EVERY_S)
        else:
            await asyncio.sleep(0)
