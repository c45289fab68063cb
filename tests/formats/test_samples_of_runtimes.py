"""Real files of benchmarks that run in process, read where they lie: golden figures checked by hand against the files."""

from pathlib import Path

import pytest

from app.domain.run import RequestCounts
from app.formats.optimum_benchmark import FORWARD
from tests.sample_runs import distribution, runs_of, value

pytestmark = pytest.mark.shared


def test_gpt_manager_benchmark(shared_dir: Path) -> None:
    (long,) = runs_of(shared_dir, "trtllm_gptmanager_csv/2025-05_llama3_8b_fp16_long.csv")
    assert long.requests == RequestCounts(1024, 1024, 0)
    assert distribution(long, "ttft_s").mean == pytest.approx(1.19523)
    assert distribution(long, "tpot_s").p99 == pytest.approx(0.027244)
    # 570.993 tokens / 0.570993 sequences a second
    assert long.workload.output_tokens_mean == pytest.approx(1000)
    assert distribution(long, "itl_s").mean == pytest.approx((28.0171 - 1.19523) / 999)
    assert value(long, "output_tokens_per_s") == pytest.approx(570.993)
    assert long.labels["util_avg"] == "97.2048076923077"
    (queued,) = runs_of(shared_dir, "trtllm_gptmanager_csv/2025-05_llama3_8b_fp8_b64.csv")
    assert distribution(queued, "ttft_s").mean == pytest.approx(60.4769)
    assert distribution(queued, "itl_s").mean == pytest.approx((149.176 - 60.4769) / 999)


def test_optimum_benchmark(shared_dir: Path) -> None:
    (large,) = runs_of(shared_dir, "optimum_benchmark/2025-04_llama70b_compile_benchmark.json")
    assert (large.model, large.hardware, large.devices) == ("meta-llama/Llama-3.1-70B-Instruct", "NVIDIA A100-SXM4-80GB", 2)
    assert distribution(large, "prefill_s").mean == pytest.approx(0.13159777679443363)
    assert distribution(large, "itl_s").mean == pytest.approx(6.233827343749999 / 63)
    assert value(large, "prefill_tokens_per_s") == pytest.approx(64 / 0.13159777679443363)
    (report,) = runs_of(shared_dir, "optimum_benchmark/2025-04_llama8b_fbgemm_report.json")
    assert (report.workload.concurrency, report.workload.output_tokens_mean) == (1, 64.0)
    assert distribution(report, "itl_s").mean == pytest.approx(1.8621227905273439 / 63)
    (forward,) = runs_of(shared_dir, "optimum_benchmark/2024_repo_root_benchmark_report.json")
    assert distribution(forward, "prefill_s").definition == FORWARD
    assert forward.workload.concurrency == 64
    (old,) = runs_of(shared_dir, "optimum_benchmark/2023_llama2_13b_fp16_bs1_inference_results.csv")
    assert distribution(old, "prefill_s").mean == pytest.approx(0.0543)
    assert distribution(old, "itl_s").mean == pytest.approx(0.0332, rel=0.002)
    assert distribution(old, "e2e_s").mean == pytest.approx(17.1)
