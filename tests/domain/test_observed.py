"""Which figure of a run stands for one request."""

from dataclasses import replace

import pytest

from app.domain.observed import RequestTimes, measured_times, observed, observed_first_token, observed_step, predicted_times
from app.domain.prediction import Request
from app.domain.run import Distribution, Flag, Run, Workload
from app.domain.serving import predict
from tests.domain.subjects import LLAMA_8B, SERVER
from tests.made_up import textbook_prediction


def run(**metrics: Distribution) -> Run:
    return Run(format="generic", metrics=metrics, workload=Workload(output_tokens_mean=300.0))


def test_the_mean_comes_first_since_only_means_add_up() -> None:
    found = observed(run(ttft_s=Distribution(mean=0.0952, p50=0.0946, n=200)), "ttft_s")
    assert found is not None
    assert (found.stat, found.value_s, found.words) == ("mean", 0.0952, "mean of 200")


def test_a_withheld_mean_gives_way_to_the_median() -> None:
    flagged = Run(
        format="generic",
        metrics={"ttft_s": Distribution(mean=3.0, p50=0.09)},
        flags=(Flag("cold_start_outliers", "the first request took 30 s", ("ttft_s.mean",)),),
    )
    found = observed(flagged, "ttft_s")
    assert found is not None
    assert (found.stat, found.value_s, found.words) == ("p50", 0.09, "median")


def test_a_withheld_metric_is_not_used_at_all() -> None:
    flagged = Run(format="generic", metrics={"ttft_s": Distribution(mean=3.0, p50=0.09)}, flags=(Flag("metric_bug", "…", ("ttft_s",)),))
    assert observed(flagged, "ttft_s") is None


def test_a_tool_that_means_something_else_is_not_quoted() -> None:
    assert observed(run(tpot_s=Distribution(mean=0.01, definition="includes TTFT")), "tpot_s") is None


def test_a_mean_of_the_second_choice_beats_a_median_of_the_first() -> None:
    found = observed_step(run(itl_s=Distribution(p50=0.0070), tpot_s=Distribution(mean=0.0071)))
    assert found is not None
    assert (found.key, found.stat, found.value_s) == ("tpot_s", "mean", 0.0071)


def test_the_prompt_pass_alone_stands_in_where_there_is_no_ttft() -> None:
    found = observed_first_token(run(prefill_s=Distribution(mean=0.08)))
    assert found is not None
    assert found.key == "prefill_s"
    both = observed_first_token(run(prefill_s=Distribution(mean=0.08), ttft_s=Distribution(mean=0.095)))
    assert both is not None
    assert both.key == "ttft_s"


def test_the_founding_request() -> None:
    """95 ms + 299 ÷ 143 s = 0.095 + 2.0909 = 2.1859 s; prefill is 0.095 ÷ 2.1859 = 4.35 % of it (founding claim 8)."""
    times = measured_times(run(ttft_s=Distribution(mean=0.095), itl_s=Distribution(mean=1 / 143)))
    assert times.steps == 299
    assert times.total_s is not None
    assert abs(times.total_s - 2.18591) < 1e-5
    assert times.prefill_share is not None
    assert abs(times.prefill_share - 0.04346) < 1e-5


def test_what_is_not_known_stays_unknown() -> None:
    times = RequestTimes(first_token_s=0.1, step_s=None, steps=299.0)
    assert (times.decode_s, times.total_s, times.prefill_share) == (None, None, None)
    assert measured_times(Run(format="generic")) == RequestTimes(None, None, None)


def test_a_prediction_is_marked_as_one() -> None:
    times = predicted_times(textbook_prediction())
    assert (times.steps, times.predicted) == (299, True)
    assert times.total_s is not None
    assert abs(times.total_s - 1.50425) < 1e-5  # 0.0761905 + 299 x 0.00477612


def test_a_prediction_with_drawn_lengths_is_one_of_mean_length() -> None:
    # Answers of 150 to 300 tokens: 225 on average, 224 after the first. Without clients nothing is drawn.
    drawn = Request(prompt_tokens=2000, output_tokens=300, concurrency=8, shortest_length=0.5)
    found = predict(LLAMA_8B, SERVER, drawn)
    times = predicted_times(found)
    assert times.steps == 224
    assert times.total_s == pytest.approx(found.ttft_s + 224 * found.itl_s) == pytest.approx(found.total_s)
    assert predicted_times(predict(LLAMA_8B, SERVER, replace(drawn, concurrency=None))).steps == 299
