"""The published description of the API: complete, with examples, and true."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api import bodies, comparison_shapes, shapes
from tests.answers import API, ok

# Calls that name a stored run otherwise than in their path.
NAME_A_RUN = {
    "get /api/v1/compare",
    "get /api/v1/compare.md",
    "get /api/v1/gate",
    "post /api/v1/baselines",
    "get /api/v1/trends/series",
    "post /api/v1/annotations",
}
METHODS = {"get", "post", "put", "patch", "delete"}
CONTRACT = {
    "/api/v1/hardware": {"get", "post"},
    "/api/v1/hardware/{slug}": {"get", "patch", "delete"},
    "/api/v1/calibrations": {"get", "post"},
    "/api/v1/calibrations/{number}": {"get", "delete"},
    "/api/v1/models": {"get", "post"},
    "/api/v1/kv-cache": {"post"},
    "/api/v1/models/{slug}": {"get", "patch", "delete"},
    "/api/v1/runs": {"get", "post"},
    "/api/v1/runs/{run_id}": {"get", "patch", "delete"},
    "/api/v1/runs/{run_id}/requests": {"get"},
    "/api/v1/runs/{run_id}/original": {"get"},
    "/api/v1/runs/{run_id}/decomposition": {"get"},
    "/api/v1/runs/{run_id}/telemetry": {"get"},
    "/api/v1/runs/{run_id}/device": {"get", "post"},
    "/api/v1/runs/{run_id}/diagnosis": {"get"},
    "/api/v1/runs/{run_id}/levers": {"get"},
    "/api/v1/runs/{run_id}/black-box": {"get"},
    "/api/v1/runs/{run_id}/roofline": {"get"},
    "/api/v1/runs/{run_id}/reimport": {"get", "post"},
    "/api/v1/reimports": {"get"},
    "/api/v1/compare": {"get"},
    "/api/v1/compare.md": {"get"},
    "/api/v1/gate": {"get"},
    "/api/v1/jobs": {"get", "post"},
    "/api/v1/jobs/estimate": {"post"},
    "/api/v1/jobs/{job_id}": {"get"},
    "/api/v1/jobs/{job_id}/cancel": {"post"},
    "/api/v1/jobs/{job_id}/log": {"get"},
    "/api/v1/jobs/{job_id}/events": {"get"},
    "/api/v1/workers": {"get"},
    "/api/v1/worker-tokens": {"get", "post"},
    "/api/v1/worker-tokens/{token_id}": {"delete"},
    "/api/v1/targets": {"get", "post"},
    "/api/v1/targets/{target_id}": {"delete"},
    "/api/v1/schedules": {"get", "post"},
    "/api/v1/schedules/{schedule_id}": {"patch", "delete"},
    "/api/v1/worker/register": {"post"},
    "/api/v1/worker/claim": {"post"},
    "/api/v1/worker/leave": {"post"},
    "/api/v1/worker/jobs/{job_id}/heartbeat": {"post"},
    "/api/v1/worker/jobs/{job_id}/progress": {"post"},
    "/api/v1/worker/jobs/{job_id}/result": {"post"},
    "/api/v1/worker/jobs/{job_id}/finish": {"post"},
    "/api/v1/baselines": {"get", "post"},
    "/api/v1/baselines/{number}": {"get", "patch", "delete"},
    "/api/v1/trends": {"get"},
    "/api/v1/trends/series": {"get"},
    "/api/v1/annotations": {"get", "post"},
    "/api/v1/annotations/{number}": {"delete"},
    "/api/v1/webhooks": {"get", "post"},
    "/api/v1/webhooks/{number}": {"delete"},
    "/api/v1/webhooks/{number}/ping": {"post"},
    "/api/v1/webhooks/{number}/deliveries": {"get"},
    "/api/v1/predict": {"get", "post"},
    "/api/v1/predict/change": {"get"},
    "/api/v1/predict/map": {"get"},
    "/api/v1/predict/rates": {"get"},
    "/healthz": {"get"},
    "/readyz": {"get"},
}


@pytest.fixture(scope="module")
def description(api: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = ok(api.get(f"{API}/openapi.json"))
    return found


def operations(description: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method} {path}": operation
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        if method in METHODS and path in CONTRACT
    }


def test_every_call_of_the_contract_is_described(description: dict[str, Any]) -> None:
    described = {path: set(methods) & METHODS for path, methods in description["paths"].items()}
    assert {path: described.get(path) for path in CONTRACT} == CONTRACT


def test_pages_are_no_part_of_it_under_the_api_prefix(description: dict[str, Any]) -> None:
    assert {path for path in description["paths"] if path.startswith(API)} == {path for path in CONTRACT if path.startswith(API)}


def test_every_call_has_a_summary_and_a_description(description: dict[str, Any]) -> None:
    bare = [name for name, operation in operations(description).items() if not operation.get("summary") or not operation.get("description")]
    assert bare == []


def test_every_call_of_the_api_documents_what_can_go_wrong(description: dict[str, Any]) -> None:
    for name, operation in operations(description).items():
        method, path = name.split(" ")
        statuses = set(operation["responses"])
        if not path.startswith(API):
            continue
        assert {"400", "503"} <= statuses, name
        assert ("404" in statuses) == ("{" in path or name in NAME_A_RUN), name
        assert ("403" in statuses) == (method != "get"), name


def test_every_problem_is_described_as_problem_json(description: dict[str, Any]) -> None:
    for name, operation in operations(description).items():
        if name.startswith(("get /healthz", "get /readyz")):
            continue
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"], f"{name} {status}"


def test_success_has_a_schema(description: dict[str, Any]) -> None:
    for name, operation in operations(description).items():
        for status, answer in operation["responses"].items():
            if status in ("200", "201"):
                # A stream describes each of its items.
                assert all(content.get("schema") or content["itemSchema"] for content in answer["content"].values()), f"{name} {status}"


@pytest.mark.parametrize(
    "name", ["PredictionBody", "HardwareBody", "ModelBody", "RunPatch", "ComparisonShape", "PredictionShape", "RunSummaryExample"]
)
def test_examples_are_given(description: dict[str, Any], name: str) -> None:
    schemas = description["components"]["schemas"]
    if name == "RunSummaryExample":
        assert schemas["StoredRunShape"]["properties"]["metrics"]["examples"]
        return
    assert schemas[name]["examples"]


def test_examples_of_bodies_fit_their_own_schema() -> None:
    for kind in (bodies.PredictionRequest, bodies.HardwareBody, bodies.ModelBody, bodies.RunPatch):
        for example in kind.model_config["json_schema_extra"]["examples"]:  # type: ignore[index, call-overload]
            kind.model_validate(example)


def test_the_example_of_a_comparison_has_the_keys_of_the_contract() -> None:
    example: dict[str, Any] = comparison_shapes.ComparisonShape.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index, call-overload]
    assert {"base", "others", "comparable", "metrics", "attribution", "phase", "sentence"} <= set(example)
    attribution = example["attribution"]
    # The parts and the remainder are the change: 0.127 - 0.598 = -0.471.
    assert sum(part["delta_s"] for part in attribution["parts"]) + attribution["remainder_s"] == pytest.approx(attribution["total_s"])


def test_the_example_of_a_prediction_is_what_is_answered(api: TestClient) -> None:
    example: dict[str, Any] = shapes.PredictionShape.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index, call-overload]
    answer = ok(api.get(f"{API}/predict"))
    shapes.PredictionShape.model_validate(example)

    def agree(told: Any, found: Any, where: str) -> None:
        if isinstance(told, dict):
            for key, value in told.items():
                agree(value, found[key], f"{where}.{key}")
        elif isinstance(told, float):
            assert told == pytest.approx(found, rel=2e-3), where
        elif not isinstance(told, list):
            assert told == found, where

    agree(example, answer, "")
    assert set(example) <= set(answer)
