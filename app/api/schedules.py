"""Schedules over HTTP: jobs that come back."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes
from app.api.dependencies import ContextDep
from app.api.job_bodies import ScheduleBody, SchedulePatch
from app.api.job_shapes import ScheduleList, ScheduleShape
from app.domain.job_schedule import Rhythm
from app.services import job_schedules, jobs
from app.store.job_schedules import NewSchedule

router = APIRouter(prefix="/schedules", tags=["schedules"])

ScheduleNumber = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of a schedule")]


@router.get("", summary="Every schedule", response_model=ScheduleList)
def get_schedules(context: ContextDep) -> Response:
    """Oldest first, each with when it is due. All on one page."""
    return StrictJSON({"items": [job_schedules.schedule_json(item) for item in job_schedules.every(context)], "next": None})


@router.post("", summary="Begin a schedule", status_code=201, response_model=ScheduleShape, responses=changes(422))
def post_schedule(context: ContextDep, body: ScheduleBody) -> Response:
    """Every `every_hours` hours from now, or each day at `daily_at` (UTC). Never two of its jobs at once; what was missed runs once."""
    job = jobs.asked(
        body.kind, body.parameters, priority=body.priority, limit_s=body.limit_s, wanted_device=body.wanted_device
    )  # fmt: skip
    rhythm = Rhythm(body.every_hours, body.daily_at)
    made = NewSchedule(body.name, job.kind, job.parameters, rhythm, job.wanted_device, job.priority, job.limit_s, body.enabled)
    return StrictJSON(job_schedules.schedule_json(job_schedules.add(context, made)), status_code=201)


@router.patch("/{schedule_id}", summary="Turn a schedule on or off", response_model=ScheduleShape, responses=changes(404, 422))
def patch_schedule(context: ContextDep, schedule_id: ScheduleNumber, body: SchedulePatch) -> Response:
    """Turned on again it is due at its next time from now."""
    return StrictJSON(job_schedules.schedule_json(job_schedules.switch(context, schedule_id, enabled=body.enabled)))


@router.delete("/{schedule_id}", summary="Delete a schedule", status_code=204, responses=changes(404, 422))
def delete_schedule(context: ContextDep, schedule_id: ScheduleNumber) -> Response:
    """Its jobs and runs stay."""
    job_schedules.forget(context, schedule_id)
    return Response(status_code=204)
