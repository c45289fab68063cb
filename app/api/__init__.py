"""/api/v1: one router per resource; each parses, calls a service and answers."""

from fastapi import APIRouter

from app.api import (
    baselines,
    calibrations,
    compare,
    gate,
    hardware,
    health,
    jobs,
    kv_cache,
    measured,
    models,
    predict,
    reimport,
    runs,
    schedules,
    targets,
    trends,
    webhooks,
    worker,
    workers,
)
from app.api.answers import problems

_MODULES = (
    hardware,
    models,
    kv_cache,
    calibrations,
    runs,
    measured,
    reimport,
    predict,
    compare,
    gate,
    baselines,
    trends,
    webhooks,
    jobs,
    schedules,
    targets,
    workers,
    worker,
)

# Any call may name a host that is not known here or be unreadable (400), and the database may be busy or away (503).
api_router = APIRouter(responses=problems(400, 503))
for _module in _MODULES:
    api_router.include_router(_module.router)

health_router = health.router
