"""Tables of measurements in the shared layout: labels of layouts, metrics to seconds, and a reason for every row that is no measurement."""

import csv
from pathlib import Path

import pytest

from app.domain.measurement import AGGREGATE, REJECTED, SPECULATIVE, Layout, Measurement, deployment
from benchmarks.shared_tables import Refused, read_served, read_single, weight_format

SINGLE = {
    "id": "s1",
    "source": "a/repo:README.md@1234567",
    "engine": "llama.cpp",
    "engine_version": "b1",
    "date": "2026",
    "hardware": "Some Device",
    "num_devices": "1",
    "tp": "1",
    "pp": "1",
    "ep": "1",
    "model": "owner/Model",
    "weight_dtype": "gguf Q4_K_M",
    "kv_dtype": "f16",
    "batch_or_concurrency": "1",
    "prompt_tokens": "0",
    "output_tokens": "128",
    "metric": "decode_tok_s_per_request",
    "value": "50",
    "unit": "tok/s",
    "scope": "per_request",
    "notes": "",
}
POOL = ("tp", "pp", "attention_dp", "moe_tp", "moe_ep")
SERVED = {
    "id": "r1",
    "engine": "vLLM",
    "engine_version": "1.0",
    "date": "",
    "model": "owner/Model",
    "hardware": "Some Device",
    "serving": "agg",
    "precision": "fp8",
    "weight_dtype": "",
    "moe_dtype": "fp8_block",
    "prompt_tokens": "1024",
    "output_tokens": "128",
    "concurrency": "64",
    "batch_size": "64",
    **dict(zip(POOL, ("4", "1", "1", "4", "1"), strict=True)),
    **{f"prefill_{name}": "" for name in ("batch", "num_workers", *POOL)},
    **{f"decode_{name}": "" for name in ("batch", "num_workers", *POOL)},
    "ttft_ms": "250",
    "tpot_ms": "12.5",
}


def written(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


def single(tmp_path: Path, **changes: str) -> Measurement | Refused:
    return next(read_single(written(tmp_path / "single.csv", SINGLE | changes)))


def served(tmp_path: Path, **changes: str) -> Measurement | Refused:
    return next(read_served(written(tmp_path / "served.csv", SERVED | changes)))


@pytest.mark.parametrize(
    ("labels", "layout"),
    [
        ((8, 1, 8, 1), Layout(8, 8)),
        ((2, None, 1, 1), Layout(2, 2)),
        ((8, 1, 1, 8), Layout(8, 8, ep=8)),
        ((64, 1, 8, 8), Layout(8, 8, ep=8)),
        ((1, 64, 8, 8), Layout(8, 1, dp=8, ep=8)),
        ((16, 1, 4, 4), Layout(4, 4, ep=4)),
        ((4, 4, 1, 16), Layout(4, 1, dp=4, ep=4)),
        ((4, 1, 2, 2), Layout(2, 2, ep=2)),
        ((4, None, 2, 2), Layout(4, 4, ep=2)),
        ((1, 4, 4, 1), Layout(4, 1, dp=4)),
        ((1, None, 2, 1), Layout(2, 1, dp=2)),
        ((2, None, 4, 1), Layout(4, 2, dp=2)),
    ],
)
def test_squared_labels_are_the_deployment_behind_them(labels: tuple[int, int | None, int, int], layout: Layout) -> None:
    assert deployment(*labels) == layout


@pytest.mark.parametrize(
    ("metric", "value", "changes", "times"),
    [
        ("decode_tok_s_per_request", "50", {}, {"tpot_s": 0.02}),
        ("tpot_ms_mean", "20", {}, {"tpot_s": 0.02}),
        ("itl_ms_mean", "20", {}, {"tpot_s": 0.02}),
        ("ttft_ms_mean", "300", {}, {"ttft_s": 0.3}),
        ("prefill_s", "0.3", {}, {"prefill_s": 0.3}),
        ("prefill_tok_s", "2048", {"prompt_tokens": "512"}, {"prefill_s": 0.25}),
        # 16 prompts of 1,024 tokens at 8,192 tokens/s together
        ("prefill_tok_s", "8192", {"prompt_tokens": "1024", "scope": "aggregate", "batch_or_concurrency": "16"}, {"prefill_s": 2.0}),
    ],
)
def test_a_metric_becomes_the_time_of_a_phase(
    tmp_path: Path, metric: str, value: str, changes: dict[str, str], times: dict[str, float]
) -> None:
    row = single(tmp_path, metric=metric, value=value, **changes)
    assert isinstance(row, Measurement)
    assert {name: getattr(row, name) for name in ("ttft_s", "prefill_s", "tpot_s")} == {
        "ttft_s": None,
        "prefill_s": None,
        "tpot_s": None,
        **times,
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"metric": "e2e_s"}, "no time of one phase"),
        ({"value": "0"}, "no positive number"),
        ({"value": "fast"}, "no positive number"),
        ({"batch_or_concurrency": "max"}, "no number"),
        ({"metric": "prefill_tok_s", "prompt_tokens": ""}, "without its prompt length"),
    ],
)
def test_a_row_that_gives_nothing_says_why(tmp_path: Path, changes: dict[str, str], reason: str) -> None:
    row = single(tmp_path, **changes)
    assert isinstance(row, Refused)
    assert reason in row.reason


def test_notes_are_read(tmp_path: Path) -> None:
    row = single(tmp_path, notes="fa=1; context_depth=32768; spec_decoding=mtp (speculative)", scope="aggregate")
    assert isinstance(row, Measurement)
    assert row.context_tokens == 32768
    assert row.flags == (SPECULATIVE, AGGREGATE)
    rejected = next(read_single(written(tmp_path / "bad.csv", SINGLE), rejected=True))
    assert isinstance(rejected, Measurement)
    assert rejected.flags == (REJECTED,)


@pytest.mark.parametrize(
    ("name", "ours"), [("gguf Q4_K_M", "q4_k_m"), ("gguf F16", "fp16"), ("", "bf16"), ("int4-awq-g128", "awq"), ("2bit-vptq", "2bit-vptq")]
)
def test_names_of_formats(name: str, ours: str) -> None:
    assert weight_format(name) == ours


def test_a_served_row(tmp_path: Path) -> None:
    row = served(tmp_path)
    assert isinstance(row, Measurement)
    assert (row.kind, row.sequences, row.ttft_s, row.tpot_s) == ("served", 64, 0.25, 0.0125)
    assert (row.weight_dtype, row.expert_dtype, row.layout) == ("bf16", "fp8_block", Layout(4, 4))
    assert isinstance(served(tmp_path, concurrency=""), Refused)


def test_a_disaggregated_row_is_one_decode_worker(tmp_path: Path) -> None:
    pools = dict(zip(POOL, ("8", "1", "1", "1", "8"), strict=True))
    row = served(
        tmp_path,
        serving="disagg",
        decode_num_workers="2",
        **{f"decode_{name}": value for name, value in pools.items()},
        **{f"prefill_{name}": value for name, value in (pools | {"tp": "4", "moe_ep": "4"}).items()},
    )
    assert isinstance(row, Measurement)
    assert (row.kind, row.sequences) == ("disaggregated", 32)
    assert (row.prefill_workers, row.decode_workers) == (None, 2)
    assert (row.layout, row.prefill_layout) == (Layout(8, 8, ep=8), Layout(4, 4, ep=4))
