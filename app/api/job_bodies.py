"""Bodies of the calls about jobs, from people and from workers."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.api.bodies import Body, Name, Number, Truth, Words
from app.services.leasing import ENDS

Attempt = Annotated[int, Field(ge=1, le=2**31 - 1)]
JobNumber = Annotated[int, Field(ge=1, le=2**63 - 1)]
Key = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$")]
Text = Annotated[str, Field(max_length=4000)]
Limit = Annotated[float, Field(gt=0, le=7 * 86_400), Number]
Priority = Annotated[int, Field(ge=-100, le=100), Number]
Kind = Annotated[str, Field(min_length=1, max_length=60)]
Parameters = Annotated[dict[str, Any], Field(max_length=100)]

Scalar = Annotated[str, Field(max_length=500)] | int | float | bool | None


class JobBody(Body):
    """A measurement job: its kind, its parameters (`app/jobs` says which), and where and when it may run."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={"examples": [{"kind": "device_microbench", "parameters": {"dtypes": ["fp32"], "threads": 1}}]},
    )

    kind: Kind
    parameters: Parameters = Field(default_factory=dict)
    label: Words | None = None
    priority: Priority = 0
    wanted_device: Key | None = None
    limit_s: Limit | None = None


class TargetBody(Body):
    """A server that jobs may call. `networks` lists where its addresses may lie besides the public internet."""

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")]
    scheme: Literal["http", "https"] = "http"
    host: Annotated[str, Field(min_length=1, max_length=260)]
    port: Annotated[int, Field(ge=1, le=65535), Number]
    base_path: Annotated[str, Field(max_length=200)] = "/v1"
    metrics_path: Annotated[str, Field(max_length=200)] | None = "/metrics"
    networks: Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=50)] = Field(default_factory=list)
    key_ref: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] | None = None


class TokenBody(Body):
    """A token for one worker; after `expires_days` it counts no more (null: until it is revoked)."""

    name: Name
    expires_days: Annotated[int, Field(ge=1, le=3650), Number] | None = 365


class ScheduleBody(JobBody):
    """A job that comes back: every `every_hours` hours, or each day at `daily_at` (HH:MM, UTC)."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={"examples": [{"name": "nightly", "kind": "device_microbench", "parameters": {}, "daily_at": "02:30"}]},
    )

    label: None = None
    name: Name
    every_hours: Annotated[int, Field(ge=1, le=24 * 366), Number] | None = None
    daily_at: Annotated[str, Field(max_length=5)] | None = None
    enabled: Truth = True


class SchedulePatch(Body):
    """Turn a schedule on or off."""

    enabled: Truth


class DeviceBody(Body):
    """A device of a worker. `key` names it among all devices of all machines; what is not known is null."""

    key: Key
    name: Name
    kind: Literal["cpu", "gpu"]
    backends: Annotated[list[Literal["numpy", "torch", "llama_bench"]], Field(max_length=10)] = Field(default_factory=list)
    memory_bytes: Annotated[int, Field(ge=1, le=2**60)] | None = None
    hardware: Name | None = None
    facts: Annotated[dict[Annotated[str, Field(max_length=60)], Scalar], Field(max_length=60)] = Field(default_factory=dict)


class RegisterBody(Body):
    """What a worker says of itself. `identity` is a secret of its own that it keeps over restarts."""

    identity: Annotated[str, Field(min_length=32, max_length=200)]
    name: Name
    version: Annotated[str, Field(min_length=1, max_length=60)]
    kinds: Annotated[list[Kind], Field(max_length=50)]
    devices: Annotated[list[DeviceBody], Field(max_length=64)]


class ClaimBody(Body):
    """Which devices are free, which jobs the worker knows that it holds, and how long it waits for one."""

    free: Annotated[list[Key], Field(max_length=64)]
    holding: Annotated[list[JobNumber], Field(max_length=64)] = Field(default_factory=list)
    wait_s: Annotated[float, Field(ge=0, le=60)] = 25.0


class HeartbeatBody(Body):
    """Which attempt is alive."""

    attempt: Attempt


class ProgressEvent(Body):
    """How far the job is."""

    event: Literal["progress"]
    done: Annotated[int, Field(ge=0, le=10**9)]
    total: Annotated[int, Field(ge=0, le=10**9)] | None = None
    current: Annotated[str, Field(max_length=500)] | None = None
    eta_s: Annotated[float, Field(ge=0, le=1e9)] | None = None


class LogEvent(Body):
    """A line of the log."""

    event: Literal["log"]
    level: Literal["debug", "info", "warning", "error"] = "info"
    text: Text


class PointEvent(Body):
    """A point that was measured: flat numbers and labels."""

    event: Literal["point"]
    point: Annotated[dict[Annotated[str, Field(max_length=100)], Scalar], Field(max_length=100)]


class ProgressBody(Body):
    """What happened since the last report, in order."""

    attempt: Attempt
    events: Annotated[list[Annotated[ProgressEvent | LogEvent | PointEvent, Field(discriminator="event")]], Field(max_length=1000)]

    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """Each as kind and data."""
        return [
            (item.event, item.point if isinstance(item, PointEvent) else item.model_dump(mode="json", exclude={"event"}))
            for item in self.events
        ]


class FinishBody(Body):
    """How the attempt ended: an outcome of the job, or that it goes back into the queue (`released`; `interrupted` after a short pause)."""

    attempt: Attempt
    outcome: Annotated[str, Field(json_schema_extra={"enum": list(ENDS)}, max_length=20)]
    reason: Text | None = None
