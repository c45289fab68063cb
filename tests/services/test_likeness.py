"""What is said about new runs that have to do with others; nothing is merged because of it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.services.context import Context
from app.services.storing import store_files
from tests.result_files import data_of, served, served_file
from tests.sample_runs import runs_of

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
DATA = Path(__file__).resolve().parents[1] / "data" / "inference_perf"


def test_a_run_exported_again_is_imported_and_said(context: Context) -> None:
    first = store_files(context, [("a.json", served_file(1))], {}, NOON)
    again = store_files(context, [("b.json", json.dumps(json.loads(served_file(1)), indent=2).encode())], {}, NOON)
    assert again.created
    assert again.warnings == (
        f"b.json: run {again.run_ids[0]} has the figures of run {first.run_ids[0]}, so it may be the same run exported again: "
        "delete one of the two if it is.",
    )
    other = store_files(context, [("c.json", data_of(served(mean_ttft_ms=51.0, mean_e2el_ms=551.0)))], {}, NOON)
    assert other.warnings == ()


def test_equal_lines_of_one_file_are_runs_of_their_own(context: Context) -> None:
    line = served_file(1)
    found = store_files(context, [("a.jsonl", line + b"\n" + line)], {}, NOON)
    assert (len(found.run_ids), found.warnings) == (2, ())


def test_a_summary_beside_its_stages_is_not_added_up(context: Context) -> None:
    stage, summary = ((name, (DATA / name).read_bytes()) for name in ("stage.json", "summary_counted_twice.json"))
    found = store_files(context, [stage, summary], {}, NOON)
    first, second = found.run_ids
    said = f"summary_counted_twice.json: run {second} pools the stages of its run (here: {first}); they are not added up."
    assert found.warnings == (said,)
    assert store_files(context, [("again", (DATA / "per_request.json").read_bytes())], {}, NOON).warnings == ()


@pytest.mark.shared
def test_one_run_in_two_outputs_of_its_tool(context: Context, shared_dir: Path) -> None:
    paths = [shared_dir / "samples" / "llama_bench" / f"2023_docs_3090ti.{ending}" for ending in ("json", "jsonl", "sql")]
    found = store_files(context, [(path.name, path.read_bytes()) for path in paths], {}, NOON)
    assert len(runs_of(shared_dir, "llama_bench/2023_docs_3090ti.sql")) == 1
    assert [warning.split(": run")[0] for warning in found.warnings] == ["2023_docs_3090ti.jsonl"]
