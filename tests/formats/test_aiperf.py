"""AIPerf: three eras of the JSON export, the CSV, per-request records; what its names mean, warm-up, errors, what is no run."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.aiperf_records import ALONE
from app.formats.csv_rows import RESAVED
from app.formats.identity import NO_MODEL
from app.formats.stat_tables import ROUNDED
from tests.formats.damage import files_of
from tests.sample_runs import mean, names

Reader = Callable[[str], ParsedFile]
Json = dict[str, Any]


def one(parsed: ParsedFile) -> Run:
    (run,) = parsed.runs
    assert parsed.format == run.format == "aiperf"
    return run


def export(**changes: Any) -> Json:
    """20 requests of 100 prompt and 51 output tokens in 10 s: 550 ms = 50 ms + 50 x 10 ms."""
    statistics = {
        "request_latency": {"unit": "ms", "avg": 550.0},
        "time_to_first_token": {"unit": "ms", "avg": 50.0},
        "output_sequence_length": {"unit": "tokens", "avg": 51.0},
        "input_sequence_length": {"unit": "tokens", "avg": 100.0},
        "request_count": {"unit": "requests", "avg": 20.0},
        "benchmark_duration": {"unit": "sec", "avg": 10.0},
    }
    return {**statistics, "input_config": {"loadgen": {"concurrency": 4}}, **changes}


def read(value: object) -> Run:
    return one(read_runs("x.json", json.dumps(value).encode()))


def test_inter_token_latency_is_tpot_and_inter_chunk_latency_the_gap(read_data: Reader) -> None:
    run = one(read_data("aiperf/2025-11_flat.json"))
    assert (mean(run, "tpot_s"), mean(run, "chunk_gap_s"), mean(run, "ttft_s"), mean(run, "e2e_s")) == (0.01, 0.02, 0.05, 0.55)
    # (550 - 50) ms x 20 / (1020 - 20) tokens; a gap of 20 ms carries two of them.
    assert mean(run, "itl_s") == pytest.approx(0.01)
    assert {"chunk_tokens_gt_1", "itl_is_per_chunk"} <= names(run)
    assert run.distribution("chunk_gap_s").min == 0.0  # type: ignore[union-attr]
    ttft = run.distribution("ttft_s")
    assert ttft is not None
    assert ttft.p50 == pytest.approx(0.049)
    assert ttft.p99 == pytest.approx(0.07)
    assert ttft.n == 20
    assert run.rate("output_tokens_per_s") == Rate(102.0, "aggregate", "reported")
    assert run.rate("total_tokens_per_s") == Rate(302.0, "aggregate", "derived")


def test_identity_and_load_of_the_flat_export(read_data: Reader) -> None:
    run = one(read_data("aiperf/2025-11_flat.json"))
    assert (run.model, run.hardware, run.devices, run.engine) == ("acme/tiny-8b", "ACME G1", None, None)
    assert (run.load_mode, run.workload.concurrency, run.duration_s) == ("closed", 8, 10.0)
    assert run.started_at == datetime.fromtimestamp(1_762_500_000, UTC)
    assert run.requests == RequestCounts(20, 20, 0)
    assert run.labels["warmup_request_count"] == "2"
    assert run.token_count_source == "client_tokenizer"
    # 60 output tokens asked for without spread, 51 came.
    assert "short_outputs_eos" in names(run)
    assert "input_length_mismatch" not in names(run)


def test_first_era_has_records_and_counts_errors(read_data: Reader) -> None:
    run = one(read_data("aiperf/2025-10_nested.json"))
    assert run.requests == RequestCounts(25, 20, 5)
    assert "failures_excluded" in names(run)
    assert (mean(run, "ttft_s"), run.load_mode) == (0.05, "single")
    # One token a chunk, so the gaps' percentiles are those of tokens.
    assert run.distribution("itl_s").p99 == pytest.approx(0.014)  # type: ignore[union-attr]
    assert (run.workload.prompt_tokens_total, run.workload.output_tokens_total) == (2000, 1020)
    assert "short_outputs_eos" not in names(run)  # the spread asked for is not in the file


def test_latest_schema_has_phases_and_leaves_warm_up_out(read_data: Reader) -> None:
    run = one(read_data("aiperf/2026-08_schema_1_4.json"))
    assert run.model == "acme/tiny-8b"
    assert (run.load_mode, run.workload.request_rate_per_s, run.workload.concurrency) == ("open", 4.0, None)
    assert run.token_count_source == "server_usage"
    assert run.requests == RequestCounts(24, 20, 4)
    assert mean(run, "ttft_s") == 0.05
    assert run.labels["was_cancelled"] == "true"
    assert run.labels["schema_version"] == "1.4"
    text = " ".join(run.warnings)
    assert "cancelled before its end" in text
    assert "warmup_metrics" in text
    assert "first visible output comes after 300 ms" in text
    assert "up to 80 %" in text
    assert run.rate("total_tokens_per_s") == Rate(302.0, "aggregate", "reported")


def test_csv_has_two_blocks_of_rounded_figures(read_data: Reader) -> None:
    run = one(read_data("aiperf/2025-10_two_blocks.csv"))
    assert (mean(run, "ttft_s"), mean(run, "tpot_s"), mean(run, "e2e_s")) == (0.05, 0.01, 0.55)
    assert run.requests == RequestCounts(25, 20, 5)
    assert run.started_at == datetime.fromtimestamp(1_762_500_000, UTC)
    # 0.20 may stand for 0.195 to 0.205: the totals say it better.
    assert run.rate("requests_per_s") == Rate(0.2, "aggregate", "derived")
    assert run.rate("output_tokens_per_s") == Rate(10.2, "aggregate", "reported")
    assert {ROUNDED, NO_MODEL} <= set(run.warnings)
    assert run.model is None


def test_csv_of_a_later_era_with_sums_empty_cells_and_telemetry(read_data: Reader) -> None:
    run = one(read_data("aiperf/2026-08_with_sum.csv"))
    ttft = run.distribution("ttft_s")
    assert ttft is not None
    assert (ttft.mean, ttft.p50, ttft.p95, ttft.p99) == (0.05, None, 0.06, None)
    assert run.requests == RequestCounts(None, 20, None)
    assert "itl_s" not in run.metrics


def test_a_spreadsheet_with_decimal_commas_is_read_and_a_long_row_refused() -> None:
    text = "Metric;avg;min;max;p1\nRequest Latency (ms);550,5;1,0;2,0;1,0\n\nMetric;Value\nRequest Count;20,00\n"
    assert mean(one(read_runs("x", text.encode())), "e2e_s") == pytest.approx(0.5505)
    with pytest.raises(ImportRefused, match="row on line 2 is longer than its header"):
        read_runs("x", b"Metric,avg,min,max,p1\nRequest Latency (ms),1,146.31,1,2,3,4\n")


def test_records_give_samples_in_send_order_without_warm_up(read_data: Reader) -> None:
    run = one(read_data("aiperf/2025-11_records.jsonl"))
    assert run.requests == RequestCounts(sent=4, completed=2, failed=2)
    assert run.samples is not None
    assert run.samples.ttft_s[:2].tolist() == [0.1, 0.2]
    assert np.isnan(run.samples.e2e_s[2:]).all()
    assert run.samples.start_s is not None
    assert run.samples.start_s.tolist() == pytest.approx([0, 0.2, 0.3, 0.4])
    assert run.samples.errors == ("", "", "RequestCancellationError 499", "cancelled")
    # 20 + 80 ms over 2 + 4 gaps of one token.
    assert mean(run, "itl_s") == pytest.approx(0.1 / 6)
    assert mean(run, "tpot_s") == pytest.approx(0.015)
    assert run.distribution("chunk_gap_s").n == 6  # type: ignore[union-attr]
    # 1.0 s to 1.2 + 0.28 s
    assert run.duration_s == pytest.approx(0.48)
    assert run.rate("output_tokens_per_s").value == pytest.approx(8 / 0.48)  # type: ignore[union-attr]
    assert run.warnings == (ALONE, "1 warm-up requests are left out.")


def test_records_of_warm_up_alone_are_no_run() -> None:
    line = json.dumps({"metadata": {"x_request_id": "a", "benchmark_phase": "warmup"}, "metrics": {}})
    with pytest.raises(ImportRefused, match="All 2 records are of the warm-up phase"):
        read_runs("x", f"{line}\n{line}\n".encode())


def test_records_with_odd_gaps_keep_their_times() -> None:
    metrics = {"request_latency": {"value": 300, "unit": "ms"}, "ttft": {"value": 100, "unit": "ms"}}
    odd = {**metrics, "inter_chunk_latency": {"value": [100, -1], "unit": "ms"}}
    line = json.dumps({"metadata": {"x_request_id": "a"}, "metrics": odd, "error": None})
    run = one(read_runs("x", line.encode()))
    assert mean(run, "e2e_s") == pytest.approx(0.3)
    assert "chunk_gap_s" not in run.metrics
    assert any("negative value" in warning for warning in run.warnings)


def test_a_time_in_an_unknown_unit_is_left_out_and_one_in_seconds_is_read() -> None:
    run = read(export(time_to_first_token={"unit": "fortnights", "avg": 50.0}))
    assert "ttft_s" not in run.metrics
    assert "time_to_first_token has the unit “fortnights” and is left out." in run.warnings
    assert mean(read(export(time_to_first_token={"unit": "s", "avg": 0.05})), "ttft_s") == 0.05


def test_goodput_and_answers_in_one_piece() -> None:
    good = read(export(goodput={"unit": "requests/sec", "avg": 1.5}))
    assert good.rate("goodput_requests_per_s") == Rate(1.5, "aggregate", "reported")
    assert read(export(goodput=None)).rate("goodput_requests_per_s") is None
    whole = export(time_to_first_token=None, input_config={"endpoint": {"streaming": False}})
    assert "non_streaming_no_phase_split" in names(read(whole))
    assert "non_streaming_no_phase_split" not in names(read(export()))


def test_the_first_visible_token_is_apart_from_the_first() -> None:
    later = {"unit": "ms", "avg": 80.0, "p50": 75.0}
    assert mean(read(export(time_to_first_output_token=later)), "ttft_answer_s") == pytest.approx(0.08)
    metrics = {
        name: {"value": value, "unit": "ms"}
        for name, value in (("time_to_first_token", 50), ("time_to_first_output_token", 90), ("request_latency", 300))
    }
    run = read({"metadata": {"x_request_id": "a"}, "metrics": metrics})
    assert run.samples.ttft_answer_s.tolist() == [pytest.approx(0.09)]  # type: ignore[union-attr]
    assert run.samples.cached_tokens is None  # type: ignore[union-attr]


def test_prompts_from_the_server_s_cache_withhold_the_prefill_rate() -> None:
    cached = {"overall_usage_prompt_cache_read_pct": {"unit": "%", "avg": 75.0}, "input_config": {"loadgen": {"concurrency": 1}}}
    (flag,) = (flag for flag in read(export(**cached)).flags if flag.flag == "prefix_cache_hits")
    assert flag.evidence.startswith("The server says that 75 % of the prompt tokens")
    assert flag.withholds == ("prefill_tokens_per_s",)
    metrics = {
        name: {"value": tokens, "unit": "tokens"}
        for name, tokens in (("input_sequence_length", 40), ("usage_prompt_cache_read_tokens", 30))
    }
    line = {"metadata": {"x_request_id": "a"}, "metrics": {**metrics, "request_latency": {"value": 300, "unit": "ms"}}}
    recorded = read(line)
    assert [flag.flag for flag in recorded.flags].count("prefix_cache_hits") == 1
    assert recorded.samples.cached_tokens.tolist() == [30.0]  # type: ignore[union-attr]
    assert "prefix_cache_hits" not in names(read(export()))


def test_no_number_and_nothing_completed() -> None:
    run = read(export(time_to_first_token={"unit": "ms", "avg": float("nan"), "p50": 40.0}))
    assert run.distribution("ttft_s").mean is None  # type: ignore[union-attr]
    assert "nan_values" in names(run)
    nothing = read(export(request_count={"unit": "requests", "avg": 0.0}, error_request_count={"unit": "requests", "avg": 3.0}))
    assert (nothing.metrics, names(nothing)) == ({}, {"zero_completed"})


@pytest.mark.parametrize(
    "value",
    [
        {"aiperf_version": "0.8", "input_config": {}, "timeslices": [{"start_ns": 1}]},
        {"aiperf_version": "0.8", "schema_version": "1.0", "metrics": {}},
    ],
)
def test_other_files_of_the_tool_are_refused_with_what_to_send(value: Json) -> None:
    with pytest.raises(ImportRefused, match=r"send profile_export_aiperf\.json"):
        read_runs("x", json.dumps(value).encode())


SEMICOLONS = "Metric;avg;min;max;p1;p99\nRequest Latency (ms);{};440,00;700,00;450,00;690,00\n\nMetric;Value\nRequest Count;20,00\n"


@pytest.mark.parametrize(("cell", "seconds"), [("550,00", 0.55), ("1.550,25", 1.55025), ("550.25", 0.55025)])
def test_a_table_with_semicolons_is_read_where_it_means_one_thing(cell: str, seconds: float) -> None:
    (run,) = read_runs("x", SEMICOLONS.format(cell).encode()).runs
    assert mean(run, "e2e_s") == pytest.approx(seconds)


def test_and_refused_where_it_may_mean_two() -> None:
    with pytest.raises(ImportRefused, match=r"line 2: “1\.550” may be 1550 or 1,550 in a table with semicolons: save it with commas"):
        read_runs("x", SEMICOLONS.format("1.550").encode())


def test_a_table_that_a_spreadsheet_saved_again_has_lost_its_times() -> None:
    text = next(data for data in files_of("aiperf") if data.startswith(b"Metric,avg") and b",sum," not in data).decode()
    (sound,), (saved,) = (read_runs("x", each.encode()).runs for each in (text, text.replace("1762500000000000000.00", "1.7625E+18")))
    assert sound.started_at is not None
    assert saved.started_at is None
    assert RESAVED in saved.warnings
    assert saved.metrics == sound.metrics
