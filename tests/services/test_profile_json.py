"""Profiles to and from plain JSON: nothing is lost on the way, and a figure knows where it comes from."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.catalog import load
from app.domain.errors import InvalidRequest
from app.services.local_profiles import local_book
from app.services.predicting import answer, question_of
from app.services.prediction_json import prediction_json
from app.services.profile_json import hardware_from, hardware_json, model_json, slug_of
from app.services.profiles import catalog_book
from tests.services.measured import H100

BOOK = catalog_book(load())
DEVICE: dict[str, Any] = {"name": "Ours", "bandwidth_bytes_per_s": 1e12, "peak_flops_per_s": {"bf16": 1e14}}


@pytest.mark.parametrize("slug", load().hardware)
def test_a_device_survives_the_way_out_and_in(slug: str) -> None:
    profile = load().hardware[slug]
    told = json.loads(json.dumps(hardware_json(profile, "catalog")))
    draft = {key: value for key, value in told.items() if key not in ("slug", "origin", "provenance")}
    again = hardware_json(hardware_from(draft), "catalog")
    differing = {key for key in told if told[key] != again[key]} - {"slug", "provenance"}
    assert differing == set()
    assert all(told["provenance"][key]["label"] for key in told["provenance"])


@pytest.mark.parametrize("slug", ["h100-sxm5-80gb", "b200-sxm-180gb", "textbook-h100", "m2-ultra-76-core-gpu"])
def test_a_prediction_from_an_exported_device_is_the_servers(tmp_path: Path, slug: str) -> None:
    path = tmp_path / "device.json"
    path.write_text(json.dumps(hardware_json(load().hardware[slug], "catalog")))
    book, names = local_book(BOOK, "llama-3-1-8b", str(path))
    values = {"weight_dtype": "bf16" if load().hardware[slug].peak("bf16") else "fp16", "calibration": "default"}
    ours = prediction_json(answer(book, question_of({**names, **values})).prediction)
    theirs = prediction_json(answer(BOOK, question_of({"model": "llama-3-1-8b", "hardware": slug, **values})).prediction)
    assert ours == theirs


def test_a_model_tells_its_shapes_and_what_follows() -> None:
    told = model_json(load().models["llama-3-1-8b"], "catalog")
    assert (told["origin"], told["architecture"]["parameters"]) == ("catalog", 8_030_261_248)
    json.dumps(told)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Our GPU 80GB", "our-gpu-80gb"), ("  --A__b!! ", "a-b"), ("Ünïcode", "n-code"), ("™®", ""), ("../../x", "x"),
        ("x" * 300, "x" * 100),
    ],
)  # fmt: skip
def test_a_slug_is_a_plain_word_of_the_name(name: str, slug: str) -> None:
    assert slug_of(name) == slug


def test_what_a_user_sets_is_the_users_and_what_stays_keeps_its_source() -> None:
    changed = hardware_from({"peak_flops_per_s": {**H100.peak_flops_per_s, "bf16": 9e14}, "tdp_w": None, "link_name": "x"}, H100)
    assert changed.provenance["peak_flops_per_s.bf16"].label == "user"
    assert changed.provenance["peak_flops_per_s.fp8"] == H100.provenance["peak_flops_per_s.fp8"]
    assert changed.provenance["bandwidth_bytes_per_s"] == H100.provenance["bandwidth_bytes_per_s"]
    assert "tdp_w" not in changed.provenance
    same = hardware_from({"bandwidth_bytes_per_s": H100.bandwidth_bytes_per_s, "memory_bytes": H100.memory_bytes}, H100)
    assert same == H100
    own = hardware_from(DEVICE)
    assert {key: item.label for key, item in own.provenance.items()} == {"bandwidth_bytes_per_s": "user", "peak_flops_per_s.bf16": "user"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"colour": "red"}, "colour"),
        ({"bandwidth_bytes_per_s": "fast"}, "bandwidth_bytes_per_s"),
        ({"bandwidth_bytes_per_s": True}, "bandwidth_bytes_per_s"),
        ({"bandwidth_bytes_per_s": float("nan")}, "bandwidth_bytes_per_s"),
        ({"bandwidth_bytes_per_s": float("inf")}, "bandwidth_bytes_per_s"),
        ({"bandwidth_bytes_per_s": 0.5}, "bandwidth_bytes_per_s"),
        ({"memory_bytes": 1e22}, "memory_bytes"),
        ({"peak_flops_per_s": 1e14}, "peak_flops_per_s"),
        ({"peak_flops_per_s": {"bf16": "fast"}}, "peak_flops_per_s.bf16"),
        ({"peak_flops_per_s": {"bf17": 1e14}}, "peak_flops_per_s"),
        ({"bandwidth_efficiency": 1.5}, "bandwidth_efficiency"),
        ({"bandwidth_efficiency": {"bf16": 0.5}}, "bandwidth_efficiency"),
        ({"compute_efficiency": 0.5}, "compute_efficiency"),
        ({"compute_efficiency": {"bf16": 0}}, "compute_efficiency.bf16"),
        ({"launch_s": 1}, "launch_s"),
        ({"name": ""}, "name"),
    ],
)
def test_a_figure_that_cannot_be_used_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        hardware_from({**DEVICE, **changes})
    assert caught.value.field == field
    assert str(caught.value).endswith(".")


def test_memory_that_a_user_states_counts_and_an_unchanged_one_leaves_the_drivers() -> None:
    assert H100.driver_memory_bytes is not None
    assert hardware_from({"memory_bytes": H100.memory_bytes}, H100).capacity_bytes == H100.driver_memory_bytes
    less = hardware_from({"memory_bytes": 6e10}, H100)
    assert (less.capacity_bytes, less.driver_memory_bytes) == (6e10, None)
    both = hardware_from({"memory_bytes": 6e10, "driver_memory_bytes": 5.9e10}, H100)
    assert both.capacity_bytes == 5.9e10
