"""Calibrations over HTTP: fitted from stored runs, used in a prediction, refused with a reason, deleted; withheld figures play no part."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.answers import API, ok, problem
from tests.measured_loads import DEVICE, ENGINE, GRID, MODEL, TRUTH, report

CALIBRATIONS = f"{API}/calibrations"


def upload(api: TestClient, data: bytes, name: str, device: str = DEVICE) -> Any:
    fields = {"hardware": device, "weight_dtype": "bf16", "project": device}
    return ok(api.post(f"{API}/runs", files={"file": (name, data)}, data=fields), 201)


def test_runs_of_known_factors_give_them_back_and_are_predicted(api: TestClient) -> None:
    for number, (clients, prompt) in enumerate(GRID):
        upload(api, report(clients, prompt), f"{number}.json")
    made = ok(api.post(CALIBRATIONS, json={"hardware": DEVICE, "engine": ENGINE}), 201)
    assert (made["hardware"], made["engine"], made["weight_dtype"], made["points"]) == (DEVICE, ENGINE, "bf16", 8)
    assert made["left_out"]["decode"]["mean"] < 0.05 < made["before"]["decode"]["mean"]
    assert made["scalars"]["read"] == pytest.approx(TRUTH["read"], rel=0.1)
    assert len(made["run_ids"]) == 8
    assert ok(api.get(f"{CALIBRATIONS}/{made['id']}")) == made
    assert ok(api.get(CALIBRATIONS))["items"] == [made]
    assert ok(api.get(CALIBRATIONS, params={"hardware": "l40s"}))["items"] == []

    asked = {"model": MODEL, "hardware": DEVICE, "engine": ENGINE, "prompt_tokens": 500, "output_tokens": 200, "concurrency": 16}
    plain, scaled = (ok(api.post(f"{API}/predict", json={**asked, "calibration": name})) for name in ("default", str(made["id"])))
    measured = ok(api.get(f"{API}/runs", params={"limit": 100}))["items"]
    point = (16, 500)
    truth = next(
        run["metrics"]["itl_s"]["mean"]
        for run in measured
        if (run["workload"]["concurrency"], run["workload"]["prompt_tokens_mean"]) == point
    )
    assert abs(scaled["itl_s"] / truth - 1) < 0.05 < abs(plain["itl_s"] / truth - 1)
    assert any(f"Calibration {made['id']}" in sentence for sentence in scaled["assumptions"])
    assert ok(api.post(f"{API}/predict", json={**asked, "calibration": str(made["id"]), "sweep": {"concurrency": [16]}}))["columns"][
        "itl_s"
    ] == [pytest.approx(scaled["itl_s"])]

    for changed, words in (({"hardware": "l40s"}, "is of"), ({"engine": None}, "is of"), ({"weight_dtype": "fp8"}, "is of")):
        refused = problem(api.post(f"{API}/predict", json={**asked, "calibration": str(made["id"]), **changed}), 422)
        assert (refused["field"], words in refused["detail"]) == ("calibration", True)
    assert api.delete(f"{CALIBRATIONS}/{made['id']}").status_code == 204
    problem(api.get(f"{CALIBRATIONS}/{made['id']}"), 404)
    problem(api.delete(f"{CALIBRATIONS}/{made['id']}"), 404)
    assert "no calibration" in problem(api.post(f"{API}/predict", json={**asked, "calibration": str(made["id"])}), 422)["detail"]


def test_too_little_is_refused_with_what_to_measure(api: TestClient) -> None:
    asked = {"hardware": "l40s", "engine": ENGINE}
    assert "needs 8 operating points and 0 are there" in problem(api.post(CALIBRATIONS, json=asked), 422)["detail"]
    for number, (clients, prompt) in enumerate(GRID[:7]):
        upload(api, report(clients, prompt), f"{number}.json", "l40s")
    assert "7 are there" in problem(api.post(CALIBRATIONS, json=asked), 422)["detail"]
    # An eighth in which nothing was answered: all of its figures are withheld.
    upload(api, report(64, 4000, completed=0, failed=640), "8.json", "l40s")
    assert "7 are there" in problem(api.post(CALIBRATIONS, json=asked), 422)["detail"]


def test_what_is_asked_for_must_be_there(api: TestClient) -> None:
    assert "No device" in problem(api.post(CALIBRATIONS, json={"hardware": "no-such"}), 422)["detail"]
    assert "No engine" in problem(api.post(CALIBRATIONS, json={"hardware": DEVICE, "engine": "no-such"}), 422)["detail"]
    assert problem(api.post(CALIBRATIONS, json={"hardware": DEVICE, "weight_dtype": "no-such"}), 422)["field"] == "weight_dtype"
    assert problem(api.post(f"{API}/predict", json={"calibration": "mine"}), 422)["field"] == "calibration"
