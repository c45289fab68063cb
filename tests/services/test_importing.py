"""What an uploader says, cleaned; and files as outcomes."""

from datetime import UTC, datetime

import pytest

from app.domain.errors import InvalidRequest
from app.services.context import Context
from app.services.importing import Overrides, import_files, overrides_of, tags_of
from app.services.runs import view
from app.services.storing import store_files
from app.settings import Settings
from tests.result_files import served_file

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(("value", "tags"), [
    (None, ()), ("", ()), ("a", ("a",)), ("b,a", ("b", "a")), (" a , a ,, b ", ("a", "b")), (["x", "x", " "], ("x",)), ("a\tb\n", ("a b",)),
    ("a\u202eb", ("ab",)), ("x" * 300, ("x" * 199 + "…",)),
])  # fmt: skip
def test_tags_are_clean_and_each_once(value: str | list[str] | None, tags: tuple[str, ...]) -> None:
    assert tags_of(value) == tags


def test_nothing_said_changes_nothing() -> None:
    assert overrides_of({}) == overrides_of({"model": "", "tp": "", "tags": None, "project": None}) == Overrides()


def test_everything_said_is_cleaned() -> None:
    said = overrides_of({
        "project": " team\x00 ", "model": "a\tb", "hardware": "h", "engine": "e", "weight_dtype": "Q4_K_M", "kv_dtype": "FP8",
            "devices": "8",
        "tp": 4, "label": "l\nm", "tags": "x,y", "notes": "one\ntwo", "unknown": "ignored",
    })  # fmt: skip
    words = {
        "model": "a b",
        "hardware": "h",
        "engine": "e",
        "weight_dtype": "q4_k_m",
        "kv_dtype": "fp8",
        "devices": 8,
        "tp": 4,
        "label": "l m",
    }
    assert said == Overrides("team", words, ("x", "y"), "one\ntwo")


def test_each_file_is_an_outcome_of_its_own(context: Context) -> None:
    outcome = import_files(
        context, [("a.json", served_file(1)), ("b.json", b"{"), ("c.gz", b"\x1f\x8b"), ("", served_file(2))], Overrides(), NOON
    )
    assert outcome.created
    assert [view(context, run_id).stored.upload.name for run_id in outcome.run_ids] == ["a.json", "unnamed"]
    assert [(item.file, item.too_large) for item in outcome.refused] == [("b.json", False), ("c.gz", True)]


def test_files_that_are_here_are_corrected_and_new_ones_are_not_touched_twice(context: Context) -> None:
    first = store_files(context, [("a.json", served_file(1))], {}, NOON)
    both = store_files(context, [("a.json", served_file(1)), ("b.json", served_file(2))], {"hardware": "l4", "label": "", "tags": []}, NOON)
    assert both.created
    assert both.existing_ids == first.run_ids
    assert [view(context, run_id).stored.run.hardware for run_id in both.run_ids] == ["l4", "l4"]
    assert both.warnings[-1] == "The fields given were applied to the runs that exist: hardware."
    untouched = store_files(context, [("a.json", served_file(1))], {"project": "default", "label": ""}, NOON)
    assert not any("applied" in warning for warning in untouched.warnings)


def test_a_field_that_cannot_be_used_stops_before_anything_is_stored(context: Context, settings: Settings) -> None:
    with pytest.raises(InvalidRequest):
        store_files(context, [("a.json", served_file(1))], {"weight_dtype": "fp99"}, NOON)
    assert not store_files(context, [("a.json", served_file(1))], {}, NOON).existing_ids
