"""Each pattern of the decision table with figures of its own, worked out by hand: what is offered, what is ruled out, what is asked for."""

import math

import pytest

from app.domain.diagnosis import Diagnosis, Setup, Subject, diagnose, diagnose_pair
from app.domain.readings import with_readings
from tests.domain.diagnosis.measured import loads, one, run


def causes(found: Diagnosis) -> list[str | None]:
    return [each.rule.cause for each in found.findings]


def out(found: Diagnosis) -> set[str | None]:
    return {each.rule.cause for each in found.ruled_out}


def test_more_chunks_of_a_prompt() -> None:
    # ceil(9000 / 4096) = 3 chunks where there was one; 200 -> 260 ms.
    base = one(ttft=0.2, itl=0.01, prompt=9000, output=50, setup={"chunk_budget_tokens": math.inf})
    other = one(ttft=0.26, itl=0.01, prompt=9000, output=50, setup={"chunk_budget_tokens": 4096})
    found = diagnose_pair(base, other)
    assert found.phase == "prefill"
    assert causes(found)[0] == "chunked_prefill_budget"
    assert found.observables["chunks_other"] == 3
    assert "prefill_kernel" in out(found)
    assert found.levers[0] == "raise_max_num_batched_tokens"


def test_a_smaller_budget_that_trades_the_first_token_for_the_tail() -> None:
    found = diagnose_pair(
        one(ttft=0.5, itl=0.02, tail=0.3, setup={"chunk_budget_tokens": 16384}),
        one(ttft=0.6, itl=0.0205, tail=0.1, setup={"chunk_budget_tokens": 4096}),
    )
    assert found.verdict == "trade_off"
    assert causes(found)[0] == "chunked_prefill_budget"


def test_first_tokens_that_only_load_makes_slower() -> None:
    # Alone 50 -> 51 ms (+2 %), at 64 clients 0.3 -> 0.9 s (+200 %).
    base = loads((1, {"ttft": 0.05, "itl": 0.01}), (64, {"ttft": 0.3, "itl": 0.02}))
    other = loads((1, {"ttft": 0.051, "itl": 0.01}), (64, {"ttft": 0.9, "itl": 0.02}))
    found = diagnose_pair(base, other)
    assert found.phase == "queue"
    assert causes(found) == ["scheduling_or_admission"]
    assert "prefill_kernel" in out(found)


def test_first_tokens_that_are_slower_alone_too() -> None:
    base = loads((1, {"ttft": 0.05, "itl": 0.01}), (64, {"ttft": 0.3, "itl": 0.02}))
    other = loads((1, {"ttft": 0.08, "itl": 0.01}), (64, {"ttft": 0.48, "itl": 0.02}))
    found = diagnose_pair(base, other)
    assert found.phase == "prefill"
    assert causes(found) == ["prefill_kernel"]
    assert "scheduling_or_admission" in out(found)


def test_without_a_control_the_question_is_which_run_would_decide() -> None:
    found = diagnose_pair(one(ttft=0.3, itl=0.02, clients=32), one(ttft=0.5, itl=0.02, clients=32))
    assert {"prefill_kernel", "scheduling_or_admission"} <= set(causes(found))
    asked = found.undetermined[0]
    assert set(asked.between) == {"prefill_kernel", "scheduling_or_admission"}
    assert asked.run == {"concurrency": [1]}
    assert found.phase == "prefill"


def test_a_burst_that_drains_slower_than_one_prompt_alone() -> None:
    # 8 prompts of 500 tokens: by the last first token at 2 s they drain at 2,000 tokens/s, after the change at 500; alone 1,000.
    def side(last_s: float) -> Subject:
        burst = run(clients=8, prompt=500, itl=0.02, ttft_max=last_s)
        return Subject((run(clients=1, prompt=500, ttft=0.5, itl=0.02), burst))

    found = diagnose_pair(side(2.0), side(8.0))
    assert causes(found)[0] == "prefill_scheduling"
    assert found.observables["burst_drain_other_per_s"] == pytest.approx(500)
    assert found.observables["burst_drain_over_alone"] == pytest.approx(0.5)
    assert found.phase == "queue"


def test_time_outside_the_server() -> None:
    # 100 -> 400 ms at the client, 80 -> 81 at the server: 299 of 300 ms outside.
    base = one(ttft=0.1, itl=0.01, server=0.08, outside=0.02)
    found = diagnose_pair(base, one(ttft=0.4, itl=0.01, server=0.081, outside=0.319))
    assert found.phase == "client"
    assert causes(found)[0] == "client_host_slow"
    assert {"prefill_kernel", "scheduling_or_admission"} <= out(found)


def test_a_pause_before_requests() -> None:
    found = diagnose_pair(one(ttft=0.04, itl=0.02, idle=0.0), one(ttft=0.09, itl=0.02, idle=30.0))
    assert causes(found)[0] == "idle_power_state"
    assert "prefill_kernel" in out(found)
    assert found.phase == "prefill"


def test_a_core_clock_that_fell() -> None:
    found = diagnose_pair(
        one(prefill_rate=9000, decode_rate=50, sm=2.0e9, memory=1e10), one(prefill_rate=7200, decode_rate=49.8, sm=1.6e9, memory=1e10)
    )
    assert causes(found)[0] == "power_cap"
    assert found.phase == "prefill"


def test_a_prompt_pass_that_lost_its_device() -> None:
    found = diagnose_pair(one(prefill_rate=900, decode_rate=20, prompt=1000), one(prefill_rate=150, decode_rate=20.1, prompt=1000))
    assert causes(found)[0] == "prefill_on_cpu"
    assert found.observables["ttft_added_s"] == pytest.approx(1000 / 150 - 1000 / 900)


def test_small_weights_that_decode_faster_and_start_slower() -> None:
    # 100 -> 150 ms and 20 -> 10 ms: 50 ms are back after 5 steps.
    base = one(ttft=0.1, itl=0.02, output=100, setup={"bytes_per_parameter": 2})
    found = diagnose_pair(base, one(ttft=0.15, itl=0.01, output=100, setup={"bytes_per_parameter": 0.5}))
    assert (found.phase, found.verdict, causes(found)) == ("prefill", "prefill_worse_decode_better", ["dequant_in_prefill"])
    same_width = diagnose_pair(base, one(ttft=0.15, itl=0.01, output=100, setup={"bytes_per_parameter": 2}))
    assert "dequant_in_prefill" in out(same_width)


def test_opposite_moves_that_cancel() -> None:
    # +0.1 s before the first token, 99 steps of 1 ms less: 1.1 -> 1.101 s.
    found = diagnose_pair(one(ttft=0.11, itl=0.01, output=100), one(ttft=0.21, itl=0.009, output=100))
    assert found.verdict == "opposite_moves_cancel"


def test_a_long_prompt_that_others_wait_for() -> None:
    # 40,000 tokens at 8,000/s are 5 s; short ones wait 5.1 s more.
    other = one(ttft=5.2, prefill_rate=8000, setup={"long_prompt_tokens": 40000})
    found = diagnose_pair(one(ttft=0.1, prefill_rate=8000), other)
    assert causes(found)[0] == "prefill_interference"
    assert found.phase == "queue"


def test_a_step_that_costs_a_constant_more_at_every_load() -> None:
    base = loads((1, {"itl": 0.005}), (16, {"itl": 0.010}), (64, {"itl": 0.02}))
    found = diagnose_pair(base, loads((1, {"itl": 0.008}), (16, {"itl": 0.013}), (64, {"itl": 0.0231})))
    assert causes(found)[0] == "fixed_step_overhead"
    assert "host_side_sampling" not in causes(found)


def test_a_step_that_costs_more_for_each_sequence() -> None:
    # 2 ms a sequence: +8 ms at 4, +64 ms at 32.
    base = loads((4, {"itl": 0.01, "ttft": 0.1}), (32, {"itl": 0.02, "ttft": 0.2}))
    found = diagnose_pair(base, loads((4, {"itl": 0.018, "ttft": 0.1}), (32, {"itl": 0.084, "ttft": 0.2})))
    assert causes(found)[0] == "host_side_sampling"
    assert found.observables["extra_per_sequence_s"] == pytest.approx(0.002)
    assert "decode_kernel" in out(found)
    assert found.phase == "decode"


def test_fewer_bytes_that_do_not_help_far_above_the_floor() -> None:
    # 2e9 weights: 4 GB at 2 TB/s are 2 ms of a 10 ms step (20 %), then 1 ms.
    def side(itl: float, width: float) -> Subject:
        return one(itl=itl, setup={"parameters": 2e9, "bytes_per_parameter": width, "bandwidth_bytes_per_s": 2e12})

    found = diagnose_pair(side(0.010, 2), side(0.0115, 1))
    assert causes(found)[0] == "fixed_step_overhead"
    assert found.observables["share_of_floor_base"] == pytest.approx(0.2)
    assert "more_quantisation" not in found.levers


def test_a_step_that_follows_its_bytes() -> None:
    # 4 -> 3 GB is -25 %; measured -22 %.
    setups = ({"step_weight_bytes": 3e9, "step_kv_bytes": kv} for kv in (1e9, 0.0))
    base, other = (one(itl=itl, setup=setup) for itl, setup in zip((0.010, 0.0078), setups, strict=True))
    found = diagnose_pair(base, other)
    assert found.verdict == "consistent_with_bytes"
    assert found.observables["bytes_change"] == pytest.approx(-0.25)


def test_weights_in_slower_memory() -> None:
    # 10 GB at 500 GB/s are 20 ms; a tenth at 25 GB/s: 18 + 40 = 58 ms, 2.9 times; measured 22 -> 62 ms, 2.8 times.
    setup = {"step_weight_bytes": 10e9, "bandwidth_bytes_per_s": 5e11, "slow_bandwidth_bytes_per_s": 2.5e10}
    found = diagnose_pair(one(itl=0.022, setup={**setup, "fast_share": 1.0}), one(itl=0.062, setup={**setup, "fast_share": 0.9}))
    assert causes(found)[0] == "cpu_offload"
    assert found.observables["slow_tier_share_other"] == pytest.approx(40 / 58)


@pytest.mark.parametrize(("limit", "offered"), [(64, True), (24, False)])
def test_a_jump_over_the_batch_at_the_captured_limit(limit: int, offered: bool) -> None:
    points = [(16, {"itl": 0.005}), (48, {"itl": 0.006}), (64, {"itl": 0.0062}), (65, {"itl": 0.015}), (96, {"itl": 0.016})]
    found = diagnose(loads(*points, setup={"graph_limit": limit}))
    assert ("cuda_graph_ceiling" in causes(found)) is offered
    assert [flag.flag for flag in found.flags] == ["bimodal_itl"]
    assert found.observables["slope_below_s"] == pytest.approx(0.0012 / 48)


def test_a_slope_over_the_batch_is_no_jump() -> None:
    found = diagnose(loads(*[(2**k, {"itl": 0.005 * 1.9**k}) for k in range(5)]))
    assert found.flags == ()
    assert "cuda_graph_ceiling" not in causes(found)


def test_a_cap_on_running_sequences_is_not_arithmetic() -> None:
    # 800 tokens/s x 10 ms = 8 running of 32 clients; 2 x 8e9 x 800 = 12.8 TFLOP/s of 400.
    points = [(8, {"itl": 0.01, "ttft": 0.05, "rate": 790}), (32, {"itl": 0.01, "ttft": 9.0, "rate": 800})]
    found = diagnose(loads((1, {"itl": 0.0095, "ttft": 0.04, "rate": 105}), *points, setup={"parameters": 8e9, "peak_flops_per_s": 4e14}))
    assert causes(found)[0] == "running_sequence_cap"
    assert "compute_bound" not in causes(found)
    assert found.observables["running"] == pytest.approx(8)
    assert found.phase == "queue"


def test_a_full_batch_is_arithmetic_where_the_peak_says_so() -> None:
    # 2 x 8e9 x 16,000 = 256 TFLOP/s of 400.
    points = [(256, {"itl": 0.016, "rate": 16000}), (512, {"itl": 0.032, "rate": 16000})]
    found = diagnose(loads(*points, setup={"parameters": 8e9, "peak_flops_per_s": 4e14}))
    assert causes(found)[0] == "compute_bound"
    low = diagnose(loads(*points, setup={"parameters": 8e9, "peak_flops_per_s": 4e15}))
    assert causes(low)[0] == "batch_not_amortised"


def test_what_more_devices_do_not_share() -> None:
    # 24 ms / devices + 4 ms: 28, 16, 10, 7.
    found = diagnose(Subject(tuple(run(tp=tp, itl=0.024 / tp + 0.004) for tp in (1, 2, 4, 8))))
    assert causes(found)[0] == "tp_fixed_cost"
    assert found.observables["divided_s"] == pytest.approx(0.024)
    assert found.observables["fixed_s"] == pytest.approx(0.004)


def test_links_that_cost_more_than_the_second_device_saves() -> None:
    setup = Setup(layers=40, all_reduces_per_layer=2, all_reduce_s=0.0003)
    found = diagnose(Subject((run(tp=1, itl=0.030), run(tp=2, itl=0.040)), setup))
    assert causes(found)[0] == "tp_communication"
    assert found.observables["expected_step_most_s"] == pytest.approx(0.015 + 0.024)


def test_growth_with_the_square_of_the_prompt() -> None:
    # 1e-4 n + 2e-9 n^2: at 1,000, 10,000 and 100,000 tokens; the halves are equal at 50,000.
    points = tuple(run(prompt=n, ttft=1e-4 * n + 2e-9 * n * n) for n in (1000.0, 10000.0, 100000.0))
    found = diagnose(Subject(points))
    assert (found.verdict, found.phase) == ("quadratic_attention", "prefill")
    assert found.observables["half_point_tokens"] == pytest.approx(50000)
    assert found.observables["quadratic_share"] == pytest.approx(2 / 3)


def test_growth_in_proportion_to_the_prompt_is_not() -> None:
    found = diagnose(Subject(tuple(run(prompt=n, ttft=1e-4 * n) for n in (1000.0, 10000.0, 100000.0))))
    assert found.verdict is None


@pytest.mark.parametrize(("step_s", "verdict"), [(0.0105, "at_roofline"), (0.0125, "good"), (0.018, "ordinary"), (0.04, "far_below")])
def test_a_step_by_its_share_of_the_floor(step_s: float, verdict: str) -> None:
    # 16 GB at 2 TB/s specified and 1.6 achieved: 8 and 10 ms.
    setup = {"step_weight_bytes": 16e9, "bandwidth_bytes_per_s": 2e12, "achieved_bandwidth_bytes_per_s": 1.6e12}
    found = diagnose(one(itl=step_s, setup=setup))
    assert found.verdict == found.decode_verdict == verdict
    assert found.observables["share_of_specified"] == pytest.approx(0.008 / step_s)
    assert found.observables["share_of_floor"] == pytest.approx(0.010 / step_s)


def test_a_short_floor_is_overhead() -> None:
    found = diagnose(one(itl=0.004, setup={"step_weight_bytes": 2e9, "bandwidth_bytes_per_s": 4e12, "layers": 20}))
    assert (found.verdict, causes(found)) == ("overhead_bound", ["fixed_step_overhead"])
    assert "more_bandwidth" not in found.levers
    assert found.observables["step_s_per_layer"] == pytest.approx(0.0002)


def test_more_bytes_than_the_model_asks_for() -> None:
    # 10 tokens/s at 400 GB/s are 40 GB a token; 20e9 weights of 16 bit are 40 GB, of 4 bit 10, the active 2e9 1 GB.
    setup = {"parameters": 2e10, "active_parameters": 2e9, "bytes_per_parameter": 0.5, "compute_bytes_per_parameter": 2}
    found = diagnose(one(decode_rate=10, bytes_rate=4e11, setup=setup))
    assert set(causes(found)) == {"all_experts_read", "dequantised_copies"}
    assert found.observables["excess_bytes_ratio"] == pytest.approx(40)
    unexpanded = diagnose(one(decode_rate=40, bytes_rate=4e11, setup=setup))
    assert causes(unexpanded) == ["all_experts_read"]


def test_a_repeat_that_stalled_before_its_first_tokens() -> None:
    repeats = [run(ttft=0.2, itl=0.01, rate=1000, duration=10.0) for _ in range(9)]
    found = diagnose(Subject((*repeats, run(ttft=4.1, itl=0.01, rate=700, duration=14.0))))
    assert found.phase == "queue"
    assert [flag.flag for flag in found.flags] == ["bimodal_runs"]
    assert found.observables["outlier_index"] == 9
    assert found.observables["outlier_first_token_share"] == pytest.approx(3.9 / 4)


def test_longer_answers_at_a_higher_rate_are_faster_per_token() -> None:
    base, other = one(output=100, rate=500, completed=50, duration=10), one(output=200, rate=600, completed=50, duration=16.7)
    found = diagnose_pair(Subject((with_readings(base.runs[0]),)), Subject((with_readings(other.runs[0]),)))
    assert found.verdict == "faster_per_token"
    assert found.stopped_by == "G0"
    assert [each.rule.id for each in found.findings] == ["R30"]


@pytest.mark.parametrize(
    ("flag", "phase", "lever"),
    [("ttft_equals_e2e_buffering", "transport", "disable_proxy_buffering"), ("client_queue_excluded", "client", None),
     ("server_queue_in_ttft", "queue", "raise_max_num_seqs")],
)  # fmt: skip
def test_what_a_flag_of_the_run_says(flag: str, phase: str, lever: str | None) -> None:
    found = diagnose(one(ttft=1.0, itl=0.01, flags=(flag,)))
    assert found.phase == phase
    assert lever is None or lever in found.levers


@pytest.mark.parametrize(("switch", "cause"), [("eager", "eager_mode"), ("adapters", "lora_kernels")])
def test_a_switch_that_was_turned_on(switch: str, cause: str) -> None:
    found = diagnose_pair(one(ttft=0.1, itl=0.01, setup={switch: 0.0}), one(ttft=0.1, itl=0.02, setup={switch: 1.0}))
    assert causes(found)[0] == cause


def test_a_full_pool_and_preemptions() -> None:
    found = diagnose_pair(
        one(ttft=0.5, itl=0.02, setup={"pool_used_share": 0.7, "preemptions": 0}),
        one(ttft=2.0, itl=0.05, setup={"pool_used_share": 0.99, "preemptions": 60}),
    )
    assert {"kv_capacity", "preemption"} <= set(causes(found))
    assert found.phase == "both"


@pytest.mark.parametrize(("held", "offered"), [(1.2, True), (0.6, False)])
def test_more_than_the_memory_holds_and_far_from_the_floor(held: float, offered: bool) -> None:
    # 40 GB at 1 TB/s are 40 ms; measured 200.
    found = diagnose(one(itl=0.2, setup={"step_weight_bytes": 40e9, "bandwidth_bytes_per_s": 1e12, "held_share": held}))
    assert ("paging_or_fallback" in causes(found)) is offered
