"""The workers' side over HTTP: register, wait for a job, report, finish. Every report names the attempt it belongs to."""

from ipaddress import ip_address
from time import monotonic
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes
from app.api.dependencies import ContextDep
from app.api.job_bodies import ClaimBody, FinishBody, HeartbeatBody, ProgressBody, RegisterBody
from app.api.job_shapes import ClaimAnswer, HeldAnswer, JobShape, RegisteredShape, ResultAnswer
from app.api.jobs import JobId
from app.services import jobs, leasing
from app.services.uploading import read_upload
from app.services.worker_access import admitted
from app.store.workers import StoredWorker

router = APIRouter(prefix="/worker", tags=["worker"])

_BEARER = "bearer "
# A proxy on this machine names its clients in one of these: such a call is not from this machine.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
# How long a claim waits before it looks by itself: another server process may have got a job.
_LOOK_EVERY_S = 1.0
_BEATS_A_LEASE = 3
_BYTES: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


def _token_id(context: ContextDep, request: Request, authorization: Annotated[str | None, Header(max_length=500)] = None) -> int | None:
    """The token that the caller shows, by number; None for a worker of this machine on an open server."""
    token = authorization[len(_BEARER) :].strip() if authorization and authorization.lower().startswith(_BEARER) else None
    return admitted(context, token or None, from_this_machine=_from_this_machine(request), now=context.clock.now())


def _from_this_machine(request: Request) -> bool:
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:
        return False


TokenId = Annotated[int | None, Depends(_token_id)]


def _worker(
    context: ContextDep, token_id: TokenId, phaseline_session: Annotated[str, Header(min_length=16, max_length=200)]
) -> StoredWorker:
    """The worker whose session the header Phaseline-Session names."""
    return leasing.worker_of(context, phaseline_session, token_id)


WorkerDep = Annotated[StoredWorker, Depends(_worker)]


@router.post("/register", summary="Begin a worker's session", response_model=RegisteredShape, responses=changes(422))
def post_register(context: ContextDep, token_id: TokenId, body: RegisterBody) -> Response:
    """The session before is over, and what it held goes back into the queue at once."""
    devices = [device.model_dump(mode="json") for device in body.devices]
    found = leasing.register(context, body.identity, body.name, body.version, body.kinds, devices, token_id)
    lease_s = context.settings.lease_s
    return StrictJSON(
        {
            "worker": found.worker.id,
            "session": found.session,
            "lease_s": lease_s,
            "heartbeat_s": lease_s / _BEATS_A_LEASE,
            "taken_back": list(found.taken_back),
        }
    )


@router.post("/claim", summary="Wait for a job", response_model=ClaimAnswer, responses=changes(409, 422))
async def post_claim(context: ContextDep, worker: WorkerDep, body: ClaimBody, request: Request) -> Response:
    """Answers with a job for one of the `free` devices as soon as there is one, else after `wait_s` seconds with null."""
    until = monotonic() + body.wait_s
    await run_in_threadpool(leasing.note_seen, context, worker)
    while True:
        rung = context.bell.rung
        handed = await run_in_threadpool(leasing.claim, context, worker, body.free, body.holding)
        left = until - monotonic()
        if handed is not None or left <= 0 or context.bell.closing or await request.is_disconnected():
            return StrictJSON({"job": handed.as_json() if handed is not None else None})
        await context.bell.wait(rung, min(left, _LOOK_EVERY_S))


@router.post("/leave", summary="End a worker's session", status_code=204, responses=changes(409, 422))
def post_leave(context: ContextDep, worker: WorkerDep) -> Response:
    """The worker stops; what it still holds goes back into the queue without a mark."""
    leasing.leave(context, worker)
    return Response(status_code=204)


@router.post("/jobs/{job_id}/heartbeat", summary="Renew a lease", response_model=HeldAnswer, responses=changes(404, 409, 422))
def post_heartbeat(context: ContextDep, worker: WorkerDep, job_id: JobId, body: HeartbeatBody) -> Response:
    """409 when the attempt is over: stop the work and drop it. `cancel` asks for the job's end."""
    return StrictJSON({"cancel": leasing.heartbeat(context, worker, job_id, body.attempt)})


@router.post("/jobs/{job_id}/progress", summary="Report progress", response_model=HeldAnswer, responses=changes(404, 409, 422))
def post_progress(context: ContextDep, worker: WorkerDep, job_id: JobId, body: ProgressBody) -> Response:
    """Progress, points and log lines since the last report; renews the lease as a heartbeat does."""
    return StrictJSON({"cancel": leasing.heartbeat(context, worker, job_id, body.attempt, body.told())})


@router.post(
    "/jobs/{job_id}/result",
    summary="Bring a result file",
    response_model=ResultAnswer,
    responses=changes(404, 409, 413, 422),
    openapi_extra=_BYTES,
)
async def post_result(
    context: ContextDep,
    worker: WorkerDep,
    job_id: JobId,
    request: Request,
    attempt: Annotated[int, Query(ge=1, le=2**31 - 1)],
    name: Annotated[str, Query(min_length=1, max_length=200)] = "result.json",
) -> Response:
    """The body is one file and is imported like any upload; its runs are the job's. The same bytes again give the same runs."""
    files, _ = await read_upload(request, context.settings.max_upload_bytes)
    found = await run_in_threadpool(leasing.result, context, worker, job_id, attempt, name, files[0][1])
    return StrictJSON({"run_ids": list(found.run_ids), "refused": list(found.refused), "warnings": list(found.warnings)})


@router.post("/jobs/{job_id}/finish", summary="End an attempt", response_model=JobShape, responses=changes(404, 409, 422))
def post_finish(context: ContextDep, worker: WorkerDep, job_id: JobId, body: FinishBody) -> Response:
    """Once per attempt: a second finish, or one of an attempt that was given up, is 409."""
    leasing.finish(context, worker, job_id, body.attempt, body.outcome, body.reason)
    return StrictJSON(jobs.view(context, job_id).as_json())
