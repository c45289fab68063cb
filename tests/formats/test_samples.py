"""Real files of other people, read where they lie and never copied: each meets what is expected of it, some value by value."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import RequestCounts, Run
from app.formats import IMPORTERS, read_runs
from tests.sample_runs import distribution, names, runs_of, value

pytestmark = pytest.mark.shared


def test_every_sample_of_these_formats_meets_its_expectation(shared_dir: Path) -> None:
    ids = {importer.id for importer in IMPORTERS}
    rows = [
        row
        for row in csv.DictReader((shared_dir / "samples" / "PROVENANCE.csv").read_text().splitlines())
        if row["path"].split("/")[0] in ids
    ]
    assert len(rows) > 20
    refused = []
    for row in rows:
        data = (shared_dir / "samples" / row["path"]).read_bytes()
        if row["expect"] == "run":
            assert read_runs("sample", data).format == row["path"].split("/")[0], row["path"]
        else:
            with pytest.raises(ImportRefused) as refusal:
                read_runs("sample", data)
            refused.append((row["expect"], refusal.value.reason))
    reasons = dict(refused)
    assert "no result rows" in reasons["refuse: no result rows"]
    assert "row on line 2 is longer than its header" in reasons["refuse: a row is longer than its header; name the line"]
    # What is to be attached, mapped by hand or perhaps generic is refused until there is something to do it with.
    assert sum(expect.startswith("refuse:") for expect, _ in refused) == 2


def test_vllm_report_with_two_clients(shared_dir: Path) -> None:
    (run,) = runs_of(shared_dir, "vllm_bench_serve/v0.25.1_opt125m_conc2.json")
    assert (run.engine, run.model, run.load_mode, run.workload.concurrency) == ("vllm", "facebook/opt-125m", "closed", 2)
    ttft = distribution(run, "ttft_s")
    assert (ttft.mean, ttft.p50, ttft.p99, ttft.n) == (
        pytest.approx(0.21553594200008774),
        pytest.approx(0.05568139649994919),
        pytest.approx(0.7344049174101428),
        8,
    )
    assert distribution(run, "tpot_s").mean == pytest.approx(0.011265828258331112)
    assert distribution(run, "chunk_gap_s").p99 == pytest.approx(0.029815922519960626)
    itl = distribution(run, "itl_s")
    assert (itl.mean, itl.n, itl.origin) == (pytest.approx(0.011265836941667354), 128 - 8, "derived")
    assert value(run, "decode_tokens_per_s") == pytest.approx(1 / 0.011265836941667354)
    assert value(run, "output_tokens_per_s") == pytest.approx(82.89297074037474)
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean) == (32.0, 16.0)
    assert names(run) == {"few_requests", "mean_dominated_by_outlier"}


def test_vllm_sweep_has_exact_itl(shared_dir: Path) -> None:
    first, second = runs_of(shared_dir, "vllm_bench_serve/v0.25.1_sweep_summary.json")
    # (340.3411977 - 217.2728934) ms x 8 / (128 - 8)
    assert distribution(first, "itl_s").mean == pytest.approx((0.3403411977451469 - 0.21727289337468392) * 8 / 120)
    assert distribution(second, "itl_s").mean == pytest.approx((0.15949398987686436 - 0.03930731637592544) * 8 / 120)
    assert first.labels["max_num_seqs"] == "4"
    assert "impossible_peak_below_mean" in names(first)


def test_vllm_appended_documents(shared_dir: Path) -> None:
    runs = runs_of(shared_dir, "vllm_bench_serve/2025-04_llama31_8b_append.jsonl")
    assert len(runs) == 12
    assert [run.workload.request_rate_per_s for run in runs] == [1.0, 10.0, 20.0, 30.0, 35.0, None] * 2
    assert [run.labels["framework"] for run in runs] == ["vllm"] * 6 + ["sgl"] * 6
    assert distribution(runs[0], "ttft_s").mean == pytest.approx(0.045037437366166465)
    assert runs[5].requests == RequestCounts(sent=2000, completed=1015, failed=985)
    assert "failures_excluded" in names(runs[5])
    # 1000 + 100 tokens a request, 120 requests in 99.33 s
    assert value(runs[0], "total_tokens_per_s") == pytest.approx(132_000 / 99.32947591599077)


def test_vllm_other_reports(shared_dir: Path) -> None:
    (failed,) = runs_of(shared_dir, "vllm_bench_serve/v0.25.1_all_failed.json")
    assert failed.metrics == {}
    assert names(failed) == {"zero_completed"}
    (seconds,) = runs_of(shared_dir, "vllm_bench_serve/2026-02_glm5_fp8_custom_seconds.json")
    assert distribution(seconds, "ttft_s").p50 == pytest.approx(3.1382447043433785)
    assert "itl_s" not in seconds.metrics
    (merged,) = runs_of(shared_dir, "vllm_bench_serve/2025-11_gptoss120b_ray_conc128_merged.json")
    assert merged.workload.concurrency == 128
    assert merged.workload.rate_unlimited
    assert "itl_s" not in merged.metrics
    (overload,) = runs_of(shared_dir, "vllm_bench_serve/2026-04_gemma4_31b_gpu_long_rate8.json")
    assert distribution(overload, "ttft_s").mean == pytest.approx(1218.547807787981)
    assert overload.load_mode == "open"
    assert "ttft_equals_e2e_buffering" not in names(overload)


def test_vllm_console_log(shared_dir: Path) -> None:
    (run,) = runs_of(shared_dir, "vllm_bench_serve_log/2026-04_gemma4_gpu_short_rate8.log")
    assert run.model == "google/gemma-4-31B-it"
    assert (run.load_mode, run.workload.request_rate_per_s, run.workload.concurrency) == ("open", 8.0, None)
    assert run.requests == RequestCounts(sent=1000, completed=1000, failed=0)
    assert distribution(run, "ttft_s").mean == pytest.approx(101.18961)
    assert distribution(run, "tpot_s").p99 == pytest.approx(0.12562)
    assert distribution(run, "itl_s").mean == pytest.approx(0.11277)
    assert value(run, "output_tokens_per_s") == pytest.approx(738.44)
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean) == (1024.0, 256.0)


def test_sglang_without_server_info(shared_dir: Path) -> None:
    (run,) = runs_of(shared_dir, "sglang_bench_serving/2025-03_sharegpt_10.jsonl")
    ttft, itl, e2e = (distribution(run, key).mean for key in ("ttft_s", "itl_s", "e2e_s"))
    assert itl == pytest.approx(0.013594960980463128)
    # Total = TTFT + (n - 1) x ITL on means, with 277.4 tokens a request.
    assert ttft is not None
    assert itl is not None
    assert ttft + (277.4 - 1) * itl == pytest.approx(e2e, rel=1e-5)
    assert distribution(run, "tpot_s").mean == pytest.approx(0.04111106232302352)
    assert run.model is None
    assert names(run) == {"mean_of_ratios_vs_ratio_of_means", "mean_dominated_by_outlier"}


def test_sglang_with_server_info(shared_dir: Path) -> None:
    (run,) = runs_of(shared_dir, "sglang_bench_serving/2025-12_qwen25_3b_c32.jsonl")
    assert (run.engine, run.engine_version, run.model) == ("sglang", "0.5.5.post3", "Qwen/Qwen2.5-3B-Instruct")
    assert (run.tp, run.devices, run.workload.concurrency) == (1, 1, 32)
    assert distribution(run, "itl_s").mean == pytest.approx(0.008477972767861118)
    assert distribution(run, "itl_s").p95 == pytest.approx(0.02242972366511822)
    assert value(run, "total_tokens_per_s") == pytest.approx(16663.363794435983)
    assert run.workload.output_tokens_mean == pytest.approx(61.8)
    assert run.label == "agg_n100_in512_out128_c32"


def test_sglang_old_short_schema(shared_dir: Path) -> None:
    online = runs_of(shared_dir, "sglang_bench_serving/2024-12_h200_llama33_70b_online.jsonl")
    assert [run.workload.request_rate_per_s for run in online] == [1.0, 2.0, 4.0, 8.0, 16.0, 4.0, 8.0]
    assert [run.workload.dataset for run in online] == ["random"] * 5 + ["sharegpt"] * 2
    assert distribution(online[0], "itl_s").p50 == pytest.approx(0.013638956006616354)
    assert distribution(online[0], "itl_s").mean is None
    offline = runs_of(shared_dir, "sglang_bench_serving/2024-12_h200_llama33_70b_offline.jsonl")
    assert {run.load_mode for run in offline} == {"offline"}
    assert value(offline[0], "requests_per_s") == pytest.approx(3000 / 341.72106836596504)


def test_llama_bench_depths(shared_dir: Path) -> None:
    runs = runs_of(shared_dir, "llama_bench/2026-03_strixhalo_step35_rocm.json")
    assert [run.workload.context_depth_tokens for run in runs] == [0, 8192, 16384, 32768, 65536, 131072]
    first = runs[0]
    assert distribution(first, "prefill_s").mean == pytest.approx(1.673237165)
    assert distribution(first, "prefill_s").n == 5
    assert distribution(first, "itl_s").mean == pytest.approx(5.230100995 / 128)
    assert value(first, "decode_tokens_per_s") == pytest.approx(24.474358)
    assert value(first, "prefill_tokens_per_s") == pytest.approx(306.036165)
    assert (first.hardware, first.engine_version, first.weight_dtype) == ("Radeon 8060S Graphics", "8067", "q4_k_m")


def test_llama_bench_documented_example_in_three_outputs(shared_dir: Path) -> None:
    for name, prefill_s, total_s in (
        ("2023_docs_3090ti.json", 0.212365953, 0.977425219),
        ("2023_docs_3090ti.jsonl", 0.212365953, 0.977425219),
        ("2023_docs_3090ti.sql", 0.212693772, 0.977925003),
    ):
        (run,) = runs_of(shared_dir, f"llama_bench/{name}")
        assert distribution(run, "prefill_s").mean == pytest.approx(prefill_s)
        assert distribution(run, "itl_s").mean == pytest.approx(total_s / 128)
        assert (run.hardware, run.weight_dtype, run.kv_dtype) == ("NVIDIA GeForce RTX 3090 Ti", "q4_0", "f16")


def test_llama_bench_tables(shared_dir: Path) -> None:
    (table,) = runs_of(shared_dir, "llama_bench/2026_gemma4_31b_rocm_md.log")
    assert distribution(table, "itl_s").mean == pytest.approx(1 / 6.14)
    assert distribution(table, "prefill_s").mean == pytest.approx(512 / 325.63)
    assert (table.hardware, table.engine_version) == ("AMD Radeon 8060S Graphics", "9187")
    (generation,) = runs_of(shared_dir, "llama_bench/2026-05_qwen3coder_hip_tg128.csv")
    assert set(generation.metrics) == {"itl_s", "decode_tokens_per_s"}
    assert distribution(generation, "itl_s").mean == pytest.approx(1.772996911 / 128)
    (sweep,) = runs_of(shared_dir, "llama_bench/2026-05_qwen3coder_flag_sweep.csv")
    assert sweep.kv_dtype == "q4_0"
    assert distribution(sweep, "prefill_s").mean == pytest.approx(0.436142366)


def test_llama_bench_rows_of_a_curve_are_runs_of_their_own(shared_dir: Path) -> None:
    curve = runs_of(shared_dir, "llama_bench/2026_qwen36_27b_curve_prefill.jsonl")
    assert [run.workload.context_depth_tokens for run in curve] == [8192 * step for step in range(8)] + [65536]
    rows = json.loads((shared_dir / "samples/llama_bench/2026-02_7900xtx_gptoss20b_depth_sweep.json").read_text())
    assert len(runs_of(shared_dir, "llama_bench/2026-02_7900xtx_gptoss20b_depth_sweep.json")) == len(rows) == 84
    pairs = runs_of(shared_dir, "llama_bench/2025_llama32_1b_hip.jsonl")
    assert len(pairs) == 5
    assert distribution(pairs[4], "itl_s").mean == pytest.approx(1.980926186 / 128)


def test_file_cases(shared_dir: Path) -> None:
    cases: dict[str, dict[str, Any]] = {
        case["id"]: case for line in (shared_dir / "cases" / "cases.jsonl").read_text().splitlines() if (case := json.loads(line))
    }

    def read(case: str) -> list[Run]:
        given = cases[case]["input"]
        files = [given["file"]] if "file" in given else given["files"]
        return [run for file in files for run in read_runs(file["name"], file["text"].encode()).runs]

    (nothing,) = read("F01")
    assert nothing.requests == RequestCounts(sent=20, completed=0, failed=20)
    assert (nothing.metrics, names(nothing)) == ({}, {"zero_completed"})
    (half,) = read("F03")
    assert distribution(half, "ttft_s").mean == pytest.approx(0.45)
    assert distribution(half, "ttft_s").n == 4
    assert value(half, "output_tokens_per_s") == pytest.approx(51.2)
    assert "empty_outputs" in names(half)
    old, new = read("F05")
    assert (value(old, "decode_tokens_per_s"), value(new, "decode_tokens_per_s")) == (100.0, 80.0)
    assert (old.workload.context_depth_tokens, new.workload.context_depth_tokens) == (0, 4096)
    points = read("F12")
    assert [run.workload.concurrency for run in points] == [1, 8, 32]
    assert [distribution(run, "ttft_s").mean for run in points] == [pytest.approx(0.04), pytest.approx(0.09), pytest.approx(0.3)]
