"""What a diagnosis needs beside times, read from the files that state it: clocks, cache, counters, switches that are off, thoughts."""

import json
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from app.domain.checks import as_shown
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


def test_aiperf_says_when_requests_were_due_and_how_long_sending_took(read_data: Reader) -> None:
    run = as_shown(one(read_data("aiperf/2026-02_credits_and_thought.jsonl")))
    # Sent 2, 4 and 6 ms after their credits; 0.5 and 0.1 ms to connect and to write, once 0 to connect.
    waited = distribution(run, "client_queue_s")
    assert (waited.mean, waited.max) == (pytest.approx(0.004), pytest.approx(0.006))
    assert distribution(run, "client_send_s").mean == pytest.approx((0.0006 + 0.0001 + 0.0001) / 3)
    assert distribution(run, "e2e_from_schedule_s").mean == pytest.approx(0.144)
    ms = {"http_req_sending": 0.2, "http_req_connection_overhead": 0.3, "credit_to_start_latency": 4.0, "effective_latency": 554.0}
    report = changed("aiperf/2026-01_telemetry.json", **{name: {"unit": "ms", "avg": value} for name, value in ms.items()})
    assert distribution(report, "client_send_s").mean == pytest.approx(0.0005)
    assert distribution(report, "client_queue_s").mean == pytest.approx(0.004)
    assert distribution(report, "e2e_from_schedule_s").mean == pytest.approx(0.554)


def test_a_connection_that_was_traced_without_its_writing_says_nothing_of_sending() -> None:
    report = changed("aiperf/2026-01_telemetry.json", http_req_connection_overhead={"unit": "ms", "avg": 0.3})
    assert "client_send_s" not in report.metrics


def test_guidellm_says_when_requests_of_a_rate_were_due(read_data: Reader) -> None:
    report = json.loads((DATA / "guidellm" / "2025-09_schema_0.json").read_text())
    (benchmark,) = report["benchmarks"][:1]
    benchmark["run_stats"]["request_start_time_targeted_delay_avg"] = 0.25
    alone = {"benchmarks": [{**benchmark, "requests": {}}]}
    at_a_rate = json.loads(json.dumps(alone))
    at_a_rate["benchmarks"][0]["args"]["strategy"] = {"type_": "constant", "rate": 2.0}
    assert distribution(one(read_runs("x", json.dumps(at_a_rate).encode())), "client_queue_s").mean == 0.25
    # Of a number of clients every request is due when the run begins.
    at_a_rate["benchmarks"][0]["args"]["strategy"] = {"type_": "concurrent", "streams": 2}
    assert "client_queue_s" not in one(read_runs("x", json.dumps(at_a_rate).encode())).metrics


def test_the_requests_of_guidellm_say_it_themselves() -> None:
    report = json.loads((DATA / "guidellm" / "2025-09_schema_0.json").read_text())
    benchmark = report["benchmarks"][0]
    benchmark["args"]["strategy"] = {"type_": "constant", "rate": 2.0}
    for row in benchmark["requests"]["successful"]:
        row["scheduler_info"] = {"targeted_start_time": row["start_time"] - 0.03}
    for row in benchmark["requests"].get("errored") or []:
        row["scheduler_info"] = {"targeted_start_time": row["start_time"] + 5.0}
    run = as_shown(one(read_runs("x", json.dumps({"benchmarks": [benchmark]}).encode())))
    assert distribution(run, "client_queue_s").mean == pytest.approx(0.03)


@pytest.mark.parametrize(("delay", "wait"), [(0.25, 0.25), (-0.001, None), ("soon", None), (True, None)])
def test_inference_perf_says_it_where_its_clocks_agree(delay: object, wait: float | None) -> None:
    path = next(path for path in sorted((DATA / "inference_perf").iterdir()) if "summary" in path.name or "stage" in path.name)
    report = json.loads(path.read_text())
    report["load_summary"]["schedule_delay"] = {"mean": delay}
    found = one(read_runs("x", json.dumps(report).encode())).distribution("client_queue_s")
    assert (None if found is None else found.mean) == wait


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
