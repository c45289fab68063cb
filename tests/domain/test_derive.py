"""Derived metrics against arithmetic done by hand (the requests of the definition cases)."""

import numpy as np
import pytest

from app.domain.derive import (
    FROM_TTFT,
    aggregate_rates,
    itl_from_means,
    request_distributions,
    shortest_length,
    statistics,
    steady_window,
    token_weighted_itl,
    tokens_per_chunk,
    tpot_values,
    with_length_spread,
    with_request_rates,
)
from app.domain.run import CANONICAL, Distribution, Rate, RequestSamples, Run, Workload


def samples(
    ttft: list[float],
    e2e: list[float],
    output: list[float],
    *,
    ok: list[bool] | None = None,
    gaps: list[list[float]] | None = None,
    start: list[float] | None = None,
) -> RequestSamples:
    pooled = [gap for each in gaps or [] for gap in each]
    return RequestSamples(
        ok=np.array(ok if ok is not None else [True] * len(ttft)),
        prompt_tokens=np.full(len(ttft), 100.0),
        output_tokens=np.array(output, dtype=float),
        ttft_s=np.array(ttft),
        e2e_s=np.array(e2e),
        start_s=None if start is None else np.array(start),
        chunk_gaps_s=np.array(pooled, dtype=float),
        chunk_gap_counts=np.array([len(each) for each in gaps], dtype=np.int64) if gaps is not None else np.empty(0, dtype=np.int64),
    )


def test_tpot_weights_requests_and_itl_weights_tokens() -> None:
    # TPOT: 100/10 = 10, 3000/100 = 30, 200/4 = 50 ms, mean 30. ITL: 3300 ms over 10 + 100 + 4 = 114 gaps.
    three = samples([0.1, 0.1, 0.12], [0.2, 3.1, 0.32], [11, 101, 5])
    found = request_distributions(three)
    assert found["tpot_s"].mean == pytest.approx(0.030)
    assert found["itl_s"].mean == pytest.approx(3.3 / 114)
    assert found["itl_s"].n == 114
    assert found["itl_s"].origin == "samples"


def test_itl_divides_by_gaps_never_by_output_tokens() -> None:
    # Gaps 40; 10, 10: 60/3 = 20 ms, not 60/5 = 12.
    two = samples([0.05, 0.05], [0.09, 0.07], [2, 3])
    itl = token_weighted_itl(two)
    assert itl is not None
    assert itl.mean == pytest.approx(0.020)
    assert request_distributions(two)["tpot_s"].mean == pytest.approx(0.025)


def test_single_token_and_time_inverted_requests_have_no_tpot() -> None:
    # (500-300)/10 = 20 and (620-320)/15 = 20; the first has one token, the second ends before its first token.
    four = samples([0.5, 0.51, 0.3, 0.32], [0.5, 0.505, 0.5, 0.62], [1, 3, 11, 16])
    values = tpot_values(four)
    assert np.isnan(values[:2]).all()
    assert values[2:] == pytest.approx([0.02, 0.02])
    assert request_distributions(four)["tpot_s"].n == 2


def test_failed_requests_are_in_no_latency() -> None:
    found = request_distributions(samples([0.1, 9.0], [0.2, 99.0], [11, 11], ok=[True, False]))
    assert found["ttft_s"].n == 1
    assert found["e2e_s"].mean == pytest.approx(0.2)
    assert found["itl_s"].mean == pytest.approx(0.01)


def test_identity_total_is_ttft_plus_gaps_times_itl() -> None:
    three = samples([0.1, 0.1, 0.12], [0.2, 3.1, 0.32], [11, 101, 5])
    found = request_distributions(three)
    mean_output = (11 + 101 + 5) / 3
    ttft, itl, e2e = (found[key].mean for key in ("ttft_s", "itl_s", "e2e_s"))
    assert ttft is not None
    assert itl is not None
    assert ttft + (mean_output - 1) * itl == pytest.approx(e2e)


def test_percentiles_of_itl_only_where_a_chunk_is_a_token() -> None:
    single = samples([0.1], [0.14], [4], gaps=[[0.01, 0.01, 0.02]])
    itl = token_weighted_itl(single)
    assert itl is not None
    assert itl.p50 == pytest.approx(0.01)
    assert itl.max == pytest.approx(0.02)
    # 9 chunks of 4 tokens, 80 ms apart: 36 tokens, 8 gaps, 640 ms / 35 gaps between tokens.
    grouped = samples([0.2], [0.84], [36], gaps=[[0.08] * 8])
    itl = token_weighted_itl(grouped)
    assert itl is not None
    assert itl.mean == pytest.approx(0.64 / 35)
    assert itl.p50 is None
    assert itl.p99 is None
    assert tokens_per_chunk(grouped) == pytest.approx(4)


def test_no_figure_where_nothing_follows() -> None:
    nothing = samples([np.nan, 0.1], [np.nan, np.nan], [np.nan, 1])
    assert token_weighted_itl(nothing) is None
    assert set(request_distributions(nothing)) == {"ttft_s"}
    assert tokens_per_chunk(nothing) is None
    assert itl_from_means(0.1, 0.1, 10, 100) is None
    assert itl_from_means(0.1, 0.2, 10, 10) is None


def test_statistics_of_one_value_have_no_spread() -> None:
    one = statistics(np.array([0.25]))
    assert one is not None
    assert one.std is None
    assert one.mean == one.p99 == 0.25
    assert statistics(np.array([np.nan])) is None


def test_itl_from_means_is_exact() -> None:
    # 50 requests of 21 tokens: (240 - 40) ms x 50 / (1050 - 50) = 10 ms.
    assert itl_from_means(0.04, 0.24, 50, 1050) == pytest.approx(0.010)


def test_rates_of_the_deployment() -> None:
    # 20 x (1000 + 100) / 50 = 440; 20 x 100 / 50 = 40; 20 / 50 = 0.4
    rates = aggregate_rates(50.0, 20, 20_000, 2000)
    assert rates == pytest.approx({"requests_per_s": 0.4, "output_tokens_per_s": 40.0, "total_tokens_per_s": 440.0})
    assert aggregate_rates(None, 20, 1, 1) == {}
    assert aggregate_rates(50.0, 0, 0, 0) == {}
    assert aggregate_rates(50.0, 20, None, None) == {"requests_per_s": pytest.approx(0.4)}


def test_request_rates_follow_from_latencies() -> None:
    run = Run(
        format="x",
        workload=Workload(prompt_tokens_mean=500.0, concurrency=1),
        metrics={"itl_s": Distribution(mean=0.02), "ttft_s": Distribution(mean=0.25)},
    )
    done = with_request_rates(run)
    assert done.rate("decode_tokens_per_s") == Rate(50.0, "request", "derived")
    assert done.rate("prefill_tokens_per_s") == Rate(2000.0, "request", "derived", FROM_TTFT)


def test_prefill_rate_prefers_prefill_and_needs_concurrency_1_for_ttft() -> None:
    both = {"prefill_s": Distribution(mean=0.2), "ttft_s": Distribution(mean=0.25)}
    run = with_request_rates(Run(format="x", workload=Workload(prompt_tokens_mean=500.0, concurrency=8), metrics=both))
    assert run.rate("prefill_tokens_per_s") == Rate(2500.0, "request", "derived", CANONICAL)
    served = Run(format="x", workload=Workload(prompt_tokens_mean=500.0, concurrency=8), metrics={"ttft_s": Distribution(mean=0.25)})
    assert with_request_rates(served).rate("prefill_tokens_per_s") is None


def test_rates_the_file_has_are_kept() -> None:
    own = Rate(42.0, "request", "reported")
    run = Run(format="x", metrics={"itl_s": Distribution(mean=0.02), "decode_tokens_per_s": own})
    assert with_request_rates(run).rate("decode_tokens_per_s") == own


def test_steady_window_is_from_first_to_last_moment_with_all_clients_busy() -> None:
    # Two clients, 16 s: both busy from 0 to 8 s. 3 x 100 + 300 x 4/12 = 400 tokens in 8 s = 50/s.
    window = steady_window(samples([0.1] * 4, [4, 4, 4, 12], [100, 100, 100, 300], start=[0, 0, 4, 4]), 2)
    assert window is not None
    assert (window.start_s, window.end_s, window.run_s) == (0.0, 8.0, 16.0)
    assert window.share == pytest.approx(0.5)
    assert window.output_tokens_per_s == pytest.approx(50.0)


def test_no_steady_window_without_start_times_or_enough_requests() -> None:
    assert steady_window(samples([0.1], [1.0], [5]), 1) is None
    assert steady_window(samples([0.1], [1.0], [5], start=[0.0]), 2) is None


def test_how_far_lengths_lie_apart() -> None:
    # Drawn evenly from 50 to 100: mean 75, standard deviation 50 / sqrt(12) = 14.434.
    assert shortest_length(75.0, 14.434) == 0.5
    # From 1 to 128: 1/128 = 0.0078, and 0.01 is as far as it goes; a wider spread than any even one is as wide.
    assert shortest_length(64.5, 127 / 12**0.5) == 0.01
    assert shortest_length(100.0, 400.0) == 0.01
    # (1 - 0.0087) / (1 + 0.0087) = 0.983: a few that end early part no clients.
    assert shortest_length(200.0, 1.0) == 1.0
    assert shortest_length(200.0, 0.0) == 1.0
    assert shortest_length(200.0, None) is None
    assert shortest_length(None, 1.0) is None


def test_the_spread_of_answers_is_that_of_the_requests_that_succeeded() -> None:
    def spread(output: list[float], **rest: list[bool]) -> float | None:
        times = [1.0] * len(output)
        run = Run(format="x", samples=samples(times, [2.0] * len(output), output, **rest))
        return with_length_spread(run).workload.shortest_length

    # 50 and 100: mean 75, deviation 25; 1/3 * sqrt(3) = 0.577; 0.4226 / 1.5774 = 0.268.
    assert spread([50.0, 100.0]) == 0.268
    assert spread([50.0, 100.0, 50.0], ok=[True, False, True]) == 1.0
    assert spread([100.0]) is None
    assert spread([100.0, np.nan]) is None


def test_a_spread_that_the_file_states_stays() -> None:
    run = Run(format="x", workload=Workload(shortest_length=0.3), samples=samples([1.0, 1.0], [2.0, 2.0], [8.0, 8.0]))
    assert with_length_spread(run).workload.shortest_length == 0.3
