"""The script for a GPU host, on this processor: the very same code, in fp32 with a small model."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.worker.measure.torch_seam import has_torch

ROOT = Path(__file__).resolve().parents[2]


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "check_gpu.py"), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, timeout=170, check=False, env=environment)


@pytest.mark.parametrize(
    "backend", ["numpy", pytest.param("torch", marks=pytest.mark.skipif(not has_torch(), reason="torch is not installed"))]
)
def test_it_prints_one_table_with_every_row_measured(backend: str) -> None:
    done = ran("--device", "cpu", "--model", "tiny", "--backend", backend)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[2:]] == [
        "best fp32 product",
        "the model's layers, fp32",
        "copying",
        "matrix-vector product",
        "launch of a small product",
        "prefill of 64 tokens",
        "decode step after 64 tokens",
    ]
    assert "not measured" not in done.stdout
    assert f"phaseline-{backend}" in done.stdout


def test_without_a_gpu_it_says_so_and_ends_with_an_error() -> None:
    done = ran("--device", "gpu:99", "--model", "tiny")
    assert done.returncode == 1
    assert done.stderr.startswith("check_gpu: ") or "\ncheck_gpu: " in done.stderr
    assert "Traceback" not in done.stderr
