"""Nothing but ImportRefused ever comes out of reading a file: arbitrary bytes, and valid files that were damaged."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Run
from app.formats import IMPORTERS, read_runs
from app.formats.document import read_document

DATA = Path(__file__).resolve().parents[1] / "data"
FILES = tuple(path.read_bytes() for importer in IMPORTERS for path in sorted((DATA / importer.id).iterdir()))
OBJECTS = tuple(dict(entry.values) for data in FILES for entry in read_document("", data).entries)
QUICK = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
LONG = settings(QUICK, max_examples=10_000)

SNIPPETS = st.sampled_from(
    [
        *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\n", b"\r\n", b"\x00", b"\xff", b"\\ud800", b"null", b"NaN", b"-Infinity", b"1e999"),
        *(
            b"-1",
            b"0",
            b"9" * 400,
            b"true",
            b"''",
            b"|",
            b";",
            b"build_commit,",
            b"Metric,avg,min,max,p1\n",
            b"INSERT INTO test (build_commit) VALUES (",
            b"\t",
        ),
        *(b"============ Serving Benchmark Result ============\n", b"| model | size | params | backend | test | t/s |\n", b"\xef\xbb\xbf"),
    ]
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**40), max_value=10**40),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.one_of(st.none(), st.floats(), st.integers(), st.text(max_size=3)), max_size=6),
    st.lists(st.lists(st.floats(), max_size=4), max_size=6),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


def read(data: bytes) -> tuple[Run, ...]:
    """The runs of a file, none when it is refused; anything else that is raised fails the test."""
    refused: ImportRefused | None = None
    runs: tuple[Run, ...] = ()
    try:
        runs = read_runs("fuzzed", data).runs
    except ImportRefused as refusal:
        refused = refusal
    assert runs or (refused is not None and 0 < len(refused.reason) < 1000)
    return runs


def check(runs: tuple[Run, ...]) -> None:
    """What holds for every run whatever the file: finite figures, words that can be stored, columns of one length."""
    for run in runs:
        for value in run.metrics.values():
            numbers = (
                [value.stat(name) for name in ("mean", "p50", "p90", "p95", "p99", "std", "min", "max")]
                if isinstance(value, Distribution)
                else [value.value]
            )
            assert all(number is None or (np.isfinite(number) and number >= 0) for number in numbers)
        for word in (run.model, run.hardware, run.engine_version, run.label, *run.labels.values(), *run.labels, *run.warnings):
            (word or "").encode("utf-8")
        if run.samples is not None:
            columns = (run.samples.prompt_tokens, run.samples.output_tokens, run.samples.ttft_s, run.samples.e2e_s)
            assert {column.size for column in columns} == {run.samples.size}
            assert run.samples.chunk_gap_counts.sum() == run.samples.chunk_gaps_s.size


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """One of our files with up to four cuts, insertions and repetitions."""
    data = draw(st.sampled_from(FILES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 400)))
        filling = draw(st.one_of(st.just(b""), SNIPPETS, st.binary(max_size=8), st.just(data[start:end] * 2)))
        data = data[:start] + filling + data[end:]
    return data


@st.composite
def rewritten(draw: st.DrawFn) -> bytes:
    """One object of our files with up to four of its values, at any depth, replaced by anything JSON can hold, and keys dropped."""
    value = copy.deepcopy(draw(st.sampled_from(OBJECTS)))
    for _ in range(draw(st.integers(1, 4))):
        place = value
        for _ in range(draw(st.integers(0, 5))):
            if not (deeper := _objects_in(place)):
                break
            place = draw(st.sampled_from(deeper))
        if not place:
            break
        key = draw(st.sampled_from(sorted(place)))
        if draw(st.booleans()):
            place[key] = draw(VALUES)
        else:
            del place[key]
    return json.dumps(value).encode("utf-8")


def _objects_in(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects directly inside an object, and those in its lists."""
    inside = [item for each in value.values() for item in (each[:8] if isinstance(each, list) else [each])]
    return [each for each in inside if isinstance(each, dict)]


@QUICK
@given(st.binary(max_size=400))
def test_arbitrary_bytes(data: bytes) -> None:
    check(read(data))


@QUICK
@given(st.text(max_size=300))
def test_arbitrary_text(text: str) -> None:
    check(read(text.encode("utf-8", errors="surrogatepass")))


@QUICK
@given(st.recursive(VALUES, lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4)))
def test_arbitrary_json(value: object) -> None:
    check(read(json.dumps(value).encode()))


@QUICK
@given(damaged())
def test_damaged_files(data: bytes) -> None:
    check(read(data))


@QUICK
@given(rewritten())
def test_rewritten_values(data: bytes) -> None:
    check(read(data))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@LONG
@given(st.one_of(st.binary(max_size=2000), damaged(), rewritten()))
def test_many_of_all(data: bytes) -> None:
    check(read(data))
