"""What a diagnosis looks at: runs of one deployment, and what is known about the deployment beside its measured figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from app.domain.run import Run


@dataclass(frozen=True)
class Setup:
    """Facts of a deployment in SI units, None where nobody said; switches are 1.0 (on) or 0.0 (off).

    `chunk_budget_tokens` is the prompt work one step may hold, infinite where prompts are never split; `graph_limit` the largest batch
    that was captured; `long_prompt_tokens` another request's prompt that was in the server at the same time; `served_prompt_tokens` all
    that the server read meanwhile, whoever asked. `step_weight_bytes` are weights really read in a step by all devices, `resident_bytes`
    those held; `held_share` the part of the memory that weights, cache and activations take. `fast_share` is the part of them in fast
    memory, the rest moves at `slow_bandwidth_bytes_per_s`. `cached_share` is the part of prompt tokens that were not computed.
    """

    chunk_budget_tokens: float | None = None
    running_cap: float | None = None
    graph_limit: float | None = None
    pool_tokens: float | None = None
    pool_used_share: float | None = None
    served_prompt_tokens: float | None = None
    preemptions: float | None = None
    cached_share: float | None = None
    long_prompt_tokens: float | None = None
    eager: float | None = None
    adapters: float | None = None
    constrained: float | None = None
    speculative: float | None = None
    disaggregated: float | None = None
    parameters: float | None = None
    active_parameters: float | None = None
    bytes_per_parameter: float | None = None
    compute_bytes_per_parameter: float | None = None
    step_weight_bytes: float | None = None
    resident_bytes: float | None = None
    step_kv_bytes: float | None = None
    layers: float | None = None
    kv_heads: float | None = None
    head_dim: float | None = None
    kv_element_bytes: float | None = None
    context_tokens: float | None = None
    sequences: float | None = None
    devices: float | None = None
    bandwidth_bytes_per_s: float | None = None
    achieved_bandwidth_bytes_per_s: float | None = None
    slow_bandwidth_bytes_per_s: float | None = None
    fast_share: float | None = None
    held_share: float | None = None
    peak_flops_per_s: float | None = None
    achieved_flops_per_s: float | None = None
    prefill_flops: float | None = None
    all_reduce_s: float | None = None
    all_reduces_per_layer: float | None = None

    @property
    def known(self) -> Mapping[str, float]:
        """The facts that somebody said, by name."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: float(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Subject:
    """One deployment: its runs (one, or several that differ in load, prompt length or parallelism, or repeats) and its setup."""

    runs: tuple[Run, ...]
    setup: Setup = field(default_factory=Setup)

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("A diagnosis needs at least one run.")
