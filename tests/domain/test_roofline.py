"""From work to seconds: each operator's time by hand, the three times in their order, bound, MFU and MBU."""

import dataclasses

import numpy as np
import pytest

from app.domain.prediction import PassCost, Request
from app.domain.rates import Formats, Rates, resolve
from app.domain.roofline import (
    Placement,
    PricedPass,
    attention_efficiency,
    bound,
    idle_share,
    intensity,
    mbu,
    mfu,
    price,
    prompt_floor_s,
    share_of_floor,
)
from app.domain.work import ElementBytes, operators, pass_numbers
from tests.domain.subjects import ENGINE, MIXTURE, PENCIL, TINY

NUMBERS = pass_numbers(3, 1, batch=2)


def priced(tp: float = 1, pp: float = 1, rates: Rates | None = None, with_prompt: bool = False) -> PricedPass:
    rates = rates or resolve(PENCIL, Formats.of(Request()), None)
    work = operators(TINY, NUMBERS, ElementBytes(), Placement(tp, pp))
    return price(TINY, work, NUMBERS, ElementBytes(), rates, 0.5, Placement(tp, pp), with_prompt)


def test_operator_times_by_hand() -> None:
    # e_c 0.75 of 1e12, e_b 0.86 and 0.85 of 1e11; FLOPs and bytes as worked out in test_work
    terms = {term.name: term for term in priced().cost().terms}
    assert terms["qkv"].time_s == pytest.approx(1088 / 0.86e11)  # 3072/0.75e12 = 4.1 ns < 12.7 ns
    assert (terms["qkv"].bound, terms["qkv"].part) == ("memory", "weights")
    assert terms["attention"].time_s == pytest.approx(256 / 0.85e11)  # 1152/(0.5*1e12) = 2.3 ns < 3.0 ns
    assert (terms["attention"].bound, terms["attention"].part) == ("memory", "kv")
    assert terms["gemm_launches"].time_s == pytest.approx(9 * 3e-6)
    assert terms["layer_kernels"].time_s == pytest.approx(2 * 20e-6)
    assert terms["scheduler"].time_s == pytest.approx(0.5e-3 + 2 * 5e-6)
    assert {terms[name].bound for name in ("gemm_launches", "layer_kernels", "scheduler")} == {"overhead"}


def test_floor_and_attainable_are_maxima_of_sums_at_specified_and_achieved_rates() -> None:
    cost = priced().cost()
    flops = 3072 + 1536 + 6144 + 3072 + 1024 + 1152
    moved = 1088 + 640 + 1984 + 1088 + 672 + 256 + 2000
    assert (cost.flops, cost.bytes) == (flops, moved)
    assert cost.floor_s == pytest.approx(moved / 1e11)  # 77 ns against 16 ns of arithmetic
    assert cost.compute_s == pytest.approx((flops - 1152) / 0.75e12 + 1152 / 0.5e12)
    assert cost.memory_s == pytest.approx((moved - 256) / 0.86e11 + 256 / 0.85e11)
    assert cost.attainable_s == pytest.approx(cost.memory_s)
    assert cost.intensity_flops_per_byte == pytest.approx(flops / moved)
    assert cost.bound == "overhead"  # launches outweigh everything on a model this small


def test_terms_add_up_to_the_time_exactly() -> None:
    for cost in (
        priced().cost(),
        priced(2, 2).cost(),
        priced(with_prompt=True, rates=resolve(PENCIL, Formats.of(Request()), ENGINE)).cost(),
    ):
        assert sum(term.time_s for term in cost.terms) == cost.time_s
        parts = ("compute", "attention", "weights", "kv", "communication", "overhead")
        assert sum(cost.part_s(part) for part in parts) == pytest.approx(cost.time_s, rel=1e-12)  # type: ignore[arg-type]
        assert cost.part_s("overhead") == pytest.approx(cost.overhead_s)
        assert cost.part_s("communication") == pytest.approx(cost.comm_s)


def test_collectives_and_sends() -> None:
    assert priced().cost().comm_s == 0
    # two all-reduces in each of 2 layers: one round of 2.5 us + 2*(1/2)*6*8*2 bytes / 0.75e10; of four devices two rounds, 2*(3/4)
    assert priced(tp=2).cost().comm_s == pytest.approx(4 * (2.5e-6 + 96 / 0.75e10))
    assert priced(tp=4).cost().comm_s == pytest.approx(4 * (5e-6 + 144 / 0.75e10))
    # one send between two stages: 2.5 us + 6*8*2 bytes / 0.75e10
    assert priced(pp=2).cost().comm_s == pytest.approx(2.5e-6 + 96 / 0.75e10)
    together = priced(tp=2, pp=2).cost()
    assert [term.name for term in together.terms if term.part == "communication"] == ["all_reduce", "stage_send"]
    assert {term.bound for term in together.terms if term.part == "communication"} == {"communication"}


def test_the_prefill_floor_of_an_engine_lifts_short_prompt_passes_only() -> None:
    rates = dataclasses.replace(resolve(PENCIL, Formats.of(Request()), None), prefill_floor_per_layer_s=1e-3)
    assert priced(rates=rates, with_prompt=True).cost().time_s == pytest.approx(2e-3)
    assert priced(rates=rates).cost().time_s < 1e-3
    low = dataclasses.replace(rates, prefill_floor_per_layer_s=1e-9)
    assert priced(rates=low, with_prompt=True).cost().time_s == pytest.approx(priced().cost().time_s)


def test_layers_with_experts_have_a_prefill_floor_of_their_own() -> None:
    engine = dataclasses.replace(ENGINE, prefill_floor_per_layer_s=1e-3, prefill_floor_per_expert_layer_s=3e-3)
    rates = resolve(PENCIL, Formats.of(Request()), engine)
    assert prompt_floor_s(TINY, rates) == pytest.approx(2e-3)
    expected = MIXTURE.depth * 1e-3 + MIXTURE.expert_layers * 3e-3
    assert MIXTURE.expert_layers > 0
    assert prompt_floor_s(MIXTURE, rates) == pytest.approx(expected)


def test_prefill_attention_fills_the_units_slowly() -> None:
    # 0.6 of the peak in the limit, half of that at 1,000 tokens
    assert attention_efficiency(1000.0) == pytest.approx(0.3)
    assert attention_efficiency(4000.0) == pytest.approx(0.48)
    assert attention_efficiency(np.array([1.0, 1e9]))[1] == pytest.approx(0.6)  # type: ignore[index]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((2.0, 1.0, 0.5, 0.5), "compute"),
        ((1.0, 1.0, 0.5, 0.5), "memory"),
        ((1.0, 2.0, 3.0, 0.5), "communication"),
        ((1.0, 2.0, 3.0, 4.0), "overhead"),
    ],
)
def test_bound_is_the_largest_of_the_four(times: tuple[float, float, float, float], expected: str) -> None:
    assert bound(*times) == expected


def test_utilisations() -> None:
    # 1e12 FLOPs in 2 s on 1e12 FLOP/s; 5e10 bytes in 1 s on 1e11 bytes/s
    assert mfu(1e12, 2.0, 1e12) == 0.5
    assert mbu(5e10, 1.0, 1e11) == 0.5
    assert share_of_floor(3.0, 4.0) == 0.75
    assert intensity(6.0, 3.0) == 2.0


def test_idle_share_is_the_wait_of_the_arithmetic() -> None:
    cost: PassCost = priced().cost()
    assert idle_share(cost) == pytest.approx(1 - cost.compute_s / cost.time_s)
    assert idle_share(dataclasses.replace(cost, compute_s=cost.time_s)) == 0
