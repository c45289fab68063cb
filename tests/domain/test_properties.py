"""What must hold for every model, device and request: the order of the three times, monotony, and no impossible number."""

import dataclasses
import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.architecture import ModelArchitecture
from app.domain.dtypes import FORMATS
from app.domain.engine import EngineProfile
from app.domain.hardware import HardwareProfile
from app.domain.layers import FULL, Attention, Experts, Latent, LayerGroup, Mlp, Reach, Recurrent
from app.domain.prediction import PassCost, Prediction, Request
from app.domain.request_rules import Load, rules
from app.domain.serving import predict
from app.domain.work import busiest_rank
from tests.domain.subjects import SERVER as LINKED

WEIGHTS = sorted(key for key, form in FORMATS.items() if form.weights)
ACTIVATIONS = sorted(key for key, form in FORMATS.items() if form.activations)
CACHES = sorted(key for key, form in FORMATS.items() if form.kv)


SPANS = st.integers(16, 8192)
REACHES = st.just(FULL) | st.builds(Reach, st.just("window"), SPANS)


@st.composite
def mixers(draw: st.DrawFn) -> dict[str, Any]:
    """Grouped attention with or without a window and a gate, latent attention plain or sparse, a recurrent state, or two side by side."""
    kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    heads = kv_heads * draw(st.sampled_from([1, 2, 4, 8]))
    size = draw(st.sampled_from([32, 64, 128, 256]))
    attention = Attention(
        heads,
        kv_heads,
        size,
        reach=draw(REACHES),
        gate=draw(st.sampled_from([0, heads, heads * size])),
        keys_as_values=draw(st.booleans()),
        own_cache=draw(st.sampled_from([True, True, False])),
    )
    top = draw(st.none() | SPANS)
    latent = Latent(
        2 * draw(st.integers(1, 64)),
        draw(st.sampled_from([0, 512, 1536])),
        draw(st.sampled_from([128, 512])),
        128,
        64,
        128,
        top_k=top,
        index_heads=0 if top is None else draw(st.sampled_from([0, 32])),
        index_dim=0 if top is None else 128,
    )
    inner = 2 * draw(st.integers(4, 8192))
    recurrent = Recurrent("any", inner, 3 * inner, inner * 16, inner * 3, inner * 100, inner * 8, draw(st.sampled_from([0, 64])), 16)
    kind = draw(st.sampled_from(["attention", "attention", "latent", "recurrent", "side by side"]))
    return {
        "attention": {"attention": attention},
        "latent": {"latent": latent},
        "recurrent": {"recurrent": recurrent},
        "side by side": {"attention": attention, "recurrent": recurrent},
    }[kind]


@st.composite
def feed_forwards(draw: st.DrawFn) -> dict[str, Any]:
    """A dense MLP, a mixture of experts with or without a shared one or a narrower width, both, or none."""
    gated = draw(st.booleans())
    mlp = Mlp(draw(st.integers(8, 60_000)), gated)
    count = 2 ** draw(st.integers(1, 9))
    experts = Experts(
        count,
        draw(st.integers(1, count)),
        draw(st.integers(8, 8192)),
        gated,
        draw(st.sampled_from([0, 1024])),
        draw(st.sampled_from([None, 512])),
        draw(st.sampled_from([0, 100])),
        draw(st.sampled_from([0, 100])),
    )
    kind = draw(st.sampled_from(["mlp", "experts", "both", "none"]))
    return {"mlp": {"mlp": mlp}, "experts": {"experts": experts}, "both": {"mlp": mlp, "experts": experts}, "none": {}}[kind]


@st.composite
def architectures(draw: st.DrawFn) -> ModelArchitecture:
    """A model of any size: one to three groups of layers, each of any build."""
    groups = [
        LayerGroup(
            draw(st.integers(1, 60)),
            **draw(mixers()),
            **draw(feed_forwards()),
            norm_parameters=draw(st.integers(0, 40_000)),
            side_input=draw(st.sampled_from([0, 0, 64])),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return ModelArchitecture(
        name="any",
        model_type="any",
        hidden=draw(st.integers(8, 16384)),
        vocab=draw(st.integers(100, 300_000)),
        groups=tuple(groups),
        tied_embeddings=draw(st.booleans()),
        final_norm_parameters=draw(st.integers(0, 16384)),
        looked_up_parameters=draw(st.sampled_from([0, 10_000])),
        position_parameters=draw(st.sampled_from([0, 10_000])),
        experts_alone_quantised=draw(st.booleans()),
    )


def shares() -> st.SearchStrategy[float]:
    return st.floats(0.05, 1.0)


@st.composite
def devices(draw: st.DrawFn) -> HardwareProfile:
    """From a single-board computer to beyond today's largest: bf16 or fp16 or fp32 only, narrow units or none, fits or none."""
    peak = 10 ** draw(st.floats(10.5, 16))
    floats = draw(
        st.sampled_from([("bf16", "fp16", "fp32"), ("fp16", "fp32"), ("fp32",), ("bf16", "fp16", "tf32", "fp32", "fp8", "fp4", "int8")])
    )
    ratio = {"fp32": 0.1, "tf32": 0.5, "fp8": 2.0, "int8": 2.0, "fp4": 4.0}
    peaks = {key: peak * ratio.get(key, 1.0) for key in floats}
    return HardwareProfile(
        slug="any",
        name=draw(st.sampled_from(["Any", "Any GeForce"])),
        vendor="Test",
        bandwidth_bytes_per_s=10 ** draw(st.floats(10, 13.5)),
        peak_flops_per_s=peaks,
        memory_bytes=draw(st.none() | st.floats(1e9, 1e12)),
        driver_memory_bytes=draw(st.none() | st.floats(1e9, 1e12)),
        achieved_flops_per_s={"bf16": peak * draw(shares())} if draw(st.booleans()) else {},
        compute_efficiency={draw(st.sampled_from(floats)): draw(shares())} if draw(st.booleans()) else {},
        bandwidth_efficiency=draw(st.none() | shares()),
        launch_s=draw(st.none() | st.floats(0, 1e-4)),
        link_bytes_per_s=10 ** draw(st.floats(9, 12)),
    )


@st.composite
def engines(draw: st.DrawFn) -> EngineProfile | None:
    """No engine, or one with any mixture of figures, also ones that would beat the device."""
    if draw(st.booleans()):
        return None
    return EngineProfile(
        slug="any",
        name="Any",
        weight_bandwidth_efficiency=draw(
            st.dictionaries(st.sampled_from(["any", "16bit", "8bit", "4bit"]), st.floats(0.05, 1.5), max_size=2)
        ),
        kv_bandwidth_efficiency=draw(st.none() | st.floats(0.05, 1.5)),
        compute_efficiency=draw(st.dictionaries(st.sampled_from(["any", "16bit", "8bit", "4bit"]), st.floats(0.05, 1.5), max_size=2)),
        launch_s=draw(st.none() | st.floats(0, 1e-4)),
        per_layer_s=draw(st.none() | st.floats(0, 1e-4)),
        step_s=draw(st.none() | st.floats(0, 1e-2)),
        per_sequence_s=draw(st.none() | st.floats(0, 1e-4)),
        prefill_floor_per_layer_s=draw(st.sampled_from([0.0, 1e-4])),
        prefill_floor_per_expert_layer_s=draw(st.sampled_from([0.0, 3e-3])),
        admission_steps=draw(st.none() | st.floats(0, 60)),
        admission_running_power=draw(st.none() | st.floats(0, 1)),
        admission_devices_power=draw(st.none() | st.floats(0, 1)),
        expert_bandwidth_efficiency=draw(st.dictionaries(st.sampled_from(["any", "nvfp4", "4bit"]), st.floats(0.05, 1.5), max_size=2)),
        expert_compute_efficiency=draw(st.dictionaries(st.sampled_from(["any", "fp8_block", "8bit"]), st.floats(0.05, 1.5), max_size=2)),
        alu_operations_per_weight=draw(st.dictionaries(st.sampled_from(["any", "4bit"]), st.floats(0, 60), max_size=2)),
        attention_limit=draw(st.none() | st.floats(0.05, 1.5)),
        expert_traffic=draw(st.none() | st.floats(0, 40)),
        per_expert_layer_s=draw(st.none() | st.floats(0, 1e-4)),
        recurrent_layer_s=draw(st.none() | st.floats(0, 1e-4)),
        serial_front_end_s=draw(st.none() | st.floats(0, 0.1)),
        send_s=draw(st.none() | st.floats(0, 1e-4)),
        fill_tokens=draw(st.none() | st.floats(0, 500)),
        micro_batch_tokens=draw(st.none() | st.sampled_from([512.0, 2048.0])),
        cuda_graphs=draw(st.booleans()),
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    prompt = draw(st.integers(1, 200_000))
    load = draw(st.sampled_from(["batch", "concurrency"]))
    count = draw(st.integers(1, 2000))
    return Request(
        prompt_tokens=prompt,
        output_tokens=draw(st.integers(1, 5000)),
        batch=count if load == "batch" else 1,
        concurrency=count if load == "concurrency" else None,
        cached_prefix_tokens=draw(st.integers(0, prompt - 1)),
        weight_dtype=draw(st.sampled_from(WEIGHTS)),
        activation_dtype=draw(st.sampled_from(ACTIVATIONS)),
        kv_dtype=draw(st.sampled_from(CACHES)),
        calibration=draw(st.sampled_from(["default", "textbook"])),
    )


def numbers_of(cost: PassCost) -> list[float]:
    plain = [value for key, value in vars(cost).items() if key not in ("bound", "terms")]
    return plain + [value for term in cost.terms for value in (term.flops, term.bytes, term.time_s)]


def passes(found: Prediction) -> tuple[PassCost, PassCost]:
    return found.prefill, found.decode


def placed(model: ModelArchitecture, request: Request, **sizes: int) -> Request:
    """The request on as many devices as the model can be spread over, at most those asked for."""
    sizes["pp"] = min(sizes.get("pp", 1), model.layers)
    fitting = dataclasses.replace(request, **sizes)
    load = Load.of(fitting)
    broken = {rule.field for rule in rules(model, LINKED, "default") if bool(np.any(rule.broken(load)))} & set(sizes)
    return placed(model, request, **{**sizes, **dict.fromkeys(broken, 1)}) if broken else fitting


@settings(max_examples=200, deadline=None)
@given(
    architectures(),
    devices(),
    engines(),
    requests(),
    st.sampled_from([1, 2]),
    st.integers(1, 3),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 3),
)
def test_three_times_in_their_order_and_no_impossible_number(
    model: ModelArchitecture,
    device: HardwareProfile,
    engine: EngineProfile | None,
    request: Request,
    tp: int,
    pp: int,
    ep: int,
    dp: int,
) -> None:
    found = predict(model, device, placed(model, request, tp=tp, pp=pp, ep=ep, dp=dp), engine=engine)
    for cost in passes(found):
        assert 0 < cost.floor_s <= cost.attainable_s <= cost.time_s
        assert all(math.isfinite(value) and value >= 0 for value in numbers_of(cost))
        assert sum(term.time_s for term in cost.terms) == cost.time_s
    scalars = (found.ttft_s, found.itl_s, found.total_s, found.request_tokens_per_s, found.aggregate_tokens_per_s, found.ridge_achieved)
    assert all(math.isfinite(value) and value > 0 for value in scalars)
    assert found.itl_range_s[0] <= found.itl_s <= found.itl_range_s[1]
    assert found.ttft_range_s[0] <= found.ttft_s <= found.ttft_range_s[1]
    assert 0 < found.prefill_share <= 1
    assert all(sentence.endswith(".") for sentence in found.assumptions)


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), requests(), st.integers(1, 5000))
def test_more_prompt_never_costs_less(model: ModelArchitecture, device: HardwareProfile, request: Request, more: int) -> None:
    shorter = predict(model, device, request)
    longer = predict(model, device, dataclasses.replace(request, prompt_tokens=request.prompt_tokens + more))
    assert longer.prefill.time_s >= shorter.prefill.time_s * (1 - 1e-12)
    assert longer.prefill.floor_s >= shorter.prefill.floor_s * (1 - 1e-12)
    if request.concurrency is None:  # a longer prompt lets fewer clients run at once
        assert longer.decode.time_s >= shorter.decode.time_s * (1 - 1e-12)


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), requests(), st.integers(1, 500))
def test_more_sequences_never_make_a_pass_cheaper(model: ModelArchitecture, device: HardwareProfile, request: Request, more: int) -> None:
    few = predict(model, device, dataclasses.replace(request, concurrency=None))
    many = predict(model, device, dataclasses.replace(request, concurrency=None, batch=request.batch + more))
    for small, large in zip(passes(few), passes(many), strict=True):
        assert large.time_s >= small.time_s * (1 - 1e-12)
        assert large.flops > small.flops
    keeps = any((group.attention and group.attention.own_cache) or group.latent or group.recurrent for group in model.groups)
    assert (many.memory.kv_bytes > few.memory.kv_bytes) if keeps else (many.memory.kv_bytes == 0)


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), requests())
def test_fewer_bytes_per_weight_never_raise_the_decode_floor(model: ModelArchitecture, device: HardwareProfile, request: Request) -> None:
    """bf16 against weight-only formats, which compute in the same units; the expected time within one class of efficiency."""
    request = dataclasses.replace(request, activation_dtype="bf16", concurrency=None, batch=1)
    wide, half, quarter = (
        predict(model, device, dataclasses.replace(request, weight_dtype=key, moe_dtype=key)) for key in ("bf16", "int8", "int4")
    )
    assert wide.decode.floor_s >= half.decode.floor_s >= quarter.decode.floor_s
    assert half.decode.time_s >= quarter.decode.time_s * (1 - 1e-12)


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), requests(), st.floats(1.01, 4))
def test_a_better_device_is_never_slower(model: ModelArchitecture, device: HardwareProfile, request: Request, factor: float) -> None:
    wider = dataclasses.replace(device, bandwidth_bytes_per_s=device.bandwidth_bytes_per_s * factor)
    stronger = dataclasses.replace(device, peak_flops_per_s={key: rate * factor for key, rate in device.peak_flops_per_s.items()})
    base = predict(model, device, request)
    for better in (predict(model, wider, request), predict(model, stronger, request)):
        for worse_pass, better_pass in zip(passes(base), passes(better), strict=True):
            assert better_pass.time_s <= worse_pass.time_s * (1 + 1e-12)
            assert better_pass.floor_s <= worse_pass.floor_s * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), requests())
def test_two_ranks_carry_half_each(model: ModelArchitecture, device: HardwareProfile, request: Request) -> None:
    """Exactly half where everything is shared, more where a part stands on every rank (latent vectors, routers, one KV head)."""
    request = dataclasses.replace(request, concurrency=None)
    both = placed(model, request, tp=2)
    if both.tp == 1:
        return
    alone, two = predict(model, device, request), predict(model, device, both)
    whole_everywhere = all(
        not (group.latent or group.experts or group.side_input or group.recurrent) and group.attention and group.attention.kv_heads % 2 == 0
        for group in model.groups
    )
    for whole, half in zip(passes(alone), passes(two), strict=True):
        assert whole.flops / 2 * (1 - 1e-12) <= half.flops <= whole.flops
        assert whole.bytes / 2 * (1 - 1e-12) <= half.bytes <= whole.bytes * (1 + 1e-12)
        if whole_everywhere:
            assert half.flops == whole.flops / 2
    assert alone.memory.kv_bytes / 2 <= two.memory.kv_bytes <= alone.memory.kv_bytes
    if whole_everywhere:
        assert two.memory.kv_bytes == alone.memory.kv_bytes / 2


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), requests(), st.integers(1, 3))
def test_a_pass_over_more_expert_ranks_never_does_less_than_its_share(
    model: ModelArchitecture, device: HardwareProfile, request: Request, power: int
) -> None:
    """The busiest of the ranks has at least the mean of tokens and experts, and never more than all of them."""
    ranks = 2**power
    for group in model.groups:
        part = group.experts
        if part is None or part.count % ranks:
            continue
        tokens = float(request.prompt_tokens)
        one, touched_one = busiest_rank(part, tokens, 1.0)
        most, touched = busiest_rank(part, tokens, float(ranks))
        assert one == tokens * part.chosen
        assert one / ranks * (1 - 1e-12) <= most <= one * (1 + 1e-12)
        assert touched_one / ranks * (1 - 1e-12) <= touched <= min(part.count / ranks, touched_one) * (1 + 1e-9) + 1e-9


@settings(max_examples=40, deadline=None)
@given(architectures(), devices(), requests())
def test_the_mean_step_lies_between_the_first_and_the_last(model: ModelArchitecture, device: HardwareProfile, request: Request) -> None:
    found = predict(model, device, request)
    assert found.first_step_s * (1 - 1e-12) <= found.decode.time_s <= found.last_step_s * (1 + 1e-12)
