"""The shipped catalog against the tables it was made from, where they are beside the checkout."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.catalog import differing_shapes, load
from app.domain.configs import from_config
from app.domain.errors import UnsupportedModel

pytestmark = pytest.mark.shared

FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8", "fp4")
STRENGTH = {"unverified": 0, "one-source": 1, "verified-2-sources": 2}
# The table's file of this one lacks the key that the released config has as null, so its class default of 4096 would apply.
# Models of our own making: nobody published a config of them.
OURS = frozenset({"textbook-8b", "tiny-llama-6m", "tiny-llama-25m", "tiny-llama-160m"})
WINDOW_NOT_IN_FILE = {"mistralai__Mistral-7B-Instruct-v0.2.json": ("groups",)}


def rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def number(text: str) -> float | None:
    return float(text) if text else None


def scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def test_every_device_of_the_table_has_equal_figures(shared_dir: Path) -> None:
    by_name = {profile.name: profile for profile in load().hardware.values()}
    table = list(rows(shared_dir / "hardware_specs.csv"))
    assert len(table) == 115
    for row in table:
        profile = by_name[row["hardware"]]
        rates = {name: number(row[f"{name}_tflops"]) for name in FORMATS} | {"int8": number(row["int8_tops"])}
        assert {key: rate / 1e12 for key, rate in profile.peak_flops_per_s.items()} == pytest.approx(
            {key: rate for key, rate in rates.items() if rate is not None}
        ), row["hardware"]
        assert profile.bandwidth_bytes_per_s / 1e9 == pytest.approx(float(row["memory_bandwidth_gbps"]))
        assert scaled(profile.memory_bytes, 1e9) == number(row["memory_gb"])
        assert scaled(profile.link_bytes_per_s, 1e9) == number(row["interconnect_gbps_per_direction"])
        assert (profile.link_name or "-") == (row["interconnect"] or "-")
        assert profile.tdp_w == number(row["tdp_w"])
        assert profile.released_year == number(row["released_year"])
        assert profile.vendor == row["vendor"]


def test_no_figure_is_labelled_surer_than_the_table(shared_dir: Path) -> None:
    by_name = {profile.name: profile for profile in load().hardware.values()}
    for row in rows(shared_dir / "hardware_specs.csv"):
        labels = {origin.label for origin in by_name[row["hardware"]].provenance.values() if origin.label in STRENGTH}
        assert max(STRENGTH[label] for label in labels) <= STRENGTH[row["verification"]], row["hardware"]
        assert row["verification"] in labels, row["hardware"]


@pytest.mark.parametrize("table", ["groundtruth.csv", "serving_measured.csv", "groundtruth_rejected.csv"])
def test_every_device_that_was_measured_is_found(shared_dir: Path, table: str) -> None:
    for words in {row["hardware"] for row in rows(shared_dir / table)}:
        found = load().find_hardware(words)
        assert found is not None, words
        assert found.name == words


def test_every_config_that_can_be_priced_is_an_entry_of_equal_shapes(shared_dir: Path) -> None:
    priced = 0
    for path in sorted((shared_dir / "model_configs").glob("*.json")):
        name = path.stem.replace("__", "/")
        try:
            architecture = from_config(json.loads(path.read_text(encoding="utf-8")), name)
        except UnsupportedModel:
            assert load().find_model(name) is None, name
            continue
        priced += 1
        entry = load().find_model(name)
        assert entry is not None, name
        assert entry.name == name
        assert differing_shapes(entry.architecture, architecture) == WINDOW_NOT_IN_FILE.get(path.name, ())
    assert priced == len(load().models) - len(OURS)


def test_exact_parameters_are_those_of_the_table(shared_dir: Path) -> None:
    line = re.compile(r"\| (\S+)\.json \| ([\d,]+) \| ([\d,]+) \|")
    counted = {}
    for stem, total, vision in line.findall((shared_dir / "model_configs" / "README.md").read_text(encoding="utf-8")):
        counted[stem.replace("__", "/")] = int(total.replace(",", "")) - int(vision.replace(",", ""))
    for entry in load().models.values():
        if entry.slug not in OURS:
            assert entry.exact_parameters == counted[entry.name]


def test_every_alias_of_the_table_finds_its_config_or_nothing(shared_dir: Path) -> None:
    folder = shared_dir / "model_configs"
    for row in rows(folder / "aliases.csv"):
        owner_of_shapes = load().find_model(Path(row["config_file"]).stem.replace("__", "/"))
        found = load().find_model(row["name_in_csv"])
        assert found is owner_of_shapes, row["name_in_csv"]
        if found is not None:
            assert row["name_in_csv"] in (found.name, *found.aliases)
