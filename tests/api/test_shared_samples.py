"""Real files that other people published, through the API: each meets what its origin list expects of it."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.shapes import ImportAnswer
from tests.answers import API, ok, problem, strict

pytestmark = pytest.mark.shared
FOLDERS = ("vllm_bench_serve", "vllm_bench_serve_log", "sglang_bench_serving", "llama_bench")


@dataclass(frozen=True)
class Sample:
    """A file and what must become of it."""

    path: Path
    expect: str


def samples(shared_dir: Path, folder: str) -> list[Sample]:
    with (shared_dir / "samples" / "PROVENANCE.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["path"].split("/")[0] == folder]
    return [Sample(shared_dir / "samples" / row["path"], row["expect"]) for row in rows]


def runs_of(client: TestClient, shared_dir: Path, path: str) -> list[dict[str, Any]]:
    """The runs of a file, stored now or before."""
    answer = client.post(f"{API}/runs", params={"name": path.split("/")[-1]}, content=(shared_dir / "samples" / path).read_bytes())
    assert answer.status_code in (200, 201), answer.text
    found: list[dict[str, Any]] = strict(answer)["runs"]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_meets_its_expectation(api: TestClient, shared_dir: Path, folder: str) -> None:
    found = samples(shared_dir, folder)
    assert found
    for sample in found:
        data = sample.path.read_bytes()
        answer = api.post(f"{API}/runs", files={"file": (sample.path.name, data)}, data={"project": "samples"})
        if sample.expect.startswith("refuse"):
            body = problem(answer, 422, sample.path.name)
            assert body["refused"][0]["tried"], sample.path.name
            continue
        assert sample.expect == "run"
        body = ok(answer, 201)
        ImportAnswer.model_validate(body)
        assert body["runs"], sample.path.name
        for run in body["runs"]:
            assert run["format"] == folder, sample.path.name
            assert ok(api.get(f"{API}/runs/{run['id']}")) == run
        assert api.get(f"{API}/runs/{body['runs'][0]['id']}/original").content == data


def test_files_that_are_a_pair_are_one_run_together_and_none_alone(api: TestClient, shared_dir: Path) -> None:
    pair = samples(shared_dir, "vllm_prometheus")
    assert [sample.expect.split(" ")[0] for sample in pair] == ["pair", "pair"]
    files = [("file", (sample.path.name, sample.path.read_bytes())) for sample in pair]
    for file in files:
        assert "one scrape" in problem(api.post(f"{API}/runs", files=[file]), 422)["detail"]
    (run,) = ok(api.post(f"{API}/runs", files=files), 201)["runs"]
    assert (run["format"], run["measured_at"], run["requests"]["completed"]) == ("vllm_prometheus", "server", 600)
    assert run["metrics"]["prefill_s"]["mean"] == pytest.approx(36.60655808323645 / 600)
    original = api.get(f"{API}/runs/{run['id']}/original").content
    assert all(sample.path.read_bytes() in original for sample in pair)


def test_vllm_by_hand(api: TestClient, shared_dir: Path) -> None:
    (run,) = runs_of(api, shared_dir, "vllm_bench_serve/v0.25.1_opt125m_conc2.json")
    # 256 and 128 tokens over 8 requests; the file's milliseconds as seconds; one-second buckets are no concurrency.
    assert (run["workload"]["prompt_tokens_mean"], run["workload"]["output_tokens_mean"], run["workload"]["concurrency"]) == (32, 16, 2)
    assert run["metrics"]["ttft_s"]["mean"] == pytest.approx(0.21553594)
    assert run["metrics"]["ttft_s"]["p50"] == pytest.approx(0.0556813965)
    assert run["metrics"]["tpot_s"]["mean"] == pytest.approx(0.01126582826)
    assert run["metrics"]["output_tokens_per_s"] == {
        "value": pytest.approx(128 / 1.5441598830002476), "scope": "aggregate", "from": "reported", "definition": "canonical"
    }  # fmt: skip
    assert run["model"] == "facebook/opt-125m"
    (run,) = runs_of(api, shared_dir, "vllm_bench_serve/2026-02_glm5_fp8_custom_seconds.json")
    # The same stems without a unit are seconds: 3.14 s, not 3.14 ms. 1,638,400 and 20,480 tokens over 160 requests.
    assert run["metrics"]["ttft_s"]["p50"] == pytest.approx(3.1382447)
    assert run["metrics"]["tpot_s"]["p50"] == pytest.approx(0.14105192)
    assert (run["workload"]["prompt_tokens_mean"], run["workload"]["output_tokens_mean"]) == (10240, 128)


def test_a_vllm_run_in_which_all_failed(api: TestClient, shared_dir: Path) -> None:
    (run,) = runs_of(api, shared_dir, "vllm_bench_serve/v0.25.1_all_failed.json")
    assert run["requests"] == {"sent": 8, "completed": 0, "failed": 8}
    assert all(run["metrics"][key] is None for key in ("ttft_s", "tpot_s", "itl_s", "e2e_s"))


def test_the_vllm_log_by_hand(api: TestClient, shared_dir: Path) -> None:
    (run,) = runs_of(api, shared_dir, "vllm_bench_serve_log/2026-04_gemma4_gpu_short_rate8.log")
    assert run["requests"]["completed"] == 1000
    assert (run["workload"]["prompt_tokens_mean"], run["workload"]["output_tokens_mean"]) == (1024, 256)
    assert run["workload"]["request_rate_per_s"] == 8
    assert run["duration_s"] == pytest.approx(346.68)
    assert run["metrics"]["ttft_s"]["mean"] == pytest.approx(101.18961)
    assert run["metrics"]["ttft_s"]["p99"] == pytest.approx(212.30084)
    assert run["metrics"]["tpot_s"]["mean"] == pytest.approx(0.11277)
    assert run["metrics"]["output_tokens_per_s"]["value"] == pytest.approx(738.44, rel=1e-4)


def test_sglang_by_hand(api: TestClient, shared_dir: Path) -> None:
    (run,) = runs_of(api, shared_dir, "sglang_bench_serving/2025-03_sharegpt_10.jsonl")
    assert run["metrics"]["ttft_s"]["mean"] == pytest.approx(0.0943934021)
    assert run["metrics"]["tpot_s"]["mean"] == pytest.approx(0.0411110623)
    # Token-weighted: (3.8520457 - 0.0943934) / (277.4 - 1) = 13.59 ms, a third of mean TPOT, and the one that adds up.
    assert run["metrics"]["itl_s"]["mean"] == pytest.approx((3.8520457374 - 0.0943934021) / 276.4, rel=1e-3)
    assert run["rate_unlimited"] is True
    first = runs_of(api, shared_dir, "sglang_bench_serving/2024-12_h200_llama33_70b_offline.jsonl")[0]
    assert first["workload"]["prompt_tokens_mean"] == pytest.approx(1525074 / 3000)
    assert first["metrics"]["ttft_s"]["p50"] == pytest.approx(91.28220984)
    assert first["metrics"]["ttft_s"]["mean"] is None
    assert first["model"] is None


def test_llama_bench_by_hand(api: TestClient, shared_dir: Path) -> None:
    runs = runs_of(api, shared_dir, "llama_bench/2023_docs_3090ti.json")
    prefill = [run["metrics"]["prefill_s"] for run in runs if run["metrics"]["prefill_s"]]
    steps = [run["metrics"]["itl_s"] for run in runs if run["metrics"]["itl_s"]]
    # 512 tokens in 212,365,953 ns, 128 tokens in 977,425,219 ns; five repeats each.
    assert (prefill[0]["mean"], prefill[0]["n"]) == (pytest.approx(0.212365953), 5)
    assert steps[0]["mean"] == pytest.approx(0.977425219 / 128)
    assert all(run["metrics"]["ttft_s"] is None for run in runs), "the prompt pass alone is no TTFT"
    runs = runs_of(api, shared_dir, "llama_bench/2026_gemma4_31b_rocm_md.log")
    prefill = [run["metrics"]["prefill_s"] for run in runs if run["metrics"]["prefill_s"]]
    steps = [run["metrics"]["itl_s"] for run in runs if run["metrics"]["itl_s"]]
    assert prefill[0]["mean"] == pytest.approx(512 / 325.63, rel=1e-4)
    assert steps[0]["mean"] == pytest.approx(1 / 6.14, rel=1e-3)


def test_the_two_llama_bench_files_that_are_refused_say_where(api: TestClient, shared_dir: Path) -> None:
    folder = shared_dir / "samples" / "llama_bench"
    longer = api.post(f"{API}/runs", params={"name": "docs.csv"}, content=(folder / "2023_docs_3090ti.csv").read_bytes())
    assert "line 2" in problem(longer, 422)["detail"].lower()
    crashed = api.post(f"{API}/runs", params={"name": "crashed.log"}, content=(folder / "2025-12_glm46_rpc_longctx_md.log").read_bytes())
    assert "no result row" in problem(crashed, 422)["detail"].lower()


def test_two_real_runs_are_compared(api: TestClient, shared_dir: Path) -> None:
    eight = runs_of(api, shared_dir, "sglang_bench_serving/2025-12_qwen25_3b_c8.jsonl")[0]["id"]
    thirty_two = runs_of(api, shared_dir, "sglang_bench_serving/2025-12_qwen25_3b_c32.jsonl")[0]["id"]
    answer = ok(api.get(f"{API}/compare", params={"base": eight, "other": thirty_two}))
    assert answer["comparable"]["ok"] is False
    assert any("8 against 32" in reason for reason in answer["comparable"]["reasons"])
