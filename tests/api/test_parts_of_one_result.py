"""Files that mean something only together: two scrapes in one form are one run, whose original holds both."""

from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from app.formats.vllm_prometheus import ALONE
from tests.answers import API, ok, problem

RUNS = f"{API}/runs"
FOLDER = Path(__file__).resolve().parents[1] / "data" / "vllm_prometheus"
BEFORE, AFTER = ((FOLDER / f"2026-05_{name}.txt").read_bytes() for name in ("before", "after"))


def form(*parts: tuple[str, bytes]) -> list[tuple[str, Any]]:
    return [("file", part) for part in parts]


def test_two_scrapes_in_one_form_are_one_run_with_both_originals(api: TestClient) -> None:
    answer = ok(api.post(RUNS, files=form(("after.txt", AFTER), ("before.txt", BEFORE)), data={"hardware": "h100-sxm5-80gb"}), 201)
    assert answer["refused"] == answer["warnings"] == []
    (run,) = answer["runs"]
    assert (run["format"], run["measured_at"], run["hardware"]) == ("vllm_prometheus", "server", "h100-sxm5-80gb")
    assert run["metrics"]["ttft_s"]["mean"] == 0.16
    assert run["metrics"]["intensity_flops_per_byte"] == {"value": 1600.0, "scope": "device", "from": "derived", "definition": "canonical"}
    assert "flops_per_s" not in run["metrics"]
    original = api.get(f"{RUNS}/{run['id']}/original").content
    assert original == BEFORE + AFTER


def test_the_same_pair_again_in_the_other_order_is_the_run_that_is_there(api: TestClient) -> None:
    project = {"project": "again"}
    first = ok(api.post(RUNS, files=form(("before.txt", BEFORE), ("after.txt", AFTER)), data=project), 201)["runs"][0]
    again = ok(api.post(RUNS, files=form(("after.txt", AFTER), ("before.txt", BEFORE)), data=project), 200)
    assert [run["id"] for run in again["runs"]] == [first["id"]]
    downloaded = api.get(f"{RUNS}/{first['id']}/original").content
    assert ok(api.post(RUNS, files=form(("original", downloaded)), data=project), 200)["runs"][0]["id"] == first["id"]


def test_a_scrape_alone_is_refused_and_the_file_beside_it_is_not(api: TestClient) -> None:
    told = problem(api.post(RUNS, files=form(("after.txt", AFTER))), 422)
    assert told["detail"] == f"after.txt: {ALONE}"
    good = (FOLDER.parent / "vllm_bench_latency" / "2024-06_report.json").read_bytes()
    answer = ok(api.post(RUNS, files=form(("after.txt", AFTER), ("latency.json", good))), 201)
    assert [run["format"] for run in answer["runs"]] == ["vllm_bench_latency"]
    assert [item["file"] for item in answer["refused"]] == ["after.txt"]


def test_counted_work_stands_on_the_roofline_of_the_run(api: TestClient) -> None:
    saved = (FOLDER / "2026-05_saved_responses.txt").read_bytes()
    told = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "weight_dtype": "bf16", "devices": "1", "tp": "1"}
    (run,) = ok(api.post(RUNS, files=form(("saved.txt", saved)), data=told), 201)["runs"]
    found = ok(api.get(f"{RUNS}/{run['id']}/roofline"))
    (point,) = [each for each in found["points"] if each["phase"] == "both"]
    assert (point["title"], point["kind"]) == ("whole run", "measured")
    assert (point["flops_per_s"], point["intensity_flops_per_byte"]) == (2e14, 1600.0)
    figure = ok(api.get(f"{RUNS}/{run['id']}/roofline?figure=plotly"))
    assert "both, measured" in {trace["name"] for trace in figure["data"]}
    assert any("whole run" in note["text"] for note in figure["layout"]["annotations"])
