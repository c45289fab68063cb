"""What a prediction is made of. The functions that fill these stand in `work`, `roofline` and `serving`.

Three times are kept for each pass and never mixed: the floor (specified peaks, no overhead: nothing can beat it), the
attainable time (the device's achieved rates) and the expected time (rates, launches, front-end). floor <= attainable <= time.
"""

from dataclasses import dataclass, replace
from typing import Literal

Bound = Literal["compute", "memory", "communication", "overhead"]
Part = Literal["compute", "attention", "weights", "kv", "communication", "overhead"]
Calibration = Literal["textbook", "default"]


@dataclass(frozen=True)
class Request:
    """One question to the model: token counts, how many run together, on how many devices, at which precision.

    `batch` is the number of sequences in one pass; `concurrency` the number of closed-loop clients, None when not a served load, each of
    which sends `requests_per_client` requests, of lengths drawn evenly between `shortest_length` and 1 of the given ones (1: all equal).
    Where `open_loop` holds requests come at their own moments and wait for no answer: `concurrency` of them are in flight on average.
    `draft_tokens` are proposed in each step and each is accepted with the chance `acceptance`, given those before it.
    `tp` devices share an attention rank, `dp` such ranks share the sequences (attention data parallel), `ep` of a stage's tp·dp devices
    hold different experts, `pp` stages follow one another.
    With `prefill_replicas` prompts are computed by so many replicas of their own and answered by `decode_replicas` others, each spread by
    tp, dp and ep; `prefill_tp`, `prefill_dp` and `prefill_ep` spread a prefill replica (None: like a decode replica). The cache crosses
    at `transfer_bytes_per_s` for each device, as reached; None: what the device's link or network gives.
    `moe_dtype` is the format of the experts' weights, None: that of the others
    or what checkpoints of the model use; `comm_dtype` the format of activations that cross a link, None: their own.
    """

    prompt_tokens: int = 2000
    output_tokens: int = 300
    batch: int = 1
    concurrency: int | None = None
    cached_prefix_tokens: int = 0
    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1
    weight_dtype: str = "bf16"
    activation_dtype: str = "bf16"
    kv_dtype: str = "bf16"
    moe_dtype: str | None = None
    comm_dtype: str | None = None
    engine: str | None = None
    calibration: str = "default"
    requests_per_client: int = 10
    shortest_length: float = 1.0
    draft_tokens: int = 0
    acceptance: float = 0.0
    prefill_replicas: int | None = None
    decode_replicas: int = 1
    prefill_tp: int | None = None
    prefill_dp: int | None = None
    prefill_ep: int | None = None
    transfer_bytes_per_s: float | None = None
    open_loop: bool = False

    @property
    def mean_share(self) -> float:
        """The mean of the lengths that are drawn, as a share of the given ones; 1 for a load that is not served."""
        return 1.0 if self.concurrency is None else (1.0 + self.shortest_length) / 2.0

    @property
    def mean_lengths(self) -> tuple[float, float]:
        """Mean tokens of a prompt and of an answer."""
        return self.prompt_tokens * self.mean_share, self.output_tokens * self.mean_share

    @property
    def further_tokens(self) -> float:
        """Mean tokens of an answer after its first."""
        return max(self.mean_lengths[1] - 1.0, 0.0)

    def with_mean_lengths(self, prompt: float, output: float) -> "Request":
        """The same load with lengths drawn around these means, in whole tokens of the longest."""
        longest = [max(1, round(mean / self.mean_share)) for mean in (prompt, output)]
        return replace(self, prompt_tokens=longest[0], output_tokens=longest[1])


@dataclass(frozen=True)
class Term:
    """One operator of a pass, summed over its layers: FLOPs, bytes moved, expected seconds and what sets the pace.

    `part` says into which block of a decomposition its time goes.
    """

    name: str
    part: Part
    flops: float
    bytes: float
    time_s: float
    bound: Bound


@dataclass(frozen=True)
class PassCost:
    """The cost of one forward pass in seconds, FLOPs and bytes per device, with its operators."""

    time_s: float
    floor_s: float
    attainable_s: float
    compute_s: float
    memory_s: float
    comm_s: float
    overhead_s: float
    bound: Bound
    flops: float
    bytes: float
    intensity_flops_per_byte: float
    terms: tuple[Term, ...]

    def part_s(self, part: Part) -> float:
        """Expected seconds of all operators that belong to one block of the decomposition."""
        return sum(term.time_s for term in self.terms if term.part == part)


@dataclass(frozen=True)
class Memory:
    """Bytes per device, and whether they fit. `max_batch` is the number of sequences of this request that fit together."""

    weight_bytes: float
    kv_bytes_per_token: float
    kv_bytes: float
    activation_bytes: float
    capacity_bytes: float | None
    fits: bool | None
    max_batch: int | None


@dataclass(frozen=True)
class Prediction:
    """Both phases of one request, and the request. `decode` is the mean step; steps grow as the KV cache does.

    `front_end_s`, `queue_s` and `interference_s` are the parts of TTFT and ITL outside the passes: ttft_s = front_end_s + queue_s +
    prefill.time_s, itl_s = decode.time_s / accepted tokens a step + interference_s. `served` is there with clients (in default mode).
    With pools of their own (`pools`) there is no interference, and the way from one to the other, `pools.handover_s`, is spread over the
    tokens after the first: itl_s = decode.time_s / accepted tokens + pools.handover_s / (output tokens - 1).
    `attention_beside` is textbook mode's line of its own: what causal attention would add to prefill, in no other figure; else None.
    """

    request: Request
    prefill: PassCost
    decode: PassCost
    first_step_s: float
    last_step_s: float
    front_end_s: float
    interference_s: float
    ttft_s: float
    itl_s: float
    total_s: float
    prefill_share: float
    ridge_peak: float
    ridge_achieved: float
    request_tokens_per_s: float
    aggregate_tokens_per_s: float
    memory: Memory
    ttft_range_s: tuple[float, float]
    itl_range_s: tuple[float, float]
    assumptions: tuple[str, ...]
    model_version: str
    attention_beside: Term | None = None
    queue_s: float = 0.0
    served: "ServedLimits | None" = None
    weights: "WeightReads | None" = None
    pools: "Pools | None" = None

    @property
    def phase(self) -> Literal["queue", "prefill", "decode"]:
        """Where most of the request's time is: waiting, the first token (front-end and prefill), or the tokens after it."""
        parts: dict[Literal["queue", "prefill", "decode"], float] = {
            "prefill": self.ttft_s - self.queue_s,
            "decode": self.total_s - self.ttft_s,
            "queue": self.queue_s,
        }
        return max(parts, key=lambda name: parts[name])


@dataclass(frozen=True)
class ServedLimits:
    """Of a closed loop: the clients, how many of them run on average, and from how many on each limit holds requests back, least first."""

    clients: int
    running: float
    bounds: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Pool:
    """One side of a disaggregated deployment: replicas and devices of all of them, what each of these keeps in memory.

    `requests_per_s` is what the pool keeps up with, at the most sequences that it may hold with these clients; `busy` the share of that
    in use. Both are None where no clients send.
    """

    replicas: int
    devices: int
    memory: Memory
    requests_per_s: float | None = None
    busy: float | None = None


Binding = Literal["prefill", "transfer", "decode", "clients"]


@dataclass(frozen=True)
class Pools:
    """Prefill and decode on devices of their own, and the way between them.

    The first token comes from prefill; the second `first_gap_s` later: `admission_s` until a decode replica has room and its step ends,
    `transfer_s` for `transfer_bytes` of cache (to the device that takes the most of them), and a step. With clients `requests_per_s` is
    what all give together, `transfer_requests_per_s` what the links keep up with, and `binds` what more of would raise it;
    `balanced_ratio` is the number of prefill replicas for each decode replica at which both keep up with the same.
    """

    prefill: Pool
    decode: Pool
    transfer_bytes: float
    transfer_bytes_per_s: float
    transfer_s: float
    admission_s: float
    first_gap_s: float
    requests_per_s: float | None = None
    transfer_requests_per_s: float | None = None
    binds: Binding | None = None
    balanced_ratio: float | None = None

    @property
    def handover_s(self) -> float:
        """What the way between the pools adds to the first gap."""
        return self.admission_s + self.transfer_s

    @property
    def devices(self) -> int:
        """Devices of both pools."""
        return self.prefill.devices + self.decode.devices


@dataclass(frozen=True)
class WeightReads:
    """Bytes of weights on one device and their floor at the specified bandwidth: of the mean decode step, and of all of them.

    Pipeline stages are counted one after another. `distinct_experts` are those that a step touches in a layer on average, None without
    experts. The input table is looked up, not read.
    """

    step_bytes: float
    step_floor_s: float
    all_bytes: float
    all_floor_s: float
    distinct_experts: float | None
