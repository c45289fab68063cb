"""Where hints come from, and that nothing rests on one before a person accepts it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.run import Run
from app.domain.suggestion import Suggestion
from app.services import runs
from app.services.context import Context
from app.services.profiles import ProfileBook, catalog_book, create_hardware
from app.services.storing import store_files
from app.services.suggesting import hints, hints_json
from tests.result_files import data_of, served
from tests.services.measured import CATALOG, measured

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def book() -> ProfileBook:
    return catalog_book(CATALOG)


def found(book: ProfileBook, run: Run, name: str = "result.json") -> dict[str, Suggestion]:
    return {each.key: each for each in hints(book, run, name)}


def test_a_file_name_tells_what_the_file_does_not(book: ProfileBook) -> None:
    told = found(book, Run("sglang_bench_serving"), "h200_llama33_70b_tp4_fp8.jsonl")
    assert {key: each.value for key, each in told.items()} == {
        "hardware": "h200-sxm-141gb", "model": "llama-3-1-70b", "tp": 4, "weight_dtype": "fp8",
    }  # fmt: skip
    assert told["hardware"].evidence == ("from the file name: h200",)


def test_folders_labels_and_the_files_own_words_are_places_too(book: ProfileBook) -> None:
    run = Run("f", model="/models/Llama-3.1-8B-Instruct-AWQ-v2", label="sglang nightly", labels={"gpu": "H100", "tensor_parallel": "2"})
    told = found(book, run, "results/8xh100-sxm/run 1.json")
    assert {key: each.value for key, each in told.items()} == {
        "model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "engine": "sglang", "devices": 8, "tp": 2, "weight_dtype": "awq",
    }  # fmt: skip
    assert told["hardware"].evidence == ("from the folder: h100 sxm", "from the label gpu: h100")
    assert told["model"].evidence == ("from the model's words: llama 3 1 8b",)


def test_what_is_known_is_not_suggested(book: ProfileBook) -> None:
    run = measured(devices=1, tp=1, weight_dtype="bf16", engine="vllm")
    assert found(book, run, "h200_llama33_70b_tp4_fp8_8gpu_sglang.json") == {}


def test_words_that_the_catalog_does_not_know_are_open(book: ProfileBook) -> None:
    told = found(book, Run("f", hardware="8 x NVIDIA H100", model="m"))
    assert told["hardware"].candidates == ("h100-nvl-94gb", "h100-pcie-80gb", "h100-sxm5-80gb")
    assert told["hardware"].value is None
    assert told["devices"].value == 8


@pytest.mark.parametrize("key", ["dataset_path", "speculative_config", "draft_model", "random_prefix", "error"])
def test_labels_about_other_things_are_not_heard(book: ProfileBook, key: str) -> None:
    assert found(book, Run("f", labels={key: "llama-3.1-8b h200 fp8"})) == {}


def test_a_users_own_device_is_found(context: Context) -> None:
    create_hardware(context, {"clone_of": "h100-sxm5-80gb", "name": "Rack9 blade"})
    outcome = store_files(context, [("rack9blade_run.json", data_of(served()))], {}, NOON)
    (hint,) = (each for each in runs.view(context, outcome.run_ids[0]).suggestions if each.key == "hardware")
    assert hint.value == "rack9-blade"


def test_json_has_the_candidates_where_there_is_no_value() -> None:
    assert hints_json((Suggestion("tp", None, (2, 4), ("from the label a: tp2", "from the file name: tp4")),)) == [
        {"key": "tp", "value": None, "candidates": [2, 4], "evidence": ["from the label a: tp2", "from the file name: tp4"]}
    ]


def imported(context: Context, name: str, **changes: Any) -> runs.RunView:
    outcome = store_files(context, [(name, data_of(served(**changes)))], {}, NOON)
    return runs.view(context, outcome.run_ids[0])


def test_nothing_rests_on_a_suggestion(context: Context) -> None:
    hinted, plain = imported(context, "h200_tp4_fp8.json"), imported(context, "plain.json", tokenizer_id="other")
    assert {each.key for each in hinted.suggestions} == {"hardware", "tp", "weight_dtype"}
    assert (hinted.stored.run.hardware, hinted.stored.run.tp, hinted.stored.hardware_slug, hinted.stored.mbu) == (None, None, None, None)
    assert hinted.assessment == plain.assessment
    settings = {key: value for key, value in hinted.side().settings.items() if not key.startswith("label")}
    assert settings == {key: value for key, value in plain.side().settings.items() if not key.startswith("label")}


def test_accepted_it_is_a_persons_word(context: Context) -> None:
    hinted = imported(context, "h200_tp4_fp8.json")
    after = runs.correct(context, hinted.id, {each.key: each.value for each in hinted.suggestions}, NOON)
    assert after.stored.said_by_person == {"hardware": "h200-sxm-141gb", "tp": 4, "weight_dtype": "fp8"}
    assert after.suggestions == ()
    assert after.assessment.mbu is not None


def test_a_suggestion_is_accepted_for_every_run_of_the_file_that_has_it(context: Context) -> None:
    lines = b"\n".join(data_of(served(tokenizer_id=str(number), **({"tp": 8} if number == 1 else {}))) for number in range(3))
    ids = store_files(context, [("h200_tp4.jsonl", lines)], {}, NOON).run_ids
    runs.accept_for_file(context, ids[0], {"tp": "4"}, NOON)
    assert [view.stored.run.tp for view in runs.views(context, ids)] == [4, 8, 4], "the file's own word stays"


def test_books_of_the_same_names_share_their_lexicon_and_not_what_they_heard(book: ProfileBook) -> None:
    other = catalog_book(CATALOG)
    assert other.lexicon.device_starts is book.lexicon.device_starts
    hints(other, Run("f"), "a name of its own.json")
    assert any("a name of its own" in text for _, text in other.lexicon.heard)
    assert not any("a name of its own" in text for _, text in catalog_book(CATALOG).lexicon.heard)


def test_a_device_of_ones_own_is_found_at_once(book: ProfileBook) -> None:
    mine = replace(next(iter(CATALOG.hardware.values())), slug="zephyr-900", name="Zephyr 900", aliases=())
    run, name = Run("f"), "zephyr900_tp2.json"
    assert "hardware" not in found(book, run, name)
    with_mine = ProfileBook(CATALOG, {mine.slug: mine}, {})
    assert found(with_mine, run, name)["hardware"].value == "zephyr-900"
    assert "hardware" not in found(catalog_book(CATALOG), run, name)
