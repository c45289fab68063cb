"""The accuracy command on tables of one's own: what it reads, what it scores, and what it says of rows that give no figure."""

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.catalog import load
from app.catalog.measured import measurements
from benchmarks.accuracy import main
from benchmarks.asked import Asked, ask
from benchmarks.noise import neighbours, repeats

POOL = ("tp", "pp", "attention_dp", "moe_tp", "moe_ep")
SERVED = {
    "engine": "vLLM",
    "engine_version": "1.0",
    "model": "meta-llama/Llama-3.1-70B",
    "hardware": "NVIDIA H100 SXM5 80GB",
    "serving": "agg",
    "weight_dtype": "fp8",
    "moe_dtype": "",
    "prompt_tokens": "1024",
    "output_tokens": "1024",
    **dict(zip(POOL, ("4", "1", "1", "1", "1"), strict=True)),
    **{f"{side}_{name}": "" for side in ("prefill", "decode") for name in ("num_workers", *POOL)},
}
SINGLE = {
    "source": "a/repo:README.md",
    "engine": "llama.cpp",
    "engine_version": "b1",
    "num_devices": "1",
    **dict.fromkeys(("tp", "pp", "ep"), "1"),
    "hardware": "NVIDIA GeForce RTX 4090",
    "weight_dtype": "gguf Q4_K_M",
    "kv_dtype": "f16",
    "batch_or_concurrency": "1",
    "prompt_tokens": "0",
    "output_tokens": "128",
    "metric": "decode_tok_s_per_request",
    "scope": "per_request",
    "notes": "",
}
OWN_CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}


def table(path: Path, base: Mapping[str, str], *rows: Mapping[str, str]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", *sorted({*base, *(key for row in rows for key in row)})])
        writer.writeheader()
        writer.writerows({"id": f"r{place}", **base, **row} for place, row in enumerate(rows))
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--quick", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def group(report: Mapping[str, Any], **by: str) -> Mapping[str, Any]:
    return next(one for one in report["groups"] if one["by"] == by)


def test_tables_of_ones_own_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    served = table(
        tmp_path / "served.csv",
        SERVED,
        {"concurrency": "4", "ttft_ms": "81", "tpot_ms": "11.8"},
        {"concurrency": "4", "ttft_ms": "81", "tpot_ms": "11.8", "engine_version": "another label of the same measurement"},
        {"concurrency": "32", "ttft_ms": "175", "tpot_ms": "16.5"},
        {"concurrency": "8", "ttft_ms": "96", "tpot_ms": "0.001"},  # below the floor: nothing can
        {"concurrency": "", "ttft_ms": "96", "tpot_ms": "12"},
    )
    single = table(
        tmp_path / "single.csv",
        SINGLE,
        {"model": "meta-llama/Llama-3.1-8B-Instruct", "value": "120"},
        {"model": "nobody/Unheard-of", "value": "120"},
    )
    found = printed(capsys, "--serving", served, "--groundtruth", single)
    assert found["conditions"]["measurements"] == 6
    assert group(found, population="dense_tpot")["n"] == 2
    assert group(found, population="dense_tpot", exclusions="none")["n"] == 3
    assert group(found, population="dense_ttft")["n"] == 3
    assert group(found, population="decode_quantised")["n"] == 1
    assert 0 < found["figures"]["dense_tpot_median_ape"] < 1
    assert group(found, **{"no measurement": "the number of clients is not stated"})["n"] == 1
    assert group(found, **{"not answerable": "no config of nobody/Unheard-of"})["n"] == 1
    # Five distinct rows; one of them names a model that nobody has.
    assert found["figures"]["answerable_share"] == pytest.approx(4 / 5)
    assert found["figures"]["unpriced_share"] == 0
    assert not any("left_out" in name for name in found["figures"])


def test_models_that_the_catalog_lacks_come_from_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"model": "own/Small-Model", "value": "120"}
    single = table(tmp_path / "single.csv", SINGLE, row)
    assert printed(capsys, "--groundtruth", single)["figures"]["answerable_share"] == 0
    models = tmp_path / "models"
    models.mkdir()
    (models / "own__Small-Model.json").write_text(json.dumps(OWN_CONFIG), encoding="utf-8")
    found = printed(capsys, "--groundtruth", single, "--models", str(models))
    assert found["figures"]["answerable_share"] == 1
    assert group(found, population="decode_quantised")["n"] == 1
    # A config that cannot be read is said, and its rows stay without an answer.
    (models / "own__Small-Model.json").write_text("{", encoding="utf-8")
    assert main(["--groundtruth", single, "--models", str(models), "--quick", "--json"]) == 0
    told = capsys.readouterr()
    assert "own__Small-Model.json" in told.err
    assert json.loads(told.out)["figures"]["answerable_share"] == 0


def served_rows(*loads: tuple[float, float]) -> tuple[list[Asked], np.ndarray[Any, np.dtype[np.float64]]]:
    """One deployment at several numbers of clients, and its TPOT."""
    row = next(one for one in measurements() if one.kind == "served" and one.tpot_s)
    found = [ask(replace(row, id=str(place), sequences=clients), load(), lambda name: None) for place, (clients, _) in enumerate(loads)]
    return [one for one in found if isinstance(one, Asked)], np.array([time for _, time in loads])


def test_what_repeats_differ_by() -> None:
    # median of 10, 11 and 12 is 11; the load that was measured once has nothing to be held against
    assert list(repeats(*served_rows((4, 10.0), (4, 11.0), (4, 12.0), (8, 20.0)))) == pytest.approx([0.1, 0.0, 1 / 12])


def test_what_a_row_lies_off_the_line_between_its_neighbours() -> None:
    # The middle of 10 and 40 in logarithms is 20; measured were 16: 25 % off. 64 clients are too far for a line to 8.
    assert list(neighbours(*served_rows((4, 10.0), (8, 16.0), (16, 40.0), (128, 50.0)))) == pytest.approx([0.25])
