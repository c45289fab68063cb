"""Real files mean what they meant when somebody checked them by hand; how to make the golden files anew stands in golden_runs.py."""

from pathlib import Path
from typing import Any

import pytest

from app.formats import IMPORTERS
from tests.formats.golden_runs import FOLDER, as_text, expected, kept, outcome
from tests.sample_runs import names, runs_of

pytestmark = pytest.mark.shared
FORMATS = tuple(sorted(importer.id for importer in IMPORTERS))
TOLERANCE = 1e-6
# Flags that say why the total of a run is not the sum of its parts.
EXPLAINS = {"transport_buffering", "tokenizer_mismatch", "failures_excluded", "empty_outputs"}


@pytest.mark.parametrize("format_id", FORMATS)
def test_every_sample_has_the_figures_that_were_reviewed(shared_dir: Path, format_id: str) -> None:
    golden = kept(format_id)
    assert sorted(golden) == sorted(expected().get(format_id, ()))
    for name, reviewed in golden.items():
        assert reviewed["reviewed"], f"{format_id}/{name}: say in `reviewed` how its figures were checked against the file"
        found = outcome(format_id, name)
        assert same(found, {key: value for key, value in reviewed.items() if key != "reviewed"}), f"{format_id}/{name}"


@pytest.mark.parametrize("format_id", FORMATS)
def test_a_sample_is_read_or_refused_as_its_origin_list_expects(shared_dir: Path, format_id: str) -> None:
    for name, expectation in expected().get(format_id, {}).items():
        assert ("runs" in kept(format_id)[name]) == (expectation == "run"), f"{name} is expected to be: {expectation}"


@pytest.mark.parametrize("format_id", FORMATS)
def test_the_total_is_ttft_and_itl_or_a_flag_says_why_not(shared_dir: Path, format_id: str) -> None:
    """Mean end to end = mean TTFT + (mean output tokens - 1) x token-weighted ITL, within 0.5 %, where a run has all of them."""
    for name, expectation in expected().get(format_id, {}).items():
        for run in runs_of(shared_dir, f"{format_id}/{name}") if expectation == "run" else ():
            ttft, itl, e2e = (run.distribution(key) for key in ("ttft_s", "itl_s", "e2e_s"))
            tokens = run.workload.output_tokens_mean
            if ttft and itl and e2e and ttft.mean and itl.mean and e2e.mean and tokens:
                total = ttft.mean + (tokens - 1) * itl.mean
                assert total == pytest.approx(e2e.mean, rel=0.005) or names(run) & EXPLAINS, f"{name}: {total} is not {e2e.mean}"


def test_golden_files_are_as_they_are_written() -> None:
    for path in sorted(FOLDER.iterdir()):
        assert path.stem in FORMATS
        assert path.read_text(encoding="utf-8") == as_text(kept(path.stem))


def same(found: Any, golden: Any) -> bool:
    """Alike in every key; figures within a millionth, since the last digits of a sum depend on the machine."""
    if isinstance(golden, dict):
        return isinstance(found, dict) and found.keys() == golden.keys() and all(same(found[key], golden[key]) for key in golden)
    if isinstance(golden, list):
        return isinstance(found, list) and len(found) == len(golden) and all(map(same, found, golden))
    if isinstance(golden, float):
        return bool(found == pytest.approx(golden, rel=TOLERANCE))
    return bool(found == golden)
