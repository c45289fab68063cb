"""The shapes of answers, for OpenAPI: what another tool may rely on. Answers are built by services; a test holds them to these."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict


class Shape(BaseModel):
    """Base: further keys may come, the named ones stay."""

    model_config = ConfigDict(extra="allow")


class HealthShape(Shape):
    """The process answers."""

    status: Literal["ok"]


class CheckShape(Shape):
    """One thing that must hold; `detail` says what was found and what to do."""

    name: str
    ok: bool
    detail: str


class ReadinessShape(Shape):
    """Whether requests can be served."""

    status: Literal["ready", "not ready"]
    checks: list[CheckShape]


class WorkloadShape(Shape):
    """Means are over the requests that succeeded."""

    prompt_tokens_mean: float | None
    output_tokens_mean: float | None
    prompt_tokens_total: int | None
    output_tokens_total: int | None
    concurrency: int | None
    request_rate_per_s: float | None
    rate_unlimited: bool
    context_depth_tokens: int
    shortest_length: float | None


class CountsShape(Shape):
    """Requests."""

    sent: int | None
    completed: int | None
    failed: int | None


class FlagShape(Shape):
    """A note about the data; `withholds` lists metrics that are null because of it, `figures` the numbers behind the words."""

    flag: str
    evidence: str
    withholds: list[str]
    figures: dict[str, float | None]


class MeanRequestShape(Shape):
    """One request in its two halves: first token, then `steps` of `step_s` each."""

    first_token_s: float | None
    step_s: float | None
    steps: float | None
    total_s: float | None


class InFlightShape(Shape):
    """Little's law: whole requests and sequences in a decode step under way at once; the server's and a user's time per token."""

    requests: float | None
    decoding: float | None
    server_s_per_token: float | None
    user_s_per_token: float | None


class EfficiencyShape(Shape):
    """Distance to the physical limit, as fractions of the specified peaks."""

    decode_floor_s: float | None
    mbu: float | None
    prefill_floor_s: float | None
    mfu: float | None
    against: Literal["peak"]


class RunSummary(Shape):
    """One operating point; times in seconds, null for not known."""

    format: str
    engine: str | None
    engine_version: str | None
    model: str | None
    hardware: str | None
    devices: int | None
    tp: int | None
    weight_dtype: str | None
    started_at: str | None
    duration_s: float | None
    workload: WorkloadShape
    requests: CountsShape
    metrics: dict[str, Any] = Field(
        examples=[
            {
                "ttft_s": {
                    "mean": 0.095,
                    "p50": 0.094,
                    "p90": 0.1,
                    "p95": 0.11,
                    "p99": 0.12,
                    "std": 0.004,
                    "min": 0.08,
                    "max": 0.2,
                    "n": 1000,
                    "from": "samples",
                },
                "decode_tokens_per_s": {"value": 143.0, "scope": "request", "from": "derived"},
                "prefill_s": None,
            }
        ]
    )
    mean_request: MeanRequestShape
    in_flight: InFlightShape
    flags: list[FlagShape]
    labels: dict[str, str]
    efficiency: EfficiencyShape | None = None
    warnings: list[str]


class SaidShape(Shape):
    """Words of the identity by key: what the file says (null where that was not noted), and what a person said in its place."""

    file: dict[str, str | int] | None
    person: dict[str, str | int]


class SuggestionShape(Shape):
    """A hint about one key of the identity, and where its words stand; `value` is null where the words could mean several things."""

    key: str
    value: str | int | None
    candidates: list[str | int]
    evidence: list[str]


class StoredRunShape(RunSummary):
    """A run summary with its number and address here."""

    id: int
    url: str
    project: str
    tags: list[str]
    notes: str
    said: SaidShape
    outdated: bool = Field(description="An older importer read this run than would read it now: see /runs/{run_id}/reimport")
    suggestions: list[SuggestionShape] | None = Field(default=None, description="Absent in lists")


class ReadingChangeShape(Shape):
    """One thing that is not as it was: `old` is null where it came, `new` where it went."""

    part: Literal["word", "fact", "workload", "requests", "metric", "flag", "warning", "label"]
    key: str
    kind: Literal["added", "gone", "changed"]
    old: str | int | float | bool | None
    new: str | int | float | bool | None


class RunReadingShape(Shape):
    """What reading its file again means for one run; `id` is null for one that is not stored yet."""

    id: int | None
    url: str | None
    title: str
    outcome: Literal["same", "changed", "added", "gone"]
    from_version: int | None
    changes: list[ReadingChangeShape]


class PastReadingShape(Shape):
    """One time that a run was read again."""

    read_at: str
    from_version: int
    to_version: int
    changes: list[ReadingChangeShape]


class FileReadingShape(Shape):
    """What reading a file again gives. `refused` says why it is read no longer; `deleted_before` counts runs that a person deleted."""

    file: str
    format: str
    from_version: int
    to_version: int
    applied: bool
    refused: str | None
    deleted_before: int
    runs: list[RunReadingShape]
    history: list[PastReadingShape]


class OutdatedFileShape(Shape):
    """A file with runs that an older importer read: how many, the lowest version among them, and the first of them."""

    file: str
    project: str
    format: str
    from_version: int
    to_version: int | None
    runs: int
    run_id: int
    url: str


class OutdatedFiles(Shape):
    """Files that are due, in the order in which they came."""

    items: list[OutdatedFileShape]
    next: str | None


class RunList(Shape):
    """One page of runs, newest first unless sorted otherwise."""

    items: list[StoredRunShape]
    next: str | None


class RefusedShape(Shape):
    """A file that gave no run: why, and what was tried."""

    file: str
    reason: str
    tried: list[dict[str, str]]
    flags: list[FlagShape]


class ImportAnswer(Shape):
    """What became of an upload."""

    runs: list[StoredRunShape]
    refused: list[RefusedShape]
    warnings: list[str]


class RequestRows(Shape):
    """Per-request rows."""

    items: list[dict[str, Any]]
    next: str | None


class HalfShape(Shape):
    """One half of a request: its blocks sum to `total_s`; `unexplained_s` is what no block accounts for."""

    phase: Literal["prefill", "decode"]
    each_s: float
    times: float
    total_s: float
    unexplained_s: float | None
    blocks: list[dict[str, Any]]


class DecompositionShape(Shape):
    """Where the time of a mean request goes."""

    total_s: float
    measured: bool
    halves: list[HalfShape]


class RooflineShape(Shape):
    """The device's two ceilings, and the points of a run under them."""

    ceilings: dict[str, Any]
    points: list[dict[str, Any]]
    notes: list[str]


class FigureShape(Shape):
    """A plotly figure."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]


class PassShape(Shape):
    """One forward pass: floor <= attainable <= expected time, in seconds."""

    time_s: float
    floor_s: float
    attainable_s: float
    compute_s: float
    memory_s: float
    comm_s: float
    overhead_s: float
    bound: str
    flops: float
    bytes: float
    intensity_flops_per_byte: float
    terms: list[dict[str, Any]]


class DecodeShape(PassShape):
    """The mean decode step, with the first and the last."""

    first_step_s: float
    last_step_s: float


_FOUNDING_PREFILL: JsonDict = {
    "time_s": 0.07619, "floor_s": 0.03236, "attainable_s": 0.07619, "compute_s": 0.07619, "memory_s": 0.004776, "comm_s": 0.0,
    "overhead_s": 0.0, "bound": "compute", "flops": 3.2e13, "bytes": 1.6e10, "intensity_flops_per_byte": 2000.0, "terms": [],
}  # fmt: skip
_FOUNDING_DECODE: JsonDict = {
    "time_s": 0.004776, "floor_s": 0.004776, "attainable_s": 0.004776, "compute_s": 3.81e-5, "memory_s": 0.004776, "comm_s": 0.0,
    "overhead_s": 0.0, "bound": "memory", "flops": 1.6e10, "bytes": 1.6e10, "intensity_flops_per_byte": 1.0, "terms": [],
    "first_step_s": 0.004776, "last_step_s": 0.004776,
}  # fmt: skip
_FOUNDING: JsonDict = {
    "prefill": _FOUNDING_PREFILL, "decode": _FOUNDING_DECODE, "ttft_s": 0.07619, "itl_s": 0.004776, "total_s": 1.5043,
    "prefill_share": 0.0507, "ridge_flops_per_byte": {"peak": 295.2, "achieved": 125.4},
    "tokens_per_s": {"request": 209.4, "aggregate": 209.4},
    "memory": {"weight_bytes": 1.6e10, "kv_bytes_per_token": 131072.0, "kv_bytes": 3.015e8, "activation_bytes": 1.725e8,
               "capacity_bytes": None, "fits": None, "max_batch": None},
    "range": {"ttft_s": [0.0381, 0.1524], "itl_s": [0.004776, 0.007164]},
    "assumptions": ["Textbook H100 is taken at 420 TFLOP/s and 3.35 TB/s."], "model_version": "layers-9",
}  # fmt: skip


class PredictionShape(Shape):
    """Both phases of one request."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [_FOUNDING]})

    prefill: PassShape
    decode: DecodeShape
    ttft_s: float
    itl_s: float
    total_s: float
    prefill_share: float
    ridge_flops_per_byte: dict[str, float]
    tokens_per_s: dict[str, float]
    memory: dict[str, Any]
    range: dict[str, list[float]]
    assumptions: list[str]
    model_version: str
    pools: dict[str, Any] | None = None
    nearest: list[dict[str, Any]] | None = None


class ChangeShape(Shape):
    """A prediction before and after its levers were moved; `after` is null where `refused` says why."""

    change: dict[str, float]
    before: PredictionShape
    after: PredictionShape | None
    refused: str | None
    levers: list[dict[str, Any]]


class MapShape(Shape):
    """A row for each value of `y`, a cell for each of `x`; null where a cell cannot be priced, with the reason in `refused`."""

    x: dict[str, Any]
    y: dict[str, Any]
    metric: dict[str, str]
    values: list[list[float | None]]
    compute_over_memory_log2: list[list[float | None]]
    fits: list[list[bool | None]]
    refused: list[str]


class RatesShape(Shape):
    """What a deployment answers: rows at shares of the most, and the most requests a second within a target, on average and by a share."""

    at_most_requests_per_s: float
    devices: int
    rows: list[dict[str, Any]]
    within_target: dict[str, float | None] | None


class SweepShape(Shape):
    """A grid, row-major over the axes; a cell that cannot be priced is null with its reason in `refused`."""

    axes: list[dict[str, Any]]
    columns: dict[str, list[Any]]
    refused: list[dict[str, Any]]


class HardwareShape(Shape):
    """A device; `provenance` gives each figure's label and source."""

    slug: str
    name: str
    vendor: str
    origin: Literal["catalog", "user"]
    memory_bytes: float | None
    driver_memory_bytes: float | None
    bandwidth_bytes_per_s: float
    peak_flops_per_s: dict[str, float]
    achieved_flops_per_s: dict[str, float]
    provenance: dict[str, dict[str, str]]


class HardwareList(Shape):
    """Devices."""

    items: list[HardwareShape]
    next: str | None


class ModelShape(Shape):
    """A model's shapes and what follows from them."""

    slug: str
    name: str
    origin: Literal["catalog", "user"]
    aliases: list[str]
    architecture: dict[str, Any]


class ModelList(Shape):
    """Models."""

    items: list[ModelShape]
    next: str | None


class CacheShape(Shape):
    """The cache of one sequence; `unwindowed` and `expanded` are what common mistakes, or engines without the model's own cache, take."""

    num_hidden_layers: int
    context: int
    kv_bytes_per_token: float
    kv_bytes: float
    kv_gb: float
    kv_gib: float
    unwindowed: dict[str, float | None]
    expanded: dict[str, float | None]
    flags: list[FlagShape]
    notes: list[str]
