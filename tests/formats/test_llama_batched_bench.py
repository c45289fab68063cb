"""llama-batched-bench: the pass and the steps of a batch, its table, prompts shared and sequences apart."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate
from app.formats import ParsedFile, read_runs
from app.formats.identity import NO_MODEL
from app.formats.llama_batched_bench import ROUNDED, SEPARATE, SHARED_PROMPT

Reader = Callable[[str], ParsedFile]
LINE: dict[str, Any] = {"pp": 100, "tg": 50, "pl": 2, "t_pp": 0.2, "t_tg": 1.25, "t": 1.45}
HEADER = "| PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |\n|---|---|---|---|---|---|---|---|---|---|\n"


def test_each_line_is_a_run(read_data: Reader) -> None:
    one, eight = read_data("llama_batched_bench/2025-02_lines.jsonl").runs
    assert (one.load_mode, eight.load_mode) == ("single", "static_batch")
    assert (eight.engine, eight.measured_at, eight.duration_s) == ("llama.cpp", "in_process", 2.5)
    assert (eight.workload.concurrency, eight.workload.prompt_tokens_total, eight.workload.output_tokens_total) == (8, 800, 400)
    # 8 x 100 tokens in 0.5 s; 50 steps in 2 s
    assert eight.metrics["prefill_s"] == Distribution(mean=0.5)
    assert eight.metrics["prefill_tokens_per_s"] == Rate(1600.0, "aggregate", "derived")
    assert eight.metrics["itl_s"] == Distribution(mean=0.04, n=50, origin="derived")
    assert eight.metrics["step_s"] == eight.metrics["itl_s"]
    assert eight.metrics["decode_tokens_per_s"] == Rate(25.0, "request", "derived")
    # 400 and 1200 tokens in 2.5 s
    assert eight.metrics["output_tokens_per_s"] == Rate(160.0, "aggregate", "derived")
    assert eight.metrics["total_tokens_per_s"] == Rate(480.0, "aggregate", "derived")
    assert eight.labels["flash_attn"] == "1"
    assert one.metrics["prefill_tokens_per_s"] == Rate(1000.0, "request", "derived")
    assert one.warnings == (NO_MODEL,)
    assert one.flags == eight.flags == ()


def test_a_shared_prompt_is_read_once_and_separate_sequences_step_alone(read_data: Reader) -> None:
    (run,) = read_data("llama_batched_bench/2025-11_shared_and_separate.jsonl").runs
    # 100 tokens in 0.1 s, not 400; 4 x 50 steps in 4 s; the file's own 300 tokens / 4.1 s
    assert run.metrics["prefill_tokens_per_s"] == Rate(1000.0, "aggregate", "derived")
    assert run.metrics["itl_s"] == Distribution(mean=0.02, n=200, origin="derived")
    assert run.metrics["total_tokens_per_s"] == Rate(73.1707, "aggregate", "reported")
    assert run.warnings == (NO_MODEL, SHARED_PROMPT, SEPARATE)


def test_the_table_in_a_log(read_data: Reader) -> None:
    both, prompts = read_data("llama_batched_bench/2025-02_table.log").runs
    # 50 steps in 1.25 s
    assert both.metrics["itl_s"] == Distribution(mean=0.025, n=50, origin="derived")
    assert both.metrics["e2e_s"] == Distribution(mean=1.45)
    assert both.labels["n_ubatch"] == "512"
    assert ROUNDED in both.warnings
    assert "itl_s" not in prompts.metrics
    assert prompts.workload.output_tokens_mean is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEADER, "no result rows"),
        (HEADER + "| 1 | 2 | 3 |\n", "The row on line 3 has 3 cells under 10 columns"),
        (HEADER + "| 1 | 2 | 1 | 3 | x | 1 | 1 | 1 | 1 | 1 |\n", "line 3 holds “x”, which is no number"),
        (HEADER + "| 1.5 | 2 | 1 | 3 | 1 | 1 | 1 | 1 | 1 | 1 |\n", "line 3: pp must be a whole number"),
        (json.dumps({**LINE, "pl": 0}), "pl is 0"),
        (json.dumps({**LINE, "t_pp": 0, "t_tg": None}), "there is nothing to import"),
    ],
)
def test_files_without_figures_are_refused(text: str, expected: str) -> None:
    with pytest.raises(ImportRefused, match=expected):
        read_runs("x", text.encode())


def test_a_total_that_is_not_there_is_the_sum_of_the_phases() -> None:
    (run,) = read_runs("x", json.dumps({key: value for key, value in LINE.items() if key != "t"}).encode()).runs
    assert run.duration_s == pytest.approx(1.45)
