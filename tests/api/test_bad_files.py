"""Files as they come in practice: each gets a message that says what is wrong, and nothing of it is stored by halves."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from app.store import uploads
from tests.answers import API, ok, problem
from tests.applications import context_of, row_counts
from tests.result_files import data_of, served, served_file, served_in_detail

RUNS = f"{API}/runs"
GOOD = served_file(1)
LINES = b"\n".join(served_file(number) for number in (2, 3))


@dataclass(frozen=True)
class Refused:
    """A file, and words of the sentence that refuses it."""

    data: bytes
    words: tuple[str, ...]


def nested(depth: int) -> bytes:
    return b'{"model_id": ' + b"[" * depth + b"]" * depth + b"}"


REFUSED = {
    "truncated in the middle": Refused(GOOD[: len(GOOD) // 2], (f"ends at byte {len(GOOD) // 2}", "cut off", "Send the whole file")),
    "truncated at the last brace": Refused(GOOD[:-1], ("cut off",)),
    "truncated inside an array": Refused(data_of(served_in_detail())[:-70], ("cut off", "inside")),
    "zero bytes": Refused(b"", ("empty",)),
    "blank": Refused(b" \r\n\t", ("empty",)),
    "an empty list": Refused(b"[]", ("no runs",)),
    "an empty object": Refused(b"{}", ("no runs",)),
    "an error page": Refused(b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>", ("HTML", "error or sign-in page")),
    "a page after blank lines": Refused(b"\n\n<html><head></head></html>", ("HTML",)),
    "a count beyond 63 bits": Refused(data_of(served(total_output_tokens=2**63 + 1)), ("total_output_tokens", "63 bits")),
    "a number of 5000 digits": Refused(
        GOOD.replace(b'"completed": 20', b'"completed": ' + b"2" * 5000), ("completed", "more than 4300 digits")
    ),
    "nested 200000 deep": Refused(nested(200_000), ("nested", "64 levels")),
    "nested 5000 deep": Refused(nested(5_000), ("nested", "64 levels")),
    "nested 66 deep": Refused(nested(66), ("nested", "64 levels")),
    "binary": Refused(bytes(range(256)) * 40, ("binary",)),
    "another tool's JSON": Refused(b'{"results": [1, 2]}', ("results", "no result of a tool that is read here", "llama-bench")),
    "a figure that stands twice": Refused(
        GOOD.replace(b'"completed": 20', b'"completed": 20, "completed": 21'), ("completed", "stands twice")
    ),
    "a count that is no whole number": Refused(data_of(served(completed="many")), ("completed", "whole number")),
    "a negative count": Refused(data_of(served(completed=-1)), ("completed", "whole number")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_gives_no_run_is_refused_in_a_sentence(api: TestClient, name: str) -> None:
    case, counts = REFUSED[name], row_counts(api)
    body = problem(api.post(RUNS, files={"file": ("r.json", case.data)}), 422, "r.json: ", *case.words)
    assert [item["file"] for item in body["refused"]] == ["r.json"]
    assert row_counts(api) == counts


@pytest.mark.parametrize("name", [name for name, case in REFUSED.items() if case.data])
def test_a_raw_body_gets_the_same_answer(api: TestClient, name: str) -> None:
    case = REFUSED[name]
    problem(api.post(RUNS, params={"name": "r.json"}, content=case.data), 422, "r.json: ", *case.words)


@dataclass(frozen=True)
class Accepted:
    """A file that is odd and can be read, with what its run must say."""

    data: bytes
    check: Callable[[dict[str, Any]], bool]


def mean(run: dict[str, Any], key: str) -> float | None:
    found = run["metrics"].get(key)
    return None if found is None else found["mean"]


def warned(run: dict[str, Any], *words: str) -> bool:
    """A warning, or the evidence of a flag, with all of these words."""
    said = [*run["warnings"], *(flag["evidence"] for flag in run["flags"])]
    return any(all(word in sentence for word in words) for sentence in said)


NAN = GOOD.replace(b'"mean_ttft_ms": 50.0', b'"mean_ttft_ms": NaN')
ACCEPTED = {
    "UTF-16 with a mark, as PowerShell writes it": Accepted(GOOD.decode().encode("utf-16"), lambda run: mean(run, "ttft_s") == 0.05),
    "UTF-16 big-endian": Accepted(b"\xfe\xff" + GOOD.decode().encode("utf-16-be"), lambda run: mean(run, "ttft_s") == 0.05),
    "UTF-8 with a mark": Accepted(b"\xef\xbb\xbf" + GOOD, lambda run: mean(run, "ttft_s") == 0.05),
    "NaN": Accepted(NAN, lambda run: mean(run, "ttft_s") is None and warned(run, "mean_ttft_ms")),
    "Infinity": Accepted(
        GOOD.replace(b'"mean_ttft_ms": 50.0', b'"mean_ttft_ms": -Infinity'), lambda run: mean(run, "ttft_s") is None and warned(run, "ttft")
    ),
    "1e999": Accepted(
        GOOD.replace(b'"mean_ttft_ms": 50.0', b'"mean_ttft_ms": 1e999'), lambda run: mean(run, "ttft_s") is None and warned(run, "ttft")
    ),
    "nothing completed": Accepted(
        data_of(served(**{key: 0.0 for key in served() if key.endswith("_ms")}, completed=0, failed=20, total_output_tokens=0)),
        lambda run: (
            run["requests"] == {"sent": 20, "completed": 0, "failed": 20}
            and mean(run, "ttft_s") is None
            and mean(run, "itl_s") is None
            and "efficiency" not in run
        ),
    ),
    "one output token": Accepted(
        # One token a request: 50 ms to the first, which is the whole; no time between tokens, and the file says 0 for it.
        data_of(
            served(
                total_output_tokens=20,
                duration=1.0,
                output_throughput=20.0,
                request_throughput=20.0,
                total_token_throughput=2020.0,
                **{key: 0.0 for key in served() if "tpot" in key or "itl" in key},
                **{key.replace("ttft", "e2el"): value for key, value in served().items() if "ttft" in key},
            )
        ),
        lambda run: mean(run, "ttft_s") == 0.05 and mean(run, "itl_s") is None and mean(run, "tpot_s") is None,
    ),
    "arrays of different lengths": Accepted(
        data_of(served_in_detail(ttfts=[0.1, 0.2, 0.3])),
        # The arrays are left out and the file's own mean of 250 ms stays.
        lambda run: mean(run, "ttft_s") == 0.25 and run["metrics"]["ttft_s"]["from"] == "reported" and warned(run, "ttfts"),
    ),
    "a script in the model's name": Accepted(
        data_of(served(model_id="<script>alert(1)</script>")), lambda run: run["model"] == "<script>alert(1)</script>"
    ),
    "a path for a model": Accepted(data_of(served(model_id="../../etc/passwd")), lambda run: run["model"] == "../../etc/passwd"),
    "a lone surrogate in the model's name": Accepted(
        data_of(served()).replace(b"meta-llama/Llama-3.1-8B", rb"a\ud800b", 1), lambda run: run["model"].isprintable()
    ),
    "control characters and marks that reorder": Accepted(
        data_of(served(model_id="good\x00\x1b[31m\u202egnp.exe")), lambda run: run["model"] == "good[31mgnp.exe"
    ),
    "a name of 4 kB": Accepted(data_of(served(model_id="x" * 4096)), lambda run: len(run["model"]) == 200),
    "two documents, one after another": Accepted(LINES, lambda run: mean(run, "ttft_s") == 0.05),
    "latin-1": Accepted(json.dumps(served(model_id="modèle"), ensure_ascii=False).encode("latin-1"), lambda run: run["model"] == "modèle"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_file_that_is_odd_and_can_be_read_becomes_a_run(api: TestClient, name: str) -> None:
    case, counts = ACCEPTED[name], row_counts(api)
    answer = ok(api.post(RUNS, files={"file": ("r.json", case.data)}), 201)
    for run in answer["runs"]:
        assert case.check(run), run
        assert ok(api.get(f"{RUNS}/{run['id']}")) == run
    after = row_counts(api)
    assert after["upload"] == counts["upload"] + 1
    assert after["run"] == counts["run"] + len(answer["runs"])
    assert api.get(f"{RUNS}/{answer['runs'][0]['id']}/original").content == case.data


def test_a_cut_last_line_keeps_the_lines_before_it_and_says_so(api: TestClient) -> None:
    answer = ok(api.post(RUNS, files={"file": ("r.jsonl", LINES + b"\n" + GOOD[:100])}), 201)
    assert len(answer["runs"]) == 2
    assert "Line 3 is cut off" in answer["warnings"][0]


def test_a_run_without_completed_requests_has_its_reason(api: TestClient) -> None:
    data = data_of(served(completed=0, failed=20, total_output_tokens=0, tokenizer_id="none"))
    fields = {"hardware": "h100-sxm5-80gb", "model": "llama-3-1-8b"}
    run = ok(api.post(RUNS, files={"file": ("r.json", data)}, data=fields), 201)["runs"][0]
    assert warned(run, "no request was completed")
    for part in ("decomposition", "roofline"):
        problem(api.get(f"{RUNS}/{run['id']}/{part}"), 404, "no request was completed")


STATEMENTS = ("upload", "upload_chunk", "run", "metric_value", "run_tag", "request_samples", "sample_chunk", "sample_histogram")


@pytest.mark.parametrize("table", STATEMENTS)
def test_a_failure_at_any_table_leaves_nothing_behind(api: TestClient, table: str) -> None:
    """The database fails at the first row of each table in turn; the whole upload is undone, and works the next time."""
    engine, counts = context_of(api).database.engine, row_counts(api)
    data = data_of(served_in_detail(tokenizer_id=f"fails at {table}"))

    def fail(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.upper().startswith(f"INSERT INTO {table.upper()} "):
            raise OperationalError(statement, {}, Exception("disk I/O error"))

    event.listen(engine, "before_cursor_execute", fail)
    try:
        problem(api.post(RUNS, files={"file": ("r.json", data)}, data={"tags": "a"}), 500, "a fault of ours", hidden=("disk I/O", "INSERT"))
    finally:
        event.remove(engine, "before_cursor_execute", fail)
    assert row_counts(api) == counts
    ok(api.post(RUNS, files={"file": ("r.json", data)}, data={"tags": "a"}), 201)
    after = row_counts(api)
    assert all(after[name] > counts[name] for name in STATEMENTS)


def test_a_full_disk_is_507_and_stores_nothing(api: TestClient) -> None:
    engine, counts = context_of(api).database.engine, row_counts(api)

    def fail(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.upper().startswith("INSERT INTO RUN "):
            raise OperationalError(statement, {}, Exception("database or disk is full"))

    event.listen(engine, "before_cursor_execute", fail)
    try:
        problem(api.post(RUNS, content=served_file(90)), 507, "no room left", "nothing was stored")
    finally:
        event.remove(engine, "before_cursor_execute", fail)
    assert row_counts(api) == counts


def test_one_file_that_fails_inside_the_store_leaves_the_earlier_ones(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is a transaction of its own: what was answered for none of them is stored whole or not at all."""
    counts, real = row_counts(api), uploads.save

    def save(session: Any, upload: Any, *rest: Any) -> Any:
        saved = real(session, upload, *rest)
        if upload.name == "second.json":
            raise RuntimeError("after the last insert")
        return saved

    monkeypatch.setattr(uploads, "save", save)
    parts = [("file", (name, served_file(number))) for name, number in (("first.json", 91), ("second.json", 92))]
    problem(api.post(RUNS, files=parts), 500, "a fault of ours")
    after = row_counts(api)
    assert after["upload"] == counts["upload"] + 1
    assert after["run"] == counts["run"] + 1
