"""Real files of the tools that engines bring along, and of two that drive them: some figures of each, worked out by hand."""

from pathlib import Path

import pytest

from app.domain.errors import ImportRefused
from tests.sample_runs import distribution, names, runs_of, value

pytestmark = pytest.mark.shared


def test_sglang_one_batch(shared_dir: Path) -> None:
    short, long = runs_of(shared_dir, "sglang_one_batch/2025-03_bench_one_batch.jsonl")
    assert distribution(short, "prefill_s").mean == 0.1867663860321045
    # 32 x 256 tokens in that time: the file says 43862.28 itself
    assert value(short, "prefill_tokens_per_s") == pytest.approx(43862.2825768649)
    # (0.43757 - 0.18677) s / 31 steps
    assert distribution(short, "itl_s").mean == pytest.approx(0.0080903, rel=1e-4)
    assert distribution(short, "itl_s").p50 == 0.00800180435180664
    # 32 x (256 + 32) tokens in 0.43757 s: the file says 21061.97
    assert value(short, "total_tokens_per_s") == pytest.approx(21061.97496627225)
    assert (long.load_mode, long.workload.concurrency, long.workload.prompt_tokens_mean) == ("static_batch", 32, 1349.0)
    # (1.79437 - 1.03523) s / 78 steps
    assert distribution(long, "itl_s").mean == pytest.approx(0.0097326, rel=1e-4)


def test_sglang_one_batch_at_a_server(shared_dir: Path) -> None:
    runs = runs_of(shared_dir, "sglang_one_batch/2025-11_bench_one_batch_server_quant.jsonl")
    first = runs[0]
    assert first.label == "w8a8_smooth_gptq_base_run1"
    # 0.4591 s - 32 x 32 tokens / 4848.36 tokens/s = 0.24789 s; the other 0.21121 s / 31 steps
    assert distribution(first, "ttft_s").mean == pytest.approx(0.24789, rel=1e-4)
    assert distribution(first, "itl_s").mean == pytest.approx(0.0068131, rel=1e-4)
    absurd = runs_of(shared_dir, "sglang_one_batch/2025_bench_one_batch_server_bs8192.jsonl")
    assert len(absurd) == 15
    for run in absurd:
        assert names(run) == {"server_queue_in_ttft"}
        assert "itl_s" not in run.metrics
    # 8192 x 100 tokens / 70.1871 s instead of the file's 2.1 million a second
    assert value(absurd[0], "output_tokens_per_s") == pytest.approx(11671.66)


def test_llama_batched_bench(shared_dir: Path) -> None:
    one, two = runs_of(shared_dir, "llama_batched_bench/docs.jsonl")
    # 3.503684 s / 128 steps; 11.106112 s / 128 steps for two sequences
    assert distribution(one, "itl_s").mean == pytest.approx(0.02737253)
    assert value(one, "decode_tokens_per_s") == pytest.approx(36.532974)
    assert distribution(two, "itl_s").mean == pytest.approx(0.0867665)
    assert value(two, "prefill_tokens_per_s") == pytest.approx(605.770935)
    table = runs_of(shared_dir, "llama_batched_bench/docs_table.md")
    assert [run.workload.concurrency for run in table] == [1, 2, 4, 8, 16, 32] * 2
    # 18.073 s / 256 steps
    assert distribution(table[10], "itl_s").mean == pytest.approx(0.07059766, rel=1e-6)


def test_ollama(shared_dir: Path) -> None:
    (whole,) = runs_of(shared_dir, "ollama/docs_generate_nonstream.json")
    assert whole.model == "llama3.2"
    # 26 tokens in 0.325953 s; 4.709213 s / 290 tokens; 5.043500667 - 0.005025959 s
    assert distribution(whole, "prefill_s").mean == pytest.approx(0.325953)
    assert distribution(whole, "itl_s").mean == pytest.approx(0.016238666)
    assert distribution(whole, "e2e_s").mean == pytest.approx(5.038474708)
    (streamed,) = runs_of(shared_dir, "ollama/docs_generate_stream_final.json")
    assert "Loading the model took 6.338 s, 59.2 % of the request" in streamed.warnings[0]
    assert distribution(streamed, "e2e_s").mean == pytest.approx(4.368598792)


def test_llama_cpp_timings(shared_dir: Path) -> None:
    (answer,) = runs_of(shared_dir, "llama_cpp_timings/2026-07_qwen36_27b_completion_1.json")
    assert answer.model == "qwen3.6-27b-bf16.gguf"
    # 1328.177 ms for 200 tokens, 55153.929 ms / 512
    assert value(answer, "prefill_tokens_per_s") == pytest.approx(150.58233955)
    assert distribution(answer, "itl_s").mean == pytest.approx(0.107722517578)
    (long,) = runs_of(shared_dir, "llama_cpp_timings/2026-07_qwen36_27b_longctx_1.json")
    assert distribution(long, "prefill_s").mean == pytest.approx(64.219104)
    first, second = runs_of(shared_dir, "llama_cpp_timings/2026-05_qwen36_35b_perf_text.log")
    assert (first.model, first.weight_dtype, first.kv_dtype, first.engine_version) == ("Qwen3.6-35B-A3B", "q4_k_m", "q4_0", "9010")
    assert (first.hardware, first.devices) == ("Radeon 8060S Graphics (RADV STRIX_HALO)", 1)
    assert distribution(first, "prefill_s").mean == pytest.approx(31.40144)
    # 2293.85 ms / 128
    assert distribution(second, "itl_s").mean == pytest.approx(0.0179207, rel=1e-5)


def test_inferencemax(shared_dir: Path) -> None:
    (plain,) = runs_of(shared_dir, "inferencemax/2026_gptoss_h200_conc64_agg.json")
    assert (plain.hardware, plain.devices, plain.engine_version) == ("h200", 8, "0.13.0")
    # 8 x 2304.1957 counts prompts too, 8 x 1152.0978 does not
    assert value(plain, "total_tokens_per_s") == pytest.approx(18433.5656)
    assert value(plain, "output_tokens_per_s") == pytest.approx(9216.7828)
    assert distribution(plain, "itl_s").mean == pytest.approx(0.006621669)
    (speculative,) = runs_of(shared_dir, "inferencemax/2026_kimik25_mi355x_conc4_mtp_agg.json")
    assert "itl_is_per_chunk" in names(speculative)
    assert "itl_s" not in speculative.metrics
    # 1 + (16.17588 - 0.31709) s / 17.294 ms
    assert speculative.workload.output_tokens_mean == pytest.approx(918.0, abs=0.1)
    agentic = runs_of(shared_dir, "inferencemax/2026-06_agentic_results_bmk_list.json")
    assert len(agentic) == 20
    # 72 x 230.2639 tokens; (832.1543 - 586.3940) s x 72 / (16579 - 72)
    assert agentic[0].workload.output_tokens_total == 16579
    assert distribution(agentic[0], "itl_s").mean == pytest.approx(1.07195, rel=1e-4)


def test_inference_perf(shared_dir: Path) -> None:
    (stage,) = runs_of(shared_dir, "inference_perf/kubecon_batchsize_stage0.json")
    assert (stage.load_mode, stage.workload.request_rate_per_s, stage.requests.completed) == ("open", 1.0, 60)
    # (0.483228 - 0.033319) s x 60 / (3741 - 60), twice and more of the file's 3.478 ms
    assert distribution(stage, "itl_s").mean == pytest.approx(0.0073335, rel=1e-4)
    assert "tokenizer_mismatch" in names(stage)
    (requests,) = runs_of(shared_dir, "inference_perf/corpus_v0.5.0_two_stage_per_request.json")
    # The means that the summary of the same run gives for its requests
    assert distribution(requests, "ttft_s").mean == pytest.approx(0.12600288600288598)
    assert distribution(requests, "tpot_s").mean == pytest.approx(0.126002886002886)
    assert (requests.requests.completed, requests.requests.failed) == (5, 1)
    (off,) = runs_of(shared_dir, "inference_perf/corpus_v0.5.0_count_off_by_one_summary.json")
    assert any("counts 7 requests; successes and failures add up to 6" in warning for warning in off.warnings)
    with pytest.raises(ImportRefused, match="the server's own metrics of one stage"):
        runs_of(shared_dir, "inference_perf/kubecon_batchsize_stage0_prometheus.json")


@pytest.mark.parametrize(
    ("path", "said"),
    [("ollama/docs_bench_benchstat.txt", "benchstat text"), ("llama_cpp_timings/2026-07_qwen36_27b_results.csv", "prompt eval time")],
)
def test_texts_that_are_no_result_of_the_tool(shared_dir: Path, path: str, said: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        runs_of(shared_dir, path)
    assert said in dict(refusal.value.tried)[path.split("/")[0]]
