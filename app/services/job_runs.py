"""The runs of a job belong to the attempt that brought them: they come under its fence, and go when the job goes back into the queue."""

from datetime import datetime

from sqlmodel import Session

from app.domain.lease import QUEUED
from app.store import jobs, runs
from app.store.jobs import Step, StoredJob


def step(session: Session, job_id: int, follow: Step, now: datetime) -> StoredJob | None:
    """`jobs.step`; where the job goes back into the queue, the runs of the attempt that is over go with it, in the same transaction.

    The next attempt measures them anew, and nobody would know which of two counts. Runs that were here before the attempt stay: its result
    was a file that somebody had brought already. A job that ends keeps what it has, however it ends.
    """
    after = jobs.step(session, job_id, follow, now)
    if after is None or after.lease.state != QUEUED or not after.run_ids:
        return after
    ours = [run.id for run in runs.get_many(session, after.run_ids) if after.started_at and run.upload.received_at >= after.started_at]
    for run_id in ours:
        runs.delete(session, run_id)
    return jobs.forget_runs(session, job_id, f"Runs of this attempt that were taken back: {len(ours)}. The next one measures anew.", now)
