"""A catalog that contradicts itself does not load, and the message names the entry."""

from typing import Any

import pytest

from app.catalog import Catalog, CatalogFault, build

ORIGIN = {"label": "one-source", "source": "a datasheet"}
ENGINE = {"slug": "quick", "name": "Quick", **ORIGIN}
SHAPES = {"model_type": "llama", "layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "intermediate": 128, "vocab": 100}


def device(slug: str, **changes: Any) -> dict[str, Any]:
    return {"slug": slug, "name": slug.upper(), "vendor": "Maker", "bandwidth_gb_per_s": 100, "tflops": {"bf16": 10}, **ORIGIN, **changes}


def model(slug: str, **changes: Any) -> dict[str, Any]:
    return {"slug": slug, "name": f"owner/{slug}", **SHAPES, **ORIGIN, **changes}


def catalog(devices: Any = (), models: Any = (), engines: Any = ()) -> Catalog:
    return build({"device": list(devices)}, {"model": list(models), "exact_parameters_source": "counted"}, {"engine": list(engines)})


def test_two_models_of_other_shapes_under_one_alias() -> None:
    with pytest.raises(CatalogFault, match=r"model b: 'x/Shared-1B-Instruct' already names a, whose shapes differ in groups"):
        catalog(
            models=[model("a", aliases=["Shared-1B"]), model("b", sliding_window=8, windowed_layers=2, aliases=["x/Shared-1B-Instruct"])]
        )


def test_two_models_of_one_shape_under_one_name_are_ambiguous_too() -> None:
    with pytest.raises(CatalogFault, match=r"model tiny-chat: 'tiny-chat' already names tiny, whose shapes are the same"):
        catalog(models=[model("tiny"), model("tiny-chat")])


def test_a_longer_context_or_another_format_is_no_other_shape() -> None:
    with pytest.raises(CatalogFault, match="whose shapes are the same"):
        catalog(models=[model("tiny", max_positions=1), model("tiny-it", max_positions=2, native_dtype="fp16")])


def test_two_devices_under_one_spelling() -> None:
    with pytest.raises(CatalogFault, match="hardware b: 'Maker-A' already names a"):
        catalog(devices=[device("a", aliases=["maker a"]), device("b", aliases=["Maker-A"])])


def test_two_entries_with_one_slug() -> None:
    with pytest.raises(CatalogFault, match="hardware a: two entries have this slug"):
        catalog(devices=[device("a"), device("a", name="Other")])


def test_an_alias_without_letters() -> None:
    with pytest.raises(CatalogFault, match="hardware a: the spelling '--' has no letter or digit"):
        catalog(devices=[device("a", aliases=["--"])])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "certain"}, "label 'certain' is none of verified-2-sources"),
        ({"source": " "}, "a figure without a source"),
        ({"bandwith": 1}, "unknown key bandwith"),
        ({"tflops": {"bf17": 1}}, "bf17 is no number format"),
        ({"except": [{"figures": ["fp8"], "source": "s"}]}, "an exception for fp8, which the entry does not state"),
        ({"except": [{"figures": ["bf16"]}]}, "source missing"),
        ({"except": [{"figures": ["bf16"], "source": "s", "label": "sure"}]}, "label 'sure' is none of"),
        ({"fit": [{"format": "bf16", "compute_efficiency": 0.8, "bandwidth_efficiency": 0.8, "launch_us": 3}]}, "label None is none of"),
    ],
)
def test_a_device_with_a_faulty_figure(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogFault, match=f"hardware.toml, a: {message}"):
        catalog(devices=[device("a", **changes)])


def test_a_device_without_a_bandwidth() -> None:
    entry = device("a")
    del entry["bandwidth_gb_per_s"]
    with pytest.raises(CatalogFault, match=r"hardware.toml, a: bandwidth_gb_per_s missing"):
        catalog(devices=[entry])


def test_a_model_without_a_shape() -> None:
    entry = model("a")
    del entry["head_dim"]
    with pytest.raises(CatalogFault, match=r"models.toml, a: head_dim missing"):
        catalog(models=[entry])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compute_efficiency": {"2bit": 0.5}}, "compute_efficiency by 2bit; give a number format or a weight-bit class"),
        ({"speed": 2}, "unknown key speed"),
        ({"source": ""}, "a figure without a source"),
        ({"except": [{"figures": ["step"], "source": "s"}]}, "an exception for step, which the entry does not state"),
    ],
)
def test_an_engine_with_a_faulty_figure(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogFault, match=f"engines.toml, quick: {message}"):
        catalog(engines=[{**ENGINE, **changes}])


def test_an_exception_gives_a_figure_its_own_origin() -> None:
    built = catalog(
        devices=[device("a", memory_gb=8, **{"except": [{"figures": ["bandwidth"], "label": "unverified", "source": "hearsay"}]})]
    )
    origins = built.hardware["a"].provenance
    assert (origins["bandwidth_bytes_per_s"].label, origins["bandwidth_bytes_per_s"].source) == ("unverified", "hearsay")
    assert (origins["peak_flops_per_s.bf16"].label, origins["memory_bytes"].source) == ("one-source", "a datasheet")


def test_what_is_not_stated_stays_unknown() -> None:
    profile = catalog(devices=[device("a")]).hardware["a"]
    assert (profile.memory_bytes, profile.link_name, profile.link_bytes_per_s, profile.tdp_w, profile.released_year) == (None,) * 5
    assert profile.peak("fp8") is None
    assert set(profile.provenance) == {"bandwidth_bytes_per_s", "peak_flops_per_s.bf16"}
