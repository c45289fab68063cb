"""Simulations of real shapes: what must hold of any of them, and what they must agree with."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.derive import EQUAL_LENGTHS
from app.domain.errors import InvalidRequest
from app.domain.prediction import Request
from app.domain.schedule import Schedule
from app.domain.serving import predict
from app.domain.simulation import ServedLoad, Simulation, Simulator, Target, forms
from tests.domain.subjects import ENGINE, LLAMA_8B, SERVER, TEXTBOOK_8B, TEXTBOOK_H100, WINDOWED


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator.of(LLAMA_8B, SERVER, Request(), engine=ENGINE)


def conserved(found: Simulation) -> None:
    """Every request passes its stations in order, and time, tokens and Little's law add up."""
    line = found.timeline
    for earlier, later in (
        (line.sent_s, line.arrived_s),
        (line.arrived_s, line.admitted_s),
        (line.admitted_s, line.first_s),
        (line.first_s, line.finished_s),
    ):
        assert np.all(earlier <= later + 1e-9)
    assert found.gap_n <= line.output_tokens.sum() - found.load.total
    # The mean number of requests inside is their rate times their mean time; so is the number that run.
    assert found.in_system == pytest.approx(found.requests_per_s * found.e2e.mean)
    if not found.preemptions:
        inside = float((line.finished_s - line.admitted_s).sum()) / found.duration_s
        assert found.running == pytest.approx(inside, rel=1e-6)
    assert found.ttft.mean == pytest.approx(found.front_end_s + found.queue_s + found.prefill_s)
    assert 0 <= found.prompt_share <= found.busy <= 1 + 1e-9
    assert sum(found.held_back.values()) <= found.busy + 1e-9


LOADS = st.builds(
    ServedLoad,
    prompt_tokens=st.integers(1, 4000),
    output_tokens=st.integers(1, 300),
    clients=st.integers(1, 24),
    requests_per_client=st.integers(1, 4),
    shortest_length=st.sampled_from([0.5, 0.8, 1.0]),
    cached_prefix_tokens=st.sampled_from([0, 500]),
    cached_share=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 5),
)
SCHEDULES = st.builds(
    Schedule,
    chunk_tokens=st.sampled_from([64, 512, 8192]),
    running_cap=st.sampled_from([1, 8, 1024]),
    kv_reservation=st.sampled_from([0.0, 0.5, 1.0]),
    prefill_alone=st.booleans(),
)


@settings(max_examples=40, deadline=None)
@given(load=LOADS, schedule=SCHEDULES, draft=st.integers(0, 3))
def test_what_holds_of_every_closed_loop(load: ServedLoad, schedule: Schedule, draft: int) -> None:
    made = Simulator.of(WINDOWED, SERVER, Request(draft_tokens=draft, acceptance=0.7), schedule=schedule)
    found = made.run(load, "plain")
    conserved(found)
    assert found.in_system <= load.clients + 1e-9
    assert found.running <= min(load.clients, schedule.cap) + 1e-9


@pytest.mark.parametrize("rate", [0.5, 5.0, 40.0])
def test_what_holds_of_open_loops(simulator: Simulator, rate: float) -> None:
    found = simulator.run(ServedLoad(500, 40, request_rate_per_s=rate, requests=200, seed=3), "plain")
    conserved(found)


def test_a_single_client_sees_the_single_request_and_the_front_end(simulator: Simulator) -> None:
    alone = predict(LLAMA_8B, SERVER, Request(), engine=ENGINE)
    found = simulator.run(ServedLoad(2000, 300, clients=1, requests_per_client=3), "plain")
    assert found.ttft.mean == pytest.approx(alone.ttft_s, rel=1e-6)
    assert found.itl_s == pytest.approx(alone.itl_s, rel=1e-3)
    assert found.front_end_s == pytest.approx(alone.front_end_s)
    assert found.queue_s == pytest.approx(0.0, abs=1e-12)


def test_textbook_passes_can_be_simulated() -> None:
    request = Request(calibration="textbook")
    alone = predict(TEXTBOOK_8B, TEXTBOOK_H100, request)
    found = Simulator.of(TEXTBOOK_8B, TEXTBOOK_H100, request).run(ServedLoad(2000, 300, clients=1), "plain")
    assert found.ttft.mean == pytest.approx(alone.ttft_s, rel=1e-6)
    assert found.itl_s == pytest.approx(alone.itl_s, rel=1e-6)
    assert found.pool_peak is None


def test_throughput_grows_with_clients_until_the_pool_is_full(simulator: Simulator) -> None:
    rates, full = [], []
    for clients in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        found = simulator.run(ServedLoad(1000, 200, clients=clients, requests_per_client=4, shortest_length=0.8))
        rates.append(found.output_tokens_per_s)
        full.append(found.held_back["pool"] > 0)
    before = rates[: full.index(True) if True in full else len(rates)]
    assert len(before) >= 5
    assert before == sorted(before)


def test_the_seed_decides_everything(simulator: Simulator) -> None:
    load = ServedLoad(800, 50, request_rate_per_s=8.0, requests=60, shortest_length=0.5, seed=7)
    one, two = simulator.run(load, "plain"), simulator.run(load, "plain")
    assert np.array_equal(one.timeline.finished_s, two.timeline.finished_s)
    other = simulator.run(ServedLoad(800, 50, request_rate_per_s=8.0, requests=60, shortest_length=0.5, seed=8), "plain")
    assert not np.array_equal(one.timeline.finished_s, other.timeline.finished_s)


def test_poisson_arrivals_come_at_their_rate(simulator: Simulator) -> None:
    found = simulator.run(ServedLoad(10, 1, request_rate_per_s=4.0, requests=2000, seed=1), "plain")
    gaps = np.diff(found.timeline.sent_s)
    assert gaps.mean() == pytest.approx(0.25, rel=0.1)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.1)  # exponential


def test_a_trace_is_sent_as_it_stands(simulator: Simulator) -> None:
    found = simulator.run(ServedLoad(100, 2, sent_s=(0.0, 0.5, 0.5, 30.0)), "plain")
    assert found.timeline.sent_s.tolist() == [0.0, 0.5, 0.5, 30.0]
    assert found.busy < 0.5  # half a minute of it nothing runs


def test_less_to_compute_is_sooner(simulator: Simulator) -> None:
    cold = simulator.run(ServedLoad(4000, 50, clients=8), "plain")
    half = simulator.run(ServedLoad(4000, 50, clients=8, cached_prefix_tokens=3500, cached_share=0.5), "plain")
    warm = simulator.run(ServedLoad(4000, 50, clients=8, cached_prefix_tokens=3500), "plain")
    assert warm.ttft.mean < half.ttft.mean < cold.ttft.mean
    drafting = Simulator.of(LLAMA_8B, SERVER, Request(draft_tokens=3, acceptance=0.8), engine=ENGINE)
    assert drafting.run(ServedLoad(4000, 50, clients=8), "plain").itl_s < 0.6 * cold.itl_s


def test_speculation_without_acceptance_only_costs(simulator: Simulator) -> None:
    useless = Simulator.of(LLAMA_8B, SERVER, Request(draft_tokens=4, acceptance=0.0), engine=ENGINE)
    load = ServedLoad(500, 50, clients=8)
    assert useless.run(load, "plain").itl_s > simulator.run(load, "plain").itl_s


def test_goodput_counts_the_requests_that_keep_every_bound(simulator: Simulator) -> None:
    found = simulator.run(ServedLoad(2000, 100, clients=32), "plain")
    assert found.goodput(Target()).share == 1.0
    at_median = found.goodput(Target(ttft_s=found.ttft.p50))
    assert at_median.share == pytest.approx(0.5, abs=0.05)
    assert at_median.requests_per_s == pytest.approx(at_median.share * found.requests_per_s)
    both = found.goodput(Target(ttft_s=found.ttft.p50, tpot_s=found.tpot.p50))
    assert both.share <= at_median.share
    assert found.goodput(Target(e2e_s=1e-9)).share == 0.0
    with pytest.raises(InvalidRequest):
        Target(ttft_s=0.0)


def test_percentiles_of_gaps_come_from_the_counts(simulator: Simulator) -> None:
    found = simulator.run(ServedLoad(200, 200, clients=1, requests_per_client=1), "plain")
    assert found.gap.mean == pytest.approx(found.itl_s)
    assert found.gap.p50 == pytest.approx(found.itl_s, rel=0.02)
    assert found.gap.n == 199


@pytest.mark.parametrize(
    ("load", "field"),
    [
        (ServedLoad(100, 10), "arrivals"),
        (ServedLoad(100, 10, clients=1, request_rate_per_s=1.0), "arrivals"),
        (ServedLoad(0, 10, clients=1), "prompt_tokens"),
        (ServedLoad(100, 10, clients=0), "clients"),
        (ServedLoad(100, 10, request_rate_per_s=0.0), "request_rate_per_s"),
        (ServedLoad(100, 10, request_rate_per_s=float("nan")), "request_rate_per_s"),
        (ServedLoad(100, 10, clients=2, shortest_length=0.0), "shortest_length"),
        (ServedLoad(100, 10, clients=2, cached_share=1.5), "cached_share"),
        (ServedLoad(100, 10, sent_s=(1.0, 0.5)), "sent_s"),
        (ServedLoad(100, 10, sent_s=(0.0, float("inf"))), "sent_s"),
        (ServedLoad(100, 10, sent_s=()), "requests"),
        (ServedLoad(100, 10, clients=100_000), "requests"),
        (ServedLoad(100, 100_000, clients=1000), "requests"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_its_field(simulator: Simulator, load: ServedLoad, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        simulator.run(load)
    assert refused.value.field == field


def test_both_forms_agree_on_a_real_load(simulator: Simulator) -> None:
    pytest.importorskip("numba")
    load = ServedLoad(1500, 60, clients=40, requests_per_client=3, shortest_length=0.7, seed=2)
    plain, fast = simulator.run(load, "plain"), simulator.run(load, "compiled")
    for name in ("sent_s", "arrived_s", "admitted_s", "first_s", "finished_s"):
        assert np.array_equal(getattr(plain.timeline, name), getattr(fast.timeline, name)), name
    assert np.array_equal(plain.gap_counts, fast.gap_counts)


def test_importing_the_domain_does_not_import_numba() -> None:
    code = "import sys, app.domain.serving, app.domain.simulation; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_kernel_that_was_kept_or_has_run_is_ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(forms, "can_compile", lambda: True)
    monkeypatch.setattr(forms, "_machine_code", lambda: tmp_path)
    monkeypatch.setattr(forms, "compiled", cache(lambda name: name))
    assert not forms.is_ready()
    (tmp_path / "kernel.nbc").touch()
    assert forms.is_ready()
    (tmp_path / "kernel.nbc").unlink()
    forms.compiled("simulate")
    assert forms.is_ready()
    monkeypatch.setattr(forms, "can_compile", lambda: False)
    assert not forms.is_ready()


def test_waves_hold_while_lengths_count_as_equal_and_dissolve_beyond() -> None:
    """Prefill alone: clients that stay together wait for the others' prompts. From EQUAL_LENGTHS of the longest on they do."""

    def ttft(shortest: float) -> float:
        longest = 2 / (1 + shortest)
        load = ServedLoad(round(1000 * longest), round(128 * longest), clients=32, shortest_length=shortest)
        alone = Schedule(prefill_alone=True)
        return Simulator.of(LLAMA_8B, SERVER, Request(), engine=ENGINE, schedule=alone).run(load).ttft.mean

    equal = ttft(1.0)
    assert ttft(EQUAL_LENGTHS) == pytest.approx(equal, rel=0.1)
    assert ttft(0.8) < 0.85 * equal


def test_one_client_of_equal_requests_waits_where_whole_answers_are_set_aside() -> None:
    """As measured with such engines, and as the closed form has it: mean TTFT grows by an answer over the clients."""
    whole = Schedule(kv_reservation=1.0)
    kind = ENGINE.__class__("none", "None", schedule=whole)
    simulator, plain = (Simulator.of(LLAMA_8B, SERVER, Request(), schedule=one) for one in (whole, Schedule()))
    for clients in (4, 8, 16):
        load = ServedLoad(1024, 512, clients=clients)
        found, usual = simulator.run(load), plain.run(load)
        turn = 512 * found.itl_s / (clients - 1)
        # Some of that wait falls together with the wait for the others' prompts.
        assert 0.4 * turn < found.ttft.mean - usual.ttft.mean < 1.1 * turn
        said = predict(LLAMA_8B, SERVER, Request(prompt_tokens=1024, output_tokens=512, concurrency=clients), engine=kind)
        assert said.ttft_s == pytest.approx(found.ttft.mean, rel=0.35)
        assert found.held_back["cap"] == 0.0  # no cap that anybody could raise
    # Nobody waits where lengths differ, where one is alone, or where a cap holds more of them back.
    for load in (ServedLoad(1024, 512, clients=8, shortest_length=0.8), ServedLoad(1024, 64, clients=2)):
        assert simulator.run(load).ttft.mean == pytest.approx(plain.run(load).ttft.mean, rel=0.02)
    four = Schedule(kv_reservation=1.0, running_cap=4)
    capped = Simulator.of(LLAMA_8B, SERVER, Request(), schedule=four).run(ServedLoad(1024, 64, clients=8))
    assert capped.running <= 4
    assert capped.held_back["cap"] > 0.5
