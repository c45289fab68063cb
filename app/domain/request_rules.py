"""What a request must satisfy to be priced: one list of rules, for one request and for every cell of a grid alike."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.domain.architecture import ModelArchitecture
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request
from app.domain.work import Quantity

MODES = ("textbook", "default")
TOKEN_LIMIT = 10_000_000
SEQUENCE_LIMIT = 1_000_000
REPLICA_LIMIT = 4096
TP_LIMIT = 1024
DRAFT_LIMIT = 64
FRACTIONS = ("shortest_length", "acceptance")
TRUTHS = ("open_loop",)
RATES = ("transfer_bytes_per_s",)
OPTIONAL = ("concurrency", "prefill_replicas", "prefill_tp", "prefill_dp", "prefill_ep", *RATES)
# A chance of 1 is priced as one so near to it that the sum of its powers is whole to nine digits.
_SURE = 1.0 - 1e-9
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Load:
    """The numbers of a request as floats or broadcastable arrays. None as in a request; `concurrency` None: not a served load."""

    prompt_tokens: Quantity
    output_tokens: Quantity
    batch: Quantity
    concurrency: Quantity | None
    cached_prefix_tokens: Quantity
    tp: Quantity
    pp: Quantity
    ep: Quantity
    dp: Quantity
    requests_per_client: Quantity = 10.0
    shortest_length: Quantity = 1.0
    draft_tokens: Quantity = 0.0
    acceptance: Quantity = 0.0
    prefill_replicas: Quantity | None = None
    decode_replicas: Quantity = 1.0
    prefill_tp: Quantity | None = None
    prefill_dp: Quantity | None = None
    prefill_ep: Quantity | None = None
    transfer_bytes_per_s: Quantity | None = None
    open_loop: Quantity = 0.0

    @property
    def in_step(self) -> Mask:
        """Where clients of equal length keep step: requests that come at their own moments do not."""
        found: Mask = (np.asarray(self.shortest_length) >= 1.0) & (np.asarray(self.open_loop) == 0.0)
        return found

    @property
    def rows(self) -> Quantity:
        """Rows of a sequence in one decode pass: the drafted tokens and the one that is certain."""
        return self.draft_tokens + 1.0

    @property
    def accepted(self) -> Quantity:
        """Expected tokens of a decode pass, Σ p^i for i = 0..draft."""
        chance = np.minimum(np.asarray(self.acceptance, dtype=np.float64), _SURE)
        tokens: Quantity = (1.0 - chance**self.rows) / (1.0 - chance)
        return tokens

    def in_prefill(self) -> "Load":
        """The same requests on a prefill replica's devices."""
        own = {key: self._own_or_shared(key) for key in ("tp", "dp", "ep")}
        return replace(self, **own, concurrency=None, prefill_replicas=None)

    def _own_or_shared(self, key: str) -> Quantity:
        own: Quantity | None = getattr(self, f"prefill_{key}")
        shared: Quantity = getattr(self, key)
        return shared if own is None else own

    def averaged(self) -> "Load":
        """The load at its mean lengths: those of a served load are drawn between `shortest_length` and 1 of the given ones."""
        if self.concurrency is None or not np.any(np.asarray(self.shortest_length) < 1.0):
            return self
        mean = (1.0 + self.shortest_length) / 2.0
        prompt, output = np.maximum(mean * self.prompt_tokens, 1.0), np.maximum(mean * self.output_tokens, 1.0)
        return replace(
            self, prompt_tokens=prompt, output_tokens=output, cached_prefix_tokens=np.minimum(self.cached_prefix_tokens, prompt - 1.0)
        )

    @classmethod
    def of(cls, request: Request) -> "Load":
        """The numbers of one request. Raises InvalidRequest for a value that is not a whole number."""
        return cls(**{key: number_of(key, getattr(request, key)) for key in cls.__dataclass_fields__})  # type: ignore[arg-type]


def number_of(field: str, value: object) -> float | None:
    """A field's value as a float, None where it may be left out and is. Raises InvalidRequest for one that is no number of its kind."""
    if value is None and field in OPTIONAL:
        return None
    if field in TRUTHS:
        return _truth(field, value)
    if field in FRACTIONS:
        return _finite(field, value, "a fraction from 0 to 1")
    return _finite(field, value, "bytes per second above 0") if field in RATES else whole_number(field, value)


def _truth(field: str, value: object) -> float:
    if not isinstance(value, bool):
        raise InvalidRequest(field, f"{field} is {str(value)[:40]!r}; give true or false.")
    return float(value)


def _finite(field: str, value: object, wanted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidRequest(field, f"{field} is {str(value)[:40]!r}; give {wanted}.")
    return float(value)


def whole_number(field: str, value: object) -> float:
    """The value as a float. Raises InvalidRequest when it is not a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidRequest(field, f"{field} is {str(value)[:40]!r}; give a whole number.")
    # Beyond what a float can hold is beyond every limit too.
    return float(min(max(value, -_BEYOND), _BEYOND))


_BEYOND = 2**63


@dataclass(frozen=True)
class Rule:
    """A condition that makes a request unpriceable: the field to mend, the sentence after its name, and where it holds."""

    field: str
    sentence: str
    broken: Callable[[Load], Quantity | Mask | bool]


def rules(architecture: ModelArchitecture, hardware: HardwareProfile, mode: str) -> tuple[Rule, ...]:
    """The rules for a model on a device, in the order in which a message is chosen."""
    layers = architecture.layers
    linked = hardware.link_bytes_per_s is not None or mode == "textbook"
    return (
        _between("prompt_tokens", 1, TOKEN_LIMIT),
        _between("output_tokens", 1, TOKEN_LIMIT),
        _between("batch", 1, SEQUENCE_LIMIT),
        _between("concurrency", 1, SEQUENCE_LIMIT),
        _between("cached_prefix_tokens", 0, TOKEN_LIMIT),
        _between("tp", 1, TP_LIMIT),
        _between("requests_per_client", 1, SEQUENCE_LIMIT),
        _between("draft_tokens", 0, DRAFT_LIMIT),
        Rule(
            "shortest_length", "must lie above 0 and at most at 1.", lambda load: (load.shortest_length <= 0) | (load.shortest_length > 1)
        ),
        Rule("acceptance", "must lie between 0 and 1.", lambda load: (load.acceptance < 0) | (load.acceptance > 1)),
        _between("pp", 1, layers, f", the number of layers of {architecture.name}"),
        _between("dp", 1, TP_LIMIT),
        _between("ep", 1, TP_LIMIT),
        *_expert_rules(architecture),
        Rule(
            "cached_prefix_tokens",
            "must be smaller than prompt_tokens: at least one token of the prompt is left to compute.",
            lambda load: load.cached_prefix_tokens >= load.prompt_tokens,
        ),
        *_head_rules(architecture),
        Rule(
            "batch",
            "must be 1 when concurrency is given: a served load forms its own batches.",
            lambda load: False if load.concurrency is None else load.batch != 1,
        ),
        Rule(
            "open_loop",
            "must be left out without concurrency, the requests in flight.",
            lambda load: (np.asarray(load.open_loop) > 0) & (load.concurrency is None),
        ),
        *_link_rules(hardware, linked),
        *_pool_rules(architecture, hardware, mode, linked),
    )


def _pool_rules(architecture: ModelArchitecture, hardware: HardwareProfile, mode: str, linked: bool) -> list[Rule]:
    """Pools of their own for prefill and decode: replicas, how a prefill replica is spread, and a way between them."""
    placed = [*_head_rules(architecture), *_expert_rules(architecture), *_link_rules(hardware, linked)]
    placed = [rule for rule in placed if rule.field in ("tp", "dp", "ep")]
    found = [_between(f"prefill_{key}", 1, TP_LIMIT) for key in ("tp", "dp", "ep")]
    found += [_between(key, 1, REPLICA_LIMIT) for key in ("prefill_replicas", "decode_replicas")]
    found += [Rule(f"prefill_{rule.field}", rule.sentence, _in_prefill(rule)) for rule in placed]
    found.append(
        Rule(
            "transfer_bytes_per_s",
            "must be above 0.",
            lambda load: False if load.transfer_bytes_per_s is None else load.transfer_bytes_per_s <= 0,
        )
    )
    found.append(
        Rule(
            "open_loop",
            "must be left out with prefill_replicas: pools of their own are priced for clients; simulate arrivals at a rate.",
            lambda load: (np.asarray(load.open_loop) > 0) & (load.prefill_replicas is not None),
        )
    )
    if mode == "textbook":
        word = "must be left out: textbook arithmetic has no pools. Take calibration default."
        found.append(Rule("prefill_replicas", word, lambda load: load.prefill_replicas is not None))
    if hardware.link_bytes_per_s is None:
        word = f"must be given, or link_bytes_per_s of {hardware.name}: the cache crosses from the prefill pool to the decode pool."
        found.append(
            Rule("transfer_bytes_per_s", word, lambda load: load.prefill_replicas is not None and load.transfer_bytes_per_s is None)
        )
    return found


def _in_prefill(rule: Rule) -> Callable[[Load], Quantity | Mask | bool]:
    return lambda load: False if load.prefill_replicas is None else rule.broken(load.in_prefill())


def _head_rules(architecture: ModelArchitecture) -> list[Rule]:
    """Tensor-parallel ranks share heads evenly; KV heads are shared or copied."""
    mixers = [part for group in architecture.groups for part in (group.attention, group.latent) if part is not None]
    counts = dict.fromkeys(part.heads for part in mixers)
    kv_counts = dict.fromkeys(group.attention.kv_heads for group in architecture.groups if group.attention)
    inner = dict.fromkeys(group.recurrent.inner for group in architecture.groups if group.recurrent)
    return [
        *(_divides(heads, f"does not divide the {heads} attention heads of {architecture.name}; take a divisor.") for heads in counts),
        *(_shares(heads, f"neither divides the {heads} KV heads of {architecture.name} nor is a multiple of them.") for heads in kv_counts),
        *(_divides(width, f"does not divide the {width} channels of the recurrent layers; take a divisor.") for width in inner),
    ]


def _divides(count: int, sentence: str) -> Rule:
    return Rule("tp", sentence, lambda load: np.mod(count, np.maximum(load.tp, 1.0)) != 0)


def _shares(count: int, sentence: str) -> Rule:
    return Rule("tp", sentence, lambda load: (np.mod(count, np.maximum(load.tp, 1.0)) != 0) & (np.mod(load.tp, count) != 0))


def _expert_rules(architecture: ModelArchitecture) -> list[Rule]:
    """Expert parallelism needs experts, an even share of them, and devices to put them on."""
    counts = dict.fromkeys(group.experts.count for group in architecture.groups if group.experts)
    if not counts:
        return [Rule("ep", "must be 1: this dense model has no experts to spread.", lambda load: load.ep != 1)]
    return [
        Rule(
            "ep",
            "does not divide the tp x dp devices of a stage; experts are spread over all or an even part of them.",
            lambda load: np.mod(load.tp * load.dp, np.maximum(load.ep, 1.0)) != 0,
        ),
        *(
            Rule(
                "ep",
                f"does not divide the {count} experts of {architecture.name}; take a divisor.",
                lambda load, count=count: np.mod(count, np.maximum(load.ep, 1.0)) != 0,  # type: ignore[misc]
            )
            for count in counts
        ),
    ]


def _link_rules(hardware: HardwareProfile, linked: bool) -> list[Rule]:
    """Several devices need a link, more than a node holds a network."""
    word = f"needs a link between devices, and the profile of {hardware.name} states none; add link_bytes_per_s or take 1."
    found = [] if linked else [_more_than_one(field, word) for field in ("tp", "pp", "dp")]
    node = hardware.devices_per_node
    if linked and node is not None and hardware.network_bytes_per_s is None:
        beyond = (
            f"x dp x pp needs more than the {node} devices of a node of {hardware.name}, whose profile states no network between nodes; "
            "add network_bytes_per_s or take fewer."
        )
        found.append(Rule("tp", beyond, lambda load: load.tp * load.dp * load.pp > node))
    return found


def _more_than_one(field: str, sentence: str) -> Rule:
    return Rule(field, sentence, lambda load: getattr(load, field) > 1)


def _between(field: str, low: int, high: int, meaning: str = "") -> Rule:
    def broken(load: Load) -> Quantity | Mask | bool:
        value = getattr(load, field)
        return False if value is None else (value < low) | (value > high)

    return Rule(field, f"must lie between {low} and {high}{meaning}.", broken)


def check(request: Request, architecture: ModelArchitecture, hardware: HardwareProfile) -> Load:
    """The request's numbers, once every rule holds. Raises InvalidRequest with the field and a sentence."""
    check_mode(request)
    check_device(hardware)
    load = Load.of(request)
    for rule in rules(architecture, hardware, request.calibration):
        if np.any(rule.broken(load)):
            value = getattr(request, rule.field)
            told = "not given" if value is None else value
            raise InvalidRequest(rule.field, f"{rule.field} is {told}: it {rule.sentence}")
    return load


def check_mode(request: Request) -> None:
    """Raises InvalidRequest for a calibration that is neither one of MODES nor the number of a stored one."""
    words = str(request.calibration)
    if request.calibration not in MODES and not (words.isascii() and words.isdigit()):
        raise InvalidRequest("calibration", f"calibration is {words[:40]!r}; give textbook, default, or the number of a calibration.")


def check_device(hardware: HardwareProfile) -> None:
    """Raises InvalidRequest when a figure of the device cannot be priced: rates are positive, shares lie in 0 to 1."""
    rates: Mapping[str, float | None] = {
        "bandwidth_bytes_per_s": hardware.bandwidth_bytes_per_s,
        "memory_bytes": hardware.memory_bytes,
        "driver_memory_bytes": hardware.driver_memory_bytes,
        "link_bytes_per_s": hardware.link_bytes_per_s,
        "network_bytes_per_s": hardware.network_bytes_per_s,
        "achieved_bandwidth_bytes_per_s": hardware.achieved_bandwidth_bytes_per_s,
        **{f"peak_flops_per_s.{key}": value for key, value in hardware.peak_flops_per_s.items()},
        **{f"achieved_flops_per_s.{key}": value for key, value in hardware.achieved_flops_per_s.items()},
    }
    shares: Mapping[str, float | None] = {
        "bandwidth_efficiency": hardware.bandwidth_efficiency,
        **{f"compute_efficiency.{key}": value for key, value in hardware.compute_efficiency.items()},
        **{f"bandwidth_efficiency_by_dtype.{key}": value for key, value in hardware.bandwidth_efficiency_by_dtype.items()},
    }
    for key, value in (*rates.items(), *shares.items()):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InvalidRequest("hardware", f"{key} of {hardware.name} is {value}; give a positive number.")
    for key, value in shares.items():
        if value is not None and value > 1:
            raise InvalidRequest("hardware", f"{key} of {hardware.name} is {value}; give a fraction of the specified rate, at most 1.")
    for launch in (hardware.launch_s, *hardware.launch_s_by_dtype.values()):
        if launch is not None and not 0 <= launch < 1:
            raise InvalidRequest("hardware", f"launch_s of {hardware.name} is {launch}; give seconds per launch, 0 or more.")
