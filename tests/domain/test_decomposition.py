"""The blocks of a request add up, whatever the numbers, and what is not explained is never hidden."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.decomposition import Decomposition, decompose, decomposition_blocks, explanation
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Part, PassCost, Prediction, Term
from app.domain.run import Distribution, Run, Workload
from tests.made_up import H100, measured_run, operator_prediction, pass_of, prediction_of, textbook_prediction

TEXTBOOK = textbook_prediction()


def founding_run(**metrics: Distribution) -> Run:
    return Run(
        format="generic",
        workload=Workload(output_tokens_mean=300.0),
        metrics={"ttft_s": Distribution(mean=0.095, n=200), "itl_s": Distribution(mean=0.007, n=200), **metrics},
    )


def by_key(found: Decomposition) -> dict[str, float]:
    return {block.key: block.each_s for block in found.blocks}


def test_the_prediction_alone_has_nothing_unexplained() -> None:
    """76.19 ms once and 299 × 4.776 ms: 1.5043 s, as the contract prints it."""
    found = decompose(TEXTBOOK)
    assert [(block.key, block.kind, block.times) for block in found.blocks] == [
        ("prefill_compute", "predicted", 1.0),
        ("decode_weights", "predicted", 299.0),
    ]
    assert math.isclose(found.total_s, 1.5043, abs_tol=5e-5)
    assert not found.measured
    assert explanation(found.prefill) == "predicted"


def test_the_arithmetic_has_the_numbers_put_in() -> None:
    words = [block.arithmetic.replace("\u00a0", " ") for block in decomposition_blocks(TEXTBOOK)]
    assert words == ["32.0 TFLOP ÷ 420 TFLOP/s", "16.0 GB ÷ 3.35 TB/s"]


def test_what_a_run_leaves_over_is_a_block() -> None:
    """95.0 - 76.19 = 18.81 ms before the first token and 7.0 - 4.776 = 2.224 ms a token are not explained by textbook arithmetic."""
    found = decompose(TEXTBOOK, founding_run())
    blocks = by_key(found)
    assert math.isclose(blocks["prefill_unexplained"], 0.0188095, abs_tol=1e-7)
    assert math.isclose(blocks["decode_unexplained"], 0.00222388, abs_tol=1e-8)
    assert math.isclose(found.total_s, 0.095 + 299 * 0.007, rel_tol=1e-12)
    assert explanation(found.prefill).replace("\u00a0", " ") == "explained 80.2 %"


def test_an_overshoot_is_negative_and_says_so() -> None:
    found = decompose(TEXTBOOK, founding_run(ttft_s=Distribution(mean=0.070)))
    last = found.prefill.blocks[-1]
    assert last.over_predicted
    assert last.title == "Over-predicted"
    assert last.arithmetic.replace("\u00a0", " ").startswith("over-predicted by 6.19 ms")
    assert explanation(found.prefill).replace("\u00a0", " ") == "over-predicted by 6.19 ms"
    assert math.isclose(found.prefill.seconds, 0.070, rel_tol=1e-12)


def test_an_exact_prediction_still_shows_that_nothing_is_left() -> None:
    found = decompose(TEXTBOOK, founding_run(ttft_s=Distribution(mean=TEXTBOOK.ttft_s)))
    assert found.prefill.blocks[-1].key == "prefill_unexplained"
    assert abs(found.prefill.blocks[-1].each_s) < 1e-15


def test_a_measured_queue_is_its_own_block() -> None:
    found = decompose(TEXTBOOK, founding_run(queue_s=Distribution(mean=0.010, n=200)))
    queue = next(block for block in found.blocks if block.key == "queue")
    assert (queue.kind, queue.each_s, queue.arithmetic) == ("measured", 0.010, "measured, mean of 200")
    assert math.isclose(by_key(found)["prefill_unexplained"], 0.0088095, abs_tol=1e-7)


def test_a_prompt_pass_timed_in_process_has_no_front_end() -> None:
    prediction = prediction_of(pass_of(compute=0.08), pass_of(weights=0.005), front_end_s=0.015)
    run = Run(format="llama_bench", metrics={"prefill_s": Distribution(mean=0.085)})
    found = decompose(prediction, run)
    assert [block.key for block in found.prefill.blocks] == ["prefill_compute", "prefill_unexplained"]
    assert math.isclose(by_key(found)["prefill_unexplained"], 0.005, abs_tol=1e-12)
    assert found.decode.observed is None


def test_full_bandwidth_is_a_limit_and_the_rest_is_lost() -> None:
    """16.0 GB at 3.35 TB/s need 4.776 ms; a step of 5.554 ms (86 %) loses 0.778 ms."""
    weights = Term("down", "weights", 1.6e10, 1.6e10, 0.00555363, "memory")
    prediction = prediction_of(pass_of(compute=0.08), pass_of(terms=(weights,)))
    found = decompose(prediction, hardware=H100)
    limit, lost = found.decode.blocks
    assert (limit.key, limit.kind) == ("decode_weights_floor", "limit")
    assert math.isclose(limit.each_s, 0.00477612, abs_tol=1e-8)
    assert math.isclose(lost.each_s, 0.00077751, abs_tol=1e-8)
    assert lost.arithmetic.replace("\u00a0", " ") == "at 86.0 % of 3.35 TB/s"


def test_weights_read_at_full_bandwidth_lose_nothing() -> None:
    found = decompose(TEXTBOOK, hardware=H100)
    assert [(block.key, block.kind) for block in found.decode.blocks] == [("decode_weights_floor", "limit")]


def test_a_pass_that_its_parts_do_not_fill_says_so() -> None:
    terms = (Term("gemm", "compute", 1e12, 1e9, 0.010, "compute"),)
    longer = prediction_of(pass_of(terms=terms, time_s=0.012), pass_of(weights=0.005))
    assert math.isclose(by_key(decompose(longer))["prefill_other"], 0.002, abs_tol=1e-12)
    shorter = prediction_of(pass_of(terms=terms, time_s=0.009), pass_of(weights=0.005))
    block = next(block for block in decomposition_blocks(shorter) if block.key == "prefill_other")
    assert (block.title, round(block.each_s, 9)) == ("Parts that overlap", -0.001)


def test_other_requests_prefill_belongs_to_neither_phase() -> None:
    prediction = prediction_of(pass_of(compute=0.08), pass_of(weights=0.005), interference_s=0.001)
    block = next(block for block in decomposition_blocks(prediction) if block.key == "decode_interference")
    assert (block.hue, block.each_s) == ("rest", 0.001)


def test_one_output_token_needs_no_decode() -> None:
    run = Run(format="generic", metrics={"ttft_s": Distribution(mean=0.1)}, workload=Workload(output_tokens_mean=1.0))
    found = decompose(TEXTBOOK, run)
    assert found.decode.seconds == 0
    assert found.total_s == pytest.approx(0.1, rel=1e-12)


TIMES = st.floats(min_value=1e-7, max_value=1e3)
MAYBE_TIMES = st.none() | TIMES
PART_TIMES = st.dictionaries(st.sampled_from(("compute", "attention", "weights", "kv", "communication", "overhead")), TIMES, min_size=1)


def costs(parts: dict[Part, float]) -> PassCost:
    return pass_of(terms=tuple(Term(f"{part} term", part, 1e9, 1e9, time_s, "memory") for part, time_s in parts.items()))


@given(PART_TIMES, PART_TIMES, st.integers(1, 10_000), TIMES, TIMES, MAYBE_TIMES, MAYBE_TIMES, MAYBE_TIMES, st.booleans())
def test_blocks_add_up_to_what_was_measured_or_predicted(  # type: ignore[no-untyped-def]
    prefill, decode, output, front_end, interference, ttft, itl, queue, with_hardware
) -> None:
    prediction: Prediction = prediction_of(
        costs(prefill), costs(decode), output_tokens=output, front_end_s=front_end, interference_s=interference
    )
    given_metrics = {"ttft_s": ttft, "itl_s": itl, "queue_s": queue}
    metrics = {key: Distribution(mean=value) for key, value in given_metrics.items() if value is not None}
    run = Run(format="generic", metrics=metrics, workload=Workload(output_tokens_mean=float(output)))
    hardware: HardwareProfile | None = H100 if with_hardware else None
    found = decompose(prediction, run, hardware)
    first = ttft if ttft is not None else prediction.ttft_s + (queue or 0.0)
    step = itl if itl is not None else prediction.itl_s
    for blocks, once, times in ((found.prefill.blocks, first, 1), (found.decode.blocks, step, output - 1)):
        # the rounding of a sum is a share of its largest term, which an overshoot makes larger than the sum
        rounding = 1e-9 * max(abs(block.each_s) for block in blocks)
        assert math.fsum(block.each_s for block in blocks) == pytest.approx(once, rel=1e-9, abs=rounding)
        assert math.fsum(block.seconds for block in blocks) == pytest.approx(once * times, rel=1e-9, abs=rounding * times)
    assert found.total_s == pytest.approx(first + (output - 1) * step, rel=1e-9)
    assert all(block.each_s > 0 for block in found.blocks if block.kind in ("measured", "predicted", "limit"))
    assert any(block.key == "prefill_unexplained" for block in found.blocks) == (ttft is not None)
    assert any(block.key == "decode_unexplained" for block in found.blocks) == (itl is not None)


def test_what_lies_outside_the_server_is_measured_and_not_left_to_the_rest() -> None:
    # TTFT 95.2 ms, of which the server knows 80 ms.
    served = measured_run(server_ttft_s=Distribution(mean=0.08, n=200))
    plain, found = decompose(operator_prediction(), measured_run()).prefill, decompose(operator_prediction(), served).prefill
    outside = next(block for block in found.blocks if block.key == "transport")
    assert (outside.kind, outside.each_s) == ("measured", pytest.approx(0.0152))
    assert sum(block.each_s for block in found.blocks) == pytest.approx(found.total_s)
    assert plain.unexplained_s is not None
    assert found.unexplained_s == pytest.approx(plain.unexplained_s - 0.0152)
