"""Every row of the format specification's odd inputs, over HTTP: its outcome, its status, its message, and nothing stored by halves."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.answers import API, ok, problem, strict
from tests.api.odd_rows import ELSEWHERE, ROWS, Odd
from tests.applications import row_counts, served_from
from tests.result_files import data_of, served_file, served_in_detail

RUNS = f"{API}/runs"
ROOT = Path(__file__).resolve().parents[2]
LAST_ROW = 54


def named(odd: Odd) -> str:
    return f"row_{odd.row:02}: {odd.name}"


def test_every_row_is_here() -> None:
    assert {odd.row for odd in ROWS} | set(ELSEWHERE) == set(range(1, LAST_ROW + 1))
    assert not {odd.row for odd in ROWS} & set(ELSEWHERE)
    assert len({named(odd) for odd in ROWS}) == len(ROWS)
    assert all(test in globals() for test in ELSEWHERE.values())


@pytest.mark.parametrize("odd", ROWS, ids=named)
def test_row(api: TestClient, odd: Odd) -> None:
    before = row_counts(api)
    answer = api.post(RUNS, files={"file": ("odd.json", odd.data)}, data={"project": named(odd)})
    if odd.status != 201:
        body = problem(answer, odd.status, "odd.json: ", *odd.words)
        assert [refused["file"] for refused in body["refused"]] == ["odd.json"]
        assert row_counts(api) == before
        return
    runs = ok(answer, 201)["runs"]
    assert said(strict(answer), odd.words)
    assert odd.check is None or odd.check(runs), json.dumps(runs[0], indent=1)
    assert row_counts(api)["run"] == before["run"] + len(runs)
    assert api.get(f"{RUNS}/{runs[0]['id']}/original").content == odd.data


def said(answer: dict[str, Any], words: tuple[str, ...]) -> bool:
    """Whether all of these words are in the answer's warnings, or in those and the flags of its first run."""
    run = answer["runs"][0]
    sentences = [*answer["warnings"], *run["warnings"], *(flag["evidence"] for flag in run["flags"])]
    return all(any(word in sentence for sentence in sentences) for word in words)


def test_row_30(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file beyond the limit is 413 at the first byte too many, as a form and as a body; nothing is stored."""
    with served_from(tmp_path_factory.mktemp("small"), max_upload_bytes=20_000) as small:
        too_large = data_of([json.loads(served_file(number)) for number in range(40)])
        assert len(too_large) > 20_000
        for sent in ({"files": {"file": ("big.json", too_large)}}, {"content": too_large}):
            problem(small.post(RUNS, **sent), 413, "larger than 20,000 bytes")  # type: ignore[arg-type]
        assert row_counts(small)["upload"] == 0
        ok(small.post(RUNS, content=served_file(1)), 201)


MEASURED = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.parametrize(
    ("requests", "gaps", "limit_mib"),
    [(80_000, 3, 300), pytest.param(1_000_000, 1, 1024, marks=[pytest.mark.soak, pytest.mark.timeout(900)])],
)
def test_row_31(tmp_path: Path, requests: int, gaps: int, limit_mib: int) -> None:
    """Very many requests are read and stored in bounded memory, in a process of their own that is measured as a whole."""
    path = tmp_path / "many.json"
    path.write_bytes(many_requests(requests, gaps))
    environment = {"PATH": os.environ["PATH"], "PHASELINE_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    # The system counts what this large process holds as the most its child ever held; so a small one stands between and measures.
    command = [sys.executable, "-c", MEASURED, sys.executable, "-m", "app", "import", str(path), "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    (run,) = json.loads(done.stdout)["runs"]
    assert run["metrics"]["ttft_s"]["n"] == requests
    assert run["metrics"]["chunk_gap_s"]["n"] == gaps * requests
    assert int(done.stderr.split()[-1]) / 1024 < limit_mib


def many_requests(number: int, gaps: int) -> bytes:
    """A report with per-request arrays: each request has 100 prompt tokens, 100 ms to the first token and so many gaps of 10 ms."""
    report = served_in_detail()
    for key in [key for key in report if key.endswith("_ms")]:
        del report[key]
    tokens = gaps + 1
    return json.dumps(
        {
            **report,
            "num_prompts": number,
            "completed": number,
            "failed": 0,
            "duration": number / 10,
            "total_input_tokens": 100 * number,
            "total_output_tokens": tokens * number,
            "request_throughput": 10.0,
            "output_throughput": 10.0 * tokens,
            "total_token_throughput": 1000.0 + 10.0 * tokens,
            "input_lens": [100] * number,
            "output_lens": [tokens] * number,
            "ttfts": [0.1] * number,
            "itls": [[0.01] * gaps] * number,
            "errors": [""] * number,
        },
        separators=(",", ":"),
    ).encode()


def test_row_34_the_same_bytes_again(api: TestClient) -> None:
    first = ok(api.post(RUNS, content=served_file(34), params={"project": "again"}), 201)
    again = ok(api.post(RUNS, content=served_file(34), params={"project": "again"}), 200)
    assert again["runs"] == first["runs"]
    assert "are here already, as run" in again["warnings"][0]


def test_row_35(api: TestClient) -> None:
    """The same run exported again with other bytes is stored, and said."""
    data = data_of(served_in_detail())
    first = ok(api.post(RUNS, content=data, params={"project": "re-export"}), 201)["runs"][0]
    again = ok(api.post(RUNS, content=json.dumps(json.loads(data), indent=1).encode(), params={"project": "re-export"}), 201)
    assert f"has the figures of run {first['id']}" in again["warnings"][0]
    assert again["runs"][0]["id"] != first["id"]


def test_row_37_the_uploader_names_model_and_hardware(api: TestClient) -> None:
    sglang = next(odd for odd in ROWS if odd.row == 37)
    fields = {"project": "named", "model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb"}
    (run,) = ok(api.post(RUNS, files={"file": ("odd.json", sglang.data)}, data=fields), 201)["runs"]
    assert (run["model_slug"], run["hardware_slug"]) == ("llama-3-1-8b", "h100-sxm5-80gb")
