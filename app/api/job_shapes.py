"""The shapes of the answers about jobs, workers, targets and schedules, for the published schema."""

from typing import Any, Literal

from app.api.shapes import Shape

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled", "timeout", "lost", "refused"]


class JobShape(Shape):
    """A job. `waiting_for` says what a queued one waits for; `run_ids` are the runs its result became."""

    id: int
    kind: str
    label: str | None
    parameters: dict[str, Any]
    priority: int
    state: JobState
    reason: str | None
    waiting_for: str | None
    cancel_requested: bool
    attempt: int
    lost_workers: int
    wanted_device: str | None
    device: str | None
    worker: str | None
    progress: dict[str, Any] | None
    run_ids: list[int]
    schedule: int | None
    limit_s: float | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    url: str
    log_url: str
    events_url: str


class JobDetail(JobShape):
    """A job with the points that its attempt measured so far."""

    points: list[dict[str, Any]]


class JobList(Shape):
    """Jobs, newest first."""

    items: list[JobShape]
    next: str | None


class EstimateShape(Shape):
    """What a job takes on a device: seconds, bytes where they are known, and what runs it.

    `rough`: the order of the time is all that is known. `at_most_s`: when the job's own limits end it; null where it has none.
    """

    seconds: float
    memory_bytes: int | None
    sentence: str
    rough: bool
    at_most_s: float | None


class PlaceShape(Shape):
    """A device that is there, and what the job takes on it or why it cannot run there."""

    worker: str
    device: str
    device_name: str
    hardware: str | None
    estimate: EstimateShape | None
    refused: str | None


class EstimateAnswer(Shape):
    """The job on each device that is there; `waits_for` when none of them can run it."""

    devices: list[PlaceShape]
    waits_for: str | None


class WorkerShape(Shape):
    """A worker: its devices, whether it is there, and the job it runs."""

    id: int
    name: str
    version: str
    state: Literal["idle", "busy", "away", "left"]
    jobs: list[int]
    token: int | None
    kinds: list[str]
    devices: list[dict[str, Any]]
    registered_at: str
    seen_at: str


class WorkerList(Shape):
    """Workers, the one heard of last first."""

    items: list[WorkerShape]
    next: str | None


class TokenShape(Shape):
    """A worker's token without itself: `shown` are its first characters."""

    id: int
    name: str
    shown: str
    made_by: str
    valid: bool
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    used_at: str | None


class NewTokenShape(TokenShape):
    """A token that was just made; it is shown this once."""

    token: str


class TokenList(Shape):
    """Tokens, newest first."""

    items: list[TokenShape]
    next: str | None


class TargetShape(Shape):
    """A registered server."""

    id: int
    name: str
    scheme: str
    host: str
    port: int
    base_path: str
    metrics_path: str | None
    networks: list[str]
    key_ref: str | None
    created_at: str


class TargetList(Shape):
    """Targets by name."""

    items: list[TargetShape]
    next: str | None


class ScheduleShape(Shape):
    """A job that comes back; `next_at` is null while it is off."""

    id: int
    name: str
    kind: str
    parameters: dict[str, Any]
    every_hours: int | None
    daily_at: str | None
    wanted_device: str | None
    priority: int
    limit_s: float | None
    enabled: bool
    next_at: str | None
    last_at: str | None


class ScheduleList(Shape):
    """Schedules, oldest first."""

    items: list[ScheduleShape]
    next: str | None


class RegisteredShape(Shape):
    """A session of a worker. `session` is shown in every further call; a job that was taken back from the session before is named."""

    worker: int
    session: str
    lease_s: float
    heartbeat_s: float
    taken_back: list[int]


class HandedJob(Shape):
    """A job with all it needs: the model's shapes, the device's profile, the target, and after how many seconds it is ended."""

    id: int
    attempt: int
    kind: str
    label: str | None
    parameters: dict[str, Any]
    device: str
    limit_s: float
    memory_bytes: int | None
    model: dict[str, Any] | None
    hardware: dict[str, Any] | None
    target: dict[str, Any] | None


class ClaimAnswer(Shape):
    """A job, or null: ask again."""

    job: HandedJob | None


class HeldAnswer(Shape):
    """The lease is renewed; `cancel` asks for the job's end."""

    cancel: bool


class ResultAnswer(Shape):
    """The runs that the result became, and why a file gave none."""

    run_ids: list[int]
    refused: list[str]
    warnings: list[str]
