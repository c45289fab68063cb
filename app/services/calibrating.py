"""Calibrations from stored runs: fit, list, delete, and the profile that a prediction takes."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from app.domain.architecture import ModelArchitecture
from app.domain.calibration import TITLES, Errors, Point, fit
from app.domain.dtypes import number_format
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest, NotFound, PhaselineError
from app.domain.observed import observed, observed_step
from app.domain.prediction import Request
from app.domain.run import Run
from app.domain.serving import MODEL_VERSION
from app.services.assessment import PHASES_APART, request_of, weight_dtype_of
from app.services.context import Context
from app.services.profiles import ProfileBook, read_book
from app.services.summary import timestamp
from app.store import calibrations, run_list, runs
from app.store.calibrations import StoredCalibration
from app.store.records import RunFilters, StoredRun

_PAGE = 500
# Points that a fit waits for; the newest count.
_MOST_RUNS = 160


def calibrate(context: Context, hardware: str, engine: str | None, weight_dtype: str | None, now: datetime) -> StoredCalibration:
    """Fit the scalars of a device with an engine (None: runs whose engine has no profile) at a weight format, and store them.

    Without `weight_dtype` the runs must agree on one. Figures that a flag withholds are not used. Raises UnknownName, InvalidRequest or
    CalibrationRefused, which says what to measure next.
    """
    book = read_book(context)
    device = book.hardware(hardware)
    profile = book.engine(engine) if engine else None
    wanted = number_format(weight_dtype).key if weight_dtype else None
    points = _points(context, book, device.slug, profile.slug if profile else None)
    formats = sorted({point.request.weight_dtype for point in points})
    if wanted is None and len(formats) > 1:
        raise InvalidRequest("weight_dtype", f"The runs on {device.name} have weights in {', '.join(formats)}: say which to calibrate.")
    used = [point for point in points if wanted in (None, point.request.weight_dtype)]
    found = fit(used, device, profile)
    format_ = wanted or formats[0]
    with context.database.write() as session:
        return calibrations.add(session, device.slug, profile.slug if profile else None, format_, MODEL_VERSION, found, now)


def every(context: Context, hardware: str | None = None) -> list[StoredCalibration]:
    """All calibrations, newest first; those of one device."""
    with context.database.read() as session:
        return [item for item in calibrations.every(session) if hardware in (None, item.hardware_slug)]


def one(context: Context, number: int) -> StoredCalibration:
    """The calibration of this number. Raises NotFound."""
    found = next((item for item in every(context) if item.id == number), None)
    if found is None:
        raise _not_there(number)
    return found


def forget(context: Context, number: int) -> None:
    """Delete it. Raises NotFound."""
    with context.database.write() as session:
        if not calibrations.remove(session, number):
            raise _not_there(number)


def calibration_json(item: StoredCalibration) -> dict[str, Any]:
    """A calibration as JSON-ready data: factors, errors by phase before, after and left out, the runs, what they do not tell."""
    return {
        "id": item.id,
        "hardware": item.hardware_slug,
        "engine": item.engine_slug,
        "weight_dtype": item.weight_dtype,
        "model_version": item.model_version,
        "current": item.model_version == MODEL_VERSION,
        "created_at": timestamp(item.created_at),
        "points": item.fit.points,
        "scalars": dict(item.fit.scalars),
        "before": _errors(item.fit.before),
        "after": _errors(item.fit.after),
        "left_out": _errors(item.fit.left_out),
        "untold": [{"scalar": name, "title": TITLES[name], "measure": words} for name, words in item.fit.untold.items()],
        "run_ids": list(item.fit.run_ids),
    }


def calibration_lines(item: StoredCalibration) -> list[str]:
    """The same for a terminal."""
    lines = [f"calibration {item.id}: {item.hardware_slug}, {item.engine_slug or 'no engine profile'}, {item.weight_dtype}"]
    lines += [f"  {TITLES[name]:40} × {value:.3g}" for name, value in item.fit.scalars.items()]
    for phase, before in item.fit.before.items():
        left = item.fit.left_out.get(phase)
        cross = f", cross-validated {left.mean:.1%}" if left else ""
        lines.append(f"  {phase:8} mean error {before.mean:.1%} before{cross}  (n = {before.n})")
    lines += [f"  not told by these runs: {TITLES[name]}; measure {words}" for name, words in item.fit.untold.items()]
    return [*lines, f"  from runs {', '.join(str(number) for number in item.fit.run_ids)}"]


def _errors(by_phase: Mapping[str, Errors]) -> dict[str, Any]:
    return {phase: asdict(errors) for phase, errors in by_phase.items()}


def _not_there(number: int) -> NotFound:
    return NotFound(f"There is no calibration {number}: the page of a device lists what was fitted.")


def _points(context: Context, book: ProfileBook, hardware: str, engine: str | None) -> list[Point]:
    """What the newest runs on a device with an engine measured. A run whose model or formats cannot be priced gives no point."""
    points: list[Point] = []
    for stored in _runs_on(context, hardware):
        profile = book.find_engine(stored.run.engine)
        if (profile.slug if profile else None) != engine:
            continue
        model = book.find_model(stored.model_slug) or book.find_model(stored.run.model)
        if model is None or model.architecture.declared_parameters is not None:
            continue
        try:
            points += _points_of(stored, model.architecture, profile)
        except PhaselineError:
            continue
        if len(points) >= _MOST_RUNS:
            break
    return points


def _runs_on(context: Context, hardware: str) -> Iterable[StoredRun]:
    cursor: str | None = None
    while True:
        with context.database.read() as session:
            page = run_list.page(session, RunFilters(hardware=hardware), sort="-id", cursor=cursor, limit=_PAGE)
            found = {item.id: item for item in runs.get_many(session, tuple(item.id for item in page.items))}
        yield from (found[item.id] for item in page.items if item.id in found)
        cursor = page.next
        if cursor is None:
            return


def _with_clients(run: Run, request: Request) -> Request:
    """The request with all clients of a closed loop: its queue is part of what the model says of it."""
    clients = run.workload.concurrency
    if request.concurrency is None or clients is None or run.load_mode == "open":
        return request
    return replace(request, concurrency=clients)


def _points_of(stored: StoredRun, architecture: ModelArchitecture, engine: EngineProfile | None) -> list[Point]:
    """The points of one run: two where a tool times the phases in two tests, none behind a depth of context."""
    run = stored.run
    dtype, _ = weight_dtype_of(run, architecture)
    request = _with_clients(run, request_of(run, architecture, engine, dtype))
    alone, first, step = observed(run, "prefill_s"), observed(run, "ttft_s"), observed_step(run)
    further = step.value_s if step else None
    if run.format in PHASES_APART:
        if run.workload.context_depth_tokens:
            return []
        decode = Point(stored.id, architecture, replace(request, prompt_tokens=1), None, further)
        return [Point(stored.id, architecture, request, alone.value_s if alone else None, None, True), decode]
    if alone is not None:
        return [Point(stored.id, architecture, request, alone.value_s, further, True)]
    return [Point(stored.id, architecture, request, first.value_s if first else None, further)]
