"""`phaseline measure device` and `phaseline measure model`: this machine measured here and now, without a server."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import typer

from app.catalog import load
from app.commands.common import Json, print_json
from app.domain.device_profile import profile_of
from app.domain.device_rates import DeviceRates
from app.domain.errors import InvalidRequest, PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.quantity import byte_rate, flops_rate, number, percent, seconds, tokens_rate
from app.formats.phaseline_device import rates_in
from app.formats.phaseline_document import write_document
from app.jobs import DeviceFacts, read_parameters
from app.jobs.device_microbench import DeviceMicrobench
from app.jobs.inprocess_sweep import InprocessSweep
from app.services.local_profiles import local_book
from app.services.profile_json import hardware_json, slug_of
from app.services.profiles import catalog_book
from app.worker.alone import device_here, measure_here

DeviceName = Annotated[str, typer.Option("--device", help="cpu, gpu, or gpu:1 for the second.")]
Threads = Annotated[int, typer.Option("--threads", help="Threads of a processor; one is the steadiest.")]
Out = Annotated[Path, typer.Option("--out", help="File to write, which imports.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]


class FileExists(PhaselineError):
    """The file to write is there already."""


def device(
    dtypes: Annotated[str, typer.Option("--dtypes", help="Number formats, joined by commas: fp32, tf32, bf16, fp16, fp8.")] = "fp32",
    model: Annotated[str | None, typer.Option("--model", help="Model (slug or config.json) whose own layers are measured too.")] = None,
    name: DeviceName = "cpu",
    threads: Threads = 1,
    largest: Annotated[int, typer.Option("--largest", help="Side of the largest square product.")] = 2048,
    seconds_per_shape: Annotated[float, typer.Option("--seconds", help="Seconds a shape, at least five repeats.")] = 0.5,
    out: Out = Path("device.json"),
    profile: Annotated[Path | None, typer.Option("--profile", help="Write a hardware .json made of the rates as well.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure what this device achieves: products, reads, copies, matrix-vector products."""
    _refuse_present(force, out, profile)
    chosen = {"dtypes": _words(dtypes), "model": model, "threads": threads, "largest": largest, "seconds_per_shape": seconds_per_shape}
    document = _microbench(device_here(name), chosen, model)
    write_document(out, document)
    rates = _rates(document)
    if profile is not None:
        profile.write_text(json.dumps(_profile_json(_profile(rates)), indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(document)
        return
    print("\n".join([*device_lines(rates), "", f"Written: {out}. Store it with: phaseline import {out}"]))


def model(
    model: Annotated[str, typer.Argument(help="Slug of the catalog, or the path of a config.json; its weights are random.")],
    prompt: Annotated[str, typer.Option("--prompt", help="Prompt tokens, joined by commas.")] = "512",
    output: Annotated[int, typer.Option("--output", help="Output tokens; each after the first is a decode step.")] = 32,
    batch: Annotated[str, typer.Option("--batch", help="Sequences in one pass, joined by commas.")] = "1",
    dtype: Annotated[Literal["fp32", "bf16", "fp16"], typer.Option("--dtype", help="Number format of weights and cache.")] = "fp32",
    backend: Annotated[Literal["auto", "numpy", "torch"], typer.Option("--backend", help="Library; auto is torch where it is.")] = "auto",
    repeats: Annotated[int, typer.Option("--repeats", help="Measured runs of a point.")] = 5,
    attention: Annotated[Literal["sdpa", "eager"], typer.Option("--attention", help="Implementation in torch.")] = "sdpa",
    cuda_graphs: Annotated[bool, typer.Option("--cuda-graphs", help="Record the decode step on a GPU.")] = False,
    hardware: Annotated[str | None, typer.Option("--hardware", help="Profile (slug or .json); left out: measured first.")] = None,
    name: DeviceName = "cpu",
    threads: Threads = 1,
    seed: Annotated[int, typer.Option("--seed", help="Of weights and prompts.")] = 0,
    out: Out = Path("model.json"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure prefill and decode of a model of random weights on this device, beside what the device allows."""
    _refuse_present(force, out, None)
    parameters = {
        "model": model,
        "prompt_tokens": _numbers("--prompt", prompt),
        "output_tokens": output,
        "batches": _numbers("--batch", batch),
        "dtype": dtype,
        "backend": backend,
        "repeats": repeats,
        "attention": attention,
        "cuda_graphs": cuda_graphs,
        "threads": threads,
        "seed": seed,
    }
    checked = read_parameters(InprocessSweep, parameters)
    book, names = local_book(catalog_book(load()), model, hardware or "textbook-h100")
    architecture = book.model(names["model"]).architecture
    here, index = device_here(name)
    found = book.hardware(names["hardware"]) if hardware else _measured_profile((here, index), dtype, threads)
    facts = DeviceFacts(here.name, here.kind, here.backends, here.memory_bytes, found.slug if hardware else None)
    document = measure_here("inprocess_sweep", checked, (facts, index), _tell, architecture, found)
    write_document(out, document)
    if as_json:
        print_json(document)
        return
    print("\n".join([*model_lines(document, found), "", f"Written: {out}. Store it with: phaseline import {out}"]))


def device_lines(rates: DeviceRates) -> list[str]:
    """The ceilings of a device, then every product and move."""
    lines = [rates.name]
    for dtype in rates.dtypes:
        best, ridge = rates.best_product(dtype), rates.ridge(dtype)
        if best is not None:
            at = f"ridge {number(ridge)} FLOP/byte" if ridge else "no ridge: memory was not measured"
            lines.append(f"{dtype:5} best product {flops_rate(best.rate.median):>16}   {at}")
    lines += [f"{move.words:24} {byte_rate(move.rate.median):>14}   best {byte_rate(move.rate.best):>14}" for move in rates.moves]
    lines += [f"launch of a small product {seconds(value):>13}   {dtype}" for dtype, value in rates.launch_s.items()]
    for product in rates.products:
        shape = f"{product.m} x {product.n} x {product.k}"
        lines.append(f"{product.what:14} {product.dtype:5} {shape:>22} {flops_rate(product.rate.median):>16}")
    return lines


def model_lines(document: Mapping[str, Any], hardware: HardwareProfile) -> list[str]:
    """A row a point: both phases, and how close each comes to what the device allows."""
    lines = [f"{'':28}{'prefill':>12}{'of attainable':>15}  {'bound':9}{'decode step':>12}{'of floor':>10}  {'bound':9}{'rate':>16}"]
    for run in document["runs"]:
        label = run.get("label", "").rpartition(", prompt ")[2]
        expected, passes = run.get("details", {}).get("expected"), run.get("passes")
        if passes is None or expected is None:
            lines.append(f"prompt {label:21}{run['status']}: {run.get('reason', '')}")
            continue
        step_s = median(step for steps in passes["steps_s"] for step in steps)
        cells = (
            f"{seconds(median(passes['prefill_s'])):>12}{percent(expected['prefill_share_of_attainable']):>15}",
            f"{expected['prefill_bound']:9}{seconds(step_s):>12}{percent(expected['decode_share_of_floor']):>10}",
            f"{expected['decode_bound']:9}{tokens_rate(run['concurrency'] / step_s):>16}",
        )
        lines.append(f"prompt {label:21}" + "  ".join(cells))
    at = f"{hardware.name}: {byte_rate(hardware.bandwidth_bytes_per_s)} is the bandwidth of the floor"
    return [*lines, f"{at}; attainable is by its achieved rates."]


def _measured_profile(here: tuple[DeviceFacts, int], dtype: str, threads: int) -> HardwareProfile:
    """The device's own profile by a short microbenchmark."""
    print("The device has no profile yet, so it is measured first (about ten seconds).", file=sys.stderr)
    return _profile(_rates(_microbench(here, {"dtypes": (dtype,), "threads": threads, "seconds_per_shape": 0.5}, None)))


def _microbench(here: tuple[DeviceFacts, int], chosen: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    book, names = local_book(catalog_book(load()), model or "textbook-8b", "textbook-h100")
    architecture = book.model(names["model"]).architecture if model else None
    return measure_here("device_microbench", read_parameters(DeviceMicrobench, chosen), here, _tell, architecture)


def _rates(document: Mapping[str, Any]) -> DeviceRates:
    rates = rates_in("device.json", json.dumps(document).encode(), 0)
    if rates is None:
        raise InvalidRequest("device", "The microbenchmark gave no rate.")
    return rates


def _profile(rates: DeviceRates) -> HardwareProfile:
    made = profile_of(rates, slug_of(rates.name), rates.name, "", "phaseline measure device, on this machine")
    if made is None:
        raise InvalidRequest("device", "The microbenchmark measured no product or no bandwidth, so that there is no profile.")
    return made


def _profile_json(profile: HardwareProfile) -> dict[str, Any]:
    return {key: value for key, value in hardware_json(profile, "user").items() if value not in (None, {}, [], "")}


def _tell(event: Mapping[str, Any]) -> None:
    """Progress and log lines on standard error."""
    if event["event"] == "progress":
        left = "" if event["eta_s"] is None else f", about {event['eta_s']:.0f} s left"
        print(f"{event['done'] + 1} of {event['total']}: {event['current']}{left}", file=sys.stderr)
    elif event["event"] == "log":
        print(event["text"], file=sys.stderr)


def _refuse_present(force: bool, *files: Path | None) -> None:
    for path in files:
        if path is not None and path.exists() and not force:
            raise FileExists(f"{path} is there already: name another file, or replace it with --force.")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(option: str, text: str) -> tuple[int, ...]:
    words = _words(text)
    if not words or not all(word.isascii() and word.isdigit() for word in words):
        raise InvalidRequest(option, f"{option} must be whole numbers joined by commas, such as 128,512.")
    return tuple(int(word) for word in words)
