"""Everything real but the model: a server, the agent and its measuring process as they are shipped, and a mock server behind a key.

What comes of it is a stored run; and no secret that was used on the way stands anywhere afterwards.
"""

import re
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2
import pytest
import zstandard

from benchmarks.mock_server import Behaviour
from tests.pages import markup
from tests.worker.load.serving import served
from tests.worker.processes import Site, eventually
from tests.worker.wire import wire_to

# Values that nothing else holds and that no pattern of the redactor knows: they must be absent because they never got there.
FILE_KEY, VARIABLE_KEY = "canary7file7key7of7a7target", "canary7variable7key7of7a7target"
SERVER_KEY = "canary7key7of7the7server7that7all7webhooks7follow7from"
SWEEP = {
    "model": "meta-llama/Llama-3.1-8B-Instruct", "concurrency": [1, 2], "prompt_tokens": [60], "output_tokens": [8], "duration_s": 0.2,
    "min_requests": 6, "warmup_requests": 1,
}  # fmt: skip
DEPLOYMENT = {"hardware": "h100-sxm5-80gb", "devices": 2, "engine": "vllm", "weight_dtype": "fp8"}
# One that fails now and then and one that lets nobody in: both tell with the error all they were sent, the key too.
ANSWERS = Behaviour(ttft_s=0.02, itl_s=0.008, fail_every=7)
REFUSES = Behaviour(fail_every=1, fail_status=401)
LEFT_ON_THE_WORKER = ("worker/keys/team.file", "worker/identity")
ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Measured:
    """What is there after three sweeps: the site, the jobs by what they asked, and what everybody said."""

    site: Site
    jobs: Mapping[str, dict[str, Any]]
    token: str
    hook_secret: str
    keys_shown: frozenset[str]
    said: bytes
    heard: bytes
    hooked: bytes

    @property
    def own_secrets(self) -> dict[str, str]:
        """What the agent proves with that it is this worker."""
        session = re.findall(rb"(?i)phaseline-session: (\S+)", self.said)[-1].decode()
        identity = (self.site.folder / "worker" / "identity").read_text()
        return {"token": self.token, "token's end": self.token[-20:], "identity": identity, "session": session}

    @property
    def secrets(self) -> dict[str, str]:
        keys = {"key of a file": FILE_KEY, "key of a variable": VARIABLE_KEY, "key of the server": SERVER_KEY}
        return {**keys, **self.own_secrets, "secret of a webhook": self.hook_secret}

    def leaks(self, data: bytes) -> list[str]:
        """The secrets that stand in these bytes."""
        return [name for name, secret in self.secrets.items() if secret.encode() in data]


@contextmanager
def hooked() -> Iterator[tuple[int, list[bytes]]]:
    """A receiver of webhooks: its port, and what it was sent, heads and bodies."""
    got: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(str(self.headers).encode() + self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=receiver.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver.server_port, got
    finally:
        receiver.shutdown()
        thread.join(10)
        receiver.server_close()


def sweep(site: Site, name: str, port: int, key: str, api: str, **more: Any) -> dict[str, Any]:
    """Register a target that needs a key, measure it, and give the job at its end."""
    target = {"name": name, "host": "127.0.0.1", "port": port, "networks": ["127.0.0.0/8"], "key_ref": key}
    assert site.post("/targets", target)
    asked = {"kind": "endpoint_sweep", "label": f"sweep of {name}", "parameters": {**SWEEP, "target": name, "api": api, **more}}
    return site.until(site.post("/jobs", asked)["id"], "succeeded", "failed", "refused", "timeout", within_s=90)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    site = Site(tmp_path_factory.mktemp("end-to-end"), SECRET_KEY=SERVER_KEY)
    (site.folder / "worker" / "keys").mkdir(parents=True)
    (site.folder / LEFT_ON_THE_WORKER[0]).write_text(f"{FILE_KEY}\n")
    try:
        site.start_server()
        token = site.post("/worker-tokens", {"name": "end to end"})["token"]
        with hooked() as (port, got), served(ANSWERS) as mock, served(REFUSES) as shut, wire_to(site.port) as wire:
            hook = site.post("/webhooks", {"url": f"http://127.0.0.1:{port}/hook", "networks": ["127.0.0.0/8"]})
            site.post(f"/webhooks/{hook['id']}/ping", {}, ok=(202,))
            site.start_worker(f"http://127.0.0.1:{wire.port}", WORKER_TOKEN=token, KEY_TEAM_VARIABLE=VARIABLE_KEY)
            jobs = {
                "completions": sweep(site, "by file", mock.port, "team.file", "completions"),
                "chat": sweep(site, "by variable", mock.port, "team.variable", "chat", **DEPLOYMENT),
                "shut": sweep(site, "shut", shut.port, "team.file", "chat"),
            }
            eventually(lambda: got)
            site.stop("worker")
            shown = frozenset(each.headers.get("authorization", "") for each in (*mock.log, *shut.log))
            yield Measured(site, jobs, token, hook["secret"], shown, wire.said, wire.heard, b"".join(got))
    finally:
        site.close()


def read(site: Site) -> httpx2.Client:
    return httpx2.Client(base_url=site.address, timeout=30, trust_env=False)


def words(html: str) -> str:
    return " ".join("".join(markup.read(html).all("main")[0].text).split())


def test_a_sweep_of_a_registered_target_becomes_runs_with_samples(measured: Measured) -> None:
    job = measured.jobs["completions"]
    assert (job["state"], job["attempt"], len(job["run_ids"])) == ("succeeded", 1, 2)
    with read(measured.site) as client:
        for run_id, clients in zip(job["run_ids"], (1, 2), strict=True):
            run = client.get(f"/api/v1/runs/{run_id}").json()
            assert (run["format"], run["label"], run["model"]) == ("phaseline", "sweep of by file", SWEEP["model"])
            assert run["workload"]["concurrency"] == clients
            # What the mock does is known: the first token after 20 ms, then one every 8 ms.
            assert run["metrics"]["ttft_s"]["min"] >= 0.02
            assert run["metrics"]["itl_s"]["mean"] == pytest.approx(0.008, rel=0.5)
            assert run["requests"]["completed"] >= 5
            rows = client.get(f"/api/v1/runs/{run_id}/requests").json()
            assert len(rows["items"]) == run["requests"]["sent"]


def test_once_its_device_is_named_the_run_stands_beside_its_prediction(measured: Measured) -> None:
    run_id = measured.jobs["completions"]["run_ids"][0]
    with read(measured.site) as client:
        before = client.get(f"/runs/{run_id}").text
        assert "No prediction: the file does not name the hardware; choose one under Edit." in before
        assert client.patch(f"/api/v1/runs/{run_id}", json={"hardware": "h100-sxm5-80gb"}).status_code == 200
        page = client.get(f"/runs/{run_id}").text
        found = client.get(f"/api/v1/runs/{run_id}/diagnosis").json()
    assert "No prediction" not in page
    assert 'data-chart="roofline"' in page
    # 8 ms a step against a floor of about 16 GB / 3.35 TB/s = 4.8 ms
    assert found["verdicts"]["decode"] is not None
    assert found["verdict"] in page.replace("&#39;", "'")


def test_a_sweep_that_says_what_the_server_runs_on_has_its_prediction_at_once(measured: Measured) -> None:
    run_id = measured.jobs["chat"]["run_ids"][0]
    with read(measured.site) as client:
        run = client.get(f"/api/v1/runs/{run_id}").json()
        page = client.get(f"/runs/{run_id}").text
    assert {key: run[key] for key in DEPLOYMENT} == DEPLOYMENT
    assert "No prediction" not in page
    again = next(link for link in markup.read(page).all("a") if link.words == "Measure this again").attributes["href"]
    assert "hardware=h100-sxm5-80gb" in again
    assert "weight_dtype=fp8" in again


def test_a_target_that_lets_nobody_in_ends_its_job_with_a_reason(measured: Measured) -> None:
    job = measured.jobs["shut"]
    assert (job["state"], job["run_ids"]) == ("refused", [])
    assert "401" in job["reason"]


def test_each_key_was_shown_to_its_target_and_never_left_the_worker_otherwise(measured: Measured) -> None:
    assert {f"Bearer {FILE_KEY}", f"Bearer {VARIABLE_KEY}"} <= measured.keys_shown
    # The worker proved who it is by its own secrets, which no answer repeats; no key of a target ever came near the server.
    assert set(measured.leaks(measured.said)) == set(measured.own_secrets)
    assert set(measured.leaks(measured.heard)) == {"session"}, "the answer to the registration names it, and nothing else does"
    assert measured.heard.count(measured.secrets["session"].encode()) == 1
    assert b"ping" in measured.hooked
    assert measured.leaks(measured.hooked) == []


def test_no_secret_stands_in_a_file_or_a_log(measured: Measured) -> None:
    folder = measured.site.folder
    found = {
        str(path.relative_to(folder)): leaks
        for path in folder.rglob("*")
        if path.is_file() and (leaks := measured.leaks(path.read_bytes()))
    }
    assert found == {LEFT_ON_THE_WORKER[0]: ["key of a file"], LEFT_ON_THE_WORKER[1]: ["identity"]}
    assert b"job ended" in (folder / "worker.log").read_bytes()


def test_no_secret_stands_in_any_row_of_any_table(measured: Measured) -> None:
    cells = dict(rows_of(measured.site.folder / "data" / "phaseline.db"))
    assert {"job", "job_event", "run", "target", "upload_chunk", "webhook", "webhook_delivery", "worker", "worker_token"} <= set(cells)
    assert {table: leaks for table, data in cells.items() if (leaks := measured.leaks(data))} == {}
    assert b"phaseline" in cells["upload_chunk"], "what is packed is looked into"
    assert b"team.file" in cells["target"], "the name of a key is no secret"


def rows_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """Every table with all that stands in its rows, unpacked."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = database.execute(f'SELECT * FROM "{table}"').fetchall()
            yield table, b"\n".join(bytes_of(cell) for row in rows for cell in row if cell is not None)


def bytes_of(cell: object) -> bytes:
    if not isinstance(cell, bytes):
        return str(cell).encode()
    return zstandard.ZstdDecompressor().decompressobj().decompress(cell) if cell.startswith(ZSTD) else cell


def test_no_secret_stands_on_any_page(measured: Measured) -> None:
    with read(measured.site) as client:
        pages = crawled(client)
    assert {"/", "/runs", "/jobs", "/jobs/workers", "/webhooks", f"/runs/{measured.jobs['chat']['run_ids'][0]}"} <= set(pages)
    assert {address: leaks for address, data in pages.items() if (leaks := measured.leaks(data))} == {}
    assert b"team.file" in pages["/jobs/workers"]


def crawled(client: httpx2.Client) -> dict[str, bytes]:
    """Every address of this server that a page leads to, what may be downloaded too; each path once, and one of the catalog's many."""
    found: dict[str, bytes] = {}
    waiting, seen = deque(["/", "/jobs", "/jobs/workers", "/webhooks"]), set()
    while waiting:
        address = waiting.popleft()
        answer = client.get(address, follow_redirects=False)
        found[urlsplit(address).path] = found.get(urlsplit(address).path, b"") + str(answer.headers).encode() + answer.content
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        for link in markup.read(answer.text).links():
            target = urlsplit(urljoin(f"{client.base_url}{address}", link))._replace(scheme="", netloc="", fragment="")
            like = re.sub(r"^/(models|hardware)/[^/]+", r"/\1/…", target.path)
            if like not in seen:
                seen.add(like)
                waiting.append(target.geturl())
    return found


def test_no_secret_stands_in_any_answer_or_export(measured: Measured) -> None:
    first, second = measured.jobs["completions"]["run_ids"]
    places = {
        "run_id": first, "job_id": measured.jobs["completions"]["id"], "slug": "h100-sxm5-80gb", "number": 1, "base": first,
        "other": second, "run": second, "model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "engine": "vllm",
    }  # fmt: skip
    answers: dict[str, httpx2.Response] = {}
    with read(measured.site) as client:
        for path, methods in client.get("/api/v1/openapi.json").json()["paths"].items():
            for query in asked(methods["get"], places) if "get" in methods else ():
                answers[f"{path} {query.get('as', '')}".strip()] = client.get(path.format(**places), params=query)
    assert {
        path: leaks for path, answer in answers.items() if (leaks := measured.leaks(str(answer.headers).encode() + answer.content))
    } == {}
    assert {path: answer.text for path, answer in answers.items() if answer.status_code >= 500} == {}
    told = (
        "/runs", "/runs csv", "/runs/{run_id}/original", "/runs/{run_id}/requests", "/compare.md", "/compare csv", "/targets", "/webhooks",
        "/webhooks/{number}/deliveries", "/worker-tokens", "/workers", "/jobs/{job_id}/log", "/jobs/{job_id}/events",
    )  # fmt: skip
    assert {path: answers[f"/api/v1{path}"].status_code for path in told} == dict.fromkeys(told, 200)


def asked(operation: Mapping[str, Any], places: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The queries of a call: what it must be told, in each form in which its answer may be had."""
    parameters = [each for each in operation.get("parameters", []) if each["in"] == "query"]
    needed = {each["name"]: places[each["name"]] for each in parameters if each.get("required")}
    yield needed
    if any(each["name"] == "as" for each in parameters):
        yield {**needed, "as": "csv"}
