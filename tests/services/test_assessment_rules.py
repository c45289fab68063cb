"""Which of a run's figures are set against its prediction, and a reason wherever there is none."""

from dataclasses import replace

import pytest

from app.domain.run import Distribution, Flag, Rate, RequestCounts, Workload
from app.services.assessment import assess
from tests.services.measured import CATALOG, H100, LLAMA, TEXTBOOK, TEXTBOOK_H100, measured


def test_a_prefill_time_of_its_own_wins_over_ttft() -> None:
    run = measured()
    found = assess(replace(run, metrics={**run.metrics, "prefill_s": Distribution(mean=0.08)}), TEXTBOOK, TEXTBOOK_H100)
    assert found.mfu == pytest.approx(3.2e13 / 0.08 / 9.89e14)
    assert not found.mfu_from_ttft


def test_a_mean_that_a_flag_withholds_is_not_used() -> None:
    run = measured(flags=(Flag("cold_start_outliers", "", ("ttft_s.mean", "itl_s.mean")),))
    found = assess(run, TEXTBOOK, TEXTBOOK_H100)
    assert (found.measured_prefill_s, found.measured_decode_s) == (0.094, 0.0069)
    gone = assess(measured(flags=(Flag("coalesced", "", ("ttft_s", "itl_s")),)), TEXTBOOK, TEXTBOOK_H100)
    assert (gone.mbu, gone.mfu) == (None, None)
    assert len(gone.reasons) == 2


@pytest.mark.parametrize(
    ("rate", "clients", "running"),
    [
        # In flight = output tokens per second x seconds per token, at most the clients: 1430 x 1/143 = 10.
        (1430.0, 32, 10),
        (1430.0, 4, 4),
        (1430.0, None, 10),
        (14.3, 32, 1),
        (None, 32, 32),
    ],
)
def test_the_batch_of_a_step_follows_from_the_throughput(rate: float | None, clients: int | None, running: int) -> None:
    run = measured(load_mode="closed", workload=replace(measured().workload, concurrency=clients))
    if rate is not None:
        run = replace(run, metrics={**run.metrics, "output_tokens_per_s": Rate(rate, "aggregate")})
    prediction = assess(run, TEXTBOOK, TEXTBOOK_H100).prediction
    assert prediction is not None
    assert (prediction.request.concurrency or 1) == running


def test_faster_than_the_floor_is_flagged_with_both_figures() -> None:
    metrics = {"ttft_s": Distribution(mean=0.02, n=1), "itl_s": Distribution(mean=0.002, n=1)}
    found = assess(measured(metrics=metrics), TEXTBOOK, TEXTBOOK_H100)
    assert [flag.flag for flag in found.flags] == ["impossible_above_roofline", "impossible_above_roofline", "prefix_cache_hits"]
    evidence = " ".join(flag.evidence for flag in found.flags).replace("\xa0", " ")
    for figure in ("2.00 ms", "4.78 ms", "20.0 ms", "32.4 ms"):
        assert figure in evidence
    assert (found.mbu, found.mfu) == (None, None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": None}, "the file does not name the model"),
        ({"model": "acme/unknown"}, "the model “acme/unknown” has no entry here; choose one under Edit"),
        ({"requests": RequestCounts(5, 0, 5)}, "no request was completed"),
        ({"workload": Workload()}, "does not say how long prompts and outputs were"),
        ({"weight_dtype": "fp99"}, "weight_dtype is 'fp99'"),
        ({"weight_dtype": None, "model": "Llama-3.1-8B-AWQ"}, "looks quantised and the file does not say how"),
        ({"tp": 3}, "tp"),
    ],
)
def test_without_a_prediction_there_is_a_reason(changes: dict[str, object], words: str) -> None:
    model = measured(**changes).model or ""
    architecture = None if model in ("", "acme/unknown") else LLAMA
    found = assess(measured(**changes), architecture, H100)
    assert found.prediction is None
    assert (found.mbu, found.mfu) == (None, None)
    assert any(words in reason for reason in found.reasons), found.reasons
    assert all(reason.endswith(".") for reason in found.reasons)


def test_an_unknown_device_is_a_reason() -> None:
    assert "the hardware “a box” has no entry here" in assess(measured(hardware="a box"), LLAMA, None).reasons[0]
    assert "the file does not name the hardware" in assess(measured(hardware=None), LLAMA, None).reasons[0]


def test_an_engine_profile_is_used_where_the_engine_is_known() -> None:
    run = measured(model="llama-3-1-8b", hardware="h100")
    plain = assess(run, LLAMA, H100).prediction
    engine = assess(run, LLAMA, H100, CATALOG.engines["llama-cpp"]).prediction
    assert plain is not None
    assert engine is not None
    assert plain.itl_s != engine.itl_s
