"""The work of experts, latent attention, states and collectives, worked out with a pencil on layers of hidden 8."""

import dataclasses
import math

import numpy as np
import pytest

from app.domain.architecture import ModelArchitecture
from app.domain.dtypes import FORMATS
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.layers import Attention, Experts, Latent, LayerGroup, Mlp, Recurrent
from app.domain.prediction import PassCost, Request
from app.domain.rates import Formats, resolve
from app.domain.roofline import price
from app.domain.serving import predict
from app.domain.work import ElementBytes, OperatorWork, Placement, busiest_rank, operators, pass_numbers
from tests.domain.subjects import HYBRID, MIXTURE, PENCIL, SERVER, SPARSE_LATENT

BYTES = ElementBytes(weight=2, activation=2, kv=2, experts=0.5)


def model(**parts: object) -> ModelArchitecture:
    """Two equal layers of the given parts, hidden 8, vocabulary 32."""
    return ModelArchitecture("pencil", "any", hidden=8, vocab=32, groups=(LayerGroup(2, **parts),))  # type: ignore[arg-type]


def by_name(work: tuple[OperatorWork, ...]) -> dict[str, OperatorWork]:
    return {one.name: one for one in work}


MIXED = model(attention=Attention(4, 2, 2), experts=Experts(4, 2, 16, shared_intermediate=6))


def test_experts_by_hand() -> None:
    # three tokens that each choose two of four: all but (1/2)^3 of the experts are touched, 3.5
    work = by_name(operators(MIXED, pass_numbers(3), BYTES))
    up, down = work["experts_gate_up"], work["experts_down"]
    assert (up.flops, up.weight_bytes) == (2 * 2 * 2 * 8 * 16 * (3 * 2), 2 * 0.5 * 2 * 8 * 16 * 3.5)
    assert (down.flops, down.weight_bytes) == (2 * 2 * 8 * 16 * 6, 2 * 0.5 * 8 * 16 * 3.5)
    # the router stays at 16 bit and sees every token, the shared expert is a plain MLP at the weights' format
    assert (work["router"].flops, work["router"].weight_bytes) == (2 * 2 * 8 * 4 * 3, 2 * 2 * 8 * 4)
    assert work["shared_gate_up"].weight_bytes == 2 * 2 * 8 * 12
    assert work["shared_down"].flops == 2 * 2 * 6 * 8 * 3
    assert (up.kind, work["router"].kind) == ("expert", "linear")


def test_one_token_reads_what_it_goes_through() -> None:
    for subject in (MIXED, MIXTURE, HYBRID, SPARSE_LATENT):
        work = operators(subject, pass_numbers(1, 100), ElementBytes())
        assert sum(float(one.weights) for one in work) == pytest.approx(subject.decode_weight_parameters, rel=1e-12)


def test_tensor_parallel_shares_an_expert_and_expert_parallel_the_experts() -> None:
    alone, shared, apart = (
        by_name(operators(MIXED, pass_numbers(3), BYTES, place)) for place in (Placement(), Placement(tp=2), Placement(tp=2, ep=2))
    )
    assert shared["experts_down"].flops == alone["experts_down"].flops / 2
    assert shared["experts_down"].weight_bytes == alone["experts_down"].weight_bytes / 2
    # of two ranks with two experts each the busiest has 3 + sqrt(2 ln 2 * 3) tokens, 1.75 + sqrt(2 ln 2 * 1.75/8) experts
    most, touched = busiest_rank(Experts(4, 2, 16), 3.0, 2.0)
    assert most == pytest.approx(3 + math.sqrt(2 * math.log(2) * 3))
    assert touched == 2.0  # 1.75 + 0.55 is more than a rank has
    assert apart["experts_down"].flops == pytest.approx(2 * 2 * 8 * 16 * most)
    assert apart["experts_down"].weight_bytes == 2 * 0.5 * 8 * 16 * 2


def test_attention_ranks_see_their_own_sequences_and_experts_all() -> None:
    numbers = pass_numbers(1, 9, batch=6)
    alone, ranks = by_name(operators(MIXED, numbers, BYTES)), by_name(operators(MIXED, numbers, BYTES, Placement(dp=2)))
    assert ranks["qkv"].flops == alone["qkv"].flops / 2
    assert ranks["qkv"].weight_bytes == alone["qkv"].weight_bytes  # every rank holds all attention weights
    assert ranks["attention"].kv_bytes == alone["attention"].kv_bytes / 2
    assert ranks["experts_down"].flops == alone["experts_down"].flops / 2
    assert ranks["shared_down"].weight_bytes == alone["shared_down"].weight_bytes / 2
    # five sequences on two ranks: the fuller one has three
    assert by_name(operators(MIXED, pass_numbers(1, 9, batch=5), BYTES, Placement(dp=2)))["qkv"].flops == ranks["qkv"].flops


LATENT = Latent(heads=4, query_rank=6, kv_rank=5, nope_dim=3, rope_dim=2, value_dim=4)


def test_latent_attention_by_hand() -> None:
    # decode at context 99: 100 pairs and positions; absorbed 2*4*(2*5 + 2) a pair
    work = by_name(operators(model(latent=LATENT), pass_numbers(1, 99), BYTES))
    assert work["latent_attention"].flops == 2 * 2 * 4 * 12 * 100
    assert work["latent_attention"].kv_bytes == 2 * 7 * 2 * 100
    assert work["latent_down"].weights == 2 * 8 * (6 + 7)
    assert work["latent_query"].weights == 2 * 6 * 20
    assert work["latent_up"].weights == 2 * 5 * 28
    # a prompt of 100: 5050 pairs at 3 + 2 + 4 elements, with nothing made again
    prompt = by_name(operators(model(latent=LATENT), pass_numbers(100), BYTES))
    assert prompt["latent_attention"].flops == 2 * 2 * 4 * 9 * 5050
    # two ranks: heads are shared, the latent vectors and the way down are not
    two = by_name(operators(model(latent=LATENT), pass_numbers(1, 99), BYTES, Placement(tp=2)))
    assert two["latent_attention"].flops == work["latent_attention"].flops / 2
    assert two["latent_attention"].kv_bytes == work["latent_attention"].kv_bytes
    assert two["latent_down"].weights == work["latent_down"].weights
    assert two["latent_query"].weights == work["latent_query"].weights / 2


def test_sparse_attention_reads_its_best_and_an_index_of_all() -> None:
    sparse = dataclasses.replace(LATENT, top_k=16, index_heads=2, index_dim=3)
    work = by_name(operators(model(latent=sparse), pass_numbers(1, 99), BYTES))
    assert work["latent_attention"].kv_bytes == 2 * 7 * 2 * 16
    assert work["index"].kv_bytes == 2 * (3 + 4) * 100
    assert work["index"].flops == 2 * 2 * 2 * 3 * 100
    shared = dataclasses.replace(sparse, index_heads=0, index_dim=0)
    assert "index" not in by_name(operators(model(latent=shared), pass_numbers(1, 99), BYTES))


def test_a_state_is_read_and_written_once_a_sequence() -> None:
    mixer = Recurrent("any", inner=16, in_columns=40, state=64, convolution=30, flops=500, vectors=20)
    step = by_name(operators(model(recurrent=mixer), pass_numbers(1, 5000, batch=3), BYTES))["recurrent_state"]
    assert step.kv_bytes == 2 * 2 * (64 * 4 + 30 * 2) * 3
    assert step.flops == 2 * 500 * 3
    prompt = by_name(operators(model(recurrent=mixer), pass_numbers(100, batch=3), BYTES))["recurrent_state"]
    assert (prompt.kv_bytes, prompt.flops) == (step.kv_bytes, 100 * step.flops)
    halves = by_name(operators(model(recurrent=mixer), pass_numbers(1, batch=3), BYTES, Placement(tp=2)))
    assert halves["recurrent_state"].kv_bytes == step.kv_bytes / 2
    assert halves["recurrent_in"].weights == 2 * 8 * 20


def test_a_gate_widens_the_queries_and_keys_may_serve_as_values() -> None:
    plain, gated, same, reader = (
        by_name(operators(model(attention=part), pass_numbers(1, 9), BYTES))
        for part in (
            Attention(4, 2, 2),
            Attention(4, 2, 2, gate=8),
            Attention(4, 2, 2, keys_as_values=True),
            Attention(4, 2, 2, own_cache=False),
        )
    )
    assert gated["qkv"].weights == plain["qkv"].weights + 2 * 8 * 8
    assert same["qkv"].weights == plain["qkv"].weights - 2 * 8 * 4
    assert reader["qkv"].weights == plain["qkv"].weights - 2 * 8 * 8
    assert same["attention"].bytes == reader["attention"].bytes == plain["attention"].bytes


def collectives(cost: PassCost) -> dict[str, float]:
    return {term.name: term.time_s for term in cost.terms if term.part == "communication"}


def test_collectives_by_placement() -> None:
    alpha, bus, hidden = 2.5e-6, 0.75 * 4.5e11, 2880

    def decode(**sizes: int) -> dict[str, float]:
        return collectives(predict(MIXTURE, SERVER, Request(batch=16, weight_dtype="mxfp4", **sizes)).decode)

    # eight devices have heard of one another after three rounds, two after one
    ring = 2 * 7 / 8 * hidden * 2 / bus
    assert decode(tp=8) == {"all_reduce": pytest.approx(72 * (3 * alpha + 16 * ring))}
    # each attention rank alone, then all eight gather and scatter what the experts need
    assert decode(dp=8) == {"all_reduce": 0.0, "gather_scatter": pytest.approx(36 * (3 * alpha + 16 * ring))}
    # experts of their own: each device sends its two tokens to four experts and takes them back
    exchange = decode(dp=8, ep=8)
    assert exchange["gather_scatter"] == 0.0
    assert exchange["all_to_all"] == pytest.approx(36 * (2 * 3 * alpha + 4 * 2 * ring))
    # tp inside a rank reduces the rank's own tokens
    half = 2 * 1 / 2 * hidden * 2 / bus
    assert decode(tp=2, dp=4)["all_reduce"] == pytest.approx(36 * (alpha + 4 * half))


def test_beyond_a_node_the_network_sets_the_pace() -> None:
    small = dataclasses.replace(SERVER, devices_per_node=4)
    with pytest.raises(InvalidRequest, match="network_bytes_per_s") as refusal:
        predict(MIXTURE, small, Request(tp=8))
    assert refusal.value.field == "tp"
    wired = dataclasses.replace(small, network_bytes_per_s=5e10)
    near, far = (predict(MIXTURE, device, Request(tp=8, batch=64)).prefill for device in (SERVER, wired))
    assert far.comm_s > 5 * near.comm_s
    assert predict(MIXTURE, wired, Request(tp=4)).prefill.comm_s == predict(MIXTURE, SERVER, Request(tp=4)).prefill.comm_s
    many = predict(MIXTURE, SERVER, Request(tp=8, dp=2)).assumptions
    assert any("devices_per_node" in sentence for sentence in many)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Request(ep=3, tp=8), "ep"),
        (Request(ep=16, tp=8), "ep"),
        (Request(dp=0), "dp"),
        (Request(ep=0), "ep"),
    ],
)
def test_a_spread_that_cannot_be_is_refused_by_field(request_: Request, field: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        predict(MIXTURE, SERVER, request_)
    assert refusal.value.field == field


def test_ranks_that_share_sequences_have_a_pool_each() -> None:
    one, eight = (predict(MIXTURE, SERVER, Request(weight_dtype="mxfp4", dp=dp)).memory for dp in (1, 8))
    assert eight.max_batch is not None
    assert one.max_batch is not None
    assert eight.max_batch > 8 * one.max_batch  # less of the experts on each device
    assert eight.kv_bytes == one.kv_bytes  # a single sequence lives on one rank


def test_checkpoints_in_four_bits_keep_all_but_the_experts_at_sixteen() -> None:
    nvfp4 = Formats.of(Request(weight_dtype="nvfp4"), HYBRID)
    assert (nvfp4.weight.key, nvfp4.expert.key) == ("bf16", "nvfp4")
    assert Formats.of(Request(weight_dtype="int4"), MIXTURE).weight.key == "bf16"
    assert Formats.of(Request(weight_dtype="int4"), HYBRID).weight.key == "int4"
    assert Formats.of(Request(weight_dtype="fp8"), MIXTURE).expert.key == "fp8"
    chosen = Formats.of(Request(weight_dtype="nvfp4", moe_dtype="fp8"), HYBRID)
    assert (chosen.weight.key, chosen.expert.key) == ("nvfp4", "fp8")
    told = predict(MIXTURE, SERVER, Request(weight_dtype="mxfp4")).assumptions
    assert any(sentence.startswith("Only the experts are kept as mxfp4") for sentence in told)


def test_experts_have_rates_of_their_own() -> None:
    engine = EngineProfile(
        "e",
        "E",
        compute_efficiency={"any": 0.8},
        expert_compute_efficiency={"any": 0.5},
        weight_bandwidth_efficiency={"16bit": 0.9},
        expert_bandwidth_efficiency={"mxfp4": 0.6, "any": 0.7},
    )
    formats = Formats.of(Request(weight_dtype="mxfp4"), MIXTURE)
    rates = resolve(PENCIL, formats, engine)
    assert (rates.weight_efficiency, rates.expert_weight_efficiency) == (0.9, 0.6)  # the format's own figure before the class
    # plain 16-bit products at 0.75, experts that are unpacked first at 0.45, each times the engine's factor
    assert rates.gemm_efficiency == pytest.approx(0.75 * 0.8)
    assert rates.expert_efficiency == pytest.approx(0.45 * 0.5)


def test_fixed_times_of_engines() -> None:
    engine = EngineProfile(
        "e",
        "E",
        per_layer_s=1e-3,
        per_expert_layer_s=2e-3,
        recurrent_layer_s=3e-3,
        launch_s=0.0,
        quantised_launch_s=0.0,
        expert_traffic=8.0,
    )
    terms = {term.name: term.time_s for term in predict(HYBRID, SERVER, Request(), engine=engine).decode.terms}
    assert terms["layer_kernels"] == pytest.approx(48e-3)
    assert terms["expert_layer_kernels"] == pytest.approx(96e-3)
    assert terms["recurrent_layer_kernels"] == pytest.approx(108e-3)
    # one token to ten experts in 48 layers, 2,048 elements each, 8 bytes
    assert terms["expert_traffic"] == pytest.approx(8 * 48 * 10 * 2048 / (0.86 * 3.35e12))


def test_weights_unpacked_on_the_plain_units_take_their_time() -> None:
    engine = EngineProfile("e", "E", alu_operations_per_weight={"4bit": 7.0})
    cost = predict(MIXED, SERVER, Request(weight_dtype="q4_k_m"), engine=engine).decode
    unpacking = {term.name: term.time_s for term in cost.terms}["weight_unpacking"]
    assert unpacking == pytest.approx(7 * MIXED.decode_weight_parameters / 6.7e13)
    assert "weight_unpacking" not in {term.name for term in predict(MIXED, SERVER, Request(), engine=engine).decode.terms}


def test_a_router_and_kept_tables_are_products_at_16_bit() -> None:
    """Server: bf16 9.89e14 at e_c 0.8 and e_b 0.86, fp8 1.979e15 at 0.44 and 0.77, 3.35e12 bytes/s."""
    found = predict(MIXED, SERVER, Request(prompt_tokens=2000, weight_dtype="fp8"))
    prompt, step = ({term.name: term for term in cost.terms} for cost in (found.prefill, found.decode))
    router = 2 * 2 * 8 * 4 * 2000  # two layers, hidden 8 to four experts
    moved = 2 * (2 * 8 * 4 + 2 * (8 + 4) * 2000)
    assert prompt["router"].time_s == pytest.approx(max(router / (0.8 * 9.89e14), moved / (0.86 * 3.35e12)))
    # one read of the output matrix at two bytes, one row in and one row of logits out
    assert step["logits"].bytes == 2 * 8 * MIXED.vocab + 2 * (8 + MIXED.vocab)
    assert step["logits"].time_s == pytest.approx(step["logits"].bytes / (0.86 * 3.35e12))
    assert step["qkv"].time_s == pytest.approx(step["qkv"].bytes / (0.77 * 3.35e12))
    # formats that quantise every matrix read the output matrix in their own bytes
    same = {term.name: term for term in predict(MIXED, SERVER, Request(weight_dtype="int8")).decode.terms}
    assert same["logits"].bytes == 8 * MIXED.vocab + 2 * (8 + MIXED.vocab)


def test_kept_tables_take_their_room_in_memory() -> None:
    """fp8: one byte a weight and one more for both tables, 2 · 8 · vocab; tied tables are one."""
    tables = 2 * 8 * MIXED.vocab
    kept, half = (predict(MIXED, SERVER, Request(weight_dtype=name)).memory.weight_bytes for name in ("fp8", "int8"))
    assert kept == half + tables
    tied = dataclasses.replace(MIXED, tied_embeddings=True)
    one, plain = (predict(tied, SERVER, Request(weight_dtype=name)).memory.weight_bytes for name in ("fp8", "int8"))
    assert one == plain + tables / 2


def test_a_prompt_in_pieces_loses_tokens_in_each() -> None:
    slow = EngineProfile("e", "E", fill_tokens=100, micro_batch_tokens=400)
    plain, cut = (predict(MIXED, SERVER, Request(prompt_tokens=2000), engine=engine).prefill for engine in (EngineProfile("e", "E"), slow))
    products = [term.name for term in plain.terms if term.name in ("qkv", "router", "experts_down")]
    before, after = ({term.name: term for term in cost.terms} for cost in (plain, cut))
    for name in products:
        assert after[name].time_s <= before[name].time_s * 1.25 * (1 + 1e-12)
    assert cut.compute_s > plain.compute_s


def test_rates_may_be_arrays() -> None:
    """A fit prices many settings at once: each the same as alone."""
    numbers, place = pass_numbers(512.0, 100.0, batch=4.0), Placement(tp=2)
    rates = resolve(SERVER, Formats(FORMATS["bf16"], FORMATS["bf16"], FORMATS["bf16"]), None)
    names = ("gemm_efficiency", "expert_weight_efficiency", "per_layer_s", "all_reduce_alpha_s", "prefill_floor_per_layer_s", "fill_tokens")
    settings = {name: np.linspace(0.1, 1.0, 5) * (1e-4 if name.endswith("_s") else 1.0) for name in names}

    def priced(changes: dict[str, object]) -> object:
        work = operators(HYBRID, numbers, ElementBytes(), place)
        return price(
            HYBRID,
            work,
            numbers,
            ElementBytes(),
            dataclasses.replace(rates, **changes),
            0.5,
            place,
            with_prompt=True,  # type: ignore[arg-type]
        ).time_s

    together = priced(dict(settings))
    for place_, value in enumerate(np.asarray(together)):
        assert value == priced({name: float(values[place_]) for name, values in settings.items()})


def test_layers_of_one_part_count_half() -> None:
    halves = ModelArchitecture("m", "m", 8, 32, (LayerGroup(2, Attention(4, 2, 2)), LayerGroup(2, mlp=Mlp(16))))
    assert (halves.layers, halves.depth, halves.mixers, halves.feed_forwards) == (4, 2.0, 2, 2)


def test_pieces_of_a_prompt_are_in_several_stages_at_once() -> None:
    """1,200 tokens in three pieces of 400 are through two stages in four turns of a sixth each, not six: 1.5 times sooner."""
    pieces = EngineProfile("e", "E", micro_batch_tokens=400)
    request = Request(prompt_tokens=1200, pp=2)
    whole, cut = (predict(MIXED, SERVER, request, engine=engine) for engine in (EngineProfile("e", "E"), pieces))
    assert whole.prefill.time_s / cut.prefill.time_s == pytest.approx(1.5)
    assert (cut.prefill.flops, cut.prefill.bytes) == (whole.prefill.flops, whole.prefill.bytes)
    assert cut.decode == whole.decode  # a token has no pieces
    one = dataclasses.replace(request, prompt_tokens=400)
    assert (
        predict(MIXED, SERVER, one, engine=pieces).prefill.time_s
        == predict(MIXED, SERVER, one, engine=EngineProfile("e", "E")).prefill.time_s
    )
    # What a prompt takes from other requests: half of them are in its group and wait until it is through both stages, 1.5 times sooner in
    # pieces, the others for one stage. (1/1.5 + 1/2)/(1 + 1/2); equal requests, whose groups prefill together, wait for a stage.
    engines = EngineProfile("e", "E"), pieces
    load = dataclasses.replace(request, concurrency=8, shortest_length=0.8)
    whole_s, cut_s = (predict(MIXED, SERVER, load, engine=engine).interference_s for engine in engines)
    assert cut_s / whole_s == pytest.approx((1 / 1.5 + 1 / 2) / 1.5)
    equal = dataclasses.replace(load, shortest_length=1.0)
    assert len({predict(MIXED, SERVER, equal, engine=engine).interference_s for engine in engines}) == 1
