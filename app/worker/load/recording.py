"""A sweep from its parameters to its document: written anew after each point, so that what was measured survives whatever comes."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from app.domain.served_at_once import Level, waits_for_each_other
from app.formats.phaseline_document import Point, document, write_document
from app.jobs.endpoint_sweep import EndpointSweep
from app.worker.load.link import Link
from app.worker.load.point import Measured, Shape, point_of, row_of
from app.worker.load.request import Asking
from app.worker.load.sweep import METHOD, Knee, Sweep, shapes

KIND = "endpoint_sweep"
T = TypeVar("T")


@dataclass(frozen=True)
class Told:
    """Who hears of a sweep: `planned` the number of points, `working` now and then on one, `done` each row when its point is written."""

    planned: Callable[[int], None]
    working: Callable[[Shape, int, float], None]
    done: Callable[[Shape, Mapping[str, Any]], None]


async def record(
    parameters: EndpointSweep, asking: Asking, link: Link, file: Path, told: Told, environment: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """Measure every point into `file`; the whole document is returned. Raises ServerRefused or Unreachable before the first point."""
    started = datetime.now(UTC).isoformat()
    sweep = Sweep(parameters, asking, link, told.working)
    measured: list[Measured] = []
    points: list[Point] = []

    def written(content: list[Point]) -> Mapping[str, Any]:
        whole = document(KIND, METHOD, parameters.model_dump(mode="json"), content, started, environment)
        write_document(file, whole)
        return whole

    probed = await sweep.probed()
    told.planned(len(list(shapes(parameters))))
    async for found in sweep.points(probed):
        measured.append(found)
        points.append(_with_queue(point_of(found), measured))
        written(points)
        told.done(found.shape, row_of(found, points[-1]))
    return written([_with_knee(point, one, sweep.knees) for point, one in zip(points, measured, strict=True)])


def on_uvloop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end on uvloop, the loop whose times the client is known by."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


def _with_queue(point: Point, measured: list[Measured]) -> Point:
    """The point with the flag that its requests waited for each other, where a lighter point of the same lengths shows it."""
    last = measured[-1]
    lighter = [one for one in measured[:-1] if one.shape.concurrency and _lengths(one) == _lengths(last) and one.columns.samples.ok.any()]
    if not lighter or last.shape.concurrency is None or not last.columns.samples.ok.any():
        return point
    first = min(lighter, key=lambda one: one.shape.concurrency or 0)
    flag = waits_for_each_other(_level(first), _level(last))
    return point if flag is None else replace(point, flags=[*point.flags, flag])


def _lengths(measured: Measured) -> tuple[int, int]:
    return measured.shape.prompt_tokens, measured.shape.output_tokens


def _level(measured: Measured) -> Level:
    return Level(measured.shape.concurrency or 1, measured.columns.samples, measured.columns.ended_s)


def _with_knee(point: Point, measured: Measured, knees: list[Knee]) -> Point:
    knee = next((knee for knee in knees if knee.shape == measured.shape), None)
    if knee is None:
        return point
    text = f"{knee.requests_per_s:.4g} requests/s here and {knee.beyond_per_s:.4g} at twice the load: throughput stops growing."
    return replace(point, labels={**point.labels, "knee": text})
