"""Dataclasses of the domain as plain JSON data and back."""

import json
from dataclasses import dataclass

import pytest

from app.domain.engine import EngineProfile
from app.domain.hardware import HardwareProfile, Provenance
from app.domain.plain import from_plain, to_plain

DEVICE = HardwareProfile(
    slug="x1",
    name="X1",
    vendor="Acme",
    bandwidth_bytes_per_s=1e12,
    peak_flops_per_s={"bf16": 1e14},
    memory_bytes=None,
    aliases=("x-one", "x 1"),
    provenance={"bandwidth_bytes_per_s": Provenance("one-source", "data sheet")},
)


@dataclass(frozen=True)
class Inner:
    n: int


@dataclass(frozen=True)
class Outer:
    pairs: tuple[Inner, ...]
    both: tuple[str, Inner]
    maybe: Inner | None = None


@pytest.mark.parametrize("value", [DEVICE, EngineProfile(slug="e", name="E", itl_range=(0.8, 1.3), launch_s=1e-6)])
def test_profiles_come_back_equal_through_json(value: object) -> None:
    assert from_plain(type(value), json.loads(json.dumps(to_plain(value)))) == value


@pytest.mark.parametrize("maybe", [None, Inner(4)])
def test_nested_dataclasses_come_back_as_what_they_were(maybe: Inner | None) -> None:
    value = Outer(pairs=(Inner(1), Inner(2)), both=("a", Inner(3)), maybe=maybe)
    assert from_plain(Outer, json.loads(json.dumps(to_plain(value)))) == value


def test_keys_of_another_version_are_left_out_and_missing_ones_get_their_default() -> None:
    data = to_plain(DEVICE)
    del data["aliases"]
    assert from_plain(HardwareProfile, data | {"of_the_future": 1}).aliases == ()


def test_a_field_without_default_must_be_there() -> None:
    data = to_plain(DEVICE)
    del data["vendor"]
    with pytest.raises(TypeError, match="vendor"):
        from_plain(HardwareProfile, data)
