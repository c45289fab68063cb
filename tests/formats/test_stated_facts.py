"""What a diagnosis needs beside times, read from the files that state it: clocks, cache, counters, switches that are off, thoughts."""

import json
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Run
from app.formats import ParsedFile, read_runs
from app.services.told_by import told_by
from tests.formats.importer_versions import DATA
from tests.formats.stated_facts import table
from tests.sample_runs import distribution

Reader = Callable[[str], ParsedFile]
SERIES = (DATA / "vllm_prometheus" / "2026-07_series.txt").read_text()
FIRST, MIDDLE, LAST = (f"HTTP/1.1{part}" for part in SERIES.split("HTTP/1.1")[1:])


def one(parsed: ParsedFile) -> Run:
    (run,) = parsed.runs
    return run


def changed(path: str, **changes: object) -> Run:
    value = json.loads((DATA / path).read_text())
    return one(read_runs("x.json", json.dumps({**value, **changes}).encode()))


def test_clocks_are_those_of_the_devices_that_served_each_counted_once(read_data: Reader) -> None:
    run = one(read_data("aiperf/2026-01_telemetry.json"))
    # 90 % and 80 % busy; the third did nothing, and a second exporter describes the first again.
    assert distribution(run, "sm_clock_hz") == Distribution(mean=pytest.approx(1450e6), origin="derived")
    assert distribution(run, "memory_clock_hz").mean == pytest.approx(2600e6)
    assert run.hardware == "ACME G1"


def test_the_clock_of_one_device_has_its_percentiles_and_no_extremes(read_data: Reader) -> None:
    clock = distribution(one(read_data("genai_perf/2025_profile.json")), "sm_clock_hz")
    assert (clock.mean, clock.p50, clock.min, clock.max) == (pytest.approx(1400e6), pytest.approx(1410e6), None, None)


def test_without_utilisation_of_several_devices_no_clock_is_taken() -> None:
    clocks = {"unit": "MHz", "0": {"avg": 1400.0}, "1": {"avg": 210.0}}
    assert "sm_clock_hz" not in changed("genai_perf/2025_profile.json", telemetry_stats={"gpu_clock_sm": clocks}).metrics
    busy = {"unit": "%", "0": {"avg": 0.0}, "1": {"avg": 0.0}}
    both = {"gpu_clock_sm": clocks, "gpu_utilization": busy}
    assert "sm_clock_hz" not in changed("genai_perf/2025_profile.json", telemetry_stats=both).metrics


def test_a_clock_in_another_unit_is_left_out() -> None:
    clocks = {"unit": "%", "0": {"avg": 90.0}}
    assert "sm_clock_hz" not in changed("genai_perf/2025_profile.json", telemetry_stats={"gpu_clock_sm": clocks}).metrics


def test_what_sglang_does_not_set_is_off(read_data: Reader) -> None:
    off, on = (told_by(run) for run in read_data("sglang_bench_serving/2026-03_switches.jsonl").runs)
    assert (off.speculative, off.adapters, off.disaggregated, off.eager) == (0.0, 0.0, 0.0, 0.0)
    assert (on.speculative, on.adapters, on.disaggregated, on.eager) == (1.0, 1.0, 1.0, 1.0)
    assert (off.running_cap, off.pool_tokens, off.graph_limit) == (64.0, 200_000.0, 32.0)
    assert (off.chunk_budget_tokens, on.chunk_budget_tokens) == (inf, 2048.0)


def test_a_server_that_lists_no_switch_says_nothing_of_it(read_data: Reader) -> None:
    told = told_by(read_data("sglang_bench_serving/2025-06_openai_client.jsonl").runs[0])
    assert (told.speculative, told.adapters, told.disaggregated) == (None, None, None)


def test_inferencemax_says_drafts_roles_and_cache(read_data: Reader) -> None:
    split, agentic = read_data("inferencemax/disaggregated_and_agentic.json").runs
    assert (told_by(split).disaggregated, told_by(split).speculative, told_by(split).cached_share) == (1.0, 0.0, None)
    assert (told_by(agentic).disaggregated, told_by(agentic).cached_share) == (0.0, pytest.approx(0.25))
    assert distribution(agentic, "cached_prompt_tokens").mean == pytest.approx(1250.0)
    assert told_by(one(read_data("inferencemax/speculation.json"))).speculative == 1.0


def test_llama_cpp_says_batch_layers_and_cache(read_data: Reader) -> None:
    first, second = read_data("llama_cpp_timings/server.log").runs
    told = told_by(second)
    assert (told.chunk_budget_tokens, told.running_cap, told.fast_share) == (512.0, 4.0, pytest.approx(8 / 11))
    # 20 of 420 prompt tokens were computed.
    assert (told_by(first).cached_share, told.cached_share) == (0.0, pytest.approx(400 / 420))
    settings = told_by(one(read_data("llama_cpp_timings/completion_settings.json")))
    assert (settings.speculative, settings.adapters, settings.constrained) == (0.0, 0.0, 0.0)


def test_a_grammar_and_adapters_of_an_answer_are_on() -> None:
    settings = {"speculative.types": "draft-mtp", "grammar": "root ::= [a-z]+", "lora": [{"id": 0, "scale": 1.0}]}
    told = told_by(changed("llama_cpp_timings/completion_settings.json", generation_settings=settings))
    assert (told.speculative, told.adapters, told.constrained) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("labels", "share"),
    [
        ({"n_gpu_layers": "8", "n_layers": "10"}, 0.8),
        ({"n_gpu_layers": "99", "n_layers": "10"}, 1.0),
        ({"n_gpu_layers": "99", "n_layers": "10", "n_cpu_moe": "4"}, None),
        ({"n_gpu_layers": "99", "n_layers": "10", "n_cpu_moe": "0", "tensor_buft_overrides": "none"}, 1.0),
        ({"n_gpu_layers": "8"}, None),
    ],
)
def test_layers_in_fast_memory(labels: dict[str, str], share: float | None) -> None:
    assert told_by(Run("llama_bench", labels=labels)).fast_share == share


def test_the_smaller_batch_of_llama_cpp_is_the_piece_of_a_prompt() -> None:
    assert told_by(Run("llama_bench", labels={"n_batch": "256", "n_ubatch": "512"})).chunk_budget_tokens == 256.0
    assert told_by(Run("llama_bench", labels={"n_batch": "2048", "n_ubatch": "512"})).chunk_budget_tokens == 512.0


def test_scrapes_of_one_benchmark_are_a_series_from_the_first_to_the_last() -> None:
    run = one(read_runs("series.txt", SERIES.encode()))
    assert (run.duration_s, run.requests.completed, distribution(run, "ttft_s").mean) == (10.0, 10, pytest.approx(0.2))
    assert (run.labels["kv_cache_usage_max"], run.labels["requests_running_max"]) == ("0.97", "8")
    told = told_by(run)
    assert (told.pool_used_share, told.preemptions, told.pool_tokens) == (0.97, 3.0, 16_000.0)
    assert (told.speculative, told.adapters, told.cached_share) == (1.0, 1.0, pytest.approx(0.4))


def test_the_order_in_the_file_does_not_matter() -> None:
    run, other = one(read_runs("s", SERIES.encode())), one(read_runs("s", "\n".join((LAST, FIRST, MIDDLE)).encode()))
    assert (other.metrics, other.labels) == (run.metrics, run.labels)


def test_two_moments_say_nothing_of_the_largest() -> None:
    run = one(read_runs("pair.txt", "\n".join((FIRST, LAST)).encode()))
    assert "kv_cache_usage_max" not in run.labels
    assert told_by(run).pool_used_share is None


def test_a_pause_between_scrapes_is_one_between_benchmarks() -> None:
    later = MIDDLE.replace("12:00:05", "12:00:07")
    with pytest.raises(ImportRefused, match="nothing was served between them, as between two benchmarks"):
        read_runs("series.txt", "\n".join((FIRST, MIDDLE, later, LAST)).encode())


def test_pauses_before_the_first_and_after_the_last_answer_are_not() -> None:
    later = LAST.replace("12:00:10", "12:00:12")
    run = one(read_runs("series.txt", "\n".join((FIRST.replace("12:00:00", "11:59:58"), SERIES, later)).encode()))
    assert (run.duration_s, run.labels["kv_cache_usage_max"]) == (14.0, "0.97")


def test_a_counter_that_falls_within_the_series_is_refused() -> None:
    with pytest.raises(ImportRefused, match="fell from the first scrape to the second"):
        read_runs("series.txt", "\n".join((FIRST, LAST.replace("12:00:10", "12:00:03"), MIDDLE)).encode())


def test_several_scrapes_without_a_time_are_refused() -> None:
    texts = [part.split("\n\n", 1)[1] for part in (FIRST, MIDDLE, LAST)]
    with pytest.raises(ImportRefused, match="3 scrapes in one upload, and they do not say when"):
        read_runs("series.txt", "\n".join(texts).encode())


def test_answers_that_were_all_thought_are_counted(read_data: Reader) -> None:
    run = one(read_data("aiperf/2026-02_credits_and_thought.jsonl"))
    (flag,) = (flag for flag in run.flags if flag.flag == "reasoning_before_content")
    assert "1 requests have tokens and no visible answer" in flag.evidence


def test_a_chat_answer_without_a_text_was_all_thought_and_a_completion_was_not(read_data: Reader) -> None:
    path = "vllm_bench_serve/2026-09_server_clock.json"
    (flag,) = (flag for flag in one(read_data(path)).flags if flag.flag == "reasoning_before_content")
    assert flag.figures["answers_without_content"] == 1
    completion = changed(path, backend="vllm", endpoint_type="openai")
    assert all(flag.flag != "reasoning_before_content" for flag in completion.flags)


def test_settings_in_the_metadata_of_vllm_and_its_server_clock_are_facts(read_data: Reader) -> None:
    run = one(read_data("vllm_bench_serve/2026-09_server_clock.json"))
    told = told_by(run)
    assert (told.chunk_budget_tokens, told.running_cap, told.eager, told.speculative) == (2048.0, 64.0, 0.0, 1.0)
    assert distribution(run, "server_ttft_s").mean == pytest.approx(0.085)
    assert distribution(run, "queue_s").mean == pytest.approx(0.005)


def test_the_docs_have_the_table_of_what_the_files_state() -> None:
    assert table() in (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
