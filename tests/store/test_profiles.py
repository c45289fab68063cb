"""Profiles: the catalog's are read-only and follow the catalog, users' are theirs."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import Session

from app.domain.architecture import dense
from app.domain.engine import EngineProfile
from app.domain.errors import UnknownName
from app.domain.hardware import HardwareProfile, Provenance
from app.domain.plain import to_plain
from app.store.database import Database
from app.store.model_data import read_architecture
from app.store.profiles import ENGINES, HARDWARE, MODELS, NewProfile, Profile, Profiles, ReadOnlyProfile, SlugTaken, Synchronised

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
DEVICE = HardwareProfile(
    slug="x1",
    name="X1",
    vendor="Acme",
    bandwidth_bytes_per_s=1e12,
    peak_flops_per_s={"bf16": 1e14},
    aliases=("x-one",),
    provenance={"bandwidth_bytes_per_s": Provenance("one-source", "data sheet")},
)
MODEL = dense("M", "llama", layers=2, hidden=8, heads=2, kv_heads=1, head_dim=4, intermediate=16, vocab=32, notes=("a note",))
ENGINE = EngineProfile(slug="e", name="E", itl_range=(0.8, 1.3))


def new(slug: str = "x1", **changes: Any) -> NewProfile[HardwareProfile]:
    return replace(NewProfile(slug, slug.upper(), replace(DEVICE, slug=slug), ("x-one",)), **changes)


@pytest.mark.parametrize(("profiles", "data"), [(HARDWARE, DEVICE), (MODELS, MODEL), (ENGINES, ENGINE)])
def test_a_profile_of_any_kind_comes_back_equal(database: Database, profiles: Profiles[Any], data: Any) -> None:
    with database.write() as session:
        created = profiles.create(session, NewProfile("a", "A", data, ("b",), {"model_type": "llama", "x": [1.5]}, "mine"), NOON)
    assert created == Profile("a", "A", "user", data, ("b",), {"model_type": "llama", "x": [1.5]}, "mine", NOON, NOON)
    with database.read() as session:
        assert profiles.get(session, "a") == created
        assert profiles.require(session, "a") == created
        assert profiles.all(session) == (created,)
        assert [other.get(session, "a") for other in (HARDWARE, MODELS, ENGINES) if other is not profiles] == [None, None]


def test_all_are_listed_by_name(database: Database) -> None:
    with database.write() as session:
        for slug, name in (("1", "b"), ("2", "a"), ("3", "c")):
            HARDWARE.create(session, new(slug, name=name), NOON)
    with database.read() as session:
        assert [profile.slug for profile in HARDWARE.all(session)] == ["2", "1", "3"]


def test_a_slug_is_taken_once(database: Database) -> None:
    with database.write() as session:
        HARDWARE.create(session, new(), NOON)
    with pytest.raises(SlugTaken, match="“x1” already"), database.write() as session:
        HARDWARE.create(session, new(), NOON)


def test_many_at_once_take_a_slug_once(database: Database) -> None:
    def create(_: int) -> bool:
        try:
            with database.write() as session:
                HARDWARE.create(session, new(), NOON)
        except SlugTaken:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(create, range(6))) == [False] * 5 + [True]


def test_an_unknown_slug_names_the_closest(database: Database) -> None:
    with database.write() as session:
        HARDWARE.create(session, new("h100-sxm5-80gb"), NOON)
        with pytest.raises(UnknownName, match="the closest are h100-sxm5-80gb") as unknown:
            HARDWARE.require(session, "h100-sxm-80gb")
        assert unknown.value.near == ("h100-sxm5-80gb",)
        with pytest.raises(UnknownName, match=r"no hardware profile “zzz”\."):
            HARDWARE.delete(session, "zzz")
        with pytest.raises(UnknownName):
            HARDWARE.update(session, "\x00\ud800", new(), NOON)


def test_a_users_profile_is_changed_and_deleted(database: Database) -> None:
    with database.write() as session:
        HARDWARE.create(session, new(source={"a": 1}), NOON)
    with database.write() as session:
        changed = HARDWARE.update(session, "x1", new(name="Other", data=replace(DEVICE, tdp_w=700.0), aliases=(), notes="n"), LATER)
    assert (changed.name, changed.data.tdp_w, changed.aliases, changed.source, changed.notes) == ("Other", 700.0, (), None, "n")
    assert (changed.created_at, changed.updated_at, changed.read_only) == (NOON, LATER, False)
    with database.write() as session:
        HARDWARE.delete(session, "x1")
    with database.read() as session:
        assert HARDWARE.get(session, "x1") is None


def test_a_shipped_profile_is_read_only_and_can_be_cloned(database: Database) -> None:
    with database.write() as session:
        HARDWARE.synchronise(session, [new()], NOON)
        shipped = HARDWARE.require(session, "x1")
        assert shipped.read_only
        with pytest.raises(ReadOnlyProfile, match="clone it"):
            HARDWARE.update(session, "x1", new(), LATER)
        with pytest.raises(ReadOnlyProfile, match="clone it"):
            HARDWARE.delete(session, "x1")
        copy = HARDWARE.clone(session, "x1", "x1-lab", "X1 lab", LATER)
        with pytest.raises(SlugTaken):
            HARDWARE.clone(session, "x1", "x1-lab", "again", LATER)
    # Names that mean the original do not come to mean the copy.
    assert copy.data == replace(DEVICE, slug="x1-lab", name="X1 lab", aliases=())
    assert (copy.slug, copy.name, copy.origin, copy.aliases, copy.created_at) == ("x1-lab", "X1 lab", "user", (), LATER)


def test_a_model_is_cloned_though_it_has_no_slug_of_its_own(database: Database) -> None:
    with database.write() as session:
        MODELS.create(session, NewProfile("m", "M", MODEL, source={"hidden_size": 8}), NOON)
        copy = MODELS.clone(session, "m", "m2", "M2", LATER)
    assert (copy.data, copy.source) == (replace(MODEL, name="M2"), {"hidden_size": 8})


def _synchronise(session: Session, entries: list[NewProfile[HardwareProfile]], now: datetime) -> Synchronised:
    return HARDWARE.synchronise(session, entries, now)


def test_the_catalog_is_followed_and_users_are_left_alone(database: Database) -> None:
    with database.write() as session:
        HARDWARE.create(session, new("mine"), NOON)
        assert _synchronise(session, [new("a"), new("b"), new("c")], NOON) == Synchronised(("a", "b", "c"), (), (), ())
    with database.write() as session:
        assert _synchronise(session, [new("a"), new("b"), new("c")], LATER) == Synchronised((), (), (), ())
    with database.write() as session:
        changed = _synchronise(session, [new("a"), new("b", notes="new"), new("d"), new("mine", name="theirs")], LATER)
    assert changed == Synchronised(("d",), ("b",), ("c",), ("mine",))
    with database.read() as session:
        rows = {profile.slug: profile for profile in HARDWARE.all(session)}
        assert HARDWARE.of_users(session) == (rows["mine"],)
    assert rows.keys() == {"a", "b", "d", "mine"}
    assert (rows["a"].updated_at, rows["b"].updated_at, rows["b"].created_at, rows["b"].notes) == (NOON, LATER, NOON, "new")
    assert (rows["mine"].origin, rows["mine"].name) == ("user", "MINE")


def test_servers_that_start_at_once_load_the_catalog_once(database: Database) -> None:
    entries = [new(str(number)) for number in range(20)]

    def load(_: int) -> int:
        with database.write() as session:
            return len(_synchronise(session, entries, NOON).added)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(load, range(4))) == [0, 0, 0, 20]


def test_a_profile_written_by_another_version_is_read(database: Database) -> None:
    with database.write() as session:
        HARDWARE.create(session, new(), NOON)
        row = HARDWARE._row(session, "x1")
        assert row is not None
        row.data = {key: value for key, value in row.data.items() if key != "notes"} | {"of_the_future": 1}
    with database.read() as session:
        assert HARDWARE.require(session, "x1").data == DEVICE


def test_a_model_stored_before_layers_had_groups_still_loads() -> None:
    flat = {"name": "M", "model_type": "gemma2", "layers": 4, "hidden": 8, "heads": 2, "kv_heads": 1, "head_dim": 4, "intermediate": 16}
    flat |= {"vocab": 32, "gated_mlp": False, "tied_embeddings": True, "sliding_window": 64, "windowed_layers": 2, "notes": ["a note"]}
    flat |= {"norm_parameters_per_layer": 16, "bias_parameters_per_layer": 3, "final_norm_parameters": 8, "of_another_version": 1}
    model = read_architecture(flat)
    assert (model.layers, model.layers_that_see("window"), model.notes) == (4, 2, ("a note",))
    # q and o 128, k and v 64, a plain MLP 256, norms 16, biases 3; one table and a norm
    assert model.parameters == 4 * (128 + 64 + 256 + 16 + 3) + 256 + 8
    assert read_architecture(to_plain(model)) == model
