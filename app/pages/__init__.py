"""The same services as HTML pages and fragments; a page and its fragment share one address."""

from fastapi import APIRouter

from app.pages import (
    baselines,
    calibrations,
    compare,
    edit,
    glossary,
    hardware,
    job_workers,
    jobs,
    learn,
    maps,
    models,
    predict,
    reimport,
    run_levers,
    runs,
    trends,
    upload,
    webhooks,
    what_if,
)

page_router = APIRouter(include_in_schema=False)
# `upload` and `reimport` before `runs`: /runs/new and /runs/outdated must not be read as a run's number. `job_workers` before `jobs` too.
for _module in (
    predict,
    what_if,
    maps,
    upload,
    edit,
    reimport,
    run_levers,
    runs,
    baselines,
    trends,
    webhooks,
    compare,
    calibrations,
    hardware,
    models,
    glossary,
    learn,
    job_workers,
    jobs,
):
    page_router.include_router(_module.router)
