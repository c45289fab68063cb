"""One measurement on this machine without a server: the same process as an agent would start, its events handed on as they come."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app.domain.architecture import ModelArchitecture
from app.domain.errors import PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.plain import to_plain
from app.jobs import DeviceFacts, JobParameters
from app.worker import nvml, processor
from app.worker.environment import capture
from app.worker.measure.job import DONE, JOB_FILE, REFUSED, RESULT_FILE
from app.worker.measure.torch_seam import has_torch
from app.worker.telemetry import Sampler

Told = Callable[[Mapping[str, Any]], None]


class MeasurementFailed(PhaselineError):
    """The measuring process ended without what was asked; the message says why."""


def device_here(name: str) -> tuple[DeviceFacts, int]:
    """The device `cpu`, or `gpu` or `gpu:1` by its number, and that number. Raises MeasurementFailed for another word."""
    backends = ("numpy", "torch") if has_torch() else ("numpy",)
    word, _, number = name.partition(":")
    if name == "cpu":
        model = processor.identity()["cpu_model"] or "this processor"
        return DeviceFacts(model, "cpu", backends, processor.memory_bytes()), 0
    if word not in ("gpu", "cuda") or (number and not number.isdigit()):
        raise MeasurementFailed(f"There is no device “{name}”: say cpu, gpu, or gpu:1 for the second.")
    index = int(number or 0)
    told = nvml.environment_of(index)
    return DeviceFacts(told.get("device") or f"GPU {index}", "gpu", backends, told.get("memory_bytes")), index


def measure_here(
    kind: str,
    parameters: JobParameters,
    device: tuple[DeviceFacts, int],
    told: Told,
    model: ModelArchitecture | None = None,
    hardware: HardwareProfile | None = None,
) -> dict[str, Any]:
    """Run one job and give its document with environment and telemetry. Raises MeasurementFailed when it gave none."""
    facts, index = device
    with tempfile.TemporaryDirectory(prefix="phaseline-") as scratch:
        folder = Path(scratch)
        job = {
            "kind": kind,
            "parameters": parameters.model_dump(),
            "device": {**to_plain(facts), "index": index},
            "model": None if model is None else to_plain(model),
            "hardware": None if hardware is None else to_plain(hardware),
        }
        (folder / JOB_FILE).write_text(json.dumps(job), encoding="utf-8")
        environment = capture(facts, index)
        code, last, series = _run(kind, folder, device, told)
        result = folder / RESULT_FILE
        if code != DONE and (code == REFUSED or not result.exists()):
            raise MeasurementFailed(last or f"The measuring process ended with code {code}.")
        if code != DONE:
            told({"event": "log", "level": "warning", "text": f"{last or f'It ended with code {code}'}; what was done is kept."})
        document: dict[str, Any] = json.loads(result.read_bytes())
    return {**document, "environment": environment, "telemetry": series}


def _run(kind: str, folder: Path, device: tuple[DeviceFacts, int], told: Told) -> tuple[int, str | None, dict[str, Any] | None]:
    """The exit code, the last line of the log, and the telemetry."""
    command = [sys.executable, "-m", "app.worker.measure", kind, str(folder)]
    last: str | None = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=_ROOT) as process:  # noqa: S603
        sampler = Sampler(*device, job_group=process.pid).start()
        try:
            for line in process.stdout or ():
                event = json.loads(line)
                last = event["text"] if event["event"] == "log" else last
                told(event)
        except KeyboardInterrupt:
            process.terminate()
        code = process.wait()
        series = sampler.stop()
    return code, last, series


_ROOT = Path(__file__).resolve().parents[2]
