"""llama-bench in each of its outputs: pairing of rows, depth, tables, and rows that do not fit their header."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Rate, Run
from app.formats import ParsedFile, read_runs
from app.formats.llama_bench import NO_ROWS, ROUNDED
from tests.sample_runs import mean

Reader = Callable[[str], ParsedFile]
DATA = Path(__file__).resolve().parents[1] / "data" / "llama_bench"


def rows_of(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((DATA / name).read_text())
    return rows


def read_rows(*rows: dict[str, Any]) -> tuple[Run, ...]:
    return read_runs("x.json", json.dumps(rows).encode()).runs


def test_a_pair_of_rows_is_one_run(read_data: Reader) -> None:
    (run,) = read_data("llama_bench/2026-03_pair.json").runs
    # Passes over 512 tokens: 200, 210, 190 ms. 100 tokens in 1.00, 1.02, 0.98 s.
    prefill, itl = run.distribution("prefill_s"), run.distribution("itl_s")
    assert prefill is not None
    assert (prefill.mean, prefill.p50, prefill.min, prefill.max, prefill.n) == (pytest.approx(0.2), 0.2, 0.19, 0.21, 3)
    assert prefill.origin == "samples"
    assert itl is not None
    assert (itl.mean, itl.max, itl.n) == (pytest.approx(0.01), pytest.approx(0.0102), 3)
    # The file's means of rates: 512 x (5 + 1/0.21 + 1/0.19) / 3 and 100 x (1 + 1/1.02 + 1/0.98) / 3.
    assert run.rate("prefill_tokens_per_s") == Rate(pytest.approx(512 * (5 + 1 / 0.21 + 1 / 0.19) / 3), "request", "reported")
    assert run.rate("decode_tokens_per_s") == Rate(pytest.approx(100 * (1 + 1 / 1.02 + 1 / 0.98) / 3), "request", "reported")
    assert "ttft_s" not in run.metrics
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean) == (512.0, 100.0)
    assert run.workload.concurrency == 1
    assert (run.load_mode, run.measured_at) == ("single", "in_process")
    assert run.requests.completed == 3
    assert run.labels["test"] == "pp512 + tg100"
    assert run.flags == ()
    assert run.warnings == ()


def test_repeats_that_stand_apart_are_flagged() -> None:
    rows = json.loads((DATA / "2026-03_pair.json").read_text())
    for row in rows:
        times = [10**9, 10**9, 1_010_000_000, 990_000_000, 10**9, 2 * 10**9]
        # The prompt test is even, the generation test is not.
        row["samples_ns"] = times if row["n_gen"] else times[:5]
        row["avg_ns"] = sum(row["samples_ns"]) / len(row["samples_ns"])
        row["avg_ts"] = (row["n_prompt"] + row["n_gen"]) / row["avg_ns"] * 1e9
    (run,) = read_runs("x", json.dumps(rows).encode()).runs
    (flag,) = (flag for flag in run.flags if flag.flag == "bimodal_runs")
    assert flag.evidence.startswith("1 of 6 repeats stand apart: 2 where the median is 1")


def test_identity_in_the_words_of_the_file(read_data: Reader) -> None:
    (run,) = read_data("llama_bench/2026-03_pair.json").runs
    assert (run.engine, run.engine_version) == ("llama.cpp", "8000")
    assert run.model == "llama 8B Q4_K - Medium"
    assert (run.weight_dtype, run.kv_dtype) == ("q4_k_m", "f16")
    assert (run.hardware, run.devices) == ("ACME GPU 9000", 1)
    assert run.started_at == datetime(2026, 3, 2, 1, 15, 14, tzinfo=UTC)
    assert run.labels["build_commit"] == "abc1234"
    assert run.labels["n_ubatch"] == "512"
    assert run.labels["model_file"] == "tiny-8b-Q4_K_M.gguf"
    assert run.labels["bits_per_weight"] == "4.92"
    assert not any("/" in value for value in run.labels.values())


def test_missing_depth_is_zero_and_old_columns_are_fine(read_data: Reader) -> None:
    (run,) = read_data("llama_bench/2024-11_without_depth.jsonl").runs
    assert run.workload.context_depth_tokens == 0
    assert run.kv_dtype == "f16"  # f16_kv
    assert run.labels["gpu_blas"] == "true"
    assert mean(run, "itl_s") == pytest.approx(0.01)


def test_each_depth_is_a_run(read_data: Reader) -> None:
    empty, deep = read_data("llama_bench/2026-03_depths.jsonl").runs
    assert (empty.workload.context_depth_tokens, deep.workload.context_depth_tokens) == (0, 4096)
    # 512 tokens in 0.4 s, 100 in 1.25 s
    assert mean(deep, "prefill_s") == pytest.approx(0.4)
    assert mean(deep, "itl_s") == pytest.approx(0.0125)
    assert deep.labels["test"] == "pp512 @ d4096 + tg100 @ d4096"


def test_several_lengths_are_runs_of_their_own(read_data: Reader) -> None:
    runs = read_data("llama_bench/2026-03_several_lengths.json").runs
    assert [run.labels["test"] for run in runs] == ["pp128", "pp512", "tg100", "pp512+tg100"]
    short, _, generation, whole = runs
    assert short.workload.output_tokens_mean is None
    assert generation.workload.prompt_tokens_mean is None
    assert set(generation.metrics) == {"itl_s", "decode_tokens_per_s"}
    # A whole request of 512 + 100 tokens took 1.5 s.
    assert mean(whole, "e2e_s") == pytest.approx(1.5)
    assert whole.rate("total_tokens_per_s") == Rate(408.0, "aggregate", "reported")


def test_models_in_one_file_are_kept_apart(read_data: Reader) -> None:
    first, second = read_data("llama_bench/2026-03_two_models.json").runs
    assert (first.model, second.model) == ("llama 8B Q4_K - Medium", "qwen3 4B Q8_0")
    assert (mean(first, "itl_s"), mean(second, "itl_s")) == (pytest.approx(0.01), pytest.approx(0.005))


@pytest.mark.parametrize("name", ["2026-05_quoted.csv", "2026-05_semicolons.csv", "2026-05_statements.sql", "2023-09_unnamed_opencl.sql"])
def test_tables_say_the_same_as_the_json(read_data: Reader, name: str) -> None:
    (run,) = read_data(f"llama_bench/{name}").runs
    assert mean(run, "prefill_s") == pytest.approx(0.2)
    assert mean(run, "itl_s") == pytest.approx(0.01)
    # Deviations of the samples: 10 ms, and 20 ms over 100 tokens.
    prefill, itl = run.distribution("prefill_s"), run.distribution("itl_s")
    assert prefill is not None
    assert itl is not None
    assert (prefill.std, itl.std) == (pytest.approx(0.01), pytest.approx(0.0002))
    assert prefill.n is None
    assert prefill.origin == "reported"
    assert run.workload.context_depth_tokens == 0
    assert run.engine_version == "8000"
    assert run.weight_dtype == "q4_k_m"


def test_quotes_in_sql(read_data: Reader) -> None:
    text = (DATA / "2026-05_statements.sql").read_text().replace("'ACME GPU 9000'", "''")
    (run,) = read_runs("x.sql", text.encode()).runs
    assert run.hardware == "O'Neill CPU"


def test_unnamed_opencl_column_is_put_back_only_when_the_arithmetic_agrees(read_data: Reader) -> None:
    (run,) = read_data("llama_bench/2023-09_unnamed_opencl.sql").runs
    assert run.labels["opencl"] == "0"
    assert any("left out the name `opencl`" in warning for warning in run.warnings)
    text = (DATA / "2023-09_unnamed_opencl.sql").read_text().replace("'100.026677'", "'7.0'")
    with pytest.raises(ImportRefused, match="The row on line 31 is longer than its header"):
        read_runs("x.sql", text.encode())


def test_blocks_of_csv_with_a_log_line_and_an_empty_block(read_data: Reader) -> None:
    pair, deep = read_data("llama_bench/2026-05_two_blocks.csv").runs
    assert pair.labels["test"] == "pp512 + tg100"
    assert deep.labels["test"] == "pp512 @ d4096"
    prefill = deep.distribution("prefill_s")
    assert prefill is not None
    assert prefill.std is None  # one repetition


def test_markdown_in_a_log(read_data: Reader) -> None:
    pair, deep = read_data("llama_bench/2026-06_table.log").runs
    # 512 / 2560, 1 / 100 and 512 / 1280
    assert mean(pair, "prefill_s") == pytest.approx(0.2)
    assert mean(pair, "itl_s") == pytest.approx(0.01)
    assert pair.metrics["itl_s"].origin == "derived"
    assert pair.rate("decode_tokens_per_s") == Rate(100.0, "request", "reported")
    assert mean(deep, "prefill_s") == pytest.approx(0.4)
    assert deep.workload.context_depth_tokens == 4096
    assert (pair.hardware, pair.devices, pair.engine_version) == ("ACME GPU 9000", 1, "9187")
    assert (pair.kv_dtype, pair.weight_dtype) == ("f16", "q4_k_m")
    assert pair.labels["flash_attn"] == "1"
    assert ROUNDED in pair.warnings


def test_header_without_rows_is_refused(read_data: Reader) -> None:
    with pytest.raises(ImportRefused, match="no result rows") as refusal:
        read_data("llama_bench/2026-06_crashed.log")
    assert refusal.value.reason == NO_ROWS
    header = (DATA / "2026-05_quoted.csv").read_text().split("\n")[0]
    for text in (header, "CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT\n);\n"):
        with pytest.raises(ImportRefused, match="no result rows"):
            read_runs("x", text.encode())


@pytest.mark.parametrize(("change", "word"), [('"9"\n', "longer"), ("\n", "shorter")])
def test_csv_rows_that_do_not_fit_their_header_name_the_line(change: str, word: str) -> None:
    lines = (DATA / "2026-05_quoted.csv").read_text().splitlines()
    lines[2] = lines[2] + "," + change.strip() if word == "longer" else lines[2].rsplit(",", 1)[0]
    with pytest.raises(ImportRefused, match=f"row on line 3 is {word} than its header"):
        read_runs("x.csv", "\n".join(lines).encode())


def test_csv_figures_that_are_none() -> None:
    text = (DATA / "2026-05_quoted.csv").read_text()
    with pytest.raises(ImportRefused, match=r"line 2: avg_ns is “1,146\.31”, which is no number"):
        read_runs("x.csv", text.replace('"200000000"', '"1,146.31"').encode())
    (run,) = read_runs("x.csv", text.replace('"200000000"', '"2.0E+08"').encode()).runs
    assert any("a spreadsheet re-saved the file" in warning for warning in run.warnings)
    assert mean(run, "prefill_s") == pytest.approx(0.2)


def test_a_time_re_saved_by_a_spreadsheet_is_left_out() -> None:
    text = (DATA / "2026-05_quoted.csv").read_text().replace("2026-03-02T01:15:14Z", "02.03.2026 01:15")
    (run,) = read_runs("x.csv", text.encode()).runs
    assert any("test_time is “02.03.2026 01:15”" in warning for warning in run.warnings)


def test_null_cells_are_not_known() -> None:
    text = (DATA / "2026-05_quoted.csv").read_text().replace('"ACME GPU 9000"', '""').replace('"abc1234"', "NULL")
    (run,) = read_runs("x.csv", text.encode()).runs
    assert run.hardware == "ACME CPU 16"
    assert "build_commit" not in run.labels


def test_a_table_row_cut_at_the_end_of_a_log_is_left_out() -> None:
    lines = (DATA / "2026-06_table.log").read_text().splitlines()
    (run,) = read_runs("x.log", "\n".join([*lines[:5], lines[5][:60]]).encode()).runs
    assert run.labels["test"] == "pp512"
    assert any("Line 6 is cut off" in warning for warning in run.warnings)


@pytest.mark.parametrize(("old", "new", "message"), [("tg128", "xy128", "test is “xy128”"), ("100.00 ± 0.50", "fast", "t/s is “fast”")])
def test_table_cells_that_say_nothing(old: str, new: str, message: str) -> None:
    text = (DATA / "2026-06_table.log").read_text().replace(old, new)
    with pytest.raises(ImportRefused, match=f"line 6: {message}"):
        read_runs("x.log", text.encode())


def test_table_saved_in_an_old_encoding() -> None:
    data = (DATA / "2026-06_table.log").read_text().encode("cp1252")
    parsed = read_runs("x.log", data)
    assert parsed.runs[0].rate("prefill_tokens_per_s") == Rate(2560.0, "request", "reported")
    assert "Windows-1252" in parsed.warnings[0]


def test_several_devices() -> None:
    row = rows_of("2026-03_pair.json")[0]
    (twins,) = read_rows({**row, "gpu_info": "ACME GPU, ACME GPU"})
    assert (twins.hardware, twins.devices) == ("ACME GPU", 2)
    (mixed,) = read_rows({**row, "gpu_info": "ACME GPU, OTHER GPU"})
    assert (mixed.hardware, mixed.devices) == ("ACME GPU, OTHER GPU", None)
    assert any("several devices" in warning for warning in mixed.warnings)


def test_without_layers_on_the_gpu_the_hardware_is_the_cpu() -> None:
    (run,) = read_rows({**rows_of("2026-03_pair.json")[0], "n_gpu_layers": 0})
    assert run.hardware == "ACME CPU 16"
    assert any("n_gpu_layers 0" in warning for warning in run.warnings)


def test_figures_that_contradict_their_samples() -> None:
    row = rows_of("2026-03_pair.json")[0]
    (run,) = read_rows({**row, "avg_ns": 300_000_000, "avg_ts": 1000.0})
    assert mean(run, "prefill_s") == pytest.approx(0.2)
    assert run.rate("prefill_tokens_per_s") == Rate(pytest.approx(2560.0), "request", "reported")
    assert sum("which is used" in warning for warning in run.warnings) == 2


def test_a_row_without_figures_is_left_out_and_a_file_of_them_refused() -> None:
    pair = rows_of("2026-03_pair.json")
    empty = {**pair[1], "avg_ns": 0, "avg_ts": 0.0, "samples_ns": []}
    (run,) = read_rows(pair[0], empty)
    assert any("the row is left out" in warning for warning in run.warnings)
    with pytest.raises(ImportRefused, match="nothing to import"):
        read_rows(empty)


@pytest.mark.parametrize(
    ("words", "dtype"),
    [
        ("llama 7B mostly Q4_0", "q4_0"),
        ("llama 8B Q4_K - Medium", "q4_k_m"),
        ("llama 8B Q3_K - Large", "q3_k_l"),
        ("gpt-oss 20B MXFP4 MoE", "mxfp4"),
        ("Step 3.5 Flash 128B.A11B Q4_K_M", "q4_k_m"),
        ("qwen3 4B BF16", "bf16"),
        ("gemma3 4B F16", "f16"),
        ("llama 8B IQ4_XS - 4.25 bpw", "iq4_xs"),
        ("llama 1B all F32", "f32"),
        ("llama 8B", None),
    ],
)
def test_weight_format_from_the_model_in_words(words: str, dtype: str | None) -> None:
    (run,) = read_rows({**rows_of("2026-03_pair.json")[0], "model_type": words})
    assert run.weight_dtype == dtype


def test_a_repetition_that_stands_apart_is_named() -> None:
    rows = rows_of("2026-03_pair.json")
    alike = [1_000_000_000, 1_010_000_000, 990_000_000, 1_005_000_000, 1_002_000_000]
    decode = next(row for row in rows if row["n_gen"])
    decode |= {"samples_ns": [*alike, 1_900_000_000], "samples_ts": [], "avg_ns": 1_151_166_667}
    assert [flag.flag for flag in read_rows(decode)[0].flags] == ["bimodal_runs"]
    decode |= {"samples_ns": alike, "avg_ns": 1_001_400_000}
    assert read_rows(decode)[0].flags == ()
