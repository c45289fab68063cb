"""Real files of AIPerf, GuideLLM, llmperf and GenAI-Perf, read where they lie: golden figures checked by hand against the files."""

from pathlib import Path

import pytest

from app.domain.checks import as_shown
from app.domain.run import RequestCounts
from tests.sample_runs import distribution, names, runs_of, value

pytestmark = pytest.mark.shared


def test_aiperf_of_one_client(shared_dir: Path) -> None:
    (run,) = runs_of(shared_dir, "aiperf/2025-11_qwen06b_c1_aiperf.json")
    assert (run.model, run.hardware, run.load_mode) == ("Qwen/Qwen3-0.6B", "NVIDIA RTX 6000 Ada Generation", "single")
    assert run.requests == RequestCounts(64, 64, 0)
    assert distribution(run, "ttft_s").mean == pytest.approx(0.030814987671875)
    assert distribution(run, "ttft_s").p99 == pytest.approx(0.03434426888)
    assert distribution(run, "tpot_s").mean == pytest.approx(0.01819909533160138)
    assert distribution(run, "chunk_gap_s").mean == pytest.approx(0.018197640450062815)
    assert distribution(run, "itl_s").mean == pytest.approx((3.6521454372343746 - 0.030814987671875) * 64 / (12_799 - 64))
    assert value(run, "output_tokens_per_s") == pytest.approx(50.08213863971112)
    assert (run.workload.prompt_tokens_total, run.workload.output_tokens_total) == (6400, 12_799)


def test_aiperf_says_the_same_in_each_of_its_files(shared_dir: Path) -> None:
    (report,) = runs_of(shared_dir, "aiperf/2025-10_examples_run1_aiperf.json")
    (records,) = runs_of(shared_dir, "aiperf/2025-10_examples_run1_records.jsonl")
    (table,) = runs_of(shared_dir, "aiperf/2025-10_examples_run1_aiperf.csv")
    assert {run.requests for run in (report, records, table)} == {RequestCounts(100, 89, 11)}
    for key in ("ttft_s", "tpot_s", "chunk_gap_s", "e2e_s", "itl_s"):
        ours = distribution(records, key)
        assert ours.origin == "samples"
        for stat in ("mean", "p50", "p99"):
            assert distribution(report, key).stat(stat) == pytest.approx(ours.stat(stat), rel=1e-9)
            assert distribution(table, key).stat(stat) == pytest.approx(ours.stat(stat), rel=1e-3)
    assert value(records, "output_tokens_per_s") == pytest.approx(value(report, "output_tokens_per_s"))
    assert records.duration_s == pytest.approx(9.317788951)


def test_aiperf_reasoning_and_agents(shared_dir: Path) -> None:
    (reasoning,) = runs_of(shared_dir, "aiperf/2026-01_profile_export_aiperf_a.json")
    assert any("first visible output comes after 3.668 s" in warning for warning in reasoning.warnings)
    (agents,) = runs_of(shared_dir, "aiperf/2026_inferencex_kimi_c1_aiperf.json")
    assert agents.model == "amd/Kimi-K2.7-Code-MXFP4"
    assert agents.token_count_source == "server_usage"
    assert agents.labels["aiperf_version"] == "0.8.0"
    assert distribution(agents, "ttft_s").mean == pytest.approx(10.259107215784614)  # 39.6 s in warm-up, which stays out
    assert any("up to 92.8 %" in warning for warning in agents.warnings)
    (table,) = runs_of(shared_dir, "aiperf/2026_inferencex_m1517_c16_aiperf.csv")
    assert distribution(table, "chunk_gap_s").p99 == pytest.approx(0.38645)
    assert value(table, "requests_per_s") == pytest.approx(1735 / 3629.96)


def test_guidellm_before_0_4(shared_dir: Path) -> None:
    (run,) = runs_of(shared_dir, "guidellm/0.3_constant10_benchmarks.json")
    assert (run.model, run.load_mode, run.workload.request_rate_per_s) == ("Qwen/Qwen3-0.6B", "open", 10.0)
    assert run.requests == RequestCounts(609, 586, 0)
    assert run.labels["incomplete_requests"] == "23"
    assert distribution(run, "ttft_s").mean == pytest.approx(1.0062143587)
    assert distribution(run, "itl_s").mean == pytest.approx(0.010423929083)
    assert distribution(run, "tpot_s").n == 586
    # (last - first) / n; of 128 tokens 127 gaps.
    assert float(run.labels["decode_s_per_output_token"]) == pytest.approx(0.010423929083 * 127 / 128, rel=1e-5)
    assert value(run, "output_tokens_per_s") == pytest.approx(1251.5371956866534)


def test_guidellm_since_0_4(shared_dir: Path) -> None:
    (run,) = runs_of(shared_dir, "guidellm/0.5dev_gptoss20b_tp4.json")
    assert (run.load_mode, run.workload.concurrency, run.duration_s) == ("single", 1, 720.0)
    assert run.samples is not None
    assert run.samples.size == 25  # of 30: the others lie in warm-up and cool-down
    assert distribution(run, "ttft_s").mean == pytest.approx(0.048843650817871094)
    assert distribution(run, "itl_s").mean == pytest.approx(0.02990631087667665)
    # The whole request over its tokens, in which TTFT is.
    assert distribution(as_shown(run), "ntpot_s").mean == pytest.approx(0.02992480437, rel=1e-4)
    assert names(run) == set()
    first, second = runs_of(shared_dir, "guidellm/0.8dev_schema_v2_mock.json")
    assert [each.workload.request_rate_per_s for each in (first, second)] == [2.0, 4.0]
    assert distribution(second, "itl_s").mean == pytest.approx(0.0010904414313)


def test_llmperf(shared_dir: Path) -> None:
    (summary,) = runs_of(shared_dir, "llmperf/leaderboard_anyscale_70b_summary.json")
    (responses,) = runs_of(shared_dir, "llmperf/leaderboard_anyscale_70b_individual.json")
    assert (summary.model, summary.workload.concurrency) == ("meta-llama/Llama-2-70b-chat-hf", 5)
    for run in (summary, responses):
        assert distribution(run, "itl_s").mean == pytest.approx((2.3546667737533324 - 0.24890269464666667) * 150 / (22_042 - 150))
        assert distribution(run, "ttft_s").p99 == pytest.approx(0.4745305190600024)
    # The file's own "inter-token latency" is 15.8 ms, a tenth above.
    assert distribution(summary, "ntpot_s").mean == pytest.approx(0.01583612777604942)
    assert value(summary, "output_tokens_per_s") == pytest.approx(207.52121071152493)
    steps = runs_of(shared_dir, "llmperf/philschmid_llama3_8b_tp1_multi.json")
    assert [run.workload.concurrency for run in steps] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert distribution(steps[0], "ttft_s").mean == pytest.approx(0.15813857590983388)


def test_genai_perf_whose_statistics_miss_two_thirds_of_the_requests(shared_dir: Path) -> None:
    (run,) = runs_of(shared_dir, "genai_perf/2025_profile_export_genai_perf.json")
    assert run.requests == RequestCounts(100, 35, None)
    assert distribution(run, "tpot_s").mean == pytest.approx(0.0077534012)
    assert distribution(run, "itl_s").mean == pytest.approx((2.0830211264285713 - 1.5246265132) * 35 / (2573 - 35))
    assert value(run, "requests_per_s") == pytest.approx(35 / (2573 / 12.095750218698175))
