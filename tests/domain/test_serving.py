"""One prediction in `default` and `textbook` mode: its parts, its levers, its sentences, and what is refused."""

import dataclasses
import math

import pytest

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.layers import Attention, LayerGroup, Mlp
from app.domain.phases import Question, decode_step_s
from app.domain.prediction import Prediction, Request
from app.domain.request_rules import Load
from app.domain.serving import MODEL_VERSION, predict
from tests.domain.subjects import ENGINE, LLAMA_8B, ONLY_FP32, PENCIL, SERVER, TEXTBOOK_8B, TEXTBOOK_H100, TINY, WINDOWED


def ask(
    model: ModelArchitecture = LLAMA_8B, hardware: HardwareProfile = SERVER, engine: EngineProfile | None = None, **changes: object
) -> Prediction:
    return predict(model, hardware, Request(**changes), engine=engine)  # type: ignore[arg-type]


def test_the_parts_of_a_request_add_up() -> None:
    found = ask()
    assert found.front_end_s == 0.015
    assert found.ttft_s == found.front_end_s + found.prefill.time_s
    assert found.itl_s == found.decode.time_s
    assert found.total_s == pytest.approx(found.ttft_s + 299 * found.itl_s)
    assert found.prefill_share == pytest.approx(found.prefill.time_s / found.total_s)
    assert (found.prefill.bound, found.decode.bound) == ("compute", "memory")
    assert found.first_step_s < found.decode.time_s < found.last_step_s
    assert found.model_version == MODEL_VERSION
    assert found.attention_beside is None


@pytest.mark.parametrize("model", [LLAMA_8B, WINDOWED])
def test_the_mean_step_costs_the_mean_of_the_steps(model: ModelArchitecture) -> None:
    # WINDOWED's window of 1,024 is reached at step 24 of 99
    request = Request(prompt_tokens=1000, output_tokens=100, batch=4)
    question = Question.of(model, SERVER, request, Load.of(request), None)
    steps = [float(decode_step_s(question, 4.0, float(step))) for step in range(1, 100)]
    found = predict(model, SERVER, request)
    assert found.decode.time_s == pytest.approx(math.fsum(steps) / 99, rel=1e-12)
    assert (found.first_step_s, found.last_step_s) == (pytest.approx(steps[0]), pytest.approx(steps[-1]))


def test_decode_of_the_eight_billion_model_by_hand() -> None:
    # e_b 0.86: weights 2*7,504,924,672 bytes less the norms' in the GEMMs, KV 2150*131072 bytes at 0.85, launches 129*3 us,
    # 32 layers of 20 us, scheduler 0.505 ms
    decode = ask().decode
    weights = sum(term.time_s for term in decode.terms if term.part == "weights")
    assert weights == pytest.approx(15.01e9 / (0.86 * 3.35e12), rel=0.002)
    assert decode.part_s("kv") == pytest.approx(2150 * 131072 / (0.85 * 3.35e12))
    assert decode.part_s("overhead") == pytest.approx(129 * 3e-6 + 32 * 20e-6 + 505e-6, rel=0.002)
    assert decode.time_s == pytest.approx(6.84e-3, rel=0.01)


def test_a_cached_prefix_is_context_and_not_work() -> None:
    whole, cached = ask(), ask(cached_prefix_tokens=1500)
    assert cached.prefill.time_s < whole.prefill.time_s
    assert cached.itl_s == whole.itl_s
    attention = {term.name: term for term in cached.prefill.terms}["attention"]
    # 500 new tokens see the 1,500 before them: 500*1500 + 500*501/2 pairs, 4*4096*32 FLOPs each; all 2,000 positions are read
    assert attention.flops == 4 * 4096 * 32 * (500 * 1500 + 500 * 501 / 2)
    assert attention.bytes == 2000 * 131072


def test_prefill_of_a_batch_computes_every_sequence() -> None:
    one, many = ask(), ask(batch=8)
    assert many.prefill.flops == pytest.approx(8 * one.prefill.flops)
    assert many.aggregate_tokens_per_s == pytest.approx(8 / many.itl_s)
    assert many.itl_s < 2 * one.itl_s


def test_a_window_bounds_what_a_long_context_costs() -> None:
    near, far = (ask(WINDOWED, prompt_tokens=prompt).decode for prompt in (4000, 40_000))
    terms = {term.name: term for term in far.terms}
    assert terms["window_attention"].time_s == {term.name: term for term in near.terms}["window_attention"].time_s
    assert terms["attention"].time_s > 9 * {term.name: term for term in near.terms}["attention"].time_s


def test_tensor_parallel_halves_the_bytes_and_adds_collectives() -> None:
    one, two = ask(), ask(tp=2)
    assert two.decode.part_s("weights") == pytest.approx(one.decode.part_s("weights") / 2, rel=0.01)
    assert [term.name for term in two.decode.terms if term.part == "communication"] == ["all_reduce"]
    # 64 all-reduces of one round, 2.5 us, and 2*(1/2)*4096*2 bytes over 0.75 of the link
    assert two.decode.comm_s == pytest.approx(64 * (2.5e-6 + 8192 / (0.75 * 4.5e11)))
    assert two.memory.weight_bytes == one.memory.weight_bytes / 2


def test_pipeline_stages_follow_one_another() -> None:
    one, two = ask(), ask(pp=2)
    assert two.decode.time_s == pytest.approx(one.decode.time_s + 2.5e-6 + 8192 / (0.75 * 4.5e11))
    assert two.memory.weight_bytes == one.memory.weight_bytes / 2
    assert any("pipeline stages one after another" in sentence for sentence in two.assumptions)


def test_continuous_batching_adds_the_prefills_of_the_others() -> None:
    alone, loaded = ask(concurrency=1), ask(concurrency=16)
    assert alone.interference_s == 0
    assert alone.itl_s == ask().itl_s
    step = 0.5e-3 + 5e-6
    weights = 2 * LLAMA_8B.decode_weight_parameters / (0.86 * 3.35e12)  # what the decode step reads anyway
    assert loaded.interference_s == pytest.approx(15 / 300 * (loaded.prefill.time_s - step - weights))
    assert loaded.itl_s == loaded.decode.time_s + loaded.interference_s
    assert loaded.prefill.flops == alone.prefill.flops  # a client's own prompt
    assert loaded.aggregate_tokens_per_s == pytest.approx(16 / loaded.itl_s)
    assert loaded.ttft_s == loaded.front_end_s + loaded.queue_s + loaded.prefill.time_s
    assert any("queue in TTFT" in sentence for sentence in loaded.assumptions)


def test_a_pipeline_splits_a_served_load_over_its_stages() -> None:
    loaded, split = ask(concurrency=16), ask(concurrency=16, pp=2)
    eight = ask(batch=8, pp=2)
    assert split.decode.time_s == pytest.approx(eight.decode.time_s)
    assert split.interference_s == pytest.approx(loaded.interference_s / 2, rel=0.01)


def test_more_clients_than_fit_wait_and_it_is_said() -> None:
    many = ask(concurrency=5000)
    assert many.memory.fits is False
    assert many.memory.max_batch is not None
    assert many.served is not None
    # On average half of each answer is in the pool: more run than fit at full length.
    assert many.served.running == pytest.approx(many.memory.max_batch * 2300 / 2150, rel=0.01)
    assert many.aggregate_tokens_per_s == pytest.approx(many.served.running / many.itl_s)
    assert many.queue_s > (5000 / many.served.running - 1) * 300 * many.itl_s * 0.99
    assert any(f"{int(many.served.running)} of 5000 sequences run on average" in sentence for sentence in many.assumptions)


def test_an_engine_brings_its_own_figures_and_band() -> None:
    found = ask(engine=ENGINE)
    assert found.front_end_s == 0.045
    assert found.ttft_range_s == (pytest.approx(0.5 * found.ttft_s), pytest.approx(2.0 * found.ttft_s))
    assert found.itl_range_s == (pytest.approx(0.8 * found.itl_s), pytest.approx(1.25 * found.itl_s))
    assert found.decode.part_s("overhead") == pytest.approx(129 * 2e-6 + 32 * 23e-6 + 1.6e-3 + 53e-6, rel=0.002)
    assert any("engine profile Served" in sentence for sentence in found.assumptions)


def test_an_unknown_engine_gives_a_wide_band_that_stops_at_the_floor() -> None:
    found = ask()
    assert found.itl_range_s[1] == pytest.approx(1.5 * found.itl_s)
    assert found.ttft_range_s[1] == pytest.approx(2 * found.ttft_s)
    assert found.ttft_range_s[0] == found.prefill.floor_s > found.ttft_s / 2
    assert found.itl_range_s[0] == max(found.itl_s / 1.5, found.decode.floor_s)
    assert any("a factor 1.5 on ITL and 2 on TTFT" in sentence for sentence in found.assumptions)


def test_a_class_an_engine_profile_lacks_is_no_silent_loan() -> None:
    partial = EngineProfile("p", "Partial", weight_bandwidth_efficiency={"16bit": 0.9}, compute_efficiency={"16bit": 0.9})
    assert not any("has no bandwidth efficiency" in sentence for sentence in ask(engine=partial).assumptions)
    said = ask(engine=partial, weight_dtype="q4_k_m").assumptions
    assert any("Partial has no bandwidth efficiency for q4_k_m weights" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"weight_dtype": "fp8"}, "Activations are quantised to fp8"),
        ({"weight_dtype": "awq"}, "output matrix stay at 16 bit, as checkpoints in awq keep them"),
        ({"weight_dtype": "int8"}, "output matrix is counted at int8"),
        ({"cached_prefix_tokens": 10}, "10 cached tokens are in memory"),
        ({"prompt_tokens": 200_000}, "longer than the 131072 positions"),
        ({"output_tokens": 1}, "comes out of prefill alone"),
        ({"batch": 100_000}, "do not fit in memory"),
        ({"calibration": "textbook", "tp": 2}, "Communication between devices is left out"),
        ({"calibration": "textbook", "weight_dtype": "nvfp4"}, "scales of nvfp4 are left out"),
        ({"calibration": "textbook"}, "the input embedding table too"),
        ({"calibration": "textbook"}, "0.425 of its peak is assumed"),
    ],
)
def test_what_is_taken_for_granted_is_said(changes: dict[str, object], sentence: str) -> None:
    assert any(sentence in said for said in ask(**changes).assumptions)


def test_an_engine_is_of_no_account_in_textbook_mode() -> None:
    with_engine = predict(LLAMA_8B, SERVER, Request(calibration="textbook", engine="served"), engine=ENGINE)
    without = ask(calibration="textbook")
    assert (with_engine.ttft_s, with_engine.itl_range_s) == (without.ttft_s, without.itl_range_s)
    assert any("engine plays no part" in said for said in with_engine.assumptions)


def test_each_assumption_is_one_sentence_said_once() -> None:
    for found in (ask(), ask(weight_dtype="fp8", concurrency=9, tp=2, pp=2), ask(TEXTBOOK_8B, TEXTBOOK_H100, calibration="textbook")):
        assert len(set(found.assumptions)) == len(found.assumptions)
        assert all(sentence.endswith(".") and "  " not in sentence for sentence in found.assumptions)


def test_a_declared_count_is_not_what_the_operators_see() -> None:
    found = ask(TEXTBOOK_8B)
    assert found.decode.time_s == ask().decode.time_s
    assert any("declared round figure" in sentence for sentence in found.assumptions)


def test_textbook_floor_leaves_out_the_untied_input_table() -> None:
    found = ask(calibration="textbook")
    assert found.decode.bytes == 2 * LLAMA_8B.parameters
    assert found.decode.floor_s == pytest.approx(2 * LLAMA_8B.decode_weight_parameters / 3.35e12)


def test_textbook_with_a_cached_prefix_and_clients() -> None:
    assert ask(calibration="textbook", cached_prefix_tokens=500).prefill.flops == 2 * LLAMA_8B.parameters * 1500
    served = ask(calibration="textbook", concurrency=32)
    assert served.decode.flops == 2 * LLAMA_8B.parameters * 32
    assert served.prefill.flops == 2 * LLAMA_8B.parameters * 2000
    assert served.itl_s == served.decode.attainable_s


REFUSED = [
    ({"prompt_tokens": 0}, "prompt_tokens"),
    ({"prompt_tokens": 10**9}, "prompt_tokens"),
    ({"prompt_tokens": True}, "prompt_tokens"),
    ({"prompt_tokens": 10.5}, "prompt_tokens"),
    ({"prompt_tokens": "2000"}, "prompt_tokens"),
    ({"output_tokens": 0}, "output_tokens"),
    ({"batch": 0}, "batch"),
    ({"batch": -1}, "batch"),
    ({"concurrency": 0}, "concurrency"),
    ({"concurrency": 4, "batch": 2}, "batch"),
    ({"cached_prefix_tokens": -1}, "cached_prefix_tokens"),
    ({"cached_prefix_tokens": 2000}, "cached_prefix_tokens"),
    ({"tp": 0}, "tp"),
    ({"tp": 3}, "tp"),
    ({"pp": 33}, "pp"),
    ({"ep": 2}, "ep"),
    ({"weight_dtype": "bf17"}, "weight_dtype"),
    ({"activation_dtype": "q4_k_m"}, "activation_dtype"),
    ({"kv_dtype": "awq"}, "kv_dtype"),
    ({"calibration": "mine"}, "calibration"),
]


@pytest.mark.parametrize("calibration", ["default", "textbook"])
@pytest.mark.parametrize(("changes", "field"), REFUSED)
def test_a_request_that_cannot_be_priced_is_refused_by_field(changes: dict[str, object], field: str, calibration: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        ask(**{"calibration": calibration, **changes})
    assert refusal.value.field == field
    assert str(refusal.value).startswith(field)
    assert str(refusal.value).endswith(".")


def test_tp_between_divisor_and_multiple_of_the_kv_heads_is_refused() -> None:
    twelve = dataclasses.replace(LLAMA_8B, groups=(LayerGroup(32, Attention(24, 8, 128), mlp=Mlp(14336)),))
    assert ask(twelve, tp=24).memory.fits is True
    with pytest.raises(InvalidRequest, match="KV heads"):
        ask(twelve, tp=12)


@pytest.mark.parametrize("key", ["tp", "pp"])
def test_more_devices_need_a_known_link(key: str) -> None:
    lonely = dataclasses.replace(SERVER, link_bytes_per_s=None)
    with pytest.raises(InvalidRequest, match="states none") as refusal:
        ask(hardware=lonely, **{key: 2})
    assert refusal.value.field == key
    assert ask(hardware=lonely, calibration="textbook", **{key: 2}).itl_s > 0  # textbook arithmetic sends nothing


@pytest.mark.parametrize(
    "changes",
    [
        {"bandwidth_bytes_per_s": 0.0},
        {"bandwidth_bytes_per_s": float("nan")},
        {"peak_flops_per_s": {"bf16": -1.0}},
        {"achieved_flops_per_s": {"bf16": 0.0}},
        {"compute_efficiency": {"bf16": 1.2}},
        {"bandwidth_efficiency": 0.0},
        {"launch_s": -1e-6},
        {"launch_s_by_dtype": {"fp8": 5.0}},
    ],
)
def test_a_device_with_an_impossible_figure_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        ask(hardware=dataclasses.replace(SERVER, **changes))  # type: ignore[arg-type]
    assert refusal.value.field == "hardware"


def test_unknown_memory_and_missing_units_are_said() -> None:
    found = ask(TINY, ONLY_FP32, prompt_tokens=10, output_tokens=2)
    assert found.memory.fits is None
    assert any("memory of Test CPU is not known" in sentence for sentence in found.assumptions)
    assert any("its fp32 rate is taken" in sentence for sentence in found.assumptions)


def test_a_model_that_does_not_fit_is_priced_and_said() -> None:
    found = ask(hardware=PENCIL)
    assert (found.memory.fits, found.memory.max_batch) == (False, 0)
    assert any("Weights and one sequence do not fit" in sentence for sentence in found.assumptions)
