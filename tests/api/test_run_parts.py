"""What lies behind a run: its requests, its original, the numbers and figures of its charts."""

import csv
import io
from typing import Any

import plotly.graph_objects as go
import pytest
from fastapi.testclient import TestClient

from app.api.shapes import DecompositionShape, RequestRows, RooflineShape
from tests.answers import API, ok, problem
from tests.result_files import data_of, served, served_file, served_in_detail

RUNS = f"{API}/runs"
KNOWN = {"hardware": "h100-sxm5-80gb", "model": "llama-3-1-8b", "weight_dtype": "bf16"}


@pytest.fixture(scope="module")
def detailed(api: TestClient) -> int:
    """A run with five requests, one of which failed."""
    number: int = ok(api.post(RUNS, params=KNOWN, content=data_of(served_in_detail())), 201)["runs"][0]["id"]
    return number


@pytest.fixture(scope="module")
def alone(api: TestClient) -> int:
    """A run of one client on a known device, without per-request arrays."""
    number: int = ok(api.post(RUNS, params=KNOWN, content=data_of(served())), 201)["runs"][0]["id"]
    return number


def test_requests_are_rows_in_the_order_sent(api: TestClient, detailed: int) -> None:
    answer = ok(api.get(f"{RUNS}/{detailed}/requests"))
    RequestRows.model_validate(answer)
    rows = answer["items"]
    assert answer["next"] is None
    assert [row["index"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["ok"] for row in rows] == [True, True, True, False, True]
    assert [row["prompt_tokens"] for row in rows] == [10, 20, 30, 40, 50]
    assert [row["output_tokens"] for row in rows] == [3, 5, 2, 0, 1]
    assert [row["ttft_s"] for row in rows] == [0.1, 0.2, 0.3, None, 0.4]
    # First token and gaps: 100 + 2 x 10, 200 + 4 x 20, 300 + 30 and 400 ms; the failed one has neither.
    assert [row["e2e_s"] for row in rows] == [0.12, 0.28, 0.33, None, 0.4]
    assert [row["chunk_gaps"] for row in rows] == [2, 4, 1, 0, 0]
    assert [row["error"] for row in rows] == [None, None, None, "Traceback: timeout", None]


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_pages_of_requests_are_the_whole(api: TestClient, detailed: int, limit: int) -> None:
    seen: list[int] = []
    cursor: str | None = None
    for _ in range(6):
        answer = ok(api.get(f"{RUNS}/{detailed}/requests", params={"limit": limit, **({"cursor": cursor} if cursor else {})}))
        seen += [row["index"] for row in answer["items"]]
        cursor = answer["next"]
        if cursor is None:
            break
    assert seen == [0, 1, 2, 3, 4]


def test_beyond_the_last_request_there_is_none(api: TestClient, detailed: int) -> None:
    assert ok(api.get(f"{RUNS}/{detailed}/requests", params={"cursor": 5})) == {"items": [], "next": None}


@pytest.mark.parametrize("query", ["cursor=-1", "cursor=x", f"cursor={2**63}", "limit=0", "limit=501"])
def test_a_page_that_cannot_be_is_refused(api: TestClient, detailed: int, query: str) -> None:
    problem(api.get(f"{RUNS}/{detailed}/requests?{query}"), 422, f"query.{query.split('=')[0]}")


def test_a_file_without_arrays_has_no_requests(api: TestClient, alone: int) -> None:
    assert ok(api.get(f"{RUNS}/{alone}/requests")) == {"items": [], "next": None}


def test_requests_as_csv(api: TestClient, detailed: int) -> None:
    answer = api.get(f"{RUNS}/{detailed}/requests", headers={"accept": "text/csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="run-{detailed}-requests.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["ttft_s"] for row in rows] == ["0.1", "0.2", "0.3", "", "0.4"]
    assert [row["error"] for row in rows] == ["", "", "", "Traceback: timeout", ""]


def test_the_original_is_a_download_that_nothing_runs(api: TestClient) -> None:
    data = served_file(1, model_id="<script>alert(1)</script>")
    number = ok(api.post(RUNS, params={"name": 'x"; filename=evil.html\r\nset-cookie: a=b'}, content=data), 201)["runs"][0]["id"]
    answer = api.get(f"{RUNS}/{number}/original")
    assert answer.content == data
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == f'attachment; filename="run-{number}-original"'
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in answer.headers


def test_the_blocks_of_a_half_sum_to_it_and_the_halves_to_the_request(api: TestClient, alone: int) -> None:
    answer = ok(api.get(f"{RUNS}/{alone}/decomposition"))
    DecompositionShape.model_validate(answer)
    assert answer["measured"] is True
    prefill, decode = answer["halves"]
    assert (prefill["phase"], decode["phase"]) == ("prefill", "decode")
    # 50 ms to the first token, then 50 steps of 10 ms.
    assert (prefill["total_s"], prefill["times"], prefill["each_s"]) == (pytest.approx(0.05), 1, pytest.approx(0.05))
    assert (decode["total_s"], decode["times"], decode["each_s"]) == (pytest.approx(0.5), 50, pytest.approx(0.01))
    assert answer["total_s"] == pytest.approx(0.55)
    for half in (prefill, decode):
        assert sum(block["total_s"] for block in half["blocks"]) == pytest.approx(half["total_s"])
        assert sum(block["each_s"] for block in half["blocks"]) == pytest.approx(half["each_s"])
        unexplained = [block for block in half["blocks"] if block["kind"] == "unexplained"]
        assert [block["each_s"] for block in unexplained] == [pytest.approx(half["unexplained_s"])]
        assert all(block["title"] and block["arithmetic"] for block in half["blocks"])


def test_the_roofline_has_both_ceilings_and_every_point_under_them(api: TestClient, alone: int) -> None:
    answer = ok(api.get(f"{RUNS}/{alone}/roofline"))
    RooflineShape.model_validate(answer)
    ceilings = answer["ceilings"]
    assert (ceilings["peak_flops_per_s"], ceilings["bandwidth_bytes_per_s"]) == (9.89e14, 3.35e12)
    assert ceilings["ridge_flops_per_byte"]["peak"] == pytest.approx(9.89e14 / 3.35e12)
    for point in answer["points"]:
        assert point["intensity_flops_per_byte"] == pytest.approx(point["flops"] / point["bytes"])
        assert point["flops_per_s"] == pytest.approx(point["flops"] / point["time_s"])
        roof = min(ceilings["peak_flops_per_s"], point["intensity_flops_per_byte"] * ceilings["bandwidth_bytes_per_s"])
        assert point["flops_per_s"] <= roof * (1 + 1e-9)
    kinds = {(point["phase"], point["kind"]) for point in answer["points"]}
    # Alone, TTFT bounds prefill from above: a hollow mark, not a measurement.
    assert {("prefill", "predicted"), ("decode", "predicted"), ("prefill", "bounded"), ("decode", "measured")} <= kinds
    assert ("prefill", "measured") not in kinds
    (decode,) = [point for point in answer["points"] if point["kind"] == "measured"]
    assert decode["time_s"] == pytest.approx(0.01)


def test_under_load_no_prefill_is_drawn_and_the_reason_is_told(api: TestClient) -> None:
    data = data_of(
        served(max_concurrency=32, duration=0.6, request_throughput=33.3, output_throughput=1700.0, total_token_throughput=5033.3)
    )
    number = ok(api.post(RUNS, params=KNOWN, content=data), 201)["runs"][0]["id"]
    answer = ok(api.get(f"{RUNS}/{number}/roofline"))
    measured = [point for point in answer["points"] if point["kind"] in ("measured", "bounded")]
    assert [point["phase"] for point in measured] == ["decode"]
    assert any("TTFT" in note for note in answer["notes"])


@pytest.mark.parametrize("part", ["decomposition", "roofline"])
def test_the_figure_is_one_that_plotly_draws(api: TestClient, alone: int, detailed: int, part: str) -> None:
    for number in (alone, detailed):
        figure: dict[str, Any] = ok(api.get(f"{RUNS}/{number}/{part}", params={"figure": "plotly"}))
        drawn = go.Figure(figure)
        assert len(drawn.data) > 1
        assert set(figure) >= {"data", "layout"}


def test_words_of_a_file_reach_a_figure_as_text_alone(api: TestClient) -> None:
    name = '<a href="https://evil.example" target="_top">x</a>%{x}<img src=x onerror=alert(1)>'
    api.post(f"{API}/hardware", json={"clone_of": "h100-sxm5-80gb", "name": name})
    data = served_file(2, model_id=name)
    sent = api.post(RUNS, params={**KNOWN, "hardware": name, "label": name, "name": name}, content=data)
    number = ok(sent, 201)["runs"][0]["id"]
    for part in ("decomposition", "roofline"):
        answer = api.get(f"{RUNS}/{number}/{part}", params={"figure": "plotly"})
        assert answer.status_code == 200
        assert "<a " not in answer.text
        assert "<img" not in answer.text


def test_without_a_prediction_the_answer_says_what_is_missing(api: TestClient) -> None:
    number = ok(api.post(RUNS, content=served_file(3)), 201)["runs"][0]["id"]
    for part in ("decomposition", "roofline"):
        for query in ({}, {"figure": "plotly"}):
            problem(api.get(f"{RUNS}/{number}/{part}", params=query), 404, "the file does not name the hardware", "under Edit")


def test_another_figure_is_refused(api: TestClient, alone: int) -> None:
    problem(api.get(f"{RUNS}/{alone}/roofline", params={"figure": "png"}), 422, "query.figure")
