"""Real files of benchmarks that run in process, read where they lie: golden figures checked by hand against the files."""

from pathlib import Path

import pytest

from app.domain.run import RequestCounts
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
