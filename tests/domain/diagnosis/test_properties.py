"""What holds for any two runs: sums, signs, scale, and figures that a flag withholds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.attribution import attribute
from app.domain.diagnosis import Subject, diagnose, diagnose_pair
from tests.domain.diagnosis.measured import loads, one, run

TIMES = st.floats(1e-4, 10.0)
SIDES = st.fixed_dictionaries(
    {
        "ttft": TIMES,
        "itl": TIMES,
        "server": TIMES,
        "queue": TIMES,
        "prefill": TIMES,
        "prompt": st.floats(1, 1e5),
        "output": st.floats(2, 1e4),
    }
)
# A busy machine is no fault of the code.
LEISURELY = settings(deadline=None, max_examples=60)
TIMED = ("ttft", "itl", "server", "queue", "prefill")


@LEISURELY
@given(SIDES, SIDES)
def test_the_parts_sum_to_the_measured_difference(base: dict[str, float], other: dict[str, float]) -> None:
    found = attribute(run(**base), run(**other))
    seen = diagnose_pair(one(**base), one(**other)).observables
    assert found is not None
    assert sum(part.delta_s for part in found.halves) + found.remainder_s == pytest.approx(found.total_s, rel=1e-9, abs=1e-9)
    assert seen["total_added_s"] == pytest.approx(found.total_s)
    assert seen["ttft_added_s"] + seen["decode_added_s"] + seen["remainder_s"] == pytest.approx(seen["total_added_s"], rel=1e-9, abs=1e-6)


@LEISURELY
@given(SIDES, SIDES)
def test_swapping_the_sides_flips_the_signs(base: dict[str, float], other: dict[str, float]) -> None:
    there, back = diagnose_pair(one(**base), one(**other)).observables, diagnose_pair(one(**other), one(**base)).observables
    for name in ("ttft_added_s", "itl_added_s", "decode_added_s", "total_added_s", "server_ttft_added_s", "queue_added_s"):
        assert there.get(name, 0.0) == pytest.approx(-back.get(name, 0.0), abs=1e-9)
    for name in ("ttft_change", "itl_change"):
        assert (1 + there[name]) * (1 + back[name]) == pytest.approx(1)


@LEISURELY
@given(SIDES)
def test_equal_runs_give_no_finding(side: dict[str, float]) -> None:
    found = diagnose_pair(one(**side), one(**side))
    assert (found.findings, found.undetermined, found.verdict, found.phase, found.stopped_by) == ((), (), None, "none", "G2")


@LEISURELY
@given(SIDES, st.floats(0.1, 5), st.floats(0.1, 5), st.sampled_from([1 / 64, 1 / 4, 4.0, 64.0]))
def test_a_change_of_scale_changes_no_cause(side: dict[str, float], first: float, step: float, scale: float) -> None:
    changed = {**side, "ttft": side["ttft"] * first, "itl": side["itl"] * step}
    here = diagnose_pair(one(**side), one(**changed))
    there = diagnose_pair(
        *(one(**{name: value * (scale if name in TIMED else 1) for name, value in each.items()}) for each in (side, changed))
    )
    assert [found.rule for found in here.findings] == [found.rule for found in there.findings]
    assert [found.rule for found in here.ruled_out] == [found.rule for found in there.ruled_out]
    assert (here.phase, here.verdict) == (there.phase, there.verdict)


@LEISURELY
@given(st.floats(1e-3, 0.1), st.floats(1e-3, 0.1), st.sampled_from([1 / 64, 1 / 4, 4.0, 64.0]))
def test_a_change_of_scale_changes_no_cause_over_load(low: float, high: float, scale: float) -> None:
    def pair(by: float) -> list[str | None]:
        base = loads((1, {"itl": 0.01 * by, "ttft": 0.1 * by}), (32, {"itl": 0.02 * by, "ttft": 0.2 * by}))
        other = loads((1, {"itl": (0.01 + low) * by, "ttft": 0.1 * by}), (32, {"itl": (0.02 + high) * by, "ttft": 0.2 * by}))
        return [found.rule.cause for found in diagnose_pair(base, other).findings]

    assert pair(1.0) == pair(scale)


@LEISURELY
@given(SIDES, SIDES)
def test_withheld_figures_enter_nothing(base: dict[str, float], other: dict[str, float]) -> None:
    withheld = {"flags": ("metric_bug",), "withholds": ("itl_s", "ttft_s.mean")}
    found = diagnose_pair(one(**base, **withheld), one(**other))
    assert not {"itl_change", "itl_added_s", "decode_added_s"} & found.observables.keys()
    assert found.phase in ("prefill", "queue", "none")
    without = {name: value for name, value in base.items() if name not in ("itl", "ttft")}
    assert [each.rule for each in found.findings] == [each.rule for each in diagnose_pair(one(**without), one(**other)).findings]
    alone = diagnose(one(**{**base, **withheld}, setup={"step_weight_bytes": 1e9, "bandwidth_bytes_per_s": 1e12}))
    assert alone.verdict is None


def test_the_noise_is_twice_the_spread_of_repeats_where_that_is_more() -> None:
    # Means of 10 and 11 ms; the repeats of the base spread by 10 %, so 10 % of change do not count.
    base = Subject(tuple(run(ttft=0.1, itl=value) for value in (0.009, 0.010, 0.011)))
    found = diagnose_pair(base, one(ttft=0.1, itl=0.0121))
    assert found.observables["noise"] == pytest.approx(0.2)
    assert found.phase == "none"
    assert diagnose_pair(one(ttft=0.1, itl=0.011), one(ttft=0.1, itl=0.0121)).phase == "decode"


def test_a_deployment_without_runs_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        Subject(())
