"""The kinds of change: of a deployment drawn at random, one thing is made worse (or other), by a random amount.

`cause` is the word of the vocabulary for what was done, or the line of the decision table where the vocabulary has no word for it; None:
nothing was changed. `place` says where before the first token the added time lies, where that is not the prompt pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from app.catalog import Catalog
from app.domain.diagnosis.vocabulary import Phase
from app.domain.prediction import Request
from app.domain.schedule import Schedule
from app.domain.simulation import ServedLoad
from app.domain.simulation.state import Costs
from app.domain.what_if import scaled
from benchmarks.synthetic.deployment import Client, Deployment, capacity_per_s, pool_tokens

Random = np.random.Generator
Pair = tuple[Deployment, Deployment]

# Models on devices that hold them, as they are served: (model, device, tp).
_SERVED = (
    ("llama-3-1-8b", "h100-sxm5-80gb", 1),
    ("llama-3-1-8b", "a100-sxm4-80gb", 1),
    ("qwen2-5-7b-instruct", "l40s", 1),
    ("mistral-7b-instruct-v0-3", "rtx-a6000", 1),
    ("qwen3-14b", "h200-sxm-141gb", 1),
    ("qwen3-32b", "h100-sxm5-80gb", 2),
    ("qwen2-5-32b", "h200-sxm-141gb", 1),
    ("llama-3-1-70b", "h100-sxm5-80gb", 4),
    ("qwen3-30b-a3b", "h100-sxm5-80gb", 1),
)
_ENGINES = ("vllm", "sglang", "tensorrt-llm")
# A kernel is a piece of software: it got slower because another one runs. What else costs time in a step comes with a version or without.
_NEXT_VERSION = "1.5.0"


@dataclass(frozen=True)
class Kind:
    """One kind of change, what it is called in an answer, and how a pair is drawn."""

    name: str
    cause: str | None
    draw: Callable[[Catalog, Random], Pair]
    place: Phase | None = None


def world(
    catalog: Catalog, random: Random, *, clients: tuple[int, ...] = (4, 8, 16, 32), engines: tuple[str, ...] = _ENGINES
) -> Deployment:
    """A deployment as people run them: a model on a device that holds it, an engine with chunked prefill, a closed loop of clients."""
    model, device, tp = _SERVED[random.integers(len(_SERVED))]
    many = int(random.choice(clients))
    schedule = Schedule(
        chunk_tokens=int(random.choice((2048, 4096, 8192))),
        running_cap=256,
        kv_reservation=catalog.engines[_ENGINES[0]].schedule.kv_reservation,
    )
    engine = catalog.engines[str(random.choice(engines))]
    if engine.schedule.prefill_alone:
        schedule = replace(schedule, prefill_alone=True)
    if engine.schedule.kv_reservation is not None:
        schedule = replace(schedule, kv_reservation=engine.schedule.kv_reservation)
    load = ServedLoad(
        prompt_tokens=int(random.integers(400, 4000)),
        output_tokens=int(random.integers(60, 240)),
        clients=many,
        requests_per_client=max(6, 96 // many),
        shortest_length=0.5,
        seed=int(random.integers(2**31)),
    )
    return Deployment(catalog.models[model], catalog.hardware[device], engine, Request(tp=tp), schedule, load)


def _slower_decode(by: float = 1.0, step_s: float = 0.0, sequence_s: float = 0.0) -> Callable[[Costs], Costs]:
    """Tables in which every pass takes `step_s` more and each of its sequences `sequence_s`, and the step itself `by` times as long."""

    def change(costs: Costs) -> Costs:
        return costs._replace(
            decode_s=costs.decode_s * by + step_s + sequence_s * np.asarray(costs.tokens),
            prompt_s=costs.prompt_s + step_s,
            read_s=np.asarray(costs.read_s) * by,
            read_each_s=costs.read_each_s * by,
            sequence_s=costs.sequence_s + sequence_s,
        )

    return change


def _slower_prompts(by: float) -> Callable[[Costs], Costs]:
    def change(costs: Costs) -> Costs:
        return costs._replace(prompt_s=costs.prompt_s * by, pair_s=costs.pair_s * by, prompt_floor_s=costs.prompt_floor_s * by)

    return change


def _launched_singly_above(rows: int, more_s: float) -> Callable[[Costs], Costs]:
    """Tables in which a decode pass of more than `rows` rows takes `more_s` more: kernels that no graph holds."""

    def change(costs: Costs) -> Costs:
        tokens = np.unique(np.concatenate([costs.tokens, [rows, rows + 1.0]]))
        decode = np.interp(tokens, costs.tokens, costs.decode_s) + np.where(tokens > rows, more_s, 0.0)
        others = {name: np.interp(tokens, costs.tokens, getattr(costs, name)) for name in ("prompt_s", "logits_s")}
        return costs._replace(tokens=tokens, decode_s=decode, **others)

    return change


def _itself(catalog: Catalog, random: Random) -> Pair:
    """Nothing was changed, or nothing that matters: every other pair has an upgrade in between."""
    base = world(catalog, random)
    return base, _upgraded_or_not(base, random)


def _upgraded_or_not(deployment: Deployment, random: Random) -> Deployment:
    return replace(deployment, version=_NEXT_VERSION) if random.random() < 0.5 else deployment


def _smaller_budget(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, engines=("vllm", "tensorrt-llm"))
    base = replace(base, load=replace(base.load, prompt_tokens=int(random.integers(2500, 9000))))
    base = replace(base, schedule=replace(base.schedule, chunk_tokens=8192))
    return base, replace(base, schedule=replace(base.schedule, chunk_tokens=int(random.choice((256, 512, 1024)))))


def _larger_budget(catalog: Catalog, random: Random) -> Pair:
    there, back = _smaller_budget(catalog, random)
    return back, there


def _lower_cap(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(16, 32, 48))
    clients = base.load.clients or 1
    return base, replace(base, schedule=replace(base.schedule, running_cap=int(clients * random.uniform(0.2, 0.6)) + 1))


def _pool(catalog: Catalog, random: Random, engine: str, reservation: float) -> Pair:
    base = world(catalog, random, clients=(16, 32), engines=(engine,))
    load = replace(base.load, output_tokens=int(random.integers(250, 500)), prompt_tokens=int(random.integers(300, 900)))
    base = replace(base, load=load, schedule=replace(base.schedule, kv_reservation=reservation))
    held = 0.75 * (load.prompt_tokens + load.output_tokens) * (load.clients or 1)
    return base, replace(base, pool_tokens=held * random.uniform(0.35, 0.6), settings={})


def _preempted(catalog: Catalog, random: Random) -> Pair:
    return _pool(catalog, random, "vllm", 0.0)


def _pool_waits(catalog: Catalog, random: Random) -> Pair:
    return _pool(catalog, random, "tensorrt-llm", 1.0)


def _wider_weights(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(1, 4, 8)).with_request(weight_dtype="fp8")
    return base, base.with_request(weight_dtype="bf16")


def _wider_cache(catalog: Catalog, random: Random) -> Pair:
    """Caches of twice the width that still fit: where they do not, what is drawn is a pool that became too small."""
    while True:
        base = world(catalog, random, clients=(16, 32)).with_request(kv_dtype="fp8")
        base = replace(base, load=replace(base.load, prompt_tokens=int(random.integers(3000, 8000))))
        other = base.with_request(kv_dtype="bf16")
        held = (base.load.prompt_tokens + base.load.output_tokens) * (base.load.clients or 1)
        if pool_tokens(other) > held:
            return base, other


def _more_clients(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(4, 8))
    more = (base.load.clients or 1) * int(random.choice((2, 4)))
    return base, replace(base, load=replace(base.load, clients=more))


def _clocked(deployment: Deployment, core: float, memory: float) -> Deployment:
    return replace(
        deployment,
        hardware=scaled(deployment.hardware, bandwidth=memory, flops=core),
        clocks=(deployment.clocks[0] * core, deployment.clocks[1] * memory),
    )


def _core_clock(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(1, 4, 8))
    return base, _clocked(base, float(random.uniform(0.5, 0.85)), 1.0)


def _memory_clock(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(1, 4, 8))
    return base, _clocked(base, 1.0, float(random.uniform(0.5, 0.85)))


def _both_clocks(catalog: Catalog, random: Random) -> Pair:
    base, by = world(catalog, random), float(random.uniform(0.55, 0.85))
    return base, _clocked(base, by, by)


def _elsewhere(catalog: Catalog, random: Random) -> Pair:
    """The same work on something several times slower, which says nothing of it."""
    base, by = world(catalog, random), float(random.uniform(2.5, 6.0))

    def change(costs: Costs) -> Costs:
        return _slower_prompts(by)(_slower_decode(by)(costs))

    return base, replace(base, costs=change)


def _cache_lost(catalog: Catalog, random: Random) -> Pair:
    other = world(catalog, random)
    prompt = int(random.integers(2000, 6000))
    other = replace(other, load=replace(other.load, prompt_tokens=prompt))
    cached = replace(
        other.load, cached_prefix_tokens=int(prompt * random.uniform(0.25, 0.45)), cached_share=float(random.uniform(0.6, 1.0))
    )
    return replace(other, load=cached), other


def _graph_limit(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(16, 32, 48))
    limit = int((base.load.clients or 1) * random.uniform(0.3, 0.7))
    more = float(random.uniform(0.004, 0.015))
    base = replace(base, settings={"cuda_graph_max_bs": "256"})
    return base, replace(base, costs=_launched_singly_above(limit, more), settings={"cuda_graph_max_bs": str(limit)})


def _eager(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, replace(base, costs=_slower_decode(step_s=float(random.uniform(0.003, 0.012))), settings={"enforce_eager": "True"})


def _adapters(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    base = replace(base, settings={"enable_lora": "False"})
    return base, replace(base, costs=_slower_decode(step_s=float(random.uniform(0.002, 0.008))), settings={"enable_lora": "True"})


def _fixed_step(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, _upgraded_or_not(replace(base, costs=_slower_decode(step_s=float(random.uniform(0.002, 0.01)))), random)


def _each_sequence(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(8, 16, 32))
    return base, _upgraded_or_not(replace(base, costs=_slower_decode(sequence_s=float(random.uniform(0.0003, 0.0015)))), random)


def _longer_prompts(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, replace(base, load=replace(base.load, prompt_tokens=int(base.load.prompt_tokens * random.uniform(1.5, 3.0))))


def _longer_outputs(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, replace(base, load=replace(base.load, output_tokens=int(base.load.output_tokens * random.uniform(1.5, 2.5))))


def _open(deployment: Deployment, rate_per_s: float, requests: int) -> Deployment:
    return replace(deployment, load=replace(deployment.load, clients=None, request_rate_per_s=rate_per_s, requests=requests))


def _above_capacity(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    capacity = capacity_per_s(base)
    return _open(base, 0.5 * capacity, 120), _open(base, float(random.uniform(1.4, 2.2)) * capacity, 120)


def _drafts(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(48, 64))
    base = replace(base, load=replace(base.load, prompt_tokens=int(random.integers(200, 600)), output_tokens=100, requests_per_client=4))
    return base, base.with_request(draft_tokens=int(random.choice((3, 5, 7))), acceptance=float(random.uniform(0.2, 0.4)))


def _more_devices(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(1, 4, 8))
    base = replace(base, model=catalog.models["llama-3-1-8b"], hardware=catalog.hardware["h100-sxm5-80gb"]).with_request(tp=1)
    fixed = float(random.uniform(0.002, 0.006))
    return replace(base, costs=_slower_decode(step_s=fixed)), replace(base, costs=_slower_decode(step_s=fixed)).with_request(
        tp=int(random.choice((2, 4)))
    )


def _slow_links(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(1, 4, 8))
    base = replace(base, model=catalog.models["llama-3-1-8b"], hardware=catalog.hardware["h100-sxm5-80gb"]).with_request(tp=1)
    more = float(random.uniform(0.006, 0.02))
    return base, replace(base, costs=_slower_decode(step_s=more)).with_request(tp=int(random.choice((2, 4))))


def _client_delay(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, replace(base, client=Client(delay_s=float(random.uniform(0.05, 0.4))))


def _front_end_delay(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, replace(base, client=Client(front_end_s=float(random.uniform(0.05, 0.4))))


def _cold(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, replace(base, client=Client(cold=base.load.clients or 1, cold_s=float(random.uniform(2.0, 20.0))))


def _gathered(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, replace(base, client=Client(gathered=int(random.choice((16, 32, 64, 1000)))))


def _strangers(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, engines=("vllm", "tensorrt-llm"))
    capacity = capacity_per_s(base)
    base = _open(base, 0.3 * capacity, 120)
    prompt = int(random.integers(6000, 16000))
    own_s = 120 / (0.3 * capacity)
    each_s = own_s / 25
    rate = 1 / each_s
    strangers = ServedLoad(prompt_tokens=prompt, output_tokens=2, request_rate_per_s=rate, requests=25, seed=base.load.seed + 1)
    return base, replace(base, strangers=strangers)


def _decode_kernel(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, replace(base, costs=_slower_decode(by=float(random.uniform(1.12, 1.6))), version=_NEXT_VERSION)


def _prompt_kernel(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random)
    return base, replace(base, costs=_slower_prompts(float(random.uniform(1.2, 1.8))), version=_NEXT_VERSION)


def _prompts_on_host(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(1,))
    return base, replace(base, costs=_slower_prompts(float(random.uniform(6.0, 15.0))))


def _expanded_weights(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(1, 4))
    other = base.with_request(weight_dtype="int4")
    return base, replace(other, costs=_slower_prompts(float(random.uniform(1.4, 2.2))))


def _quantised_cache(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(1, 4))
    other = base.with_request(kv_dtype="fp8")
    return base, replace(other, costs=_slower_prompts(float(random.uniform(1.15, 1.5))))


def _offloaded(catalog: Catalog, random: Random) -> Pair:
    base = world(catalog, random, clients=(1, 4))
    base = replace(base, model=catalog.models["llama-3-1-8b"], hardware=catalog.hardware["a100-sxm4-80gb"]).with_request(tp=1)
    gigabytes = float(random.uniform(1.0, 6.0))
    # Weights that lie on the host cross a PCIe link of 25 GB/s in every pass.
    crossing = gigabytes * 1e9 / 25e9
    base = replace(base, settings={"cpu_offload_gb": "0"})
    return base, replace(base, costs=_slower_decode(step_s=crossing), settings={"cpu_offload_gb": f"{gigabytes:.2f}"})


KINDS: tuple[Kind, ...] = (
    Kind("no_change", None, _itself),
    Kind("chunk_budget_smaller", "chunked_prefill_budget", _smaller_budget),
    Kind("chunk_budget_larger", "chunked_prefill_budget", _larger_budget),
    Kind("running_cap_lower", "running_sequence_cap", _lower_cap, "queue"),
    Kind("pool_too_small_preempting", "preemption", _preempted, "queue"),
    Kind("pool_too_small_waiting", "kv_capacity", _pool_waits, "queue"),
    Kind("weights_wider", "memory_bandwidth", _wider_weights),
    Kind("cache_wider", "memory_bandwidth", _wider_cache),
    Kind("more_clients", "R24", _more_clients),
    Kind("core_clock_down", "power_cap", _core_clock),
    Kind("memory_clock_down", "memory_bandwidth", _memory_clock),
    Kind("both_clocks_down", "power_cap", _both_clocks),
    Kind("slower_device", "wrong_device_or_offload", _elsewhere),
    Kind("cache_hits_lost", "R01", _cache_lost),
    Kind("graph_limit_exceeded", "cuda_graph_ceiling", _graph_limit),
    Kind("graphs_off", "eager_mode", _eager),
    Kind("adapters_served", "lora_kernels", _adapters),
    Kind("fixed_step_cost", "fixed_step_overhead", _fixed_step),
    Kind("host_cost_per_sequence", "host_side_sampling", _each_sequence),
    Kind("longer_prompts", "R30", _longer_prompts),
    Kind("longer_outputs", "R30", _longer_outputs),
    Kind("load_above_capacity", "R23", _above_capacity, "queue"),
    Kind("drafts_at_high_load", "compute_bound", _drafts),
    Kind("more_devices_little_gain", "tp_fixed_cost", _more_devices),
    Kind("more_devices_slow_links", "tp_communication", _slow_links),
    Kind("client_delay", "client_host_slow", _client_delay, "client"),
    Kind("front_end_delay", "R03", _front_end_delay),
    Kind("cold_start", "R06", _cold),
    Kind("stream_gathered", "R22", _gathered, "transport"),
    Kind("strangers_prompts", "prefill_interference", _strangers),
    Kind("decode_kernel_slower", "decode_kernel", _decode_kernel),
    Kind("prompt_kernel_slower", "prefill_kernel", _prompt_kernel),
    Kind("prompts_on_host", "prefill_on_cpu", _prompts_on_host),
    Kind("weights_expanded_in_prefill", "dequant_in_prefill", _expanded_weights),
    Kind("cache_quantised_in_prefill", "kv_quantisation_cost_in_prefill", _quantised_cache),
    Kind("weights_offloaded", "cpu_offload", _offloaded),
)  # fmt: skip
