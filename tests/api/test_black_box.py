"""GET /runs/{id}/black-box and its part of the page: planted times of a sweep come back, and what does not follow says why."""

import json
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.domain.run import Distribution, RequestSamples
from app.formats.phaseline_document import Point, document
from tests.answers import API, ok, problem

FRONT, LINEAR, SQUARE, STEP, GROWTH = 0.02, 5e-5, 2e-9, 0.008, 1e-7


def point(prompt: int, clients: int = 1, output: int = 101, prefill: bool = False) -> Point:
    """Ten requests of a server with these times."""
    noise = np.linspace(0.99, 1.01, 10)
    ttft = (FRONT + LINEAR * prompt + SQUARE * prompt**2) * noise
    gap = (STEP + GROWTH * (prompt + output / 2)) * noise
    gaps = np.repeat(gap, output - 1)
    samples = RequestSamples(
        ok=np.ones(10, dtype=np.bool_),
        prompt_tokens=np.full(10, float(prompt)),
        output_tokens=np.full(10, float(output)),
        ttft_s=ttft,
        e2e_s=ttft + gap * (output - 1),
        start_s=np.arange(10) * 10.0,
        chunk_gaps_s=gaps,
        chunk_gap_counts=np.full(10, output - 1, dtype=np.int64),
    )
    inside = {"prefill_s": Distribution(mean=LINEAR * prompt + SQUARE * prompt**2, n=10)} if prefill else {}
    return Point(
        model="meta-llama/Llama-3.1-8B-Instruct",
        engine="vllm",
        load_mode="closed",
        measured_at="client",
        token_count_source="server_usage",
        duration_s=100.0,
        concurrency=clients,
        sent=10,
        requests=samples,
        metrics=inside,
    )


def stored(client: TestClient, *points: Point) -> list[int]:
    data = json.dumps(document("endpoint_sweep", "phaseline-load/1", {}, points)).encode()
    sent = client.post(f"{API}/runs", content=data)
    return [run["id"] for run in ok(sent, sent.status_code)["runs"]]


def seen(client: TestClient, run: int, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = ok(client.get(f"{API}/runs/{run}/black-box{query}"))
    return found


def test_a_sweep_tells_what_was_planted(api: TestClient) -> None:
    numbers = stored(api, *(point(prompt, prefill=True) for prompt in (250, 1000, 4000, 8000)), point(1000, clients=4))
    found = seen(api, numbers[0])
    assert found["runs"] == numbers[:4]
    figures = found["figures"]
    assert {figure["label"] for figure in figures.values()} == {"inferred"}
    for key, truth in (
        ("front_end_s", FRONT),
        ("prefill_tokens_per_s", 1 / LINEAR),
        ("attention_share", SQUARE * 8000**2 / (LINEAR * 8000 + SQUARE * 8000**2)),
        ("step_without_context_s", STEP),
    ):
        low, high = figures[key]["range"]
        assert figures[key]["value"] == pytest.approx(truth, rel=0.03)
        assert low <= truth <= high
    # Eight billion parameters in 16 bit, read in 8 ms and a little more.
    assert 1.5e12 < figures["decode_bytes_per_s"]["value"] < 2.1e12
    assert found["assumptions"] == ["The weights and the cache of the server are taken as 16 bit: the run does not say."]
    assert [row["prefill_s"] for row in found["server"]] == [pytest.approx(LINEAR * n + SQUARE * n * n) for n in (250, 1000, 4000, 8000)]
    assert [row["prompt_tokens"] for row in found["first_token"]] == [250, 1000, 4000, 8000]


def test_runs_of_several_files_are_named(api: TestClient) -> None:
    (first,), (second,) = stored(api, point(500)), stored(api, point(4000))
    assert "two prompt lengths" in seen(api, first)["reason"]
    found = seen(api, first, f"?with={second}")
    assert (found["runs"], found["reason"]) == ([first, second], None)
    assert any("third prompt length" in text for text in found["untold"])


def test_runs_under_load_tell_nothing(api: TestClient) -> None:
    numbers = stored(api, *(point(prompt, clients=4) for prompt in (250, 1000, 4000)))
    found = seen(api, numbers[0])
    assert (found["runs"], found["figures"]) == ([], {})
    assert "--prompt" in found["reason"]


def test_a_run_that_is_not_there(api: TestClient) -> None:
    problem(api.get(f"{API}/runs/999/black-box"), 404)


def test_the_page_of_a_run_shows_it_and_of_another_does_not(api: TestClient) -> None:
    numbers = stored(api, *(point(prompt, prefill=True) for prompt in (250, 1000, 4000)))
    page = api.get(f"/runs/{numbers[1]}").text
    assert "The server seen from outside" in page
    assert page.count('<span class="badge">inferred</span>') >= 6
    alone = stored(api, point(700))
    assert "The server seen from outside" not in api.get(f"/runs/{alone[0]}").text
