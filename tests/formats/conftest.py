"""Reading the small files of tests/data, and files made up on the spot."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.run import Run
from app.formats import ParsedFile, read_runs
from tests.result_files import in_detail, served

DATA = Path(__file__).resolve().parents[1] / "data"


@pytest.fixture
def read_data() -> Callable[[str], ParsedFile]:
    """Reads one of our own files by its path under tests/data."""
    return lambda path: read_runs(path, (DATA / path).read_bytes())


@pytest.fixture
def read_json() -> Callable[[Any], ParsedFile]:
    """Reads a value as the JSON file that holds it."""
    return lambda value: read_runs("made-up.json", json.dumps(value).encode())


@pytest.fixture
def read_one() -> Callable[[Any], Run]:
    """The only run of the JSON file that holds this value."""

    def read(value: Any) -> Run:
        (run,) = read_runs("made-up.json", json.dumps(value).encode()).runs
        return run

    return read


@pytest.fixture
def report() -> dict[str, Any]:
    """A sound vLLM report: 20 requests of 100 prompt and 51 output tokens in 10 s; end to end 550 ms = 50 ms + 50 x 10 ms."""
    named = {"date": "20250901-120000", "backend": "vllm", "label": None, "model_id": "acme/tiny-8b", "tokenizer_id": "acme/tiny-8b"}
    rates = {"request_throughput": 2.0, "output_throughput": 102.0, "total_token_throughput": 302.0}
    return served(**named, **rates, burstiness=1.0, max_concurrency=None, duration=10.0)


@pytest.fixture
def detailed(report: dict[str, Any]) -> dict[str, Any]:
    """The same with per-request arrays: four requests of 3, 5, 2 and 1 tokens in 2 s, one more that failed."""
    return in_detail(report)
