"""What a measurement asks the model: architecture, device and request, or the reason why it cannot be asked.

The tables leave some things unsaid; each is read by a rule here, never by a row: formats of a checkpoint, the format of its cache and
whether the lengths of a load were drawn around their nominal value.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.catalog import Catalog
from app.catalog.names import slugify
from app.domain.architecture import ModelArchitecture
from app.domain.dtypes import NumberFormat
from app.domain.engine import EngineProfile, bit_class
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.measurement import Measurement
from app.domain.prediction import Request
from app.domain.profile_choice import weight_class
from app.domain.rates import Formats
from app.domain.request_rules import check

ModelFinder = Callable[[str], ModelArchitecture | None]

SHORT_OUTPUT = 128  # tokens taken where a source states no output length
SHORT_PROMPT = 32  # tokens in the cache where a source states no prompt for its decode rate
# Lengths of these nominal pairs were drawn evenly between 0.8 and 1.0 of the nominal value.
DRAWN_LENGTHS = {(1024, 1024), (1024, 8192), (8192, 1024)}
SHORTEST_DRAWN = 0.8


@dataclass(frozen=True)
class Asked:
    """A measurement with what it asks. `engine` is the slug of its engine, or its name in that form where no `profile` is known."""

    measurement: Measurement
    architecture: ModelArchitecture
    hardware: HardwareProfile
    request: Request
    engine: str
    profile: EngineProfile | None = None

    @property
    def experts(self) -> bool:
        """Whether the model has routed experts."""
        return self.architecture.expert_layers > 0

    @property
    def weights(self) -> str:
        """The weight format that the row is classed by: the experts' where there are any."""
        return self._class.key

    @property
    def bits(self) -> str:
        """The weight-bit class of the same."""
        return bit_class(self._class.bytes)

    @property
    def _class(self) -> NumberFormat:
        return weight_class(self.architecture, Formats.of(self.request, self.architecture))


@dataclass(frozen=True)
class Unanswered:
    """A row that is not asked, and why. `answerable` rows count as unpriced, the others are outside the population."""

    measurement: Measurement
    reason: str
    answerable: bool


def ask(one: Measurement, catalog: Catalog, models: ModelFinder) -> Asked | Unanswered:
    """The question of one measurement."""
    entry = catalog.find_model(one.model)
    architecture = entry.architecture if entry is not None else models(one.model)
    if architecture is None:
        return Unanswered(one, f"no config of {one.model}", answerable=False)
    hardware = catalog.find_hardware(one.hardware)
    if hardware is None:
        return Unanswered(one, f"no device {one.hardware}", answerable=False)
    served = one.kind != "stream"
    equal = not served or not drawn_lengths(one)
    try:
        request = _request(one, architecture, equal)
        check(request, architecture, hardware)
        Formats.of(request, architecture)
    except InvalidRequest as fault:
        return Unanswered(one, f"{fault.field}: {fault}", answerable=True)
    profile = catalog.find_engine(one.engine)
    return Asked(one, architecture, hardware, request, profile.slug if profile else slugify(one.engine), profile)


def drawn_lengths(one: Measurement) -> bool:
    """Whether the lengths of a served row were drawn: those of the public benchmark's pairs, of the tables in round thousands, and of vLLM.

    The source does not say; the design's engine profiles (section 2) read it so.
    """
    round_thousands = one.prompt_tokens is not None and one.prompt_tokens % 1000 == 0
    return round_thousands or (one.prompt_tokens, one.output_tokens) in DRAWN_LENGTHS or slugify(one.engine) == "vllm"


def _request(one: Measurement, architecture: ModelArchitecture, equal: bool) -> Request:
    weight, experts = _formats(one, architecture)
    at = one.layout
    served = one.kind != "stream"
    cores = at.devices if at.tp > at.devices and at.devices * at.pp >= 1 else at.tp
    prompt, cached = _prompt(one)
    found = Request(
        prompt_tokens=prompt,
        output_tokens=one.output_tokens or SHORT_OUTPUT,
        batch=1 if served else max(round(one.sequences), 1),
        concurrency=max(round(one.sequences), 1) if served else None,
        cached_prefix_tokens=cached,
        tp=cores,
        pp=at.pp,
        dp=at.dp,
        ep=at.ep if architecture.expert_layers else 1,
        weight_dtype=weight,
        moe_dtype=experts,
        kv_dtype=one.kv_dtype or _cache_format(one, architecture),
        shortest_length=1.0 if equal else SHORTEST_DRAWN,
    )
    return _with_pools(found, one, architecture.expert_layers > 0)


def _with_pools(request: Request, one: Measurement, experts: bool) -> Request:
    """The request to the pools of a row that says how many workers each has; else to one decode worker, with all the clients there are."""
    ahead = one.prefill_layout
    if ahead is None or one.prefill_workers is None or one.decode_workers is None:
        return request
    return replace(
        request,
        concurrency=max(round(one.sequences * one.decode_workers), 1),
        prefill_replicas=one.prefill_workers,
        decode_replicas=one.decode_workers,
        prefill_tp=ahead.tp,
        prefill_dp=ahead.dp,
        prefill_ep=ahead.ep if experts else 1,
    )


def _prompt(one: Measurement) -> tuple[int, int]:
    """Prompt tokens and those of them that were in the cache before: a decode starts at its context, a prefill may lie behind one."""
    if one.kind != "stream":
        return one.prompt_tokens or SHORT_PROMPT, 0
    if one.tpot_s is not None:
        held = one.prompt_tokens if one.context_tokens is None else one.context_tokens
        return max(SHORT_PROMPT if held is None else held, 1), 0
    new, before = one.prompt_tokens or 1, one.context_tokens or 0
    return new + before, before


def _formats(one: Measurement, architecture: ModelArchitecture) -> tuple[str, str | None]:
    """Formats of the weights and of the experts (None: as the rest).

    Checkpoints in 4-bit float or integer keep all but the experts at 16 bit; fp8 checkpoints of mixtures have a scale per block. What
    is called 4-bit without a group has one scale for 128 weights.
    """
    names = {"int4_wo": "awq", "fp4": "nvfp4"}
    weight = names.get(one.weight_dtype, one.weight_dtype)
    if not architecture.expert_layers:
        return weight, None
    experts = names.get(one.expert_dtype, one.expert_dtype) or weight
    if one.kind == "stream":
        return weight, None
    if experts == "fp8":
        experts = "fp8_block"
    if experts in ("fp8_block", "bf16"):
        return experts, None
    return "bf16", experts


def _cache_format(one: Measurement, architecture: ModelArchitecture) -> str:
    """The format of the KV cache where the source is silent: what the engines take for such checkpoints by default."""
    engine = slugify(one.engine)
    if one.kind != "stream":
        narrow = one.weight_dtype in ("fp8", "nvfp4")
        if (engine == "tensorrt-llm" and narrow) or (engine == "vllm" and architecture.expert_layers > 0):
            return "fp8"
    return "bf16" if one.weight_dtype != "fp32" else "fp32"
