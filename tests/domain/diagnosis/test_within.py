"""Two runs of one load whose rows are known: what is told of the step itself, the prompt pass itself, waits and the batch."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.diagnosis import Diagnosis, Subject, diagnose_pair
from app.domain.run import Distribution, Flag
from tests.domain.diagnosis.measured import rows


def first(found: Diagnosis) -> Any:
    return found.findings[0].rule.cause or found.findings[0].rule.id


def named(found: Diagnosis) -> list[str | None]:
    return [each.rule.cause for each in found.findings]


def test_two_runs_alike_give_nothing() -> None:
    assert diagnose_pair(rows(), rows()).findings == ()


def test_a_constant_in_every_pass() -> None:
    # 4 ms in every step and in the prompt's own pass; the line over the batch keeps its slope.
    found = diagnose_pair(rows(), rows(fixed=0.016, itl=0.022, prefill=(0.036, 5e-5), ttft=0.137))
    assert first(found) == "fixed_step_overhead"
    assert found.observables["sequences_share_of_step_change"] == pytest.approx(0, abs=1e-9)
    assert found.phase == "both"


def test_a_factor_on_the_step_is_its_kernels_or_its_clock() -> None:
    # Fixed part and slope by 1.3: 12 -> 15.6 ms and 0.2 -> 0.26 ms.
    found = diagnose_pair(rows(), rows(fixed=0.0156, each=0.00026, itl=0.0227))
    assert "fixed_step_overhead" not in named(found)
    assert first(found) == "decode_kernel"
    assert {"decode_kernel", "memory_bandwidth"} <= set(named(found))
    assert found.observables["extra_like_step"] == pytest.approx(1)


def test_work_for_each_sequence() -> None:
    # 0.5 ms more for each of 18: the step of one hardly moves.
    found = diagnose_pair(rows(), rows(each=0.0007, itl=0.027))
    assert first(found) == "host_side_sampling"
    assert found.observables["extra_per_sequence_s"] == pytest.approx(0.0005)


def test_a_prompt_pass_that_takes_longer_for_each_token() -> None:
    found = diagnose_pair(rows(), rows(prefill=(0.03, 8e-5), ttft=0.16, stalls=(400, 0.12)))
    assert first(found) == "prefill_kernel"
    assert found.observables["tokens_share_of_first_change"] == pytest.approx(1)
    assert "power_cap" in named(found)
    assert any({"prefill_kernel", "power_cap"} <= set(each.between) for each in found.undetermined)


def test_more_than_twice_the_time_for_each_token_is_another_device() -> None:
    found = diagnose_pair(rows(), rows(prefill=(0.03, 2e-4), ttft=0.3))
    assert first(found) == "prefill_on_cpu"


def test_a_constant_before_every_first_token() -> None:
    found = diagnose_pair(rows(), rows(prefill=(0.18, 5e-5), ttft=0.28))
    assert "prefill_kernel" not in named(found)
    assert {each.rule.id for each in found.findings} >= {"R03", "R04"}


@pytest.mark.parametrize(("queue", "prefill", "rule"), [(0.0, 0.0, "R03"), (0.15, 0.0, "R02")])
def test_the_servers_clocks_say_where_a_first_token_waits(queue: float, prefill: float, rule: str) -> None:
    # 150 ms more, all at the server: before its engine, or in its queue.
    clocks = {"queue_s": Distribution(mean=0.01), "prefill_s": Distribution(mean=0.08), "server_ttft_s": Distribution(mean=0.12)}
    later = {
        "queue_s": Distribution(mean=0.01 + queue),
        "prefill_s": Distribution(mean=0.08 + prefill),
        "server_ttft_s": Distribution(mean=0.27),
    }
    lone = (0.18, 5e-5) if rule == "R03" else (0.03, 5e-5)
    found = diagnose_pair(rows(**clocks), rows(ttft=0.28, prefill=lone, **later))
    assert found.findings[0].rule.id == rule
    assert found.phase == ("prefill" if rule == "R03" else "queue")


def test_fewer_at_once_is_a_cap_unless_the_pool_is_full() -> None:
    base, capped = rows(setup={"pool_used_share": 0.3}), {"ttft": 2.0, "itl": 0.015, "decoding": 6.0, "most": 6.0}
    found = diagnose_pair(base, rows(**capped, setup={"pool_used_share": 0.2}))
    assert first(found) == "running_sequence_cap"
    full = diagnose_pair(base, rows(**capped, setup={"pool_used_share": 0.99}))
    assert first(full) == "kv_capacity"
    unknown = diagnose_pair(rows(), rows(**capped))
    assert set(named(unknown)) >= {"running_sequence_cap", "kv_capacity"}


def test_shorter_waits_for_prompts_that_take_longer_are_a_smaller_budget() -> None:
    found = diagnose_pair(rows(), rows(ttft=0.2, stalls=(300, 0.03)))
    assert first(found) == "chunked_prefill_budget"
    back = diagnose_pair(rows(ttft=0.2, stalls=(300, 0.03), itl=0.016), rows())
    assert first(back) == "chunked_prefill_budget"


def test_more_stalls_at_the_same_step_are_prompts_of_others() -> None:
    found = diagnose_pair(rows(), rows(stalls=(1500, 0.1), itl=0.028, ttft=0.131))
    assert first(found) == "prefill_interference"


def test_a_new_jump_over_the_batch() -> None:
    flag = Flag("bimodal_itl", "", (), {"step_from_batch": 8.0, "step_to_batch": 9.0, "step_ratio": 1.7})
    found = diagnose_pair(rows(), rows(fixed=0.014, each=0.0005, itl=0.027, flags=(flag,)))
    assert first(found) == "cuda_graph_ceiling"
    assert found.observables["step_from_batch_other"] == 8


def test_a_changed_setting_outweighs_what_times_alone_suggest() -> None:
    changed = {"eager": 1.0}
    found = diagnose_pair(rows(setup={"eager": 0.0}), rows(fixed=0.016, itl=0.022, setup=changed))
    assert first(found) == "eager_mode"
    assert "fixed_step_overhead" in {each.rule.cause for each in found.ruled_out}


def test_an_opening_wave_that_others_do_not_share() -> None:
    def cold(mean_all: float, mean_rest: float) -> tuple[Flag, ...]:
        return (Flag("cold_start_outliers", "", ("ttft_s.mean",), {"mean_all_s": mean_all, "mean_rest_s": mean_rest}),)

    found = diagnose_pair(rows(flags=cold(0.15, 0.13)), rows(flags=cold(1.5, 0.13)))
    assert (found.findings[0].rule.id, found.phase) == ("R06", "prefill")
    assert found.observables["opening_wave_added_s"] == pytest.approx(1.35)
    assert diagnose_pair(rows(flags=cold(0.15, 0.13)), rows(flags=cold(0.151, 0.13))).findings == ()


def test_tokens_that_come_in_bursts() -> None:
    gaps = Distribution(mean=0.018, p50=2e-5, max=0.6, n=10_000)
    found = diagnose_pair(rows(), rows(ttft=0.4, chunk_gap_s=gaps))
    assert found.findings[0].rule.id == "R22"
    assert found.phase == "transport"


def test_more_bytes_by_format_account_for_a_longer_step() -> None:
    setup = {"step_weight_bytes": 8e9, "bandwidth_bytes_per_s": 1e12, "bytes_per_parameter": 1.0}
    wide = {"step_weight_bytes": 16e9, "bandwidth_bytes_per_s": 1e12, "bytes_per_parameter": 2.0}
    found = diagnose_pair(rows(setup=setup), rows(fixed=0.02, itl=0.026, setup=wide))
    assert first(found) == "memory_bandwidth"
    assert found.observables["step_added_over_floor_added"] == pytest.approx(1)


@pytest.mark.parametrize(("gain", "cause"), [(0.8, "tp_fixed_cost"), (1.3, "tp_communication")])
def test_twice_the_devices_for_less_than_twice_the_speed(gain: float, cause: str) -> None:
    other = rows(fixed=0.012 * gain, each=0.0002 * gain, itl=0.018 * gain, setup={"devices": 2.0})
    assert first(diagnose_pair(rows(setup={"devices": 1.0}), other)) == cause


@pytest.mark.parametrize(("version", "cause"), [("1.5.0", "decode_kernel"), ("1.4.0", "memory_bandwidth")])
def test_a_kernel_got_slower_because_another_one_runs(version: str, cause: str) -> None:
    # Step by 1.3 at every number of sequences, the prompt pass as before.
    def of(version: str, subject: Subject) -> Subject:
        return Subject(tuple(replace(run, engine="vllm", engine_version=version) for run in subject.runs))

    found = diagnose_pair(of("1.4.0", rows()), of(version, rows(fixed=0.0156, each=0.00026, itl=0.0227)))
    assert first(found) == cause
    assert {"decode_kernel", "memory_bandwidth"} <= set(named(found))


@pytest.mark.parametrize(("sending", "phase"), [(0.131, "client"), (0.001, "prefill")])
def test_what_the_client_took_to_send_is_its_own(sending: float, phase: str) -> None:
    # 130 ms more before every first token.
    base = rows(client_send_s=Distribution(mean=0.001))
    found = diagnose_pair(base, rows(prefill=(0.16, 5e-5), ttft=0.26, client_send_s=Distribution(mean=sending)))
    assert found.phase == phase
    assert (first(found) == "client_host_slow") is (phase == "client")


def test_behind_an_opening_wave_on_both_sides_the_rest_is_compared() -> None:
    def with_wave(rest_s: float, **given: float) -> Subject:
        flag = Flag("cold_start_outliers", "", ("ttft_s.mean",), {"mean_all_s": rest_s + 0.2, "mean_rest_s": rest_s})
        return rows(flags=(flag,), **given)  # type: ignore[arg-type]

    # The medians are 10 % apart, the means behind the wave 1 %.
    found = diagnose_pair(with_wave(0.200), with_wave(0.202, ttft=0.143))
    assert found.observables["ttft_change"] == pytest.approx(0.01)
    assert found.phase == "none"


def test_where_neither_mean_moved_a_reading_of_the_rows_is_noise() -> None:
    # The line over the prompt says 25 % more, the mean first token 1 %.
    found = diagnose_pair(rows(), rows(prefill=(0.03, 7e-5), ttft=0.1313))
    assert found.observables["first_itself_change"] == pytest.approx(0.25)
    assert (found.phase, found.findings) == ("none", ())
