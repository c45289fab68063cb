"""What the shipped catalog holds: every figure with its origin, names with one meaning, the founding text's two entries exact."""

import io
import re
import time
import tomllib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from app.catalog import FOLDER, build, load, slugify
from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.hardware import LABELS, HardwareProfile, Provenance
from app.domain.schedule import Schedule

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
HARDWARE = tuple(load().hardware.values())
MODELS = tuple(load().models.values())
ENGINES = tuple(load().engines.values())
NOT_FIGURES = {
    "variants",
    "fitted_on",
    "rows",
    "choice",
    "slug",
    "name",
    "vendor",
    "aliases",
    "notes",
    "provenance",
    "link_name",
    "version_notes",
    "cuda_graphs",
    "scalars",
    "calibration",
}


def figures_of(profile: HardwareProfile | EngineProfile) -> dict[str, Any]:
    """Every figure that is known, under the name its provenance has: a field, or field.format."""
    found: dict[str, Any] = {}
    for field in fields(profile):
        value = getattr(profile, field.name)
        if field.name in NOT_FIGURES or value is None or (value == 0.0 and field.name.startswith("prefill_floor_per_")):
            continue
        if isinstance(value, Schedule):
            value = {key: item for key, item in asdict(value).items() if item is not None}
        found |= {f"{field.name}.{key}": item for key, item in value.items()} if isinstance(value, dict) else {field.name: value}
    return found


def test_counts() -> None:
    # 115 devices of the specification table and the textbook one; 122 models, three made up for measuring and the textbook one
    assert len(HARDWARE) == 116
    assert len(MODELS) == 126
    assert {engine.slug for engine in ENGINES} >= {"vllm", "sglang", "tensorrt-llm", "llama-cpp", "transformers", "gpt-fast"}


@pytest.mark.parametrize("profile", [*HARDWARE, *ENGINES], ids=lambda profile: profile.slug)
def test_every_figure_has_a_label_and_a_source(profile: HardwareProfile | EngineProfile) -> None:
    known = figures_of(profile)
    assert set(profile.provenance) == set(known)
    for origin in profile.provenance.values():
        assert origin.label in LABELS
        assert len(origin.source) > 5


@pytest.mark.parametrize("profile", HARDWARE, ids=lambda profile: profile.slug)
def test_figures_of_devices_are_possible(profile: HardwareProfile) -> None:
    assert profile.bandwidth_bytes_per_s > 1e9
    assert profile.peak_flops_per_s
    assert all(rate > 1e9 for rate in profile.peak_flops_per_s.values())
    assert all(rate <= profile.peak_flops_per_s[key] for key, rate in profile.achieved_flops_per_s.items())
    assert all(0 < share <= 1 for share in [*profile.compute_efficiency.values(), *profile.bandwidth_efficiency_by_dtype.values()])
    assert set(profile.compute_efficiency) <= set(profile.peak_flops_per_s)


@pytest.mark.parametrize("profile", HARDWARE, ids=lambda profile: profile.slug)
def test_slug_of_a_device_is_its_name_without_the_vendor(profile: HardwareProfile) -> None:
    if profile.slug == "textbook-h100":
        return
    without_vendor = re.sub(rf"\b{profile.vendor}\b", " ", profile.name, count=1)
    assert profile.slug == slugify(without_vendor)
    assert SLUG.fullmatch(profile.slug)


@pytest.mark.parametrize("entry", MODELS, ids=lambda entry: entry.slug)
def test_slug_of_a_model_is_its_name_without_owner_and_meta(entry: Any) -> None:
    assert entry.slug == slugify(entry.name.split("/")[-1]).removeprefix("meta-")
    assert SLUG.fullmatch(entry.slug)


@pytest.mark.parametrize("entry", MODELS, ids=lambda entry: entry.slug)
def test_parameters_of_a_model_meet_the_counted_ones(entry: Any) -> None:
    assert entry.label in LABELS
    assert entry.source
    assert entry.architecture.name == entry.name
    if entry.slug == "textbook-8b":
        assert entry.exact_parameters is None
        return
    assert entry.exact_parameters_source
    assert entry.architecture.parameters == pytest.approx(entry.exact_parameters, rel=0.005)


def test_the_textbook_device_is_exact() -> None:
    device = load().hardware["textbook-h100"]
    assert device.peak_flops_per_s == {"bf16": 9.89e14}
    assert device.achieved_flops_per_s == {"bf16": 4.2e14}
    assert device.bandwidth_bytes_per_s == 3.35e12
    assert device.achieved_bandwidth_bytes_per_s == 3.35e12
    assert device.memory_bytes is None  # the text does not say
    assert {origin.label for origin in device.provenance.values()} == {"literature"}
    assert (device.compute_efficiency, device.bandwidth_efficiency, device.launch_s) == ({}, None, None)


def test_the_textbook_model_is_eight_billion_on_the_shapes_of_llama() -> None:
    book, llama = (load().models[slug].architecture for slug in ("textbook-8b", "llama-3-1-8b"))
    assert book.parameters == 8_000_000_000
    assert book.native_dtype == "bf16"
    shapes = {field.name for field in fields(ModelArchitecture)} - {"name", "declared_parameters", "notes"}
    assert {name: getattr(book, name) for name in shapes} == {name: getattr(llama, name) for name in shapes}


def test_units_of_a_device_become_si() -> None:
    device = load().hardware["h100-sxm5-80gb"]
    assert device.memory_bytes == 80e9
    assert device.bandwidth_bytes_per_s == 3.35e12  # 3350 GB/s
    assert device.peak_flops_per_s == {"fp32": 67e12, "tf32": 494.5e12, "bf16": 989e12, "fp16": 989e12, "fp8": 1979e12, "int8": 1979e12}
    assert (device.link_name, device.link_bytes_per_s) == ("NVLink4", 450e9)
    assert (device.tdp_w, device.released_year) == (700, 2022)


def test_fits_of_a_device_go_by_number_format() -> None:
    device = load().hardware["b200-sxm-180gb"]
    assert device.compute_efficiency == {"bf16": 0.68, "fp8": 0.42, "fp4": 0.40}
    assert (device.bandwidth_efficiency, device.launch_s) == (0.74, 2e-6)  # those of bf16
    assert device.bandwidth_efficiency_by_dtype == {"bf16": 0.74, "fp8": 0.71, "fp4": 0.59}
    assert device.launch_s_by_dtype == {"bf16": 2e-6, "fp8": 7e-6, "fp4": 7e-6}
    assert device.provenance["compute_efficiency.fp8"].label == "fitted"
    fitted = {profile.slug for profile in HARDWARE if profile.compute_efficiency}
    expected = {"a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm-180gb", "l40s", "rtx-pro-6000-blackwell-server"}
    assert fitted == expected


def test_a_disputed_figure_keeps_its_own_origin() -> None:
    device = load().hardware["rtx-pro-6000-blackwell-server"]
    assert device.provenance["bandwidth_bytes_per_s"].label == "unverified"
    assert "1792" in device.provenance["bandwidth_bytes_per_s"].source
    assert device.provenance["memory_bytes"].label == "one-source"


def test_an_engine_profile_is_in_seconds_and_fractions() -> None:
    engine = load().engines["vllm"]
    assert engine.per_layer_s is not None
    assert engine.step_s is not None
    assert 1e-6 < engine.per_layer_s < 1e-4
    assert 1e-5 < engine.step_s < 5e-3
    assert engine.launch_s == 2e-6
    assert engine.provenance["step_s"].label == "fitted"
    assert f"n = {engine.rows}" in engine.provenance["step_s"].source
    assert engine.provenance["launch_s"] == Provenance("assumed", "held at this value in the fit")
    assert load().engines["sglang"].schedule.alone


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.slug)
def test_variants_have_rows_devices_and_origins_of_their_own(engine: EngineProfile) -> None:
    assert engine.variants
    conditions = [(one.experts, one.weights, one.units, one.device) for one in engine.variants]
    assert len(set(conditions)) == len(conditions)
    for one in engine.variants:
        assert one.profile.rows > 0
        assert one.profile.fitted_on
        assert set(one.profile.fitted_on) <= set(load().hardware)
        assert set(one.profile.provenance) == set(figures_of(one.profile)) - {f"schedule.{key}" for key in asdict(engine.schedule)}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.slug)
def test_shares_of_engines_are_possible(engine: EngineProfile) -> None:
    assert all(0 < share <= 1 for share in engine.weight_bandwidth_efficiency.values())
    assert engine.kv_bandwidth_efficiency is None or 0 < engine.kv_bandwidth_efficiency <= 1
    for band in (engine.itl_range, engine.ttft_range):
        assert band is None or band[0] < 1 < band[1]


def test_loading_reads_the_catalog_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    real = io.open

    def spy(file: Any, *args: Any, **kwargs: Any) -> Any:
        opened.append(Path(file))
        return real(file, *args, **kwargs)

    monkeypatch.setattr(io, "open", spy)
    load.__wrapped__()
    assert sorted(path.name for path in opened) == ["engines.toml", "hardware.toml", "models.toml"]
    assert {path.parent for path in opened} == {FOLDER}


def test_loading_is_quick_and_done_once() -> None:
    def seconds() -> float:
        start = time.process_time()
        load.__wrapped__()
        return time.process_time() - start

    assert min(seconds() for _ in range(3)) < 0.2
    assert load() is load()


def test_the_catalog_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        load().hardware["new"] = load().hardware["l4"]  # type: ignore[index]


def test_no_text_of_the_catalog_names_a_place_of_ours() -> None:
    for path in sorted(FOLDER.glob("*.toml")):
        assert "../" not in path.read_text(encoding="utf-8")


def test_build_gives_what_load_gives() -> None:
    documents = [tomllib.loads((FOLDER / name).read_text(encoding="utf-8")) for name in ("hardware.toml", "models.toml", "engines.toml")]
    assert build(*documents).hardware == load().hardware
