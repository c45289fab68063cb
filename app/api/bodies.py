"""Request bodies: finite numbers, bounded texts, no unknown keys, so that a typo is an answer and not a silence."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _no_truth(value: Any) -> Any:
    """Python counts true as 1; a sender who writes it means something else."""
    if isinstance(value, bool):
        raise ValueError("Input should be a number, not true or false")
    return value


def _written_out(value: Any) -> Any:
    """A bare number, such as a year, would count as seconds since 1970."""
    if isinstance(value, str) and not _DATE.match(value):
        raise ValueError("Input should be a date such as 2026-05-01, or a moment such as 2026-05-01T12:00:00Z")
    return value


# The check for true and false stands last, so that the limits before it reach the published schema.
Number = BeforeValidator(_no_truth)
# No 0, 1 or "off" for it: the published schema says true or false.
Truth = StrictBool
Tokens = Annotated[int, Field(ge=1, le=10_000_000), Number]
Count = Annotated[int, Field(ge=1, le=1_000_000), Number]
Degree = Annotated[int, Field(ge=1, le=4096), Number]
Figure = Annotated[float, Field(ge=1, le=1e21), Number]
Seconds = Annotated[float, Field(gt=0, le=1e9), Number]
Share = Annotated[float, Field(gt=0, le=1), Number]
Moment = Annotated[AwareDatetime | date, BeforeValidator(_written_out)]
Words = Annotated[str, Field(max_length=200)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Point = Annotated[Annotated[int, Field(ge=-(2**53), le=2**53)] | Words, Number]


class Body(BaseModel):
    """Base of every body."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class PredictionRequest(Body):
    """One question: a model and a device by slug or alias, token counts, precision."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={"examples": [{"model": "textbook-8b", "hardware": "textbook-h100", "calibration": "textbook"}]},
    )

    model: Name = "textbook-8b"
    hardware: Name = "textbook-h100"
    prompt_tokens: Tokens = 2000
    output_tokens: Tokens = 300
    batch: Count = 1
    concurrency: Count | None = None
    cached_prefix_tokens: Annotated[int, Field(ge=0, le=10_000_000), Number] = 0
    tp: Degree = 1
    pp: Degree = 1
    ep: Degree = 1
    dp: Degree = 1
    weight_dtype: Words = "bf16"
    activation_dtype: Words = "bf16"
    kv_dtype: Words = "bf16"
    moe_dtype: Words | None = None
    comm_dtype: Words | None = None
    engine: Name | None = None
    calibration: Words = "default"
    requests_per_client: Count = 10
    shortest_length: Share = 1.0
    open_loop: Truth = Field(default=False, description="Requests come at their own moments, `concurrency` of them are in flight")
    request_rate_per_s: Annotated[float, Field(ge=1e-6, le=1e6), Number] | None = Field(
        default=None, description="An open loop of so many requests a second, instead of concurrency"
    )
    draft_tokens: Annotated[int, Field(ge=0, le=64), Number] = 0
    acceptance: Annotated[float, Field(ge=0, le=1), Number] = 0.0
    prefill_replicas: Degree | None = Field(default=None, description="Prefill on so many replicas of its own")
    decode_replicas: Degree = 1
    prefill_tp: Degree | None = None
    prefill_dp: Degree | None = None
    prefill_ep: Degree | None = None
    transfer_bytes_per_s: Annotated[float, Field(gt=0, le=1e15), Number] | None = Field(
        default=None, description="What a device reaches between the pools; left out: its link's or network's rate"
    )


class PredictionQuery(PredictionRequest):
    """The same as query parameters; the founding case when nothing is given."""

    calibration: Words = "textbook"
    open_loop: bool = Field(default=False, description="Requests come at their own moments, `concurrency` of them are in flight")


class ChangeQuery(PredictionQuery):
    """A question and, for each lever, the power of two by which it is moved."""

    bandwidth_log2: Annotated[float, Field(ge=-2, le=2, description="Memory bandwidth; in steps of 0.25")] = 0.0
    flops_log2: Annotated[float, Field(ge=-2, le=2, description="Arithmetic rate; in steps of 0.25")] = 0.0
    weight_bytes_log2: Annotated[int, Field(ge=-2, le=1, description="Bytes per weight: fp32, bf16, int8, int4")] = 0
    batch_log2: Annotated[int, Field(ge=0, le=8, description="Sequences in a pass, or clients of a served load")] = 0
    tp_log2: Annotated[int, Field(ge=0, le=4, description="Tensor-parallel devices")] = 0


class MapQuery(PredictionQuery):
    """A question, and which figure of it over which axes; the batch and the clients are the map's own."""

    over: Annotated[Literal["prompt", "context", "tp"], Field(description="The axis beside the batch")] = "prompt"
    show: Literal["prefill", "decode", "throughput"] = "prefill"
    figure: Literal["plotly"] | None = None


class RatesQuery(PredictionQuery):
    """A question, whose deployment counts and not its clients or rate, and bounds in seconds that are to be kept."""

    ttft_s: Seconds | None = None
    tpot_s: Seconds | None = None
    share: Share | None = Field(default=None, description="Share of simulated requests that keep every bound, such as 0.99")


class ArrivalsBody(Body):
    """An open load: at a rate, with gaps drawn from the seed, or at the moments of a trace; a share of prompts finds its prefix cached."""

    request_rate_per_s: Annotated[float, Field(ge=1e-6, le=1e6), Number] | None = None
    requests: Annotated[int, Field(ge=1, le=100_000), Number] = 300
    sent_s: Annotated[list[Annotated[float, Field(ge=0, le=1e9), Number]], Field(min_length=1, max_length=100_000)] | None = None
    cached_share: Annotated[float, Field(ge=0, le=1), Number] = 1.0
    seed: Annotated[int, Field(ge=0, le=2**53), Number] = 0


class TargetBody(Body):
    """Bounds in seconds that a request must keep to count as goodput."""

    ttft_s: Seconds | None = None
    tpot_s: Seconds | None = None
    e2e_s: Seconds | None = None


class PredictionBody(PredictionRequest):
    """A request, or a grid of them: `sweep` maps keys of the request to lists of values.

    `simulate` runs the load pass by pass, `arrivals` an open one (and says how to draw); `target` counts the requests within it.
    """

    simulate: Truth = False
    arrivals: ArrivalsBody | None = None
    target: TargetBody | None = None

    sweep: dict[Words, Annotated[list[Point], Field(min_length=1, max_length=10_000)]] | None = Field(
        default=None, max_length=4, examples=[{"prompt_tokens": [500, 2000, 8000], "batch": [1, 8, 32]}]
    )


class HardwareBody(Body):
    """A device's figures in SI units. With `clone_of` the others change a copy of that profile."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={
            "examples": [{"clone_of": "h100-sxm5-80gb", "name": "H100, our rack", "achieved_flops_per_s": {"bf16": 6.1e14}}],
        },
    )

    clone_of: Words | None = None
    name: Words | None = None
    vendor: Words | None = None
    memory_bytes: Figure | None = None
    driver_memory_bytes: Figure | None = None
    bandwidth_bytes_per_s: Figure | None = None
    peak_flops_per_s: dict[Words, Figure | None] | None = None
    achieved_flops_per_s: dict[Words, Figure | None] | None = None
    achieved_bandwidth_bytes_per_s: Figure | None = None
    link_name: Words | None = None
    link_bytes_per_s: Figure | None = None
    devices_per_node: Annotated[int, Field(ge=1, le=100_000), Number] | None = None
    network_bytes_per_s: Figure | None = None
    tdp_w: Figure | None = None
    released_year: Annotated[int, Field(ge=1970, le=2100), Number] | None = None
    aliases: Annotated[list[Words], Field(max_length=100)] | None = None
    notes: Annotated[str, Field(max_length=10_000)] | None = None


class ModelBody(Body):
    """A model from its Hugging Face `config.json`, or a copy of one under another name."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={"examples": [{"clone_of": "llama-3-1-8b", "name": "our-8b-finetune"}]},
    )

    clone_of: Words | None = None
    name: Words | None = None
    config: dict[str, Any] | None = None
    aliases: Annotated[list[Words], Field(max_length=100)] | None = None


class CalibrationBody(Body):
    """What to calibrate: a device with an engine, at a weight format that its runs must agree on where it is not given."""

    model_config = ConfigDict(
        extra="forbid", allow_inf_nan=False, json_schema_extra={"examples": [{"hardware": "h100-sxm5-80gb", "engine": "vllm"}]}
    )

    hardware: Name
    engine: Name | None = None
    weight_dtype: Words | None = None


class BaselineBody(Body):
    """A run to make the baseline of its series, under a name (the series' own words when not given)."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, json_schema_extra={"examples": [{"run": 12, "name": "release 1.4"}]})

    run: Annotated[int, Field(ge=1, le=2**63 - 1)]
    name: Words | None = None
    notes: Annotated[str, Field(max_length=20_000)] = ""


class BaselinePatch(Body):
    """What may change about a baseline: the run it is, its name, its notes."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, json_schema_extra={"examples": [{"run": 14}]})

    run: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    name: Words | None = None
    notes: Annotated[str, Field(max_length=20_000)] | None = None


class CacheBody(Body):
    """A config.json, or those of its keys that decide the cache, with a context and a format."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={"examples": [{"config": {"num_hidden_layers": 32, "num_key_value_heads": 8, "head_dim": 128}, "context": 1024}]},
    )

    config: dict[str, Any]
    context: int = Field(default=2000, ge=1, le=100_000_000, description="Positions of the sequence")
    kv_dtype: Words = "bf16"


class RunQuery(Body):
    """Which runs a list shows, in which order and form."""

    project: Words | None = None
    model: Words | None = None
    hardware: Words | None = None
    engine: Words | None = None
    format: Words | None = None
    tag: Words | None = None
    q: Words | None = Field(default=None, description="Words that must all occur in label, model, hardware, engine, tags or file name")
    since: Moment | None = Field(default=None, description="First moment, inclusive")
    until: Moment | None = Field(default=None, description="Last moment, exclusive")
    outdated: bool | None = Field(default=None, description="Only runs that an older importer read than would read them now")
    sort: Annotated[str, Field(max_length=40, description="A column's name, with a leading minus for descending")] = "-happened_at"
    cursor: Annotated[str, Field(max_length=400)] | None = Field(default=None, description="`next` of the page before")
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    as_: Literal["json", "csv"] | None = Field(default=None, alias="as")


class RunPatch(Body):
    """What a person may correct about a stored run.

    Null takes back what a person said, so that the file's own word counts again; an absent key leaves things as they are.
    """

    model_config = ConfigDict(
        extra="forbid", allow_inf_nan=False, json_schema_extra={"examples": [{"hardware": "h100-sxm5-80gb", "tp": 1}]}
    )

    label: Words | None = None
    model: Words | None = None
    hardware: Words | None = None
    engine: Words | None = None
    devices: Degree | None = None
    tp: Degree | None = None
    pp: Degree | None = None
    ep: Degree | None = None
    dp: Degree | None = None
    weight_dtype: Words | None = None
    kv_dtype: Words | None = None
    tags: Annotated[list[Words], Field(max_length=50)] | None = None
    notes: Annotated[str, Field(max_length=20_000)] | None = None
