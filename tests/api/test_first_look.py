"""The first press needs nothing filled in, and a device that nobody knows gets a profile of its measured rates."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.answers import API, ok
from tests.api.test_jobs import started
from tests.jobs.workers import MICROBENCH, HandWorker

DOCUMENT = (Path(__file__).resolve().parents[1] / "data" / "phaseline" / "device_microbench.json").read_bytes()


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


def test_one_press_asks_for_a_small_model_on_the_device_that_is_there(client: TestClient) -> None:
    with client:
        worker = HandWorker(client)
        worker.register()
        assert "Measure this machine" in client.get("/jobs").text
        assert client.post("/jobs/first", follow_redirects=False).headers["location"] == "/jobs/1"
        assert states(client) == [("inprocess_sweep", "queued")]
        job = worker.claim()
        assert job is not None
        assert (job["parameters"]["model"], job["hardware"]) == ("tiny-llama-25m", None)


def test_the_result_of_a_device_that_nobody_knows_makes_its_profile(client: TestClient) -> None:
    with client:
        worker, job = with_a_microbenchmark(client)
        ok(worker.result(job, DOCUMENT))
        # the file's own matrix-vector product, 25 GB/s, is what decode can reach
        assert ok(client.get(f"{API}/hardware/acme-cpu"))["achieved_bandwidth_bytes_per_s"] == 25e9
        assert "/hardware/acme-cpu" in client.get(f"{API}/jobs/{job['id']}/log").text


def test_a_profile_that_is_there_is_never_touched(client: TestClient) -> None:
    with client:
        first = ok(client.post(f"{API}/runs", content=DOCUMENT, params={"name": "a.json"}), 201)
        assert client.get(f"{API}/hardware/acme-cpu").status_code == 404
        ok(client.post(f"{API}/runs/{first['runs'][0]['id']}/device", json={"name": "Acme CPU"}), 201)
        before = ok(client.get(f"{API}/hardware/acme-cpu"))
        worker, job = with_a_microbenchmark(client)
        ok(worker.result(job, DOCUMENT))
        assert ok(client.get(f"{API}/hardware/acme-cpu")) == before


def with_a_microbenchmark(client: TestClient) -> tuple[HandWorker, dict[str, Any]]:
    """A worker that holds a job which looks at its device."""
    worker = HandWorker(client)
    worker.register()
    ok(client.post(f"{API}/jobs", json=MICROBENCH), 201)
    job = worker.claim()
    assert job is not None
    return worker, job
