"""`phaseline measure device` and `measure model`: one measurement without a server, and files that import."""

import json
from pathlib import Path

import pytest

from app.commands.measure_here import device_lines
from app.domain.device_profile import calibrated_by, profile_of
from app.domain.device_rates import DeviceRates, Measured, Move, Product
from app.domain.hardware import HardwareProfile
from app.formats import read_runs
from tests.commands import Run, runner

QUICK = ("--largest", 256, "--seconds", 0.001)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


def rates(dtype: str = "fp32", flops: float = 1e11, move: float = 2e10) -> DeviceRates:
    products = (Product("square", dtype, 512, 512, 512, Measured(1.2 * flops, flops)),)
    moves = (Move("copy", dtype, 1e9, Measured(2.5e10, 2.4e10)), Move("gemv", dtype, 1e9, Measured(1.1 * move, move)))
    return DeviceRates("Acme CPU", "cpu", 1, 16e9, products, moves, {dtype: 2e-6})


def test_a_device_is_measured_and_its_profile_prices_a_model_that_is_measured(run: Run, tmp_path: Path) -> None:
    device, profile, model = (tmp_path / name for name in ("device.json", "profile.json", "model.json"))
    ended = run("measure", "device", *QUICK, "--out", device, "--profile", profile)
    assert ended.code == 0, ended.err
    assert "ridge" in ended.out
    assert "6 of 6: square 256 x 256 x 256, fp32" in ended.err
    document = json.loads(device.read_bytes())
    assert document["environment"]["python"]
    assert document["telemetry"]["channels"]["cpu_busy_cores"]
    (measured,) = read_runs("x", device.read_bytes()).runs
    assert measured.labels["kind"] == "device_microbench"

    words = ("tiny-llama-6m", "--prompt", "32", "--output", 3, "--repeats", 3, "--backend", "numpy")
    ended = run("measure", "model", *words, "--hardware", profile, "--out", model)
    assert ended.code == 0, ended.err
    assert "prompt 32, batch 1" in ended.out
    (found,) = read_runs("x", model.read_bytes()).runs
    assert (found.model, found.requests.completed, found.workload.prompt_tokens_mean) == ("tiny-llama-6m", 3, 32.0)
    # The document has every sample; whether one falls into three requests of a few milliseconds is the machine's affair.
    assert json.loads(model.read_bytes())["telemetry"]["channels"]["cpu_busy_cores"]
    again = run("measure", "model", *words, "--hardware", profile, "--out", model)
    assert (again.code, "is there already" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("device", "--device", "tpu"), "say cpu, gpu"),
        (("device", "--dtypes", "int3"), "dtypes"),
        (("model", "tiny-llama-6m", "--prompt", "many"), "whole numbers"),
        (("model", "llama-3-1-8b", "--hardware", "h100-sxm5-80gb", "--backend", "numpy"), "up to 160 M parameters"),
        (("model", "deepseek-v3", "--hardware", "h100-sxm5-80gb"), "is not built here"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_sentence(run: Run, words: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    ended = run("measure", *words, "--out", tmp_path / "x.json")
    assert ended.code == 2
    assert expected in ended.err
    assert not (tmp_path / "x.json").exists()


def test_the_lines_name_the_ceilings() -> None:
    text = "\n".join(device_lines(rates()))
    # 1e11 FLOP/s over 2e10 bytes/s
    assert "ridge 5.00 FLOP/byte" in text
    assert "matrix-vector product" in text


def test_a_profile_of_measurements_alone_has_the_best_ones_for_a_specification() -> None:
    found = profile_of(rates(), "acme", "Acme CPU", "", "a run")
    assert found is not None
    assert (found.peak("fp32"), found.bandwidth_bytes_per_s) == (1.2e11, 2.5e10)
    assert found.compute_efficiency["fp32"] == pytest.approx(1 / 1.2)
    assert found.bandwidth_efficiency == pytest.approx(0.8)
    assert (found.achieved_flops_per_s["fp32"], found.achieved_bandwidth_bytes_per_s) == (1e11, 2e10)
    assert found.launch_s == 2e-6
    assert {origin.label for origin in found.provenance.values()} == {"measured"}
    assert profile_of(DeviceRates("x", "cpu"), "x", "x", "", "a run") is None


def test_measured_rates_replace_the_achieved_ones_of_a_profile_and_nothing_else() -> None:
    base = HardwareProfile("a1", "A1", "Acme", 3e10, {"fp32": 2e11, "bf16": 9e11}, achieved_flops_per_s={"bf16": 4e11})
    found = calibrated_by(rates(), base, "run 7")
    assert found.left_out == ()
    profile = found.profile
    assert (profile.peak_flops_per_s, profile.bandwidth_bytes_per_s) == (base.peak_flops_per_s, 3e10)
    assert profile.achieved_flops_per_s == {"bf16": 4e11, "fp32": 1e11}
    assert profile.compute_efficiency == {"fp32": 0.5}
    assert profile.bandwidth_efficiency == pytest.approx(2 / 3)
    assert profile.provenance["compute_efficiency.fp32"].source == "run 7"


def test_a_rate_that_no_such_device_can_have_is_left_out() -> None:
    base = HardwareProfile("a1", "A1", "Acme", 1e10, {"fp32": 5e10})
    found = calibrated_by(rates(), base, "run 7")
    assert len(found.left_out) == 2
    assert (found.profile.compute_efficiency, found.profile.bandwidth_efficiency) == ({}, None)
    assert "no specified bf16 rate" in calibrated_by(rates("bf16"), base, "run 7").left_out[0]
