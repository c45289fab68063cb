"""Flags of rates that are read for one another, of a TPOT that is none, and of quantiles beyond a histogram."""

from dataclasses import replace

import numpy as np
import pytest

from app.domain.checks import Evidence, as_shown, flagged
from app.domain.run import Distribution, Flag, Rate, RequestCounts, Run, Workload
from tests.domain.checked import SOUND, many, raised, with_samples


def shown(run: Run, evidence: Evidence | None = None) -> dict[str, Flag]:
    return {flag.flag: flag for flag in as_shown(flagged(run, evidence)).flags}


def test_the_servers_pace_is_not_one_users() -> None:
    # 1,000 tokens/s together, 10 ms a token each: ten decode at once.
    flag = shown(SOUND)["aggregate_vs_per_user"]
    assert flag.figures == {"server_s_per_token": 0.001, "user_s_per_token": 0.01, "user_over_server": pytest.approx(10)}


def test_one_request_at_a_time_has_one_pace() -> None:
    alone = replace(SOUND, metrics={"itl_s": Distribution(mean=0.01), "output_tokens_per_s": Rate(98.0, "aggregate")})
    assert "aggregate_vs_per_user" not in shown(alone)
    assert "aggregate_vs_per_user" not in shown(replace(SOUND, load_mode="single"))


def test_a_total_that_is_mostly_prompts() -> None:
    # 1,000 prompt and 100 output tokens each: 11,000 tokens/s in all, 1,000 of them output.
    flag = shown(SOUND)["throughput_includes_prompt"]
    assert flag.figures == {"total_tokens_per_s": pytest.approx(11_000), "output_tokens_per_s": 1000.0}
    short = replace(SOUND, workload=replace(SOUND.workload, prompt_tokens_mean=50.0))
    assert "throughput_includes_prompt" not in shown(short)


def test_what_an_importer_said_stands_once() -> None:
    own = Flag("throughput_includes_prompt", "tput counts prompts.")
    run = as_shown(replace(SOUND, flags=(own,)))
    assert [flag for flag in run.flags if flag.flag == "throughput_includes_prompt"] == [own]
    nothing = as_shown(flagged(replace(SOUND, requests=RequestCounts(8, 0, 8), metrics={})))
    assert [flag.flag for flag in nothing.flags] == ["zero_completed"]


def test_devices_by_role_need_a_denominator() -> None:
    flag = raised(SOUND, Evidence(role_devices={"prefill": 4, "decode": 16}))["per_role_gpu_denominator"]
    assert flag.figures == {"devices_prefill": 4, "devices_decode": 16, "output_tokens_per_s_per_device": 50.0}
    assert "over those for decode 62.5" in flag.evidence
    assert "per_role_gpu_denominator" not in raised(SOUND, Evidence(role_devices={"decode": 16}))


def test_a_tpot_with_the_first_token_inside() -> None:
    # 2 s for 51 tokens, the first after 1 s: 20 ms a token after it, 39.2 ms with it spread over all.
    metrics = {"ttft_s": Distribution(mean=1.0), "e2e_s": Distribution(mean=2.0), "tpot_s": Distribution(mean=2 / 51)}
    run = Run(format="x", measured_at="client", workload=Workload(output_tokens_mean=51.0), metrics=metrics)
    flag = raised(run)["tpot_includes_first_token"]
    assert flag.figures == {"wrong_tpot_s": pytest.approx(2 / 51), "tpot_without_first_s": pytest.approx(0.02)}
    assert "tpot_s" in flag.withholds
    for sound in (0.02, 0.03):
        assert "tpot_includes_first_token" not in raised(replace(run, metrics={**metrics, "tpot_s": Distribution(mean=sound)}))


def test_no_doubt_about_tpot_where_the_first_token_weighs_nothing() -> None:
    metrics = {"ttft_s": Distribution(mean=0.02), "e2e_s": Distribution(mean=1.02), "tpot_s": Distribution(mean=0.02)}
    run = Run(format="x", measured_at="client", workload=Workload(output_tokens_mean=51.0), metrics=metrics)
    assert "tpot_includes_first_token" not in raised(run)


def test_a_prefill_rate_that_counts_prompts() -> None:
    batch = Run(
        format="x",
        measured_at="in_process",
        load_mode="static_batch",
        workload=Workload(prompt_tokens_mean=512.0, concurrency=16),
        metrics={"prefill_s": Distribution(mean=0.25), "prefill_tokens_per_s": Rate(32_768.0, "aggregate", "derived")},
    )
    flag = raised(batch, Evidence(reported_prefill_per_s=64.0))["unit_mismatch"]
    assert flag.figures == {"prompts_per_s": 64.0}
    assert "32768" in flag.evidence.replace(",", "") or "3.277e+04" in flag.evidence
    assert "unit_mismatch" not in raised(batch, Evidence(reported_prefill_per_s=32_700.0))


def test_units_that_differ_within_a_file_are_named() -> None:
    flag = raised(SOUND, Evidence(mixed_units=("ttft_s", "itl_ms")))["unit_mismatch"]
    assert flag.evidence == "Times stand in different units: ttft_s, itl_ms; each was read in the unit that its key names."
    assert flag.withholds == ()


def test_a_quantile_beyond_the_last_bound_is_withheld() -> None:
    flag = raised(SOUND, Evidence(saturated=("ttft_s.p99",)))["histogram_top_bucket_saturated"]
    assert flag.withholds == ("ttft_s.p99",)
    assert "histogram_top_bucket_saturated" not in raised(SOUND)


def test_due_times_show_what_the_client_kept_waiting() -> None:
    samples = replace(many(np.full(3, 0.1), np.full(3, 0.5), np.full(3, 5.0), start=[0.0, 0.5, 1.0]), scheduled_s=np.array([0.0, 0.1, 0.2]))
    flag = raised(with_samples(samples))["client_queue_excluded"]
    # Waited 0, 0.4 and 0.8 s.
    assert flag.figures["client_queue_mean_s"] == pytest.approx(0.4)
    assert flag.figures["e2e_from_schedule_mean_s"] == pytest.approx(0.9)
    assert flag.figures["e2e_from_schedule_max_s"] == pytest.approx(1.3)
    punctual = replace(samples, scheduled_s=samples.start_s)
    assert "client_queue_excluded" not in raised(with_samples(punctual))


def test_percentiles_over_all_that_were_attempted() -> None:
    # Ten answered in 0.1 ... 1.0 s and two lost: of twelve the median lies between the sixth and the seventh.
    ttft = np.append(np.linspace(0.1, 1.0, 10), [np.nan, np.nan])
    samples = many(ttft, ttft + 1, np.full(12, 5.0), ok=[True] * 10 + [False] * 2)
    flag = raised(with_samples(samples, requests=RequestCounts(12, 10, 2)))["failures_excluded"]
    assert flag.figures["ttft_adjusted_p50_s"] == pytest.approx(0.65)
    assert "ttft_adjusted_p99_s" not in flag.figures
