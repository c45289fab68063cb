"""The job that measures a running server: the load client with the worker's target, told as every job tells its progress."""

from collections.abc import Mapping
from typing import Any

from app.domain.addresses import parse_destination
from app.domain.errors import InvalidRequest
from app.domain.text import duration
from app.jobs.endpoint_sweep import EndpointSweep
from app.worker.load.link import Link, checked_address
from app.worker.load.point import Shape, progress_words
from app.worker.load.recording import Told, on_uvloop, record
from app.worker.load.request import Asking
from app.worker.measure.job import Job, Refused
from app.worker.measure.reporter import Reporter


def run(job: Job, report: Reporter) -> None:
    """Measure every point; the document is there after each. Raises Refused, DestinationRefused, Unreachable or ServerRefused."""
    if not isinstance(job.parameters, EndpointSweep):
        raise Refused(f"The parameters of {job.kind} are not those of an endpoint_sweep.")
    on_uvloop(_measured(job, job.parameters, report))


async def _measured(job: Job, parameters: EndpointSweep, report: Reporter) -> None:
    asking = _asking(parameters, job.target)
    link = Link(asking.destination, await checked_address(asking.destination))
    report.log(f"Measuring {asking.model} at {asking.destination.host}, {asking.api}.")

    def done(shape: Shape, row: Mapping[str, Any]) -> None:
        # A staircase takes more steps than were planned.
        report.total = max(report.total, report.done + 1)
        report.finished(row)
        report.result(job.result)
        spoken = f"{row['requests']} answers, {row['failed']} failed"
        report.log(f"{shape.words}: {spoken}" + (f", TTFT {duration(row['ttft_s'])}" if row["ttft_s"] is not None else "") + ".")

    def working(shape: Shape, ended: int, since_s: float) -> None:
        report.step(progress_words(shape, ended, since_s))

    await record(parameters, asking, link, job.result, Told(report.begin, working, done))


def _asking(parameters: EndpointSweep, target: Mapping[str, Any]) -> Asking:
    """How to ask the target that the worker resolved. Raises Refused where there is none."""
    if not isinstance(target.get("url"), str):
        raise Refused(f"The target {parameters.target} has no address on this worker.")
    try:
        destination = parse_destination(target["url"], tuple(target.get("networks") or ()))
        metrics = target.get("metrics_url")
        return Asking(
            destination,
            parameters.model,
            parameters.api,
            authorization=(target.get("headers") or {}).get("authorization"),
            # Its path alone: the figures are read at the address that was checked, whatever the URL says.
            metrics=parse_destination(metrics).path or None if isinstance(metrics, str) else None,
        )
    except InvalidRequest as error:
        raise Refused(f"The target {parameters.target} cannot be used: {error}") from error
