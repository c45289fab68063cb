"""What a measuring process is asked to do, read from its folder; and the two ways of giving up that its exit code tells."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.domain.architecture import ModelArchitecture
from app.domain.configs import from_config
from app.domain.errors import InvalidRequest, PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.plain import from_plain
from app.jobs import KINDS, DeviceFacts, JobParameters, read_parameters

JOB_FILE, RESULT_FILE = "job.json", "result.json"
DONE, FAILED, REFUSED, DEVICE_LOST = 0, 1, 2, 75


class Refused(PhaselineError):
    """The job cannot be done as it was asked; the message says why and what to do."""


class Failed(PhaselineError):
    """The measurement was begun and gave no whole result; the message says why."""


class DeviceLost(PhaselineError):
    """The device no longer answers: no fault of the job, which may be tried again elsewhere."""


class StartAgain(PhaselineError):
    """What is done is written down; the rest is to be done by a fresh process, since this one may have lost track of its memory."""


@dataclass(frozen=True)
class Job:
    """One job: its kind with checked parameters, the device, and what the kind needs of model, hardware profile and target.

    `index` counts the devices of the machine; `target` is what the worker resolved (address, headers).
    `resumes`: a process before this one did part of it, which stands in the document.
    """

    kind: str
    parameters: JobParameters
    device: DeviceFacts
    folder: Path
    index: int = 0
    model: ModelArchitecture | None = None
    hardware: HardwareProfile | None = None
    target: Mapping[str, Any] = field(default_factory=dict)
    resumes: bool = False

    @property
    def result(self) -> Path:
        """Where the document goes."""
        return self.folder / RESULT_FILE


def read_job(kind: str, folder: Path) -> Job:
    """The job in `folder`. Raises Refused when the file is not there, is none, or names what cannot be used."""
    if kind not in KINDS:
        raise Refused(f"There is no kind of job called {kind}; known are {', '.join(KINDS)}.")
    try:
        data = json.loads((folder / JOB_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise Refused(f"{folder / JOB_FILE} cannot be read: {error}.") from error
    if not isinstance(data, dict) or data.get("kind", kind) != kind:
        raise Refused(f"{folder / JOB_FILE} must hold one object of the kind {kind}.")
    try:
        return Job(
            kind=kind,
            parameters=read_parameters(KINDS[kind], data.get("parameters") or {}),
            device=_device(data.get("device") or {}),
            folder=folder,
            index=int((data.get("device") or {}).get("index") or 0),
            model=_model(data.get("model")),
            hardware=None if data.get("hardware") is None else from_plain(HardwareProfile, data["hardware"]),
            target=data.get("target") or {},
        )
    except (InvalidRequest, TypeError, ValueError) as error:
        raise Refused(str(error)) from error


def _device(data: Mapping[str, Any]) -> DeviceFacts:
    return DeviceFacts(
        name=str(data.get("name") or "this processor"),
        kind=str(data.get("kind") or "cpu"),
        backends=tuple(str(name) for name in data.get("backends") or ()),
        memory_bytes=None if data.get("memory_bytes") is None else int(data["memory_bytes"]),
        hardware=None if data.get("hardware") is None else str(data["hardware"]),
    )


def _model(data: Any) -> ModelArchitecture | None:
    """An architecture as plain data, or a config.json. Raises UnsupportedModel for one that is not known."""
    if data is None:
        return None
    return from_plain(ModelArchitecture, data) if "groups" in data else from_config(data, str(data.get("name") or "model"))
