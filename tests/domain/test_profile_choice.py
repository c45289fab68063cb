"""Which fit of an engine goes for a question, and how wide its ranges are on a device that it has not seen."""

from dataclasses import replace

import pytest

from app.catalog import load
from app.domain.engine import EngineProfile, Variant
from app.domain.prediction import Request
from app.domain.profile_choice import chosen, kind_of_device, narrowest_units
from app.domain.rates import Formats
from app.domain.serving import predict
from tests.domain.subjects import LLAMA_8B, MIXTURE, SERVER

SEEN = replace(SERVER, slug="seen")
BAND = {"itl_range": (0.8, 1.25), "ttft_range": (0.5, 2.0)}


def fit(step_s: float) -> EngineProfile:
    return EngineProfile("", "", step_s=step_s, fitted_on=("seen",), rows=20, **BAND)


ENGINE = replace(
    fit(1e-3),
    slug="x",
    name="X",
    variants=(
        Variant(fit(2e-3), experts=True),
        Variant(fit(3e-3), experts=False, weights=("4bit",)),
        Variant(fit(4e-3), experts=False, weights=("bf16",), units="fp8"),
        Variant(fit(5e-3), experts=False, weights=("bf16",), device="apple"),
    ),
)


@pytest.mark.parametrize(
    ("changes", "mixture", "step_s"),
    [
        ({}, False, 4e-3),
        ({}, True, 2e-3),
        ({"weight_dtype": "awq"}, False, 3e-3),
        ({"weight_dtype": "fp8"}, False, 1e-3),  # no variant: the whole engine's
    ],
)
def test_the_first_variant_whose_conditions_hold(changes: dict[str, str], mixture: bool, step_s: float) -> None:
    model = MIXTURE if mixture else LLAMA_8B
    found = chosen(ENGINE, model, SEEN, Formats.of(Request(**changes), model))
    assert found is not None
    assert (found.slug, found.step_s) == ("x", step_s)
    assert (found.itl_range == (0.8, 1.25)) == (step_s != 1e-3)


def test_an_unseen_device_has_wider_ranges_and_says_so() -> None:
    other = replace(SERVER, slug="other")
    known, unknown = (predict(LLAMA_8B, device, Request(engine="x"), engine=ENGINE) for device in (SEEN, other))
    assert unknown.itl_s == known.itl_s
    # a factor 1.5 more on ITL, 2 on TTFT
    assert unknown.itl_range_s[1] == pytest.approx(1.5 * known.itl_range_s[1])
    assert unknown.ttft_range_s[1] == pytest.approx(2.0 * known.ttft_range_s[1])
    assert any("not among what it was fitted to" in sentence for sentence in unknown.assumptions)
    assert not any("not among what it was fitted to" in sentence for sentence in known.assumptions)
    assert any("dense models" in sentence for sentence in known.assumptions)


def test_a_profile_without_variants_goes_for_all() -> None:
    plain = EngineProfile("y", "Y", step_s=1e-3)
    assert chosen(plain, LLAMA_8B, SEEN, Formats.of(Request(), LLAMA_8B)) is plain
    assert chosen(None, LLAMA_8B, SEEN, Formats.of(Request(), LLAMA_8B)) is None


@pytest.mark.parametrize(
    ("name", "vendor", "kind"),
    [
        ("NVIDIA A100 SXM4 80GB", "NVIDIA", "accelerator"),
        ("NVIDIA A10G", "NVIDIA", "workstation"),
        ("NVIDIA GeForce RTX 4090", "NVIDIA", "consumer"),
        ("NVIDIA RTX A6000", "NVIDIA", "workstation"),
        ("Apple M2 Ultra (76-core GPU)", "Apple", "apple"),
        ("CPU: AMD Ryzen 9 7950X", "AMD", "cpu"),
        ("Intel Core Ultra 7 155H (Arc iGPU)", "Intel", "integrated"),
        ("AMD Radeon 8060S (Strix Halo, Ryzen AI Max+ 395)", "AMD", "integrated"),
    ],
)
def test_kinds_of_devices(name: str, vendor: str, kind: str) -> None:
    assert kind_of_device(replace(SERVER, name=name, vendor=vendor)) == kind


def test_a_generation_is_known_by_its_narrowest_units() -> None:
    assert narrowest_units(replace(SERVER, peak_flops_per_s={"bf16": 1e15, "fp8": 2e15, "fp4": 4e15})) == "fp4"
    assert narrowest_units(replace(SERVER, peak_flops_per_s={"bf16": 1e15})) == "16bit"


def test_a_layer_split_overlaps_its_pieces() -> None:
    pieces = EngineProfile("z", "Z", micro_batch_tokens=512, prefill_floor_per_layer_s=0.0)
    one = predict(LLAMA_8B, SERVER, Request(prompt_tokens=4096, pp=4), engine=replace(pieces, micro_batch_tokens=None))
    split = predict(LLAMA_8B, SERVER, Request(prompt_tokens=4096, pp=4), engine=pieces)
    # 8 pieces through 4 stages take 11 turns instead of 32
    assert split.prefill.time_s == pytest.approx(one.prefill.time_s * 11 / 32)
    assert split.prefill.floor_s <= split.prefill.attainable_s <= split.prefill.time_s
    assert sum(term.time_s for term in split.prefill.terms) == pytest.approx(split.prefill.time_s)
    assert split.itl_s == one.itl_s


def test_weights_that_no_fit_has_seen_take_the_fit_of_the_same_class_of_models() -> None:
    engine = replace(ENGINE, variants=(*ENGINE.variants, Variant(fit(6e-3), experts=False)))
    # The class is the last resort: where a narrower fit holds, that goes.
    for weights, step_s in (("bf16", 4e-3), ("awq", 3e-3), ("fp8", 6e-3)):
        found = chosen(engine, LLAMA_8B, SEEN, Formats.of(Request(weight_dtype=weights), LLAMA_8B))
        assert found is not None
        assert found.step_s == step_s
        # A stand-in's ranges are wider though it has seen the device, and it says what it stands in for.
        assert (found.itl_range == (0.8, 1.25)) == (step_s != 6e-3)
        assert ("not among what it was fitted to" in found.choice) == (step_s == 6e-3)


def test_every_shipped_engine_has_a_fit_for_the_class_of_each_of_its_narrow_ones() -> None:
    for engine in load().engines.values():
        classes = {variant.experts for variant in engine.variants if variant.weights}
        assert classes == {variant.experts for variant in engine.variants if not (variant.weights or variant.units or variant.device)}
