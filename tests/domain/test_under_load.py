"""The closed form of a served load: by hand, at its edges, and beside the simulator, which takes every pass one by one."""

from dataclasses import replace

import numpy as np
import pytest

from app.domain.prediction import Request
from app.domain.rates import Formats, resolve
from app.domain.request_rules import Load
from app.domain.schedule import Schedule
from app.domain.serving import predict, predict_grid
from app.domain.simulation import ServedLoad, Simulator
from app.domain.turn import Turn
from app.domain.under_load import bounds, chunk_prompts, in_waves, looked_for_after, queue_s, waves_s
from tests.domain.subjects import ENGINE, LLAMA_8B, SERVER

RATES = resolve(SERVER, Formats.of(Request()), None)
ALONE = Schedule(prefill_alone=True)


def load(**changes: object) -> Load:
    return Load.of(Request(**{"prompt_tokens": 1000, "output_tokens": 100, "concurrency": 8, **changes}))  # type: ignore[arg-type]


def test_a_lone_client_waits_for_nothing() -> None:
    turn = Turn(1.0, 1.0, 1.0, 0.1)
    for schedule in (Schedule(), ALONE):
        assert queue_s(load(concurrency=1), schedule, RATES, 1.0, turn, 0.1) == 0.0
    assert queue_s(Load.of(Request()), Schedule(), RATES, 1.0, turn, 0.1) == 0.0


def test_equal_requests_that_run_alone_come_in_bursts_every_round() -> None:
    # Eight prompts in a pass of 4 s: half a second each. A prompt alone takes 1 s. (8 - 1)·0.5/2 + (4 + 0.5)/2 - 1.
    turn = Turn(1.0, 4.0, 8.0, 0.1)
    assert queue_s(load(), ALONE, RATES, 8.0, turn, 0.1) == pytest.approx(3.0)
    assert float(in_waves(load(), ALONE)) == 1.0
    # With two prompts a pass the first waits for three passes of 1 s before it decodes, the last for none: 1.5 s over 99 tokens.
    assert waves_s(load(), 8.0, Turn(1.0, 1.0, 2.0, 0.1)) == pytest.approx(1.5 / 99)
    assert float(in_waves(load(shortest_length=0.9), ALONE)) == 0.0


def test_drawn_lengths_wait_half_a_step_and_for_a_busy_engine() -> None:
    # ρ = 7·0.5/(1 + 100·0.1) = 0.318; steady 0.05 + 1·ρ/(2·(1 - ρ)) = 0.283; a tenth of the rounds is the burst of 3 s.
    turn = Turn(1.0, 4.0, 8.0, 0.1)
    busy = 3.5 / 11
    expected = 0.9 * (0.05 + busy / (2 * (1 - busy))) + 0.1 * 3.0
    assert queue_s(load(shortest_length=0.8), Schedule(), RATES, 8.0, turn, 0.1) == pytest.approx(expected)


def test_a_scheduler_that_looks_rarely_lets_requests_wait_for_so_many_steps() -> None:
    # The same with 20 steps of 0.1 s instead of half a one.
    turn, rarely = Turn(1.0, 4.0, 8.0, 0.1), replace(RATES, admission_steps=20.0)
    drawn = load(shortest_length=0.8)
    more = queue_s(drawn, Schedule(), rarely, 8.0, turn, 0.1) - queue_s(drawn, Schedule(), RATES, 8.0, turn, 0.1)
    assert more == pytest.approx(0.9 * 19.5 * 0.1)
    assert queue_s(load(concurrency=1), Schedule(), rarely, 1.0, Turn(1.0, 1.0, 1.0, 0.1), 0.1) == 0.0


def test_that_wait_grows_with_what_runs_and_with_the_devices() -> None:
    # 10 steps at 16 requests on 4 devices; with 64 on 8 (tp 4, dp 2) 10·4^0.5·2^0.25, with one on one device 10·(1/16)^0.5·(1/4)^0.25.
    grows = replace(RATES, admission_steps=10.0, admission_running_power=0.5, admission_devices_power=0.25)
    for clients, tp, dp, steps in ((16, 4, 1, 10.0), (64, 4, 2, 20 * 2**0.25), (1, 1, 1, 2.5 * 0.25**0.25)):
        assert looked_for_after(load(concurrency=clients, tp=tp, dp=dp), grows, clients) == pytest.approx(steps)
    # All of it is in the queue: two ranks have 32 clients each, and one number of them in all.
    wide, turn = load(concurrency=64, tp=4, dp=2, shortest_length=0.8), Turn(1.0, 4.0, 8.0, 0.1)
    more, less = (queue_s(wide, Schedule(), rates, 64.0, turn, 0.1) for rates in (grows, replace(grows, admission_steps=0.0)))
    assert more - less == pytest.approx(0.9 * 0.1 * 20 * 2**0.25)


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_the_simulator_lets_them_wait_as_long(power: float) -> None:
    engine = replace(ENGINE, admission_steps=15.0, admission_running_power=power)
    request = Request(prompt_tokens=1000, output_tokens=200, concurrency=8, shortest_length=0.8)
    sent = ServedLoad(prompt_tokens=1000, output_tokens=200, clients=8, shortest_length=0.8)
    often, rarely = (Simulator.of(LLAMA_8B, SERVER, request, engine=one).run(sent).queue_s for one in (ENGINE, engine))
    closed_often, closed_rarely = (predict(LLAMA_8B, SERVER, request, engine=one).queue_s for one in (ENGINE, engine))
    assert rarely - often == pytest.approx(closed_rarely - closed_often, rel=0.25)


def test_equal_requests_come_apart_behind_a_serial_front_end() -> None:
    turn, front = Turn(1.0, 4.0, 8.0, 0.1), replace(RATES, serial_front_end_s=0.01)
    drawn = queue_s(load(shortest_length=0.8), Schedule(), front, 8.0, turn, 0.1)
    assert queue_s(load(), Schedule(), front, 8.0, turn, 0.1) == pytest.approx(drawn)
    assert queue_s(load(), Schedule(), RATES, 8.0, turn, 0.1) > drawn
    # Where prefill runs alone the burst comes back however its prompts arrive.
    assert queue_s(load(), ALONE, front, 8.0, turn, 0.1) == pytest.approx(3.0)


def test_a_pass_holds_what_the_front_end_hands_over() -> None:
    # A prompt takes 0.1 s, each more in a pass 0.06 s, up to 16: 1 s. The front-end gives one every 0.08 s: a pass of two prompts takes
    # 0.16 s, while which two come. (32 - 1)·0.08/2 + (0.16 + 0.08)/2 - 0.1 in the burst; a budget of twice as many changes nothing.
    front = replace(RATES, serial_front_end_s=0.08)
    many = load(concurrency=32)
    expected = 31 * 0.08 / 2 + 0.12 - 0.1
    for prompts in (16.0, 32.0):
        turn = Turn(0.1, 0.1 + 0.06 * (prompts - 1.0), prompts, 0.1)
        assert queue_s(many, ALONE, front, 32.0, turn, 0.1) == pytest.approx(expected)
    # At once they come in full passes: 0.0625 s each, and the last in its pass waits for all of it.
    assert queue_s(many, ALONE, RATES, 32.0, Turn(0.1, 1.0, 16.0, 0.1), 0.1) == pytest.approx(31 * 0.0625 / 2 + 1.0625 / 2 - 0.1)


def test_one_of_a_wave_of_equal_requests_waits_where_whole_answers_are_set_aside() -> None:
    # An answer of 100 tokens at 0.1 s over 8 clients: 1.25 s more than with an engine that sets nothing aside.
    turn, front = Turn(1.0, 4.0, 8.0, 0.1), replace(RATES, serial_front_end_s=0.01)
    reserved = Schedule(kv_reservation=1.0)
    more = queue_s(load(), reserved, front, 8.0, turn, 0.1) - queue_s(load(), Schedule(), front, 8.0, turn, 0.1)
    assert more == pytest.approx(1.25)
    drawn = load(shortest_length=0.8)
    assert queue_s(drawn, reserved, front, 8.0, turn, 0.1) == queue_s(drawn, Schedule(), front, 8.0, turn, 0.1)
    assert queue_s(load(concurrency=1), reserved, front, 1.0, Turn(1.0, 1.0, 1.0, 0.1), 0.1) == 0.0


def test_a_prediction_says_what_equal_lengths_do() -> None:
    reserved = replace(ENGINE, schedule=Schedule(kv_reservation=1.0), serial_front_end_s=0.01)
    said = " ".join(predict(LLAMA_8B, SERVER, Request(concurrency=8), engine=reserved).assumptions)
    assert "the front-end draws clients apart" in said
    assert "One client of a wave of equal requests waits for the next" in said
    drawn = " ".join(predict(LLAMA_8B, SERVER, Request(concurrency=8, shortest_length=0.8), engine=reserved).assumptions)
    assert "wave" not in drawn
    plain = " ".join(predict(LLAMA_8B, SERVER, Request(concurrency=8), engine=replace(reserved, schedule=Schedule())).assumptions)
    assert "waits for the next" not in plain


def test_attention_ranks_share_one_front_end() -> None:
    # Four clients on each of two ranks. A prompt takes 0.1 s of an engine and 0.2 s of the front-end, which has those of both ranks, so
    # each has a pass of its own: (4 - 1)·0.4/2 in the burst, a tenth of all; steady 0.05 + 0.1·ρ/(2·(1 - ρ)), ρ = 3·0.1/(0.1 + 10).
    turn, front = Turn(0.1, 0.4, 4.0, 0.1), replace(RATES, serial_front_end_s=0.2)
    busy = 0.3 / 10.1
    expected = 0.9 * (0.05 + 0.1 * busy / (2 * (1 - busy))) + 0.1 * 0.6
    assert queue_s(load(shortest_length=0.8, dp=2), Schedule(), front, 8.0, turn, 0.1) == pytest.approx(expected)


def test_clients_that_do_not_run_wait_for_an_answer() -> None:
    turn = Turn(1.0, 4.0, 4.0, 0.1)
    waiting = queue_s(load(), ALONE, RATES, 4.0, turn, 0.1)
    running = queue_s(load(concurrency=4), ALONE, RATES, 4.0, turn, 0.1)
    assert waiting - running == pytest.approx(100 * 0.1)


def test_a_full_pass_holds_whole_prompts_of_those_that_run() -> None:
    assert float(chunk_prompts(load(), Schedule(), 64.0)) == 8.0
    assert float(chunk_prompts(load(), Schedule(), 3.0)) == 3.0
    assert float(chunk_prompts(load(prompt_tokens=20_000), Schedule(), 64.0)) == 1.0
    assert float(chunk_prompts(load(cached_prefix_tokens=900), Schedule(), 500.0)) == 81.0


def test_what_bounds_a_load_comes_in_the_order_of_clients() -> None:
    # 8,192 tokens a pass, 1 row and 1,000/100 prompt tokens a client and step: 744.7 clients.
    found = bounds(load(), Schedule(running_cap=500), 60.0)
    assert [(bound.name, round(bound.clients, 1)) for bound in found] == [
        ("KV pool", 60.0),
        ("running cap", 500.0),
        ("tokens of a pass", 744.7),
    ]
    assert [bound.name for bound in bounds(load(), Schedule(), None)] == ["tokens of a pass", "running cap"]


def test_speculation_divides_the_step_and_widens_it() -> None:
    plain, drafted = predict(LLAMA_8B, SERVER, Request()), predict(LLAMA_8B, SERVER, Request(draft_tokens=3, acceptance=0.5))
    # 1 + 0.5 + 0.25 + 0.125 tokens a step
    assert drafted.itl_s == pytest.approx(drafted.decode.time_s / 1.875)
    assert plain.decode.time_s < drafted.decode.time_s < 1.1 * plain.decode.time_s
    assert predict(LLAMA_8B, SERVER, Request(draft_tokens=3, acceptance=1.0)).itl_s == pytest.approx(drafted.decode.time_s / 4, rel=1e-6)
    assert predict(LLAMA_8B, SERVER, Request(draft_tokens=3, acceptance=0.0)).itl_s == pytest.approx(drafted.decode.time_s)


def test_a_grid_of_clients_is_its_single_predictions() -> None:
    clients = [1, 7, 64, 900]
    grid = predict_grid(LLAMA_8B, SERVER, Request(shortest_length=0.8), axes={"concurrency": clients}, engine=ENGINE)
    for place, count in enumerate(clients):
        one = predict(LLAMA_8B, SERVER, Request(concurrency=count, shortest_length=0.8), engine=ENGINE)
        assert grid.columns["queue_s"][place] == pytest.approx(one.queue_s)
        assert grid.columns["ttft_s"][place] == pytest.approx(one.ttft_s)


DISTANCES = {  # schedule, shortest length: most of the median and of the mean distance of TTFT, then of TPOT
    "mixed, drawn": (Schedule(), 0.8, 0.08, 0.15, 0.02, 0.05),
    "alone, drawn": (ALONE, 0.8, 0.06, 0.12, 0.02, 0.05),
    "mixed, equal": (Schedule(), 1.0, 0.15, 0.25, 0.05, 0.10),
    "alone, equal": (ALONE, 1.0, 0.01, 0.02, 0.01, 0.02),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_the_closed_form_stays_near_the_simulator(name: str) -> None:
    schedule, shortest, *most = DISTANCES[name]
    simulator = Simulator.of(LLAMA_8B, SERVER, Request(), schedule=schedule)
    engine = ENGINE.__class__("none", "None", schedule=schedule)
    first, further = [], []
    for prompt, output in ((256, 256), (1024, 1024), (1024, 128), (4000, 100)):
        for clients in (1, 2, 4, 8, 16, 32):
            request = Request(prompt_tokens=prompt, output_tokens=output, concurrency=clients, shortest_length=shortest)
            said = predict(LLAMA_8B, SERVER, request, engine=engine)
            found = simulator.run(ServedLoad(prompt, output, clients=clients, shortest_length=shortest, seed=1), "plain")
            first.append(abs(said.ttft_s / found.ttft.mean - 1))
            further.append(abs(said.itl_s / found.tpot.mean - 1))
    distances = (np.median(first), np.mean(first), np.median(further), np.mean(further))
    assert all(distance <= bound for distance, bound in zip(distances, most, strict=True)), distances


@pytest.mark.parametrize("schedule", [Schedule(), ALONE], ids=["mixed", "alone"])
@pytest.mark.parametrize("clients", [8, 64, 160])
def test_they_agree_where_a_scheduler_knows_late_of_requests_under_every_load(schedule: Schedule, clients: int) -> None:
    # While a full pass leaves prompts over, the next one follows at once: one that let them wait anew held the batch small for ever.
    rarely = replace(ENGINE, schedule=schedule, admission_steps=8.0, admission_running_power=0.4)
    request = Request(prompt_tokens=1024, output_tokens=256, concurrency=clients, shortest_length=0.2)
    said = predict(LLAMA_8B, SERVER, request, engine=rarely)
    found = Simulator.of(LLAMA_8B, SERVER, request, engine=rarely).run(ServedLoad(1024, 256, clients=clients, shortest_length=0.2, seed=1))
    assert said.ttft_s == pytest.approx(found.ttft.mean, rel=0.2)
    assert said.itl_s == pytest.approx(found.itl_s, rel=0.2)


def test_a_prediction_says_how_long_the_scheduler_does_not_look_where_that_is_waited_for() -> None:
    rarely = replace(ENGINE, admission_steps=20.0)
    alone = replace(rarely, schedule=ALONE)
    drawn = Request(prompt_tokens=1000, output_tokens=200, concurrency=8, shortest_length=0.8)
    equal = replace(drawn, shortest_length=1.0)
    pools = replace(drawn, prefill_replicas=1)
    told = [
        any("looks for new requests" in sentence for sentence in predict(LLAMA_8B, SERVER, request, engine=engine).assumptions)
        for request, engine in ((drawn, rarely), (drawn, ENGINE), (drawn, alone), (equal, alone), (pools, rarely), (Request(), rarely))
    ]
    # Where prefill runs alone equal requests wait for the burst of their round, not for a look; a prefill pool has no steps to wait for.
    assert told == [True, False, True, False, False, False]
