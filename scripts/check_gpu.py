"""Everything that measures on a GPU once, in less than five minutes: ceilings, then prefill and decode of a model beside prediction.

    python scripts/check_gpu.py                                  a GPU, an eight-billion-parameter model of random weights, bf16
    python scripts/check_gpu.py --device cpu --model tiny        the very same code on this processor, in fp32

It prints one table (markdown) and what it ran on, and ends with code 1 when anything in it could not be measured.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from app.catalog import Catalog, load
from app.domain.architecture import ModelArchitecture
from app.domain.device_profile import calibrated_by, profile_of
from app.domain.device_rates import DeviceRates, Measured
from app.domain.errors import PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Prediction
from app.domain.quantity import byte_rate, flops_rate, percent, seconds
from app.formats.phaseline_device import rates_in
from app.jobs import read_parameters
from app.jobs.device_microbench import DeviceMicrobench
from app.jobs.inprocess_sweep import InprocessSweep
from app.worker.alone import Told, device_here, measure_here
from app.worker.measure.floors import predicted, request_of

MODELS = {"tiny": "tiny-llama-6m", "8b": "llama-3-1-8b"}
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Plan:
    """What is measured: sizes that keep a processor within seconds and a GPU within minutes."""

    dtype: str
    largest: int
    rows: tuple[int, ...]
    shape_seconds: float
    prompt_tokens: int
    output_tokens: int


ON_GPU = Plan("bf16", 8192, (1, 2048), 0.3, 2000, 129)
ON_CPU = Plan("fp32", 256, (16,), 0.01, 64, 9)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    measured: str
    beside: str
    share: str


def main(arguments: Sequence[str]) -> int:
    """Measure and print. Returns the exit code."""
    options = _options(arguments)
    started = time.monotonic()
    try:
        rows, around = check(options.device, MODELS.get(options.model, options.model), options.backend)
    except PhaselineError as error:
        print(f"check_gpu: {error}", file=sys.stderr)
        return 1
    print("\n".join([*around, "", *table(rows), "", f"{time.monotonic() - started:.0f} s in all."]))
    return int(any(row.measured == NOT_MEASURED for row in rows))


def check(device: str, model: str, backend: str) -> tuple[list[Row], list[str]]:
    """The rows of the table, and lines that say what it was measured on."""
    here = device_here(device)
    plan = ON_CPU if here[0].is_cpu else ON_GPU
    catalog = load()
    architecture = catalog.models[model].architecture
    chosen = {"dtypes": (plan.dtype,), "largest": plan.largest, "rows": plan.rows, "seconds_per_shape": plan.shape_seconds, "model": model}
    bench = measure_here("device_microbench", read_parameters(DeviceMicrobench, chosen), here, _tell("ceilings"), architecture)
    rates = rates_in("device.json", json.dumps(bench).encode(), 0)
    if rates is None:
        raise PhaselineError("The microbenchmark gave no rates.")
    profile, words = _profile(catalog, rates)
    parameters = {
        "model": model,
        "backend": backend,
        "dtype": plan.dtype,
        "prompt_tokens": (plan.prompt_tokens,),
        "output_tokens": plan.output_tokens,
        "cuda_graphs": not here[0].is_cpu,
    }
    sweep = measure_here("inprocess_sweep", read_parameters(InprocessSweep, parameters), here, _tell(model), architecture, profile)
    expected = predicted(architecture, profile, request_of(plan.prompt_tokens, plan.output_tokens, 1, plan.dtype))
    rows = [*_ceilings(rates, profile, plan.dtype), *_passes(sweep, expected, plan)]
    return rows, [*_around(bench, sweep, rates, architecture), words]


def table(rows: Sequence[Row]) -> list[str]:
    """The rows as a markdown table."""
    return ["| what | measured | beside | share |", "| --- | --- | --- | --- |"] + [
        f"| {row.what} | {row.measured} | {row.beside} | {row.share} |" for row in rows
    ]


def _profile(catalog: Catalog, rates: DeviceRates) -> tuple[HardwareProfile, str]:
    """The catalog's profile of the device with the measured rates in it, else one of the measurements alone; and which it is."""
    base = catalog.find_hardware(rates.name)
    if base is not None:
        found = calibrated_by(rates, base, "scripts/check_gpu.py")
        return found.profile, " ".join([f"Specification: {base.name}.", *found.left_out])
    made = profile_of(rates, "this-device", rates.name, "", "scripts/check_gpu.py")
    if made is None:
        raise PhaselineError("Neither arithmetic nor memory could be measured.")
    return made, "Specification: none in the catalog; the best single measurements stand for one."


def _ceilings(rates: DeviceRates, profile: HardwareProfile, dtype: str) -> list[Row]:
    best, peak, inside = rates.best_product(dtype), profile.peak(dtype), rates.in_model(dtype)
    rows = [_rate(f"best {dtype} product", None if best is None else best.rate, peak, flops_rate)]
    rows.append(_rate(f"the model's layers, {dtype}", None if inside is None else Measured(inside, inside), peak, flops_rate))
    for kind in ("copy", "gemv"):
        move = next((move for move in rates.moves if move.what == kind), None)
        rows.append(
            _rate(kind if move is None else move.words, None if move is None else move.rate, profile.bandwidth_bytes_per_s, byte_rate)
        )
    launch = rates.launch_s.get(dtype)
    return [*rows, Row("launch of a small product", NOT_MEASURED if launch is None else seconds(launch), "", "")]


def _rate(what: str, rate: Measured | None, limit: float | None, words: Any) -> Row:
    if rate is None:
        return Row(what, NOT_MEASURED, "", "")
    share = "" if limit is None else f"{percent(rate.median / limit)} of it"
    return Row(what, words(rate.median), "" if limit is None else f"specified {words(limit)}", share)


def _passes(sweep: Mapping[str, Any], expected: Prediction, plan: Plan) -> list[Row]:
    run = sweep["runs"][0]
    passes = run.get("passes")
    names = (f"prefill of {plan.prompt_tokens:,} tokens", f"decode step after {plan.prompt_tokens:,} tokens")
    if passes is None:
        return [Row(name, NOT_MEASURED, str(run.get("reason", "")), "") for name in names]
    times = (median(passes["prefill_s"]), median(step for steps in passes["steps_s"] for step in steps))
    rows = []
    for name, time_s, cost in zip(names, times, (expected.prefill, expected.decode), strict=True):
        beside = f"predicted {seconds(cost.time_s)}, floor {seconds(cost.floor_s)} ({cost.bound}-bound)"
        rows.append(Row(name, seconds(time_s), beside, f"{percent(cost.floor_s / time_s)} of the floor"))
    return rows


def _around(bench: Mapping[str, Any], sweep: Mapping[str, Any], rates: DeviceRates, model: ModelArchitecture) -> list[str]:
    """What it ran on: device, versions, and how steady the clocks were."""
    environment = bench["environment"]
    versions = [f"{key} {environment[key]}" for key in ("driver", "cuda", "torch", "numpy", "python", "kernel") if environment.get(key)]
    run = sweep["runs"][0]
    how = f"{model.name}, random weights, {run.get('engine')} {run.get('engine_version')}, {run.get('weight_dtype')}"
    return [f"{rates.name}: {', '.join(versions)}.", f"{how}, method {sweep['method']}."]


def _tell(about: str) -> Told:
    def tell(event: Mapping[str, Any]) -> None:
        if event["event"] == "progress":
            print(f"{about}: {event['done'] + 1} of {event['total']}: {event['current']}", file=sys.stderr)
        elif event["event"] == "log":
            print(event["text"], file=sys.stderr)

    return tell


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ceilings of a device, and prefill and decode of a model beside their prediction.")
    parser.add_argument("--device", default="gpu", help="gpu, gpu:1, or cpu")
    parser.add_argument("--model", default="8b", help="8b, tiny, or a slug of the catalog")
    parser.add_argument("--backend", default="auto", choices=("auto", "numpy", "torch"), help="library of the model")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
