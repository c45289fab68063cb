"""What must hold of every model, device and engine under a load, in closed form and simulated, and as contexts grow."""

import dataclasses
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request
from app.domain.schedule import Schedule
from app.domain.serving import predict
from app.domain.simulation import ServedLoad, Simulator
from tests.domain.simulation.test_simulator import LOADS, SCHEDULES
from tests.domain.test_properties import architectures, devices, engines, passes, requests

LEAST = 1 - 1e-12


@st.composite
def served(draw: st.DrawFn) -> Request:
    """A load of clients, with or without drafted tokens and lengths of their own."""
    return dataclasses.replace(
        draw(requests()),
        batch=1,
        concurrency=draw(st.integers(1, 2000)),
        requests_per_client=draw(st.integers(1, 40)),
        shortest_length=draw(st.sampled_from([0.5, 0.8, 1.0])),
        draft_tokens=draw(st.sampled_from([0, 0, 3])),
        acceptance=draw(st.sampled_from([0.0, 0.7])),
        calibration="default",
    )


@settings(max_examples=120, deadline=None)
@given(architectures(), devices(), engines(), SCHEDULES, served())
def test_no_impossible_number_under_load(
    model: ModelArchitecture, device: HardwareProfile, engine: EngineProfile | None, schedule: Schedule, request: Request
) -> None:
    engine = None if engine is None else dataclasses.replace(engine, schedule=schedule)
    found = predict(model, device, request, engine=engine)
    assert all(math.isfinite(value) and value >= 0 for value in (found.front_end_s, found.queue_s, found.interference_s))
    assert math.isclose(found.ttft_s, found.front_end_s + found.queue_s + found.prefill.time_s)
    for cost in passes(found):
        assert 0 < cost.floor_s <= cost.attainable_s <= cost.time_s
    assert found.itl_s >= found.decode.time_s / (request.draft_tokens + 1) * LEAST
    assert found.served is not None
    assert 0 < found.served.running <= found.served.clients == request.concurrency
    assert all(name and clients >= 0 and not math.isnan(clients) for name, clients in found.served.bounds)


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), engines(), served(), st.integers(1, 500))
def test_more_clients_never_make_a_step_shorter(
    model: ModelArchitecture, device: HardwareProfile, engine: EngineProfile | None, request: Request, more: int
) -> None:
    """On a device whose memory is no bound; elsewhere more clients leave less of it to each."""
    device = dataclasses.replace(device, memory_bytes=None, driver_memory_bytes=None)
    assert request.concurrency is not None
    few, many = (
        predict(model, device, dataclasses.replace(request, concurrency=clients), engine=engine)
        for clients in (request.concurrency, request.concurrency + more)
    )
    assert many.decode.time_s >= few.decode.time_s * LEAST
    assert many.decode.floor_s >= few.decode.floor_s * LEAST
    assert few.prefill.time_s == many.prefill.time_s


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), requests(), st.integers(1, 50_000), st.integers(1, 2000))
def test_more_context_never_costs_less(
    model: ModelArchitecture, device: HardwareProfile, request: Request, further: int, tokens: int
) -> None:
    """As many new tokens after a longer prefix, and answers that run longer."""
    request = dataclasses.replace(request, concurrency=None)
    base = predict(model, device, request)
    prefix = dataclasses.replace(
        request, prompt_tokens=request.prompt_tokens + further, cached_prefix_tokens=request.cached_prefix_tokens + further
    )
    after = predict(model, device, prefix)
    assert after.decode.time_s >= base.decode.time_s * LEAST
    assert after.decode.floor_s >= base.decode.floor_s * LEAST
    assert after.prefill.bytes >= base.prefill.bytes * LEAST
    assert after.prefill.floor_s >= base.prefill.floor_s * LEAST
    longer = predict(model, device, dataclasses.replace(request, output_tokens=request.output_tokens + tokens))
    assert longer.last_step_s >= base.last_step_s * LEAST
    assert longer.decode.time_s >= base.decode.time_s * LEAST
    assert longer.total_s > base.total_s


@settings(max_examples=30, deadline=None)
@given(architectures(), devices(), engines(), SCHEDULES, LOADS)
def test_no_simulation_has_an_impossible_number(
    model: ModelArchitecture, device: HardwareProfile, engine: EngineProfile | None, schedule: Schedule, load: ServedLoad
) -> None:
    """Every request passes its stations in order, at finite times; a load whose one request has no room is refused."""
    try:
        found = Simulator.of(model, device, Request(), engine=engine, schedule=schedule).run(load, "plain")
    except InvalidRequest:
        assert device.capacity_bytes is not None
        return
    line = found.timeline
    moments = np.stack([line.sent_s, line.arrived_s, line.admitted_s, line.first_s, line.finished_s])
    assert np.all(np.isfinite(moments))
    assert np.all(np.diff(moments, axis=0) >= -1e-9)
    figures = (found.duration_s, found.requests_per_s, found.output_tokens_per_s, found.running, found.in_system, found.ttft.mean)
    assert all(value is not None and math.isfinite(value) and value > 0 for value in figures)
    assert min(found.front_end_s, found.prefill_s) >= 0
    assert found.queue_s >= -1e-9
