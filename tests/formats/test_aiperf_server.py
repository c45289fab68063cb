"""AIPerf's export with its server's metrics: two files of one upload that name one benchmark are one run."""

import json
from typing import Any

import pytest

from app.domain.checks import as_shown
from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.formats import joined, read_runs
from app.formats.aiperf_server import NOT_READ
from app.formats.stat_export import NO_ENGINE
from app.services.told_by import told_by
from tests.formats.importer_versions import DATA
from tests.sample_runs import distribution

_DECODER = json.JSONDecoder()
TEXT = (DATA / "aiperf" / "2026-03_with_server.json").read_text()
EXPORT, END = _DECODER.raw_decode(TEXT)
SERVER, _ = _DECODER.raw_decode(TEXT[END:].lstrip())


def data(value: Any) -> bytes:
    return json.dumps(value).encode()


def read(*values: Any) -> Run:
    (file,) = joined([(f"{place}.json", data(value)) for place, value in enumerate(values)])
    (run,) = read_runs(*file).runs
    return run


def test_the_server_s_figures_stand_beside_the_client_s() -> None:
    run = read(EXPORT, SERVER)
    assert (run.format, run.engine, run.kv_dtype, run.measured_at) == ("aiperf", "vllm", "fp8", "client")
    # 0.2, 0.5 and 0.8 s over 20 requests; the client's own TTFT is 50 ms.
    means = [distribution(run, key).mean for key in ("queue_s", "prefill_s", "server_ttft_s", "ttft_s")]
    assert means == [pytest.approx(value) for value in (0.01, 0.025, 0.04, 0.05)]
    assert distribution(run, "server_ttft_s").p50 == pytest.approx(0.025 + 0.025 * 10 / 18)
    assert distribution(as_shown(run), "outside_server_s").mean == pytest.approx(0.01)
    told = told_by(run)
    assert (told.pool_used_share, told.preemptions, told.pool_tokens, told.cached_share) == (0.97, 2.0, 16_000.0, pytest.approx(0.2))
    assert (run.labels["requests_running_max"], run.labels["requests_waiting_max"]) == ("8", "3")
    assert NO_ENGINE not in run.warnings


def test_the_order_of_the_files_does_not_matter() -> None:
    one, other = read(EXPORT, SERVER), read(SERVER, EXPORT)
    assert (one.metrics, one.labels) == (other.metrics, other.labels)


def test_requests_of_others_keep_the_server_s_ttft_apart() -> None:
    busier = json.loads(json.dumps(SERVER))
    busier["metrics"]["vllm:request_success"]["series"][0]["stats"]["total"] = 25.0
    run = read(EXPORT, busier)
    assert "server_ttft_s" not in run.metrics
    assert distribution(run, "queue_s").mean == pytest.approx(0.01)
    assert any("25 requests meanwhile and 20 of the client's" in warning for warning in run.warnings)


def test_metrics_of_another_benchmark_are_refused_and_the_run_is_read_alone() -> None:
    files = joined([("a.json", data(EXPORT)), ("b.json", data({**SERVER, "benchmark_id": "b-2"}))])
    assert [name for name, _ in files] == ["a.json", "b.json"]
    (run,) = read_runs(*files[0]).runs
    assert "queue_s" not in run.metrics
    with pytest.raises(ImportRefused, match="and this file with it in one upload"):
        read_runs(*files[1])


def test_two_exports_of_one_benchmark_stay_two() -> None:
    files = joined([("a.json", data(EXPORT)), ("b.json", data({**EXPORT, "was_cancelled": True}))])
    assert [name for name, _ in files] == ["a.json", "b.json"]


def test_a_server_that_is_not_vllm_is_said_and_the_run_is_read() -> None:
    run = read(EXPORT, {**SERVER, "metrics": {"sglang:token_usage": {"type": "gauge", "series": []}}})
    assert NOT_READ in run.warnings
    assert distribution(run, "ttft_s").mean == 0.05


@pytest.mark.parametrize("series", [[], [None], ["x"], [{"stats": None, "labels": 3, "buckets": []}], {"a": 1}])
def test_series_that_are_none_leave_the_run_as_it_is(series: object) -> None:
    run = read(EXPORT, {**SERVER, "metrics": {"vllm:request_success": {"type": "counter", "series": series}, "vllm:x": 3}})
    assert distribution(run, "ttft_s").mean == 0.05
