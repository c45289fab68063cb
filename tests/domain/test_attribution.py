"""Where a change lies, by part and by cause, with the founding text's figures worked out by hand, and what holds of any two runs."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.attribution import Attribution, AttributionPart, attribute
from app.domain.errors import InvalidRequest
from app.domain.point import FACTORS, Place, Point, differing, price_point, swapped
from app.domain.point_change import MOST_FACTORS, Pricing, change_of
from app.domain.point_prices import Parts, modelled_parts, part_prices
from app.domain.prediction import Request
from app.domain.request_parts import BY_NAME
from app.domain.run import Distribution, Flag, Run, Workload
from tests.domain.subjects import TEXTBOOK_8B, TEXTBOOK_H100

STEP_S = 1.6e10 / 3.35e12  # a step of 8e9 weights of two bytes at 3.35 TB/s: 4.776 ms
PASS_S = 2 * 8e9 * 2000 / 4.2e14  # 2,000 tokens at 420 TFLOP/s: 76.19 ms


def run(ttft: float = 0.095, itl: float = 0.007, prompt: float = 2000.0, output: float = 300.0, **means: float) -> Run:
    metrics = {"ttft_s": ttft, "itl_s": itl, **means}
    return Run(
        format="generic",
        workload=Workload(prompt_tokens_mean=prompt, output_tokens_mean=output, concurrency=1),
        metrics={key: Distribution(mean=value, n=100) for key, value in metrics.items()},
    )


def point(output: float = 300.0, **asked: Any) -> Point:
    request = Request(**{"output_tokens": max(round(output), 1), "calibration": "textbook", **asked})
    return Point(TEXTBOOK_8B, TEXTBOOK_H100, None, request, max(output - 1, 0.0))


def found_of(base: Run, other: Run, pricing: Pricing | None) -> Attribution:
    found = attribute(base, other, pricing)
    assert found is not None
    return found


def parts_of(found: Attribution) -> Mapping[tuple[str, str], AttributionPart]:
    return {(part.phase, part.part): part for part in found.parts}


def test_a_longer_prompt_is_workload_and_what_the_model_does_not_give_it_is_not_priced() -> None:
    # TTFT 95 -> 180 ms; the pass 76.19 -> 152.38 ms; not explained 18.81 -> 27.62 ms.
    found = found_of(run(), run(0.18, prompt=4000.0), Pricing(point(), point(prompt_tokens=4000)))
    prefill, rest = parts_of(found)["prefill", "prefill"], parts_of(found)["prefill", "unexplained"]
    assert (prefill.kind, prefill.base_s, prefill.delta_s) == ("predicted", pytest.approx(PASS_S), pytest.approx(PASS_S))
    assert (prefill.workload_s, prefill.efficiency_s, prefill.unpriced_s) == (pytest.approx(PASS_S), 0.0, 0.0)
    assert (rest.base_s, rest.delta_s) == (pytest.approx(0.095 - PASS_S), pytest.approx(0.085 - PASS_S))
    assert (rest.workload_s, rest.unpriced_s) == (0.0, pytest.approx(0.085 - PASS_S))
    (share,) = found.factors
    assert (share.key, share.kind, share.base, share.other) == ("prompt_length", "workload", "2,000 tokens", "4,000 tokens")
    assert (share.prefill_s, share.decode_s) == (pytest.approx(PASS_S), pytest.approx(0.0, abs=1e-12))
    assert found.halves[0].workload_s == pytest.approx(PASS_S)
    assert found.halves[0].unpriced_s == pytest.approx(0.085 - PASS_S)


def test_half_the_bytes_and_twice_the_steps_are_weighed_at_each_other_s_mean() -> None:
    # Weights read 299 x 4.776 ms -> 599 x 2.388 ms. Steps: +300 x the mean of both step times; bytes: -2.388 ms x the mean of both counts.
    pricing = Pricing(point(), point(600.0, weight_dtype="int8"))
    found = found_of(run(), run(output=600.0), pricing)
    part = parts_of(found)["decode", "weight_read"]
    assert part.delta_s == pytest.approx(599 * STEP_S / 2 - 299 * STEP_S)
    assert part.workload_s == pytest.approx(300 * 0.75 * STEP_S)
    assert part.efficiency_s == pytest.approx(-STEP_S / 2 * 449)
    assert set(part.factors) == {"output_length", "weight_format"}
    # What is not explained of a step, 7 ms - 4.776 and 7 - 2.388, comes more often too.
    rest = parts_of(found)["decode", "unexplained"]
    assert rest.workload_s == pytest.approx(300 * (0.007 - 0.75 * STEP_S))
    assert rest.unpriced_s == pytest.approx(449 * STEP_S / 2)


def test_measured_parts_come_before_the_model_s() -> None:
    base = run(0.2, queue_s=0.05, prefill_s=0.08, server_ttft_s=0.14)
    other = run(0.4, queue_s=0.15, prefill_s=0.085, server_ttft_s=0.25)
    parts = parts_of(found_of(base, other, Pricing(point(), point())))
    measured = {name: (part.base_s, part.other_s) for (_, name), part in parts.items() if part.kind == "measured"}
    assert measured == {"queue": (0.05, 0.15), "prefill": (0.08, 0.085), "transport": (pytest.approx(0.06), pytest.approx(0.15))}
    # Nothing that the model knows differs, so it gives nothing to the queue's 100 ms.
    assert (parts["prefill", "queue"].workload_s, parts["prefill", "queue"].unpriced_s) == (0.0, pytest.approx(0.1))
    assert parts["prefill", "unexplained"].delta_s == pytest.approx(0.2 - 0.1 - 0.005 - 0.09)


def test_the_client_s_own_time_is_taken_out_of_transport() -> None:
    base = run(0.2, server_ttft_s=0.15, client_send_s=0.01)
    parts = parts_of(found_of(base, run(0.3, server_ttft_s=0.16, client_send_s=0.1), None))
    assert (parts["prefill", "client"].base_s, parts["prefill", "client"].other_s) == (0.01, 0.1)
    # 200 - 150 - 10 ms and 300 - 160 - 100 ms
    assert (parts["prefill", "transport"].base_s, parts["prefill", "transport"].other_s) == (pytest.approx(0.04), pytest.approx(0.04))


def test_a_client_that_one_side_alone_tells_apart_stands_under_transport_on_both() -> None:
    parts = parts_of(found_of(run(0.2, server_ttft_s=0.15, client_send_s=0.01), run(0.3, server_ttft_s=0.16), None))
    assert parts["prefill", "client"].base_s is None
    assert (parts["prefill", "transport"].base_s, parts["prefill", "transport"].other_s) == (pytest.approx(0.05), pytest.approx(0.14))


def test_a_server_and_a_client_that_took_longer_than_the_whole_leave_no_transport() -> None:
    odd = run(0.2, server_ttft_s=0.15, client_send_s=0.1)
    assert parts_of(found_of(odd, odd, None))["prefill", "transport"].kind is None


def test_what_is_not_known_is_null_and_says_why() -> None:
    parts = parts_of(found_of(run(queue_s=0.01), run(), None))
    assert parts["prefill", "queue"].delta_s is None
    assert "only the base measured it" in parts["prefill", "queue"].why
    assert "stands under transport" in parts["prefill", "client"].why
    assert "does not price both" in parts["decode", "kv_read"].why
    assert {part.delta_s for part in parts.values() if part.kind is None} == {None}


def test_a_part_in_another_statistic_than_the_whole_is_not_taken_from_it() -> None:
    queued = replace(run(), metrics={**run().metrics, "queue_s": Distribution(p50=0.01, n=9)})
    assert parts_of(found_of(queued, queued, None))["prefill", "queue"].kind is None


def test_a_side_without_a_price_leaves_the_halves_per_token_and_the_reason() -> None:
    found = found_of(run(), run(output=400.0), Pricing(point(), None, ("Run 2: No prediction: the file does not name the hardware.",)))
    assert (found.split_by, found.factors, found.unpriced_s) == ("tokens", (), None)
    assert found.notes == ("Run 2: No prediction: the file does not name the hardware.",)
    assert found.halves[1].workload_s == pytest.approx(0.7)


def test_the_wait_before_sending_stands_beside_the_total() -> None:
    found = found_of(run(client_queue_s=0.2), run(client_queue_s=0.5), None)
    assert (found.total_s, found.before_sending_s) == (0.0, (0.2, 0.5))


def test_a_withheld_figure_is_in_no_part() -> None:
    doubtful = replace(run(e2e_s=9.0, queue_s=0.01), flags=(Flag("made_up", "…", ("e2e_s", "queue_s")),))
    found = found_of(run(queue_s=0.01), doubtful, None)
    assert found.other_total_s == pytest.approx(0.095 + 299 * 0.007)
    assert parts_of(found)["prefill", "queue"].kind is None


def test_of_a_prompt_pass_alone_nothing_stands_before_it() -> None:
    alone = replace(run(), metrics={"prefill_s": Distribution(mean=0.08, n=3), "itl_s": Distribution(mean=0.007, n=3)})
    parts = parts_of(found_of(alone, alone, Pricing(point(calibration="default"), point(calibration="default"))))
    assert parts["prefill", "front_end"].base_s == 0.0
    assert parts["prefill", "unexplained"].base_s == pytest.approx(0.0)


def test_a_mixture_that_no_device_runs_takes_the_settings_together() -> None:
    def picky(asked: Sequence[Point]) -> Sequence[Parts]:
        if any((each.request.weight_dtype == "int8") != (each.request.tp == 2) for each in asked):
            raise InvalidRequest("tp", "tp is 1: int8 wants 2.")
        return part_prices(asked)

    pricing = Pricing(point(), point(prompt_tokens=4000, weight_dtype="int8", tp=2), price=picky)
    change = change_of(pricing)
    assert [(group.key, group.title) for group in change.groups] == [
        ("prompt_length", "prompt length"),
        ("configuration", "weight format and parallelism"),
    ]
    assert change.notes == (
        "Taken together, since a mixture of the two runs cannot be priced (tp is 1: int8 wants 2.): weight format and parallelism.",
    )
    assert change.words(change.groups[1]) == ("bf16, one device", "int8, tp 2")


def test_where_no_mixture_can_be_priced_that_is_said() -> None:
    def pickier(asked: Sequence[Point]) -> Sequence[Parts]:
        if any(each not in (point(), point(prompt_tokens=4000, weight_dtype="int8")) for each in asked):
            raise InvalidRequest("prompt_tokens", "No such prompt.")
        return part_prices(asked)

    change = change_of(Pricing(point(), point(prompt_tokens=4000, weight_dtype="int8"), price=pickier))
    assert not change.priced
    assert change.notes == ("The model cannot price what lies between the two runs: No such prompt.",)


def test_many_differences_take_the_settings_together() -> None:
    far = point(400.0, prompt_tokens=4000, batch=4, weight_dtype="int8", kv_dtype="fp8", tp=2)
    assert len(differing(point(), far)) > MOST_FACTORS
    change = change_of(Pricing(point(), far))
    assert [group.key for group in change.groups] == ["prompt_length", "output_length", "load", "configuration"]
    assert "6 things differ at once" in change.notes[0]


def test_every_field_that_prices_a_run_belongs_to_one_factor() -> None:
    of_request = [name for factor in FACTORS for name in factor.of_request]
    of_point = [name for factor in FACTORS for name in factor.of_point]
    assert sorted(of_request) == sorted(item.name for item in fields(Request))
    assert sorted([*of_point, "request"]) == sorted(item.name for item in fields(Point))


def test_all_factors_swapped_is_the_other_point() -> None:
    far = point(400.0, prompt_tokens=4000, weight_dtype="int8", tp=2)
    assert swapped(point(), far, FACTORS) == far


def test_a_spread_of_lengths_is_no_other_length() -> None:
    """265 tokens on average, equal or drawn from 0.06 to 1 of 500: only the load differs, and swapping it keeps the means."""
    equal, drawn = point(concurrency=8, prompt_tokens=265), point(concurrency=8, prompt_tokens=500, shortest_length=0.06)
    drawn = replace(drawn, request=drawn.request.with_mean_lengths(265, 300), steps=equal.steps)
    assert [factor.key for factor in differing(equal, drawn)] == ["load"]
    load = [factor for factor in FACTORS if factor.key == "load"]
    prompt = [factor for factor in FACTORS if factor.key == "prompt_length"]
    assert swapped(equal, drawn, load) == drawn
    assert swapped(equal, drawn, prompt) == equal
    assert swapped(equal, drawn, load).request.prompt_tokens == 500
    assert prompt[0].words(drawn) == "265 tokens"


CROWDS: list[dict[str, Any]] = [
    {"concurrency": None, "batch": 1},
    {"concurrency": None, "batch": 8},
    {"concurrency": 16},
    {"concurrency": 300},
]


@pytest.mark.parametrize("calibration", ["textbook", "default"])
@pytest.mark.parametrize("place", ["served", "in_process", "apart"])
def test_points_priced_together_cost_what_each_costs_alone(calibration: str, place: Place) -> None:
    points = [
        replace(point(output, prompt_tokens=prompt, weight_dtype=dtype, calibration=calibration, **crowd), place=place, depth=50)
        for prompt in (100, 9000)
        for output in (2.0, 700.5)
        for dtype in ("bf16", "fp8")
        for crowd in CROWDS
    ]
    for one, found in zip(points, part_prices(points), strict=True):
        alone = modelled_parts(one, price_point(one))
        assert found == pytest.approx(alone, rel=1e-9, abs=1e-15)
        predicted = price_point(one)
        first = predicted.ttft_s if place == "served" else predicted.prefill.time_s
        halves = [sum(value for key, value in alone.items() if BY_NAME.get(("prefill", key))), sum(alone.values())]
        assert halves == pytest.approx([first, first + one.steps * predicted.itl_s], rel=1e-9)


def test_a_point_that_no_array_can_hold_is_refused_with_its_field() -> None:
    with pytest.raises(InvalidRequest, match="prompt_tokens"):
        part_prices([point(), point(prompt_tokens=0)])


TIMES = st.floats(1e-4, 10.0)
SIDES = st.fixed_dictionaries(
    {"ttft": TIMES, "itl": TIMES, "queue_s": TIMES, "prefill_s": TIMES, "server_ttft_s": TIMES, "e2e_s": TIMES},
    optional={"client_send_s": TIMES},
)
ASKED = st.fixed_dictionaries(
    {
        "prompt_tokens": st.integers(1, 30_000),
        "output": st.floats(2, 2000),
        "weight_dtype": st.sampled_from(["bf16", "fp8", "int8", "int4"]),
        "tp": st.sampled_from([1, 2, 4]),
        "batch": st.integers(1, 64),
    }
)
# A busy machine is no fault of the code.
LEISURELY = settings(deadline=None, max_examples=40)


def pair(
    a: dict[str, float], b: dict[str, float], asked_a: dict[str, Any], asked_b: dict[str, Any]
) -> tuple[tuple[Run, Run], tuple[Point, Point]]:
    runs = [run(**side, prompt=float(asked["prompt_tokens"]), output=asked["output"]) for side, asked in ((a, asked_a), (b, asked_b))]
    points = [point(**asked) for asked in (asked_a, asked_b)]
    return (runs[0], runs[1]), (points[0], points[1])


@LEISURELY
@given(SIDES, SIDES, ASKED, ASKED, st.booleans())
def test_parts_halves_and_causes_sum_to_the_measured_difference(
    a: dict[str, float], b: dict[str, float], asked_a: dict[str, Any], asked_b: dict[str, Any], priced: bool
) -> None:
    runs, points = pair(a, b, asked_a, asked_b)
    found = found_of(*runs, Pricing(*points) if priced else None)
    size = max(found.base_total_s, found.other_total_s, *(abs(half.base_s) + abs(half.other_s) for half in found.halves))
    near = {"abs": 1e-9 * (1 + size + sum(abs(part.base_s or 0) + abs(part.other_s or 0) for part in found.parts))}
    assert found.total_s == runs[1].metrics["e2e_s"].mean - runs[0].metrics["e2e_s"].mean  # type: ignore[union-attr,operator]
    assert sum(part.delta_s or 0 for part in found.parts) + found.remainder_s == pytest.approx(found.total_s, **near)
    for half in found.halves:
        parts = [part for part in found.parts if part.phase == half.phase]
        assert sum(part.delta_s or 0 for part in parts) == pytest.approx(half.delta_s, **near)
        assert (half.workload_s or 0) + (half.efficiency_s or 0) + (half.unpriced_s or 0) == pytest.approx(half.delta_s, **near)
    for part in found.parts:
        if part.workload_s is not None:
            split = (part.workload_s, part.efficiency_s, part.unpriced_s)
            assert sum(value or 0 for value in split) == pytest.approx(part.delta_s, **near)
            assert sum(part.factors.values()) == pytest.approx((part.workload_s or 0) + (part.efficiency_s or 0), **near)


@LEISURELY
@given(SIDES, SIDES, ASKED, ASKED)
def test_swapping_the_sides_flips_every_sign(
    a: dict[str, float], b: dict[str, float], asked_a: dict[str, Any], asked_b: dict[str, Any]
) -> None:
    runs, points = pair(a, b, asked_a, asked_b)
    there, back = found_of(*runs, Pricing(*points)), found_of(*runs[::-1], Pricing(*points[::-1]))
    near = {"rel": 1e-6, "abs": 1e-9 * (1 + sum(abs(part.base_s or 0) + abs(part.other_s or 0) for part in there.parts))}
    assert there.total_s == -back.total_s
    for one, two in zip(there.parts, back.parts, strict=True):
        assert (one.part, one.kind) == (two.part, two.kind)
        for name in ("delta_s", "workload_s", "efficiency_s", "unpriced_s"):
            value, other = getattr(one, name), getattr(two, name)
            assert (value is None) == (other is None)
            if value is not None:
                assert value == pytest.approx(-other, **near)
        assert set(one.factors) == set(two.factors)
        for key, value in one.factors.items():
            assert value == pytest.approx(-two.factors[key], **near)


@LEISURELY
@given(SIDES, ASKED)
def test_equal_runs_give_zeros(side: dict[str, float], asked: dict[str, Any]) -> None:
    runs, points = pair(side, side, asked, asked)
    found = found_of(*runs, Pricing(*points))
    assert (found.total_s, found.remainder_s, found.factors, found.unpriced_s) == (0.0, 0.0, (), 0.0)
    assert all(not value for part in found.parts for value in (part.delta_s, part.workload_s, part.efficiency_s, part.unpriced_s))
