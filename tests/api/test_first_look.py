"""The first press: a device nobody knows is measured, gets a profile of its rates, and the model that follows is priced on it."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.answers import API, ok
from tests.api.test_jobs import started
from tests.jobs.workers import HandWorker

DATA = Path(__file__).resolve().parents[1] / "data" / "phaseline"


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    return started(tmp_path)


def states(client: TestClient) -> list[tuple[str, str]]:
    return [(job["kind"], job["state"]) for job in reversed(ok(client.get(f"{API}/jobs"))["items"])]


def test_nothing_is_asked_for_without_a_worker(client: TestClient) -> None:
    with client:
        answer = client.post("/jobs/first", follow_redirects=False)
        assert answer.status_code == 409
        assert "start one with `phaseline worker`" in answer.text
        assert states(client) == []
        assert "Measure this machine" not in client.get("/jobs").text


def test_a_new_device_is_measured_and_profiled_before_the_model(client: TestClient) -> None:
    with client:
        worker = HandWorker(client)
        worker.register()
        assert "Measure this machine" in client.get("/jobs").text
        assert client.post("/jobs/first", follow_redirects=False).headers["location"] == "/jobs/2"
        assert states(client) == [("device_microbench", "queued"), ("inprocess_sweep", "queued")]
        job = worker.claim()
        assert job is not None
        assert job["kind"] == "device_microbench"
        run = ok(worker.result(job, (DATA / "device_microbench.json").read_bytes()))["run_ids"][0]
        ok(worker.finish(job))
        profile = ok(client.get(f"{API}/hardware/acme-cpu"))
        # the file's own matrix-vector product, 25 GB/s, is what decode can reach
        assert profile["achieved_bandwidth_bytes_per_s"] == 25e9
        assert "/hardware/acme-cpu" in client.get(f"{API}/jobs/{job['id']}/log").text
        assert ok(client.get(f"{API}/runs/{run}"))["hardware_slug"] in (None, "acme-cpu")
        following = worker.claim()
        assert following is not None
        assert following["kind"] == "inprocess_sweep"


def test_a_profile_that_is_there_is_never_touched(client: TestClient) -> None:
    with client:
        first = ok(client.post(f"{API}/runs", content=(DATA / "device_microbench.json").read_bytes(), params={"name": "a.json"}), 201)
        assert client.get(f"{API}/hardware/acme-cpu").status_code == 404
        ok(client.post(f"{API}/runs/{first['runs'][0]['id']}/device", json={"name": "Acme CPU"}), 201)
        before = ok(client.get(f"{API}/hardware/acme-cpu"))
        worker = HandWorker(client)
        worker.register()
        client.post("/jobs/first", follow_redirects=False)
        job = worker.claim()
        assert job is not None
        if job["kind"] == "device_microbench":
            ok(worker.result(job, (DATA / "device_microbench.json").read_bytes()))
        assert ok(client.get(f"{API}/hardware/acme-cpu")) == before
