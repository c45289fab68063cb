"""GenAI-Perf: TPOT under the name of ITL, requests that it drops, thousands commas in its CSV."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.genai_perf import NO_FAILURES
from app.formats.stat_tables import ROUNDED
from tests.sample_runs import mean, names

Reader = Callable[[str], ParsedFile]
Json = dict[str, Any]
DATA = Path(__file__).resolve().parents[1] / "data" / "genai_perf"


def one(parsed: ParsedFile) -> Run:
    (run,) = parsed.runs
    assert parsed.format == run.format == "genai_perf"
    return run


def read(**changes: Any) -> Run:
    value: Json = json.loads((DATA / "2025_profile.json").read_text())
    return one(read_runs("x.json", json.dumps({**value, **changes}).encode()))


def test_inter_token_latency_is_tpot(read_data: Reader) -> None:
    run = one(read_data("genai_perf/2025_profile.json"))
    tpot = run.distribution("tpot_s")
    assert tpot is not None
    assert (tpot.mean, tpot.n, tpot.origin) == (0.01, None, "reported")
    assert tpot.p99 == pytest.approx(0.014)
    # (550 - 50) ms x 20 / (1020 - 20) tokens
    assert mean(run, "itl_s") == pytest.approx(0.01)
    assert run.distribution("itl_s").origin == "derived"  # type: ignore[union-attr]
    assert "chunk_gap_s" not in run.metrics
    assert (mean(run, "ttft_s"), mean(run, "e2e_s")) == (0.05, 0.55)


def test_identity_load_and_totals(read_data: Reader) -> None:
    run = one(read_data("genai_perf/2025_profile.json"))
    # The backend of an OpenAI-style service is the tool's default and says nothing.
    assert (run.model, run.engine, run.load_mode, run.workload.concurrency) == ("acme/tiny-8b", None, "closed", 4)
    assert (run.workload.prompt_tokens_total, run.workload.output_tokens_total) == (2000, 1020)
    assert run.duration_s == pytest.approx(10.0)  # 1020 tokens at 102 a second
    assert run.rate("requests_per_s") == Rate(2.0, "aggregate", "reported")
    assert run.rate("total_tokens_per_s").value == pytest.approx(302.0)  # type: ignore[union-attr]
    assert run.requests == RequestCounts(None, 20, None)
    assert NO_FAILURES in run.warnings
    assert "short_outputs_eos" in names(run)  # 60 asked for, 51 came
    assert "input_length_mismatch" not in names(run)


def test_requests_that_it_drops_are_found_by_the_request_rate(read_data: Reader) -> None:
    run = one(read_data("genai_perf/2025_dropped.json"))
    # 2.5 a second for 10 s are 25; 20 are in the statistics.
    assert run.requests == RequestCounts(25, 20, None)
    assert any("counts about 25 requests, the statistics 20" in warning for warning in run.warnings)
    assert run.rate("requests_per_s").value == pytest.approx(2.0)  # type: ignore[union-attr]
    assert (run.engine, run.load_mode) == ("tensorrt-llm", "single")


def test_csv_has_commas_between_thousands(read_data: Reader) -> None:
    run = one(read_data("genai_perf/2025_profile.csv"))
    ttft = run.distribution("ttft_s")
    assert ttft is not None
    assert ttft.mean == pytest.approx(1.14631)
    assert ttft.p99 == pytest.approx(1.499)
    assert ttft.max == pytest.approx(1.50025)
    assert (ttft.p50, ttft.n) == (pytest.approx(1.14), 1020)  # type: ignore[comparison-overlap]
    # (1646.31 - 1146.31) ms / 50
    assert mean(run, "itl_s") == pytest.approx(0.01)
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_total) == (2000.0, 52_020)
    assert run.rate("output_tokens_per_s") == Rate(1224.5, "aggregate", "reported")
    assert run.rate("requests_per_s") == Rate(24.01, "aggregate", "reported")
    assert run.model is None
    assert ROUNDED in run.warnings
    assert not any("GPU" in warning for warning in run.warnings)


def test_a_thousands_comma_elsewhere_is_no_number() -> None:
    text = 'Metric,avg,min,max,p99\nRequest Latency (ms),"1,14",1.00,2.00,2.00\n\nMetric,Value\nRequest Count (count),3.00\n'
    run = one(read_runs("x", text.encode()))
    assert run.distribution("e2e_s").mean is None  # type: ignore[union-attr]
    assert "request_latency.avg is no number and left out." in run.warnings


def test_nothing_completed_and_no_run() -> None:
    run = read(request_count={"unit": "count", "avg": 0.0})
    assert (run.metrics, names(run)) == ({}, {"zero_completed"})
    with pytest.raises(ImportRefused, match="neither request_count nor request_latency"):
        read(request_count=None, request_latency=None)


def test_a_request_rate_is_an_open_load() -> None:
    value: Json = json.loads((DATA / "2025_profile.json").read_text())
    value["input_config"]["perf_analyzer"]["stimulus"] = {"request_rate": 3.0}
    run = read(input_config=value["input_config"])
    assert (run.load_mode, run.workload.request_rate_per_s) == ("open", 3.0)
