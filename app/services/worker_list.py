"""The workers as people see them: which are there, on which devices, at which jobs."""

from datetime import datetime
from typing import Any

from app.services.context import Context
from app.services.job_fit import present
from app.services.summary import timestamp
from app.store import jobs, workers
from app.store.workers import StoredWorker


def worker_list(context: Context) -> list[dict[str, Any]]:
    """All workers as JSON-ready data, the one heard of last first."""
    now = context.clock.now()
    with context.database.read() as session:
        held: dict[int | None, list[int]] = {}
        for job in jobs.running(session):
            held.setdefault(job.lease.worker, []).append(job.id)
        return [worker_json(worker, held.get(worker.id, []), now) for worker in workers.every(session)]


def worker_json(worker: StoredWorker, holds: list[int], now: datetime) -> dict[str, Any]:
    """One worker as JSON-ready data."""
    state = "left" if worker.left_at is not None else "away"
    if present([worker], now):
        state = "busy" if holds else "idle"
    return {
        "id": worker.id,
        "name": worker.name,
        "version": worker.version,
        "state": state,
        "jobs": holds,
        "token": worker.token_id,
        "kinds": list(worker.kinds),
        "devices": [dict(device) for device in worker.devices],
        "registered_at": timestamp(worker.registered_at),
        "seen_at": timestamp(worker.seen_at),
    }
