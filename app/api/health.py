"""Liveness and readiness, at the root."""

from fastapi import APIRouter
from fastapi.responses import Response

from app.api.answers import StrictJSON
from app.api.dependencies import ContextDep
from app.api.shapes import HealthShape, ReadinessShape
from app.services.startup import readiness

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="The process answers; touches nothing", response_model=HealthShape)
def healthz() -> Response:
    """Liveness."""
    return StrictJSON({"status": "ok"})


@router.get(
    "/readyz",
    summary="The database can be written and has this version's schema",
    response_model=ReadinessShape,
    responses={503: {"model": ReadinessShape, "description": "Not ready: the failing checks say what to do"}},
)
def readyz(context: ContextDep) -> Response:
    """Readiness: 200 when every check holds, 503 with the failing ones when not."""
    checks = readiness(context)
    ready = all(check.ok for check in checks)
    body = {"status": "ready" if ready else "not ready", "checks": [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in checks]}
    return StrictJSON(body, status_code=200 if ready else 503)
