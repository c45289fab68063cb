"""Jobs over HTTP: asked for, waited for, claimed, reported, finished once, followed and cancelled; the same on both databases."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.services import importing
from tests.answers import API, ok, problem
from tests.applications import BASE_URL, context_of, row_counts, settings_in
from tests.jobs.workers import CPU, MICROBENCH, HandWorker
from tests.postgres import own_database
from tests.result_files import served_file

JOBS = f"{API}/jobs"
LOCAL = ("127.0.0.1", 50_000)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def on(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An application on each kind of database, called from its own machine."""
    folder = tmp_path_factory.mktemp("jobs")
    if request.param == "sqlite":
        with started(folder) as client:
            yield client
        return
    with own_database(request.getfixturevalue("postgres_server")) as url, started(folder, database_url=url) as client:
        yield client


@pytest.fixture
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The same on SQLite alone."""
    with started(tmp_path_factory.mktemp("jobs")) as client:
        yield client


def started(folder: Any, client: tuple[str, int] = LOCAL, **changes: Any) -> TestClient:
    return TestClient(create_app(settings_in(folder, **changes)), base_url=BASE_URL, raise_server_exceptions=False, client=client)


def asked(client: TestClient, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = ok(client.post(JOBS, json={**MICROBENCH, **changes}), 201)
    return made


def job_of(client: TestClient, number: int) -> dict[str, Any]:
    found: dict[str, Any] = ok(client.get(f"{JOBS}/{number}"))
    return found


def test_a_job_from_the_queue_to_its_runs(on: TestClient) -> None:
    made = asked(on, label="nightly")
    assert (made["state"], made["attempt"], made["parameters"]["largest"]) == ("queued", 0, 2048)
    assert made["waiting_for"] == "No worker is connected: start one with `phaseline worker`."
    worker = HandWorker(on)
    assert worker.register()["heartbeat_s"] == 10
    assert job_of(on, made["id"])["waiting_for"] == "The next look of a worker."
    job = worker.claim()
    assert job is not None
    assert (job["id"], job["attempt"], job["device"], job["model"]) == (made["id"], 1, CPU["key"], None)
    assert worker.claim(holding=[job["id"]]) is None
    events = [
        {"event": "log", "text": "warming up"},
        {"event": "point", "point": {"phase": "decode", "batch": 1, "itl_s": 0.01}},
        {"event": "progress", "done": 1, "total": 4, "current": "gemm", "eta_s": 3.0},
    ]
    assert ok(worker.post(job, "progress", events=events)) == {"cancel": False}
    running = job_of(on, job["id"])
    assert (running["state"], running["worker"], running["progress"]["done"]) == ("running", "tester", 1)
    assert running["points"] == [{"phase": "decode", "batch": 1, "itl_s": 0.01}]
    stored = ok(worker.result(job, served_file(3)))
    assert ok(worker.result(job, served_file(3)))["run_ids"] == stored["run_ids"]
    assert ok(worker.finish(job))["state"] == "succeeded"
    ended = job_of(on, job["id"])
    assert ended["run_ids"] == stored["run_ids"]
    assert ok(on.get(f"{API}/runs/{stored['run_ids'][0]}"))["label"] == "nightly"
    assert worker.claim() is None
    log = on.get(f"{JOBS}/{job['id']}/log").text.splitlines()
    assert [line.split("] ", 1)[1] for line in log] == [
        "state: queued", "state: running, worker tester, device cpu-test", "info: warming up", "state: succeeded",
    ]  # fmt: skip


def test_an_attempt_ends_once_and_a_given_up_one_changes_nothing(on: TestClient) -> None:
    asked(on)
    first = HandWorker(on)
    first.register()
    job = first.claim()
    assert job is not None
    late = dict(first.headers)
    # The same worker starts anew: its lease is taken back at once, and the session before is over.
    assert first.register()["taken_back"] == [job["id"]]
    again = first.claim()
    assert again is not None
    assert (again["id"], again["attempt"]) == (job["id"], 2)
    problem(first.post(job, "heartbeat"), 409, "Attempt 1")
    problem(
        on.post(f"{API}/worker/jobs/{job['id']}/finish", json={"attempt": 2, "outcome": "failed"}, headers=late), 409, "session is over"
    )
    ok(first.finish(again))
    problem(first.finish(again), 409, "succeeded")
    assert job_of(on, job["id"])["lost_workers"] == 1


def runs_in(client: TestClient) -> list[int]:
    return [run["id"] for run in ok(client.get(f"{API}/runs"))["items"]]


@pytest.mark.parametrize("way", ["lost", "released", "interrupted"])
def test_the_runs_of_an_attempt_go_with_it_when_the_job_is_queued_again(on: TestClient, way: str) -> None:
    asked(on)
    worker = HandWorker(on)
    worker.register()
    job = worker.claim()
    assert job is not None
    brought = ok(worker.result(job, served_file(3)))["run_ids"]
    assert runs_in(on) == brought
    if way == "lost":
        worker.register()
    else:
        ok(worker.finish(job, way))
    assert runs_in(on) == []
    assert (job_of(on, job["id"])["state"], job_of(on, job["id"])["run_ids"]) == ("queued", [])
    assert sum(row_counts(on).values()) == 0
    problem(worker.result(job, served_file(3)), 409, "Attempt 1")
    assert runs_in(on) == []


def test_a_job_that_ends_keeps_what_its_last_attempt_brought(on: TestClient) -> None:
    asked(on)
    worker = HandWorker(on)
    for turn in range(3):
        worker.register()
        job = worker.claim()
        assert job is not None
        ok(worker.result(job, served_file(turn)))
    worker.register()
    ended = job_of(on, job["id"])
    assert (ended["state"], len(ended["run_ids"])) == ("lost", 1)
    assert runs_in(on) == ended["run_ids"]


def test_a_file_that_a_person_brought_before_stays_when_the_attempt_is_lost(on: TestClient) -> None:
    mine = ok(on.post(f"{API}/runs", content=served_file(3), params={"name": "mine.json"}), 201)["runs"][0]["id"]
    asked(on)
    worker = HandWorker(on)
    worker.register()
    job = worker.claim()
    assert job is not None
    assert ok(worker.result(job, served_file(3)))["run_ids"] == [mine]
    worker.register()
    assert runs_in(on) == [mine]
    assert job_of(on, job["id"])["run_ids"] == []


def test_an_attempt_that_is_given_up_while_its_result_is_read_leaves_no_run(on: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(on)
    worker = HandWorker(on)
    worker.register()
    job = worker.claim()
    assert job is not None
    read, headers = importing.read_runs, dict(worker.headers)

    def slowly(name: str, data: bytes) -> Any:
        worker.register()
        return read(name, data)

    monkeypatch.setattr(importing, "read_runs", slowly)
    path = f"{API}/worker/jobs/{job['id']}/result"
    answer = on.post(path, params={"attempt": 1, "name": "late.json"}, content=served_file(3), headers=headers)
    problem(answer, 409, "Attempt 1 of this job is over")
    assert sum(row_counts(on).values()) == 0


def test_cancelling_ends_a_waiting_job_at_once_and_a_running_one_by_its_worker(on: TestClient) -> None:
    waiting, running = asked(on, priority=-1), asked(on)
    worker = HandWorker(on)
    worker.register()
    job = worker.claim()
    assert job is not None
    assert job["id"] == running["id"], "the higher priority comes first"
    assert ok(on.post(f"{JOBS}/{waiting['id']}/cancel"))["state"] == "cancelled"
    told = ok(on.post(f"{JOBS}/{job['id']}/cancel"))
    assert (told["state"], told["cancel_requested"]) == ("running", True)
    assert ok(worker.post(job, "heartbeat")) == {"cancel": True}
    assert ok(worker.finish(job, "cancelled"))["state"] == "cancelled"
    assert ok(on.post(f"{JOBS}/{job['id']}/cancel"))["state"] == "cancelled"


def test_a_device_runs_one_job_whichever_worker_asks(on: TestClient) -> None:
    asked(on)
    second = asked(on)
    one, two = HandWorker(on, "one"), HandWorker(on, "two")
    one.register()
    two.register()
    job = one.claim()
    assert job is not None
    assert two.claim() is None
    assert job_of(on, second["id"])["waiting_for"] == (
        f"Test CPU of two runs job {job['id']}; Test CPU of one runs job {job['id']}."
    )  # fmt: skip
    ok(one.finish(job, "failed", "out of memory"))
    taken = two.claim()
    assert taken is not None
    assert job_of(on, job["id"])["reason"] == "out of memory"


def test_a_failed_device_burns_nothing_and_the_job_waits_a_while(on: TestClient) -> None:
    made = asked(on)
    worker = HandWorker(on)
    worker.register()
    job = worker.claim()
    assert job is not None
    assert ok(worker.finish(job, "interrupted", "the GPU is gone"))["state"] == "queued"
    found = job_of(on, made["id"])
    assert found["lost_workers"] == 0
    # Ten seconds, of which some have passed.
    assert re.match(r"A pause of \d+ s after a failure of the device: the GPU is gone", found["waiting_for"])


def test_a_lost_answer_is_given_again(local: TestClient) -> None:
    asked(local)
    worker = HandWorker(local)
    worker.register()
    job = worker.claim()
    assert worker.claim(holding=[]) == job


def test_what_no_worker_can_run_waits_and_says_for_what(local: TestClient) -> None:
    HandWorker(local).register()
    body = {"kind": "inprocess_sweep", "parameters": {"model": "llama-3-1-8b", "dtype": "bf16"}}
    made = ok(local.post(JOBS, json=body), 201)
    assert made["state"] == "queued"
    assert "Test CPU of tester: numpy measures fp32 up to 160 million parameters" in made["waiting_for"]
    told = ok(local.post(f"{JOBS}/estimate", json=body))
    assert told["devices"][0]["estimate"] is None
    assert told["waits_for"] == "No connected worker can run it now: it would wait."


def test_an_estimate_comes_from_the_cost_model_where_the_device_is_known(local: TestClient) -> None:
    gpu = {"key": "gpu-1", "name": "NVIDIA H100 80GB HBM3", "kind": "gpu", "backends": ["torch"], "memory_bytes": 80 * 2**30}
    HandWorker(local, device=gpu).register()
    parameters = {"model": "llama-3-1-8b", "dtype": "bf16", "prompt_tokens": [2000], "output_tokens": 100, "repeats": 5}
    told = ok(local.post(f"{JOBS}/estimate", json={"kind": "inprocess_sweep", "parameters": parameters}))
    device = told["devices"][0]
    assert device["hardware"] == "h100-sxm5-80gb"
    # Six runs of a prefill near 0.05 s and 100 steps of 5 to 8 ms, after 8e9 random weights at 5e7 a second: 160 s.
    assert 162 < device["estimate"]["seconds"] < 167
    # 16.1 GB of weights, and cache, activations and a framework beside them.
    assert 16.1e9 < device["estimate"]["memory_bytes"] < 19e9
    too_large = {**parameters, "model": "llama-3-1-70b"}
    refused = ok(local.post(f"{JOBS}/estimate", json={"kind": "inprocess_sweep", "parameters": too_large}))["devices"][0]["refused"]
    assert "GiB" in refused


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"kind": "rm -rf"}, "There is no kind of job"),
        ({"kind": "device_microbench", "parameters": {"largest": 1}}, "largest"),
        ({"kind": "device_microbench", "parameters": {"command": "x"}}, "command"),
        ({"kind": "inprocess_sweep", "parameters": {"model": "nope"}}, "No model is called"),
        ({"kind": "endpoint_sweep", "parameters": {"target": "nope", "model": "m"}}, "No target of this name"),
    ],
)
def test_what_cannot_be_a_job_is_refused(local: TestClient, body: dict[str, Any], words: str) -> None:
    problem(local.post(JOBS, json=body), 422, words)
    problem(local.post(f"{JOBS}/estimate", json=body), 422, words)


def test_following_a_job_ends_with_it_and_goes_on_from_any_event(local: TestClient) -> None:
    made = asked(local)
    worker = HandWorker(local)
    worker.register()
    job = worker.claim()
    assert job is not None
    ok(worker.post(job, "progress", events=[{"event": "progress", "done": 2, "total": 4}]))
    ok(worker.finish(job))
    path = f"{JOBS}/{made['id']}/events"
    whole = events(local.get(path).text)
    assert [kind for _, kind, _ in whole] == ["state", "state", "progress", "state", "end"]
    assert [number for number, _, _ in whole] == [1, 2, 3, 4, 4]
    assert whole[2][2]["done"] == 2
    rest = events(local.get(path, headers={"last-event-id": "3"}).text)
    assert rest == whole[3:]
    assert events(local.get(path, headers={"last-event-id": "99999999999999999999"}).text)[-1][1] == "end"
    problem(local.get(f"{JOBS}/999/events"), 404, "There is no job 999")


def events(text: str) -> list[tuple[int, str, dict[str, Any]]]:
    """Number, kind and data of each event of a stream."""
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        found.append((int(lines["id"]), lines["event"], json.loads(lines["data"])))
    return found


def test_the_list_goes_from_page_to_page(local: TestClient) -> None:
    numbers = [asked(local)["id"] for _ in range(5)]
    first = ok(local.get(JOBS, params={"limit": 2}))
    assert [item["id"] for item in first["items"]] == numbers[:2:-1]
    rest = ok(local.get(JOBS, params={"limit": 5, "cursor": first["next"]}))
    assert [item["id"] for item in rest["items"]] == numbers[2::-1]
    assert rest["next"] is None
    assert ok(local.get(JOBS, params={"state": ["failed", "running"]}))["items"] == []
    assert [item["waiting_for"] for item in first["items"]] == ["No worker is connected: start one with `phaseline worker`."] * 2


def test_a_worker_of_another_machine_needs_a_token_of_its_own(tmp_path: Any) -> None:
    with started(tmp_path, client=("192.0.2.7", 1), host="0.0.0.0", open=True) as afar:
        body = {"identity": "i" * 40, "name": "far", "version": "1", "kinds": [], "devices": []}
        problem(afar.post(f"{API}/worker/register", json=body), 403, "PHASELINE_WORKER_TOKEN")
        made = ok(afar.post(f"{API}/worker-tokens", json={"name": "far"}), 201)
        assert made["token"].startswith("phw_")
        listed = ok(afar.get(f"{API}/worker-tokens"))
        assert made["token"] not in json.dumps(listed)
        with context_of(afar).database.read() as session:
            dump = [str(tuple(row)) for row in session.connection().exec_driver_sql("SELECT * FROM worker_token")]
        assert len(dump) == 1
        assert made["token"] not in dump[0]
        worker = HandWorker(afar, "far", token=made["token"])
        worker.register()
        other = HandWorker(afar, "other", token=made["token"])
        other.headers["phaseline-session"] = worker.headers["phaseline-session"]
        refused = afar.post(f"{API}/worker/register", json={**body, "identity": "o" * 40}, headers=other.headers)
        problem(refused, 403, "each worker has a token of its own")
        problem(afar.post(f"{API}/worker/register", json=body, headers={"authorization": "Bearer phw_wrong"}), 403, "does not count")
        ok(afar.delete(f"{API}/worker-tokens/{made['id']}"))
        claim = afar.post(f"{API}/worker/claim", json={"free": [], "wait_s": 0}, headers=worker.headers)
        problem(claim, 403, "does not count")


def test_a_token_holds_only_its_own_leases(tmp_path: Any) -> None:
    with started(tmp_path, client=("192.0.2.7", 1), host="0.0.0.0", open=True) as afar:
        tokens = [ok(afar.post(f"{API}/worker-tokens", json={"name": name}), 201)["token"] for name in "ab"]
        one, two = (HandWorker(afar, name * 3, token=token) for name, token in zip("ab", tokens, strict=True))
        one.register()
        two.register()
        asked(afar)
        job = one.claim()
        assert job is not None
        for what, body in (("heartbeat", {}), ("progress", {"events": []}), ("finish", {"outcome": "failed"})):
            problem(two.post(job, what, **body), 409)
        problem(two.result(job, served_file(1)), 409)
        # Another's session with one's own token is refused as well.
        two.headers["phaseline-session"] = one.headers["phaseline-session"]
        problem(two.post(job, "heartbeat"), 403)
        assert job_of(afar, job["id"])["state"] == "running"


def test_a_proxy_on_this_machine_makes_nobody_local(local: TestClient) -> None:
    body = {"identity": "i" * 40, "name": "far", "version": "1", "kinds": [], "devices": []}
    problem(local.post(f"{API}/worker/register", json=body, headers={"x-forwarded-for": "127.0.0.1"}), 403)
    ok(local.post(f"{API}/worker/register", json=body))


def test_targets_are_registered_by_name(local: TestClient) -> None:
    path = f"{API}/targets"
    made = ok(local.post(path, json={"name": "vllm", "host": "10.0.0.5", "port": 8000, "networks": ["10.0.0.0/8"], "key_ref": "vllm"}), 201)
    assert (made["base_path"], made["key_ref"]) == ("/v1", "vllm")
    problem(local.post(path, json={"name": "vllm", "host": "10.0.0.6", "port": 8000}), 409, "vllm")
    for field, value in (
        ("host", "http://x"), ("host", "a b"), ("host", "169.254.169.254"), ("host", "2852039166"), ("host", "::ffff:169.254.169.254"),
        ("host", "u@h"), ("host", "x/y"), ("base_path", "v1"), ("base_path", "/../x"),
        ("networks", ["10.0.0.1/8"]), ("networks", ["x"]), ("metrics_path", "/m?x=1"),
    ):  # fmt: skip
        problem(local.post(path, json={"name": "t", "host": "h.example", "port": 1, field: value}), 422, field)
    job = {"kind": "endpoint_sweep", "parameters": {"target": "vllm", "model": "m"}}
    number = ok(local.post(JOBS, json=job), 201)["id"]
    worker = HandWorker(local)
    worker.register()
    handed = worker.claim()
    assert handed is not None
    assert (handed["target"]["host"], handed["target"]["key_ref"], handed["model"]) == ("10.0.0.5", "vllm", None)
    ok(worker.finish(handed, "released"))
    assert local.delete(f"{path}/{made['id']}").status_code == 204
    assert worker.claim() is None
    assert job_of(local, number)["reason"] == "its target is no longer registered"
    problem(local.delete(f"{path}/{made['id']}"), 404)


def test_a_schedule_makes_its_job_and_is_switched(local: TestClient) -> None:
    path = f"{API}/schedules"
    made = ok(local.post(path, json={"name": "nightly", **MICROBENCH, "every_hours": 24}), 201)
    assert made["next_at"] is not None
    problem(local.post(path, json={"name": "n", **MICROBENCH}), 422, "either every_hours or daily_at")
    problem(local.post(path, json={"name": "n", **MICROBENCH, "daily_at": "25:00"}), 422, "02:30")
    problem(local.patch(f"{path}/{made['id']}", json={"enabled": 0}), 422, "enabled")
    off = ok(local.patch(f"{path}/{made['id']}", json={"enabled": False}))
    assert (off["enabled"], off["next_at"]) == (False, None)
    assert ok(local.get(path))["items"] == [off]
    assert local.delete(f"{path}/{made['id']}").status_code == 204
    problem(local.patch(f"{path}/{made['id']}", json={"enabled": True}), 404)
