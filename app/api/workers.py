"""Workers and their tokens over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes
from app.api.dependencies import ContextDep
from app.api.job_bodies import TokenBody
from app.api.job_shapes import NewTokenShape, TokenList, TokenShape, WorkerList
from app.services import worker_access
from app.services.worker_list import worker_list

router = APIRouter(tags=["workers"])

TokenNumber = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of a token")]


@router.get("/workers", summary="Every worker", response_model=WorkerList)
def get_workers(context: ContextDep) -> Response:
    """The one heard of last first, with its devices, whether it is there, and the jobs it holds. All on one page."""
    return StrictJSON({"items": worker_list(context), "next": None})


@router.get("/worker-tokens", summary="Every worker token", response_model=TokenList)
def get_tokens(context: ContextDep) -> Response:
    """Newest first, each without itself. All on one page."""
    now = context.clock.now()
    return StrictJSON({"items": [worker_access.token_json(token, now) for token in worker_access.tokens(context)], "next": None})


@router.post("/worker-tokens", summary="Make a worker token", status_code=201, response_model=NewTokenShape, responses=changes(422))
def post_token(context: ContextDep, body: TokenBody) -> Response:
    """The token is in this answer and nowhere else: only its hash is kept."""
    now = context.clock.now()
    token, kept = worker_access.make_token(context, body.name, body.expires_days, now)
    return StrictJSON({**worker_access.token_json(kept, now), "token": token}, status_code=201)


@router.delete("/worker-tokens/{token_id}", summary="Revoke a worker token", response_model=TokenShape, responses=changes(404, 422))
def delete_token(context: ContextDep, token_id: TokenNumber) -> Response:
    """It counts no more from now on; the worker that uses it stops at its next call. The entry stays, as revoked."""
    now = context.clock.now()
    return StrictJSON(worker_access.token_json(worker_access.revoke(context, token_id, now), now))
