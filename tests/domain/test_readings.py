"""Figures that follow from others, worked out by hand: phases from each other, rates, Little's law, schedules, streams."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.readings import ChunkStream, dispatch_times, idle_before, load_reading, samples_of_streams, with_readings
from app.domain.run import Distribution, Rate, RequestCounts, Run, Workload
from tests.domain.checked import many


def mean(run: Run, key: str) -> float | None:
    found = run.distribution(key)
    return None if found is None else found.mean


def rate(run: Run, key: str) -> float | None:
    found = run.rate(key)
    return None if found is None else found.value


def test_a_whole_and_its_decode_phase_give_the_first_token() -> None:
    # 3 s, of which 2.4 s for 120 tokens after the first.
    run = Run(
        format="x",
        workload=Workload(output_tokens_mean=121.0),
        requests=RequestCounts(completed=4),
        metrics={"e2e_s": Distribution(mean=3.0), "decode_s": Distribution(mean=2.4)},
    )
    found = with_readings(run)
    assert mean(found, "ttft_s") == pytest.approx(0.6)
    assert found.metrics["itl_s"] == Distribution(mean=pytest.approx(0.02), n=480, origin="derived")
    assert rate(found, "decode_tokens_per_s") == pytest.approx(50)
    assert rate(found, "e2e_output_tokens_per_s") == pytest.approx(121 / 3)


def test_a_whole_and_its_first_token_give_the_decode_phase_and_no_itl() -> None:
    run = Run(format="x", metrics={"e2e_s": Distribution(mean=3.0), "ttft_s": Distribution(mean=0.6)})
    assert mean(with_readings(run), "decode_s") == pytest.approx(2.4)
    assert "itl_s" not in with_readings(replace(run, workload=Workload(output_tokens_mean=121.0))).metrics


def test_nothing_follows_from_a_decode_longer_than_the_whole() -> None:
    run = Run(format="x", metrics={"e2e_s": Distribution(mean=1.0), "decode_s": Distribution(mean=2.4)})
    assert "ttft_s" not in with_readings(run).metrics
    inverted = Run(format="x", metrics={"e2e_s": Distribution(mean=1.0), "ttft_s": Distribution(mean=2.0)})
    assert "decode_s" not in with_readings(inverted).metrics


def test_rates_from_totals_or_from_means() -> None:
    totals = Run(
        format="x",
        duration_s=20.0,
        workload=Workload(prompt_tokens_total=8000, output_tokens_total=1000),
        requests=RequestCounts(completed=10),
    )
    means = replace(totals, workload=Workload(prompt_tokens_mean=800.0, output_tokens_mean=100.0))
    for run in (with_readings(totals), with_readings(means)):
        keys = ("input_tokens_per_s", "output_tokens_per_s", "total_tokens_per_s", "requests_per_s")
        assert [rate(run, key) for key in keys] == [400, 50, 450, 0.5]
        assert run.workload.output_tokens_mean == 100


def test_what_a_file_states_is_kept_and_a_failed_run_is_left_alone() -> None:
    stated = Run(
        format="x",
        duration_s=10.0,
        requests=RequestCounts(completed=5),
        workload=Workload(output_tokens_total=100),
        metrics={"output_tokens_per_s": Rate(9.9, "aggregate")},
    )
    assert with_readings(stated).metrics["output_tokens_per_s"] == Rate(9.9, "aggregate")
    failed = Run(format="x", duration_s=10.0, requests=RequestCounts(5, 0, 5), workload=Workload(output_tokens_total=0))
    assert with_readings(failed) is failed


def test_counts_totals_and_duration_come_from_the_requests() -> None:
    samples = many(np.array([0.1, 0.2]), np.array([1.1, 2.2]), np.array([11.0, 21.0]), start=[0.0, 3.0])
    run = with_readings(Run(format="x", samples=samples))
    assert run.requests == RequestCounts(2, 2, 0)
    assert (run.workload.output_tokens_total, run.workload.output_tokens_mean) == (32, 16.0)
    # From 0 to 3 + 2.2 s.
    assert run.duration_s == pytest.approx(5.2)
    # 1.1/11 and 2.2/21; 0.1/100 and 0.2/100; between them the server had nothing to do for 1.9 s.
    assert mean(run, "ntpot_s") == pytest.approx((0.1 + 2.2 / 21) / 2)
    assert mean(run, "ttft_per_prompt_token_s") == pytest.approx(0.0015)
    assert mean(run, "idle_before_s") == pytest.approx(1.9)
    assert mean(run, "decode_s") == pytest.approx(1.5)


def test_the_rate_while_all_clients_are_busy() -> None:
    # Two clients; both busy from 0 to 2 s with 30 tokens each, then one alone until 6 s with 20 more.
    samples = many(np.full(3, 0.1), np.array([2.0, 2.0, 4.0]), np.array([30.0, 30.0, 20.0]), start=[0.0, 0.0, 2.0])
    run = with_readings(Run(format="x", workload=Workload(concurrency=2), samples=samples))
    assert rate(run, "steady_output_tokens_per_s") == pytest.approx(30)
    assert rate(run, "output_tokens_per_s") == pytest.approx(80 / 6)


def test_what_lies_between_the_client_and_the_server() -> None:
    run = Run(format="x", metrics={"ttft_s": Distribution(mean=0.34), "server_ttft_s": Distribution(mean=0.15)})
    assert mean(with_readings(run), "outside_server_s") == pytest.approx(0.19)
    odd = Run(format="x", metrics={"ttft_s": Distribution(mean=0.1), "server_ttft_s": Distribution(mean=0.15)})
    assert "outside_server_s" not in with_readings(odd).metrics


def test_littles_law() -> None:
    # 5 requests/s of 0.5 + 99 x 0.02 = 2.48 s: 12.4 in flight; 500 tokens/s x 20 ms: ten decode at once.
    run = Run(
        format="x",
        workload=Workload(output_tokens_mean=100.0),
        metrics={
            "ttft_s": Distribution(mean=0.5),
            "itl_s": Distribution(mean=0.02),
            "requests_per_s": Rate(5.0, "aggregate"),
            "output_tokens_per_s": Rate(500.0, "aggregate"),
        },
    )
    found = load_reading(run)
    assert found.in_flight == pytest.approx(12.4)
    assert found.decoding == pytest.approx(10)
    assert (found.server_s_per_token, found.user_s_per_token) == (0.002, 0.02)
    assert found.user_over_server == pytest.approx(10)
    assert load_reading(Run(format="x")).user_over_server is None


def test_one_slot_serves_in_turn() -> None:
    # Due every 0.3 s, each takes 1 s.
    sent = dispatch_times(np.array([0.0, 0.3, 0.6, 5.0]), np.full(4, 1.0), slots=1)
    assert list(sent) == [0.0, 1.0, 2.0, 5.0]
    assert list(dispatch_times(np.array([0.0, 0.3, 0.6, 5.0]), np.full(4, 1.0), slots=2)) == [0.0, 0.3, 1.0, 5.0]


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.lists(st.floats(0.01, 5), min_size=30, max_size=30), st.integers(1, 8))
def test_nobody_is_sent_early_and_the_slots_are_never_more(due: list[float], service: list[float], slots: int) -> None:
    times, lengths = np.sort(np.array(due)), np.array(service[: len(due)])
    sent = dispatch_times(times, lengths, slots)
    assert bool((sent >= times).all())
    for moment in sent:
        assert int(((sent <= moment) & (sent + lengths > moment)).sum()) <= slots
    assert bool((dispatch_times(times, lengths, slots + 1) <= sent + 1e-9).all())


def test_idle_time_is_not_known_where_requests_overlap() -> None:
    overlapping = many(np.full(2, 0.1), np.full(2, 2.0), np.full(2, 5.0), start=[0.0, 1.0])
    assert idle_before(overlapping) is None
    assert idle_before(many(np.full(2, 0.1), np.full(2, 2.0), np.full(2, 5.0))) is None


def test_a_stream_begins_at_the_first_chunk_with_a_token() -> None:
    # A role chunk after 50 ms, the first three tokens 400 ms later, three more after 60 ms.
    samples = samples_of_streams([ChunkStream(0.05, [0.4, 0.06], [0, 3, 3], prompt_tokens=500)])
    assert (samples.ttft_s[0], samples.e2e_s[0]) == (pytest.approx(0.45), pytest.approx(0.51))
    assert (samples.output_tokens[0], samples.prompt_tokens[0]) == (6, 500)
    assert samples.chunks is not None
    assert samples.chunks[0] == 2
    assert list(samples.chunk_gaps_s) == [pytest.approx(0.06)]


def test_a_stream_without_a_token_did_not_succeed() -> None:
    samples = samples_of_streams([ChunkStream(0.05, [0.4], [0, 0])])
    assert not samples.ok[0]
    assert np.isnan(samples.ttft_s[0])
