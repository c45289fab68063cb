"""The calibrations on the page of a device: a refusal with its reason, what was fitted before and after, and the way to predict with it."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.domain.calibration import LEAST_POINTS
from app.services.telling_points import CLIENTS, PROMPTS, telling_points
from tests.answers import API
from tests.applications import served_from
from tests.measured_loads import DEVICE, ENGINE, GRID, report
from tests.pages.conftest import words_of


@pytest.fixture
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served_from(tmp_path_factory.mktemp("calibrations")) as found:
        yield found


def calibrate(client: TestClient, **fields: str) -> tuple[int, str]:
    answer = client.post(f"/hardware/{DEVICE}/calibrate", data=fields)
    return answer.status_code, words_of(answer.text)


def test_a_device_is_calibrated_shown_used_and_the_calibration_deleted(client: TestClient) -> None:
    status, words = calibrate(client, engine=ENGINE)
    assert status == 422
    assert "Not calibrated. A calibration needs 8 operating points and 0 are there: measure the lowest" in words
    for number, (clients, prompt) in enumerate(GRID):
        client.post(
            f"{API}/runs", files={"file": (f"{number}.json", report(clients, prompt))}, data={"hardware": DEVICE, "weight_dtype": "bf16"}
        )
    status, words = calibrate(client, engine=ENGINE)
    assert status == 200
    for part in (
        "Calibration 1: vllm, bf16",
        "First token",
        "Each further token",
        "bandwidth reached",
        "From 8 operating points; runs 1 , 2",
    ):
        assert part in words
    page = client.get(f"/hardware/{DEVICE}").text
    assert 'href="/runs/8"' in page
    assert "calibration=1&amp;engine=vllm" in page
    asked = f"/predict?hardware={DEVICE}&calibration=1&engine=vllm&weight_dtype=bf16&model=llama-3-1-8b"
    shown = words_of(client.get(asked).text)
    assert "Calibration 1 scales the rates of vLLM" in shown
    assert "calibration 1: h100-sxm5-80gb, vllm, bf16" in shown
    assert client.post(f"/hardware/{DEVICE}/calibrations/1/delete").status_code == 200
    assert "There is no calibration 1" in words_of(client.get(asked).text)
    assert client.post(f"/hardware/{DEVICE}/calibrations/1/delete").status_code == 404


def test_a_device_says_which_points_are_worth_measuring(client: TestClient) -> None:
    page = client.get(f"/hardware/{DEVICE}").text
    points = telling_points()
    assert len(points) == LEAST_POINTS == page.count("phaseline measure endpoint URL")
    assert len(set(points)) == len(points)
    # They reach the ends of both loads, so that a calibration of them alone is not refused.
    assert {point.concurrency for point in points} >= {min(CLIENTS), max(CLIENTS)}
    assert {point.prompt_tokens for point in points} == set(PROMPTS)
    first = points[0]
    assert f"--hardware {DEVICE} --concurrency {first.concurrency} --prompt {first.prompt_tokens} --output {first.output_tokens}" in page
