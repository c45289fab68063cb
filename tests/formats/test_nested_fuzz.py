"""Values deep inside our files, replaced or dropped, and log lines mixed up: nothing but ImportRefused comes out, figures stay finite."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.errors import ImportRefused
from app.domain.run import STATS, Distribution, Run
from app.formats import read_runs
from app.formats.document import read_document
from app.formats.record import LARGEST_INTEGER

DATA = Path(__file__).resolve().parents[1] / "data"
FILES = tuple(path.read_bytes() for path in sorted(DATA.glob("*/*")))
OBJECTS = tuple(json.dumps([dict(entry.values) for entry in read_document("", data).entries]) for data in FILES)
# Written out as JSON and read again, a damaged object must not be cut short or grow without end.
SMALL = tuple(text for text in OBJECTS if 2 < len(text) < 20_000)
TEXTS = tuple(data.decode().splitlines() for data in FILES if not read_document("", data).is_json)
QUICK = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
LONG = settings(QUICK, max_examples=20_000)
VALUES = st.sampled_from(
    [
        *(None, True, False, 0, 1, -1, 5, 10**40, 2**63 - 1, 2**64, 1e308, 1e-300, 1e17, -0.0, float("nan"), float("inf")),
        *("", "x", "1", "1e5", "\ud800", [], [1], [None], [-1], [1e308, 1e308], [[1]], {}, {"count": -1}, {"mean": 1}),
    ]
).map(deepcopy)


def places(value: object) -> Iterator[tuple[dict[str, object] | list[object], str | int]]:
    """Every place in a JSON value at which something stands, as its container and its key."""
    children = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    for key, child in children:
        yield value, key  # type: ignore[misc]
        yield from places(child)


@st.composite
def rewritten(draw: st.DrawFn) -> bytes:
    """The objects of one of our files with up to four values, at any depth, replaced or dropped."""
    value = json.loads(draw(st.sampled_from(SMALL)))
    for _ in range(draw(st.integers(1, 4))):
        found = list(places(value))
        if not found:
            break
        container, key = found[draw(st.integers(0, len(found) - 1))]
        if draw(st.booleans()):
            container[key] = draw(VALUES)  # type: ignore[index]
        else:
            del container[key]  # type: ignore[arg-type]
    return json.dumps(value).encode()


@st.composite
def shuffled_lines(draw: st.DrawFn) -> bytes:
    """Lines of our logs and tables in any order, of several tools together."""
    lines = [draw(st.sampled_from(draw(st.sampled_from(TEXTS)))) for _ in range(draw(st.integers(1, 30)))]
    return "\n".join(lines).encode()


def check(data: bytes) -> None:
    """Read a file: refused with a sentence, or runs whose figures are finite and whose counts a store can hold."""
    refused: ImportRefused | None = None
    runs: tuple[Run, ...] = ()
    try:
        runs = read_runs("fuzzed", data).runs
    except ImportRefused as refusal:
        refused = refusal
    assert runs or (refused is not None and 0 < len(refused.reason) < 1000)
    for run in runs:
        for value in run.metrics.values():
            numbers = [value.stat(name) for name in STATS] if isinstance(value, Distribution) else [value.value]
            assert all(number is None or (np.isfinite(number) and number >= 0) for number in numbers)
        work, requests = run.workload, run.requests
        counts = (work.prompt_tokens_total, work.output_tokens_total, work.concurrency, requests.sent, requests.completed, requests.failed)
        assert all(count is None or 0 <= count <= LARGEST_INTEGER for count in (*counts, run.devices, run.tp, run.pp, run.ep))


@QUICK
@given(rewritten())
def test_values_at_any_depth(data: bytes) -> None:
    check(data)


@QUICK
@given(shuffled_lines())
def test_lines_of_logs_in_any_order(data: bytes) -> None:
    check(data)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@LONG
@given(st.one_of(rewritten(), shuffled_lines()))
def test_many_of_both(data: bytes) -> None:
    check(data)
