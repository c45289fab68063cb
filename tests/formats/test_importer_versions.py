"""What an importer gives does not change without its version; how to write a change down stands in importer_versions.py."""

import json

import pytest

from app.formats import IMPORTERS, current_versions, read_runs
from app.formats.importer import SHARED_VERSION, Importer
from tests.formats.importer_versions import DATA, changed, fingerprints, kept, output, unmoved
from tests.result_files import data_of, served

FORMATS = [importer.id for importer in IMPORTERS]
BEFORE = {"version": 3, "files": {"a.json": {"file": "f1", "runs": "r1"}, "b.json": {"file": "f2", "runs": "r2"}}}


@pytest.mark.parametrize("format_id", FORMATS)
def test_the_same_file_gives_the_same_runs_or_the_version_has_moved(format_id: str) -> None:
    before, now, version = kept(format_id), fingerprints(format_id), current_versions()[format_id]
    assert before, f"{format_id} is not written down yet: python -m tests.formats.importer_versions"
    assert version >= before["version"], f"{format_id}: a version never goes back"
    other = changed(before, now)
    assert not unmoved(before, version, now), (
        f"{format_id} gives something else for {', '.join(other)} under the same version: raise `version` of its IMPORTER (SHARED_VERSION "
        "where all importers change), then python -m tests.formats.importer_versions"
    )
    assert not other, f"{format_id}: write the new version down: python -m tests.formats.importer_versions"


@pytest.mark.parametrize("format_id", FORMATS)
def test_every_importer_has_files_that_are_written_down(format_id: str) -> None:
    assert kept(format_id)["files"].keys() & {path.name for path in (DATA / format_id).iterdir()}


def test_every_run_carries_the_version_that_read_it() -> None:
    (run,) = read_runs("a.json", data_of(served())).runs
    assert run.importer_version == current_versions()["vllm_bench_serve"]


def test_a_version_rises_with_the_importers_own_and_with_the_shared_one() -> None:
    importer = Importer("x", "X", lambda document: None, lambda document: [], version=4)
    assert importer.reading_version == 4 + SHARED_VERSION


@pytest.mark.parametrize(
    ("version", "now", "names"),
    [
        (3, {"a.json": {"file": "f1", "runs": "other"}, "b.json": {"file": "f2", "runs": "r2"}}, ["a.json"]),
        (4, {"a.json": {"file": "f1", "runs": "other"}}, []),
        (3, {"a.json": {"file": "edited", "runs": "other"}}, []),
        (3, {"c.json": {"file": "f9", "runs": "r9"}}, []),
        (3, BEFORE["files"], []),
    ],
)
def test_only_another_outcome_of_the_same_file_asks_for_a_version(version: int, now: dict[str, dict[str, str]], names: list[str]) -> None:
    assert unmoved(BEFORE, version, now) == names


def test_a_fingerprint_sees_figures_flags_warnings_and_samples() -> None:
    report = served()
    first = output("a", data_of(report))
    assert output("another name", data_of(report)) == first
    assert output("a", data_of({**report, "mean_ttft_ms": 50.001})) != first
    assert output("a", data_of({**report, "note": "one more label"})) != first
    assert output("a", json.dumps([]).encode()) == "refused"
