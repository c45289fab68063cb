"""What a person says, cleaned; and that saying it later is the same as having said it with the file."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.errors import InvalidRequest, NotFound
from app.services import runs
from app.services.context import Context
from app.services.identity import said, whole_number
from app.services.storing import store_files
from app.store import run_list
from tests.result_files import served_file

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 30, 12, tzinfo=UTC)
FILE = {"hardware": "an unknown box", "tp": 2, "label": "of the file"}


@pytest.mark.parametrize(("value", "number"), [(1, 1), ("1", 1), (" 4096 ", 4096), ("08", 8)])
def test_a_count_of_devices(value: object, number: int) -> None:
    assert whole_number(value, "tp") == number


@pytest.mark.parametrize("value", [0, -1, 4097, "", "x", "1.0", "1e3", "²", "9" * 5000, None, [], 1.5])
def test_what_is_no_count_is_named(value: object) -> None:
    with pytest.raises(InvalidRequest, match="“tp” must be a whole number from 1 to 4096"):
        whole_number(value, "tp")


def test_an_empty_word_is_there_and_says_nothing() -> None:
    assert said({"model": " a\tb ", "hardware": "", "engine": None, "tp": "4", "pp": "", "kv_dtype": "FP8", "notes": "n"}) == {
        "model": "a b", "hardware": None, "engine": None, "tp": 4, "pp": None, "kv_dtype": "fp8",
    }  # fmt: skip


def stored(context: Context, number: int, fields: dict[str, Any], **changes: Any) -> int:
    """A run of its own from a file that says FILE."""
    outcome = store_files(context, [("a.json", served_file(number, **FILE, **changes))], fields, NOON)
    return outcome.run_ids[0]


def known(context: Context, run_id: int) -> dict[str, Any]:
    """Everything that is shown of a run, and its row in the list with what it is sorted by; without number and file."""
    summary = runs.view(context, run_id).summary()
    with context.database.read() as session:
        (item,) = (each for each in run_list.page(session).items if each.id == run_id)
    row = {name: getattr(item, name) for name in item.__dataclass_fields__ if name not in ("id", "created_at", "happened_at")}
    return {"row": row, **{key: value for key, value in summary.items() if key not in ("id", "url", "labels")}}


OVERRIDES: tuple[dict[str, Any], ...] = (
    {"hardware": "h100-sxm5-80gb"},
    {"hardware": "H100 SXM", "weight_dtype": "fp8", "kv_dtype": "fp8", "tp": 1},
    {"model": "textbook-8b", "hardware": "textbook-h100"},
    {"model": "acme/nothing-known", "engine": "sglang", "devices": 8},
    # A device this slow could not have been that fast: the flag and the withheld figures follow from the words.
    {"hardware": "l4", "model": "llama-3-1-70b", "tp": 1},
    {"pp": 2, "ep": 4, "dp": 2, "label": "a person's"},
)


@pytest.mark.parametrize("fields", OVERRIDES, ids=lambda fields: "+".join(fields))
def test_said_later_is_the_same_as_said_with_the_file(context: Context, fields: dict[str, Any]) -> None:
    fresh, edited = stored(context, 1, fields), stored(context, 2, {})
    before = known(context, edited)
    runs.correct(context, edited, fields, LATER)
    assert known(context, edited) == known(context, fresh)
    # Taken back, everything is the file's again.
    runs.correct(context, edited, dict.fromkeys(fields), LATER)
    assert known(context, edited) == before


def test_impossible_figures_are_flagged_when_the_words_make_them_so(context: Context) -> None:
    run_id = stored(context, 1, {"model": "llama-3-1-8b"})
    assert not runs.view(context, run_id).assessment.flags
    changed = runs.correct(context, run_id, {"model": "llama-3-1-70b", "hardware": "l4", "tp": "1"}, LATER)
    # 140 GB of weights in the 10 ms of a step: 300 GB/s need half a minute for a hundredth of it.
    assert {flag.flag for flag in changed.assessment.flags} == {"impossible_above_roofline"}


def test_file_and_person_are_kept_apart(context: Context) -> None:
    run_id = stored(context, 1, {"hardware": "h100-sxm5-80gb"})
    words = runs.view(context, run_id).summary()["said"]
    assert words["person"] == {"hardware": "h100-sxm5-80gb"}
    assert words["file"] == {
        "model": "meta-llama/Llama-3.1-8B",
        "engine": "vllm",
        "hardware": "an unknown box",
        "tp": 2,
        "label": "of the file",
    }
    after = runs.correct(context, run_id, {"hardware": None, "tp": 4}, LATER)
    assert (after.stored.run.hardware, after.stored.run.tp) == ("an unknown box", 4)
    assert after.summary()["said"]["file"] == words["file"], "what the file says never changes"
    assert after.stored.said_by_person == {"tp": 4}


def test_several_runs_are_corrected_together_or_not_at_all(context: Context) -> None:
    ids = [stored(context, number, {}) for number in range(2)]
    assert [view.stored.run.tp for view in runs.correct_all(context, ids, {"tp": 8}, LATER)] == [8, 8]
    with pytest.raises(NotFound, match="There is no run 999"):
        runs.correct_all(context, [*ids, 999], {"tp": 1}, LATER)
    assert [view.stored.run.tp for view in runs.views(context, ids)] == [8, 8]


def test_where_nobody_noted_what_the_file_says_the_rest_stays(context: Context) -> None:
    run_id = stored(context, 1, {})
    with context.database.write() as session:
        session.connection().exec_driver_sql("UPDATE run SET said_by_file = NULL, said_by_person = NULL")
    changed = runs.correct(context, run_id, {"hardware": "h100-sxm5-80gb"}, LATER)
    assert changed.summary()["said"] == {"file": None, "person": {"hardware": "h100-sxm5-80gb"}}
    assert (changed.stored.run.hardware, changed.stored.run.tp, changed.stored.run.label) == ("h100-sxm5-80gb", 2, "of the file")
    back = runs.correct(context, run_id, {"hardware": None, "tp": 1}, LATER)
    assert (back.stored.run.hardware, back.stored.run.tp) == (None, 1)
