"""POST /runs: forms and raw bodies, several files, the same bytes again, files that are refused."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from fastapi.testclient import TestClient

from app.api.shapes import ImportAnswer
from app.settings import UPLOAD_CEILING_BYTES
from tests.answers import API, ok, problem
from tests.applications import row_counts, served_from
from tests.result_files import data_of, served_file, served_in_detail

RUNS = f"{API}/runs"
FORM = {"content-type": "multipart/form-data; boundary=x"}


def form_part(data: bytes, name: str = "r.json") -> bytes:
    return b'--x\r\ncontent-disposition: form-data; name="file"; filename="' + name.encode() + b'"\r\n\r\n' + data + b"\r\n"


def test_a_form_with_one_file_and_what_its_uploader_knows(api: TestClient) -> None:
    fields = {
        "hardware": "h100-sxm5-80gb",
        "model": "llama-3-1-70b",
        "engine": "vllm",
        "devices": "4",
        "tp": "4",
        "weight_dtype": "FP8",
        "label": "nightly",
        "tags": "a, b, a,,",
        "project": "team",
    }
    answer = ok(api.post(RUNS, files={"file": ("r.json", served_file(1))}, data=fields), 201)
    ImportAnswer.model_validate(answer)
    (run,) = answer["runs"]
    assert answer["refused"] == answer["warnings"] == []
    assert run["url"] == f"/runs/{run['id']}"
    assert (run["hardware"], run["model"], run["engine"], run["devices"], run["tp"]) == ("h100-sxm5-80gb", "llama-3-1-70b", "vllm", 4, 4)
    assert (run["weight_dtype"], run["label"], run["tags"], run["project"]) == ("fp8", "nightly", ["a", "b"], "team")
    assert run["efficiency"]["against"] == "peak"


def test_what_is_stored_is_what_was_answered(api: TestClient) -> None:
    run = ok(api.post(RUNS, files={"file": ("r.json", served_file(2))}), 201)["runs"][0]
    assert ok(api.get(f"{RUNS}/{run['id']}")) == run


def test_values_of_the_run_are_those_of_the_file(api: TestClient) -> None:
    run = ok(api.post(RUNS, files={"file": ("r.json", served_file(3))}), 201)["runs"][0]
    # 2000 prompt tokens / 20 requests; 1020 output tokens / 20; 50 ms and 10 ms a token; 1 / 10 ms.
    assert run["format"] == "vllm_bench_serve"
    assert run["workload"]["prompt_tokens_mean"] == 100
    assert run["workload"]["output_tokens_mean"] == 51
    assert run["requests"] == {"sent": 20, "completed": 20, "failed": 0}
    assert run["metrics"]["ttft_s"]["mean"] == pytest.approx(0.05)
    assert run["metrics"]["itl_s"]["mean"] == pytest.approx(0.01)
    assert run["metrics"]["decode_tokens_per_s"]["value"] == pytest.approx(100)
    assert run["metrics"]["decode_tokens_per_s"]["scope"] == "request"
    assert run["metrics"]["output_tokens_per_s"]["scope"] == "aggregate"
    assert run["metrics"]["prefill_s"] is None


def test_several_files_are_runs_in_their_order(api: TestClient) -> None:
    parts = [("file", (f"{number}.json", served_file(number))) for number in (10, 11, 12)]
    runs = ok(api.post(RUNS, files=parts), 201)["runs"]
    assert [run["file"] for run in runs] == ["10.json", "11.json", "12.json"]
    assert [run["id"] for run in runs] == sorted(run["id"] for run in runs)


def test_the_same_bytes_twice_in_one_form_are_one_run(api: TestClient) -> None:
    parts = [("file", (name, served_file(13))) for name in ("a.json", "b.json")]
    answer = ok(api.post(RUNS, files=parts), 201)
    assert len(answer["runs"]) == 1
    assert "b.json: these bytes are here already" in answer["warnings"][0]


@pytest.mark.parametrize("content_type", [None, "application/json", "text/plain", "application/octet-stream"])
def test_any_other_body_is_one_file_with_its_fields_in_the_query(api: TestClient, content_type: str | None) -> None:
    number = 20 + len(content_type or "")
    query = {"name": "raw.json", "tp": "2", "label": "raw", "tags": "x,y"}
    headers = {"content-type": content_type} if content_type else {}
    run = ok(api.post(RUNS, params=query, content=served_file(number), headers=headers), 201)["runs"][0]
    assert (run["file"], run["tp"], run["label"], run["tags"]) == ("raw.json", 2, "raw", ["x", "y"])


def test_a_raw_body_without_a_name_is_called_upload(api: TestClient) -> None:
    assert ok(api.post(RUNS, content=served_file(60)), 201)["runs"][0]["file"] == "upload"


def test_pasted_text_is_a_file(api: TestClient) -> None:
    run = ok(api.post(RUNS, data={"pasted": served_file(61).decode()}, files={"x": ("", b"")}), 201)["runs"][0]
    assert run["file"] == "pasted"


def test_the_original_comes_back_byte_for_byte(api: TestClient) -> None:
    data = b"\xef\xbb\xbf  \r\n" + served_file(62) + b"\r\n\r\n"
    run = ok(api.post(RUNS, files={"file": ("r.json", data)}), 201)["runs"][0]
    assert api.get(f"{RUNS}/{run['id']}/original").content == data


def test_the_same_bytes_again_give_the_runs_that_are_there(api: TestClient) -> None:
    first = ok(api.post(RUNS, files={"file": ("r.json", served_file(70))}), 201)["runs"]
    counts = row_counts(api)
    again = ok(api.post(RUNS, files={"file": ("renamed.json", served_file(70))}), 200)
    assert again["runs"] == first
    assert f"as run {first[0]['id']}; nothing was stored again" in again["warnings"][0]
    assert row_counts(api) == counts


def test_fields_given_with_the_same_bytes_are_applied_as_a_patch(api: TestClient) -> None:
    first = ok(api.post(RUNS, files={"file": ("r.json", served_file(71))}, data={"label": "before", "tags": "old"}), 201)["runs"][0]
    assert "efficiency" not in first
    again = ok(api.post(RUNS, files={"file": ("r.json", served_file(71))}, data={"hardware": "h100-sxm5-80gb", "tags": "new"}), 200)
    run = again["runs"][0]
    assert (run["id"], run["label"], run["tags"], run["hardware"]) == (first["id"], "before", ["new"], "h100-sxm5-80gb")
    assert run["efficiency"]["mbu"] > 0
    assert again["warnings"][-1] == "The fields given were applied to the runs that exist: hardware, tags."
    assert ok(api.get(f"{RUNS}/{run['id']}")) == run


def test_the_same_bytes_in_another_project_are_another_upload(api: TestClient) -> None:
    ids = {
        ok(api.post(RUNS, files={"file": ("r.json", served_file(72))}, data={"project": name}), 201)["runs"][0]["id"]
        for name in ("one", "two")
    }
    assert len(ids) == 2


def test_one_refused_file_does_not_take_the_good_ones_along(api: TestClient) -> None:
    parts = [("file", ("page.html", b"<!doctype html><p>Sign in")), ("file", ("good.json", served_file(80))), ("file", ("x.json", b"{"))]
    answer = ok(api.post(RUNS, files=parts), 201)
    assert [run["file"] for run in answer["runs"]] == ["good.json"]
    assert [item["file"] for item in answer["refused"]] == ["page.html", "x.json"]
    assert "HTML" in answer["refused"][0]["reason"]


def test_when_no_file_gives_a_run_the_answer_lists_what_was_tried(api: TestClient) -> None:
    counts = row_counts(api)
    parts = [("file", ("a.json", b'{"a": 1}')), ("file", ("b.txt", b"hello"))]
    body = problem(api.post(RUNS, files=parts), 422, "a.json", "vLLM bench serve")
    assert [item["file"] for item in body["refused"]] == ["a.json", "b.txt"]
    for item in body["refused"]:
        assert item["reason"]
        assert {"sglang_bench_serving", "vllm_bench_serve", "llama_bench", "vllm_bench_serve_log"} <= {t["format"] for t in item["tried"]}
        assert all(tried["reason"] for tried in item["tried"])
    assert row_counts(api) == counts


@pytest.mark.parametrize("files", [{"file": ("", b"")}, {"other": ("r.json", b"{}")}], ids=["empty field", "other field"])
def test_a_form_without_a_file_says_so(api: TestClient, files: Any) -> None:
    problem(api.post(RUNS, files=files), 422, "There is no file in this form")


def test_an_empty_body_says_so(api: TestClient) -> None:
    problem(api.post(RUNS), 422, "The body is empty")


def test_an_empty_file_says_so(api: TestClient) -> None:
    problem(api.post(RUNS, files={"file": ("r.json", b"")}), 422, "r.json: The file is empty")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (form_part(served_file(81))[:-60], "cut off before its end"),
        (form_part(served_file(81)) + b"--x", "cut off before its end"),
        (form_part(served_file(81)) + form_part(served_file(82))[:-9], "cut off before its end"),
        (b"no form at all", "The form cannot be read"),
    ],
    ids=["in the file", "before the last boundary", "in the second file", "garbage"],
)
def test_a_form_that_does_not_arrive_whole_stores_nothing(api: TestClient, body: bytes, words: str) -> None:
    counts = row_counts(api)
    problem(api.post(RUNS, content=body, headers=FORM), 422, words)
    assert row_counts(api) == counts


def test_a_form_without_a_boundary_is_refused(api: TestClient) -> None:
    problem(api.post(RUNS, content=b"abc", headers={"content-type": "multipart/form-data"}), 422, "boundary")


def test_too_many_files_are_refused(api: TestClient) -> None:
    problem(api.post(RUNS, files=[("file", (f"{n}.json", b"{}")) for n in range(101)]), 422, "100")


def test_too_many_fields_are_refused(api: TestClient) -> None:
    problem(api.post(RUNS, data={f"f{n}": "x" for n in range(201)}, files={"file": ("r.json", b"{}")}), 422, "200")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tp": "two"}, "“tp” must be a whole number from 1 to 4096"),
        ({"tp": "0"}, "“tp” must be a whole number"),
        ({"devices": "-1"}, "“devices” must be a whole number"),
        ({"devices": "9" * 5000}, "“devices” must be a whole number"),
        ({"devices": "1.5"}, "“devices” must be a whole number"),
        ({"weight_dtype": "fp99"}, "weight_dtype"),
        ({"tags": ",".join(map(str, range(51)))}, "51 tags are too many: 50 at most"),
    ],
)
def test_a_field_that_cannot_be_used_is_named_and_nothing_is_stored(api: TestClient, fields: dict[str, str], words: str) -> None:
    counts = row_counts(api)
    body = problem(api.post(RUNS, files={"file": ("r.json", served_file(83))}, data=fields), 422, words)
    assert body["field"] == next(iter(fields))
    assert row_counts(api) == counts


def tar_of(data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("r.json")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def zip_of(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("r.json", data)
    return packed.getvalue()


ARCHIVES: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
    "zip": zip_of,
    "tar": tar_of,
}


@pytest.mark.parametrize("raw", [False, True], ids=["form", "raw"])
@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_is_refused_in_one_sentence(api: TestClient, kind: str, raw: bool) -> None:
    counts = row_counts(api)
    data = ARCHIVES[kind](served_file(84))
    answer = api.post(RUNS, content=data) if raw else api.post(RUNS, files={"file": ("r.bin", data)})
    problem(answer, 413, kind, "not unpacked yet", "upload the files inside")
    assert row_counts(api) == counts


def test_an_archive_beside_a_good_file_is_listed_as_refused(api: TestClient) -> None:
    parts = [("file", ("r.gz", gzip.compress(b"{}"))), ("file", ("r.json", served_file(85)))]
    answer = ok(api.post(RUNS, files=parts), 201)
    assert [item["file"] for item in answer["refused"]] == ["r.gz"]


@pytest.mark.parametrize("raw", [False, True], ids=["form", "raw"])
def test_more_than_32_mib_is_too_large(api: TestClient, raw: bool) -> None:
    counts = row_counts(api)
    data = b" " * (UPLOAD_CEILING_BYTES + 1)
    answer = api.post(RUNS, content=data) if raw else api.post(RUNS, files={"file": ("r.json", data)})
    problem(answer, 413, "larger than 32 MiB", "leave per-request arrays out")
    assert row_counts(api) == counts


def test_a_smaller_limit_holds_to_the_byte(tmp_path: Path) -> None:
    data = served_file(86)
    with served_from(tmp_path, max_upload_bytes=len(data)) as client:
        ok(client.post(RUNS, files={"file": ("r.json", data)}), 201)
        ok(client.post(RUNS, content=data), 200)
        limit = f"larger than {len(data):,} bytes"
        problem(client.post(RUNS, files={"file": ("r.json", data + b" ")}), 413, limit)
        problem(client.post(RUNS, content=data + b" "), 413, limit)
        # Several files in one form may together be larger than one may be, up to four times.
        parts = [("file", (f"{n}.json", data)) for n in range(4)]
        ok(client.post(RUNS, files=parts), 200)
        problem(client.post(RUNS, files=[*parts, ("file", ("5.json", data))]), 413, "several forms")
        assert row_counts(client)["upload"] == 1


def test_a_form_is_refused_at_the_first_byte_too_many(tmp_path: Path) -> None:
    """The rest of the body is never asked for, so that a body without end cannot fill the disk."""
    asked = 0

    def body() -> Any:
        nonlocal asked
        yield form_part(b"")[:-2]
        while asked < 1000:
            asked += 1
            yield b"x" * 1000

    with served_from(tmp_path, max_upload_bytes=10_000) as client:
        # The test transport reads a generator to its end before it calls, so the application is called as a server would.
        sent = list(body())
        taken: list[int] = []

        async def receive() -> dict[str, Any]:
            taken.append(len(taken))
            return {"type": "http.request", "body": sent[taken[-1]], "more_body": True}

        statuses: list[int] = []

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        scope = {
            "type": "http", "method": "POST", "path": RUNS, "raw_path": RUNS.encode(), "root_path": "", "query_string": b"",
            "scheme": "http", "http_version": "1.1", "server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 1),
            "headers": [(b"host", b"127.0.0.1:8000"), (b"content-type", FORM["content-type"].encode())],
        }  # fmt: skip
        assert client.portal is not None
        client.portal.call(client.app, scope, receive, send)
    assert statuses == [413]
    assert len(taken) <= 13


def test_requests_in_the_file_are_stored_with_their_fate(api: TestClient) -> None:
    run = ok(api.post(RUNS, files={"file": ("d.json", data_of(served_in_detail()))}), 201)["runs"][0]
    assert run["requests"] == {"sent": 5, "completed": 4, "failed": 1}
    assert run["metrics"]["ttft_s"]["from"] == "samples"
    assert run["metrics"]["ttft_s"]["n"] == 4
