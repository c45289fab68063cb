"""The design's own rules for leaving rows out: what each takes from made rows, and that they stand beside the figures, not in them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from app.catalog import load
from app.catalog.measured import measurements
from app.domain.measurement import Layout
from benchmarks.accuracy_document import markdown
from benchmarks.asked import Asked, ask
from benchmarks.design_rules import ORIGIN, RULES, left_out_by_design
from benchmarks.report import Report, Target


def rows(model: str, *changes: dict[str, Any]) -> list[Asked]:
    """Served rows of one deployment of a model, each with changes."""
    found = next(one for one in measurements() if one.kind == "served" and one.model == model)
    base = replace(found, engine="vLLM", engine_version="1.0", ttft_s=0.1, tpot_s=0.01, sequences=8.0, layout=Layout(8, 8, 1, 1, 1))
    asked = [ask(replace(base, id=str(place), **change), load(), lambda name: None) for place, change in enumerate(changes)]
    return [one for one in asked if isinstance(one, Asked)]


def taken(asked: Iterable[Asked]) -> dict[str, set[str]]:
    """Phases that are left out of each row."""
    found: dict[str, set[str]] = {}
    for id_, phase in left_out_by_design(list(asked)):
        found.setdefault(id_, set()).add(phase)
    return found


WITH_PREDICTION, WITHOUT = "deepseek-ai/DeepSeek-R1", "openai/gpt-oss-120b"
BOTH = {"decode", "prefill"}


@pytest.mark.parametrize(
    ("tpot", "ttft", "speculative"),
    [(0.0085, 0.111, True), (0.0087, 0.2, False), (0.005, 0.109, False), (0.005, 0.05, False)],
)
def test_the_faster_of_a_pair_speculates_only_where_it_pays_with_its_first_token(tpot: float, ttft: float, speculative: bool) -> None:
    pair: tuple[dict[str, Any], dict[str, Any]] = ({}, {"tpot_s": tpot, "ttft_s": ttft, "engine_version": "1.1"})
    assert taken(rows(WITH_PREDICTION, *pair)) == ({"1": BOTH} if speculative else {})
    assert taken(rows(WITHOUT, *pair)) == {}, "a model that predicts one token at a time has nothing to speculate with"
    apart = (pair[0], {**pair[1], "sequences": 16.0})
    assert taken(rows(WITH_PREDICTION, *apart)) == {}, "another load is no pair"


def test_a_start_up_takes_the_first_token_alone() -> None:
    loads = ({"ttft_s": 0.3}, {"sequences": 16.0, "ttft_s": 0.2}, {"sequences": 32.0, "ttft_s": 0.25})
    assert taken(rows(WITHOUT, *loads)) == {"0": {"prefill"}}


def test_short_answers_of_70b_are_held_against_longer_ones_on_tensorrt_llm_alone() -> None:
    short, longer = {"prompt_tokens": 1024, "output_tokens": 1024, "ttft_s": 0.19}, {"prompt_tokens": 1024, "output_tokens": 8192}
    at = {"engine": "TensorRT-LLM", "engine_version": "1.0"}
    assert taken(rows("meta-llama/Llama-3.1-70B", short | at, longer | at)) == {"0": {"prefill"}}
    assert taken(rows("meta-llama/Llama-3.1-70B", short | at | {"ttft_s": 0.18}, longer | at)) == {}
    assert taken(rows("meta-llama/Llama-3.1-70B", short, longer)) == {}


@pytest.mark.parametrize(
    ("model", "change", "phases"),
    [
        (WITHOUT, {"engine": "TensorRT-LLM", "engine_version": "1.3.0rc1"}, BOTH),
        (WITHOUT, {"engine": "TensorRT-LLM", "engine_version": "1.2.0rc6.post2"}, None),
        ("Qwen/Qwen3-235B-A22B-FP8", {"engine_version": "0.12.0"}, BOTH),
        ("Qwen/Qwen3-235B-A22B-FP8", {"engine_version": "0.15.1"}, None),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", {"engine_version": "0.12.0"}, BOTH),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", {"engine_version": "0.12.0", "weight_dtype": "bf16"}, None),
        (WITH_PREDICTION, {"engine": "SGLang", "engine_version": "", "weight_dtype": "nvfp4"}, {"prefill"}),
        (WITH_PREDICTION, {"engine": "SGLang", "engine_version": "0.5.9", "weight_dtype": "nvfp4"}, None),
    ],
)
def test_rows_that_the_page_names(model: str, change: dict[str, Any], phases: set[str] | None) -> None:
    assert taken(rows(model, change)) == ({} if phases is None else {"0": phases})


def test_tensor_parallel_over_72_devices_is_unusable_even_where_it_can_be_asked() -> None:
    (one,) = rows(WITHOUT, {})
    assert taken([replace(one, measurement=replace(one.measurement, layout=Layout(72, 72, 1, 1, 1)))]) == {"0": BOTH}


def test_no_row_of_another_kind_is_touched() -> None:
    streams = [ask(one, load(), lambda name: None) for one in measurements() if one.kind != "served"][:50]
    assert left_out_by_design([one for one in streams if isinstance(one, Asked)]) == {}
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_the_page_shows_them_beside_the_figure_that_decides() -> None:
    shared = {"mean_ape": 0.3, "bias": 0.0, "within_20": 1.0, "covered": 1.0}
    name = "dense_tpot"
    groups = [
        {"by": {"population": name}, "n": 10, "median_ape": 0.2, **shared},
        {"by": {"population": name, "rules": ORIGIN}, "n": 7, "median_ape": 0.05, **shared},
        {"by": {"population": name, "design rule": RULES[0].name}, "n": 3},
    ]
    figures = {f"{name}_median_ape": 0.2, "unpriced_share": 0.0}
    conditions = {"model_version": "x", "measurements": 10, "distinct": 10}
    page = markdown(Report(figures, groups, conditions), {f"{name}_median_ape": Target(0.1)}, None)
    assert "| `dense_tpot_median_ape` | at most 10.0 % | 20.0 % | **no** | 5.0 % |" in page
    assert f"| {RULES[0].name} | 3 |" in page
    assert "| **rows that stay** | 7 |" in page
