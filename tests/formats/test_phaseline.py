"""Our own measurements: passes of repeats, requests at a client, rates of a device; written and read back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain.checks import as_shown
from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Flag, Rate, RequestSamples, Run
from app.formats import ParsedFile, read_runs
from app.formats.phaseline_device import rates_in
from app.formats.phaseline_document import Passes, Point, document, write_document
from tests.sample_runs import names

Reader = Callable[[str], ParsedFile]
PASSES = Passes([0.2, 0.2, 0.2], [[0.01, 0.03]] * 3)


def read_back(*points: Point, **around: Any) -> list[Run]:
    text = json.dumps(document("inprocess_sweep", "inprocess 1", {"threads": 1}, points, **around))
    return list(read_runs("x", text.encode()).runs)


def test_passes_of_a_repeat_are_prefill_and_steps_and_the_first_is_kept_apart(read_data: Reader) -> None:
    run = as_shown(read_data("phaseline/inprocess_sweep.json").runs[0])
    # 0.10, 0.10, 0.11, 0.09, 0.10 s; the 0.5 s before them is in no figure
    prefill = run.metrics["prefill_s"]
    assert isinstance(prefill, Distribution)
    assert (prefill.mean, prefill.max, prefill.n, prefill.origin) == (pytest.approx(0.1), 0.11, 5, "samples")
    assert run.warnings == ("The first run is kept apart: its prompt pass took 500 ms, its median decode step 20 ms.",)
    # 5 repeats of 4 steps of 10 ms; 1000 tokens in 0.1 s
    itl = run.distribution("itl_s")
    assert itl is not None
    assert (itl.mean, itl.n) == (pytest.approx(0.01), 20)
    assert run.metrics["prefill_tokens_per_s"] == Rate(pytest.approx(10_000.0), "request", "derived")
    # 25 tokens in 5 x 0.14 s
    assert run.metrics["output_tokens_per_s"] == Rate(pytest.approx(25 / 0.7), "aggregate", "samples")
    assert (run.load_mode, run.measured_at, run.requests.completed) == ("single", "in_process", 5)
    assert run.labels["verdict"] == "stable"
    assert run.labels["environment.driver"] == "600.10"
    assert "environment.governor" not in run.labels


def test_a_batch_steps_together_and_repeats_that_disagree_are_unusable(read_data: Reader) -> None:
    run = as_shown(read_data("phaseline/inprocess_sweep.json").runs[1])
    assert run.requests.completed == 20
    # 5 repeats x 4 sequences x 3 tokens in 2.6 + 5 x 0.04 s
    assert run.metrics["output_tokens_per_s"] == Rate(pytest.approx(60 / 2.8), "aggregate", "samples")
    # quartiles 0.4 and 0.6 around a median of 0.4: 50 %
    assert run.labels["verdict"] == "unusable"
    noisy = next(flag for flag in run.flags if flag.flag == "noisy_samples")
    assert noisy.figures == {"prefill_iqr_share": pytest.approx(0.5)}
    assert "prefill_s.mean" in noisy.withholds
    assert "itl_s.mean" not in noisy.withholds


def test_a_point_that_did_not_fit_is_a_run_with_its_reason(read_data: Reader) -> None:
    run = read_data("phaseline/inprocess_sweep.json").runs[2]
    assert (run.requests.completed, run.requests.failed) == (0, 1)
    assert names(run) == {"zero_completed"}
    assert run.warnings == ("The device had not enough memory for this point: 8.1 GB are needed and 4 GB are free.",)
    assert "prefill_s" not in run.metrics


def test_each_run_has_the_telemetry_of_its_window_and_what_follows_from_it(read_data: Reader) -> None:
    one, four, _ = read_data("phaseline/inprocess_sweep.json").runs
    assert one.telemetry is not None
    # from 102 to 106 s every half second, counted from its start
    assert one.telemetry.t_s.tolist() == [0.5 * step for step in range(9)]
    # the counter moved by 8 x 200 J, for 25 tokens
    assert one.metrics["energy_per_output_token_j"] == Rate(64.0, "device", "derived")
    assert names(one) == set()
    # the clock fell at 110 s, in the window of the second
    throttled = next(flag for flag in four.flags if flag.flag == "clock_throttle")
    assert "by power limit" in throttled.evidence


def test_requests_of_a_client_with_the_servers_own_figures(read_data: Reader) -> None:
    (run,) = read_data("phaseline/endpoint_sweep.json").runs
    shown = as_shown(run)
    assert (run.requests.sent, run.requests.completed, run.requests.failed) == (3, 2, 1)
    # decode times 0.02 and 0.08 s over 2 + 4 gaps
    itl = shown.distribution("itl_s")
    assert itl is not None
    assert itl.mean == pytest.approx(0.1 / 6)
    assert shown.metrics["prefill_s"] == Distribution(mean=0.08, n=2)
    assert {"client_limited", "failures_excluded"} <= names(run)
    assert run.labels["api"] == "completions"


def test_rates_of_a_device_are_figures_that_say_of_what(read_data: Reader) -> None:
    (run,) = read_data("phaseline/device_microbench.json").runs
    assert run.metrics["flops_per_s"] == Rate(1e11, "device", "samples", "best matrix product (square 2048 x 2048 x 2048, fp32)")
    assert run.metrics["bytes_per_s"] == Rate(2.5e10, "device", "samples", "matrix-vector product, fp32")
    assert run.metrics["intensity_flops_per_byte"] == Rate(4.0, "device", "derived", "measured ridge point")


def test_the_rates_of_a_stored_document_are_read_again_by_position() -> None:
    data = (Path(__file__).resolve().parents[1] / "data" / "phaseline" / "device_microbench.json").read_bytes()
    rates = rates_in("x", data, 0)
    assert rates is not None
    # the work of both layers at the largest row count over the sum of their times
    work = (2.0 * 512 * 2048 * 768, 2.0 * 512 * 768 * 768)
    assert rates.in_model("fp32") == pytest.approx(sum(work) / (work[0] / 8e10 + work[1] / 4e10))
    assert rates.ridge("fp32") == 4.0
    assert rates.launch_s == {"fp32": 1.5e-6}
    assert rates_in("x", data, 1) is None
    assert rates_in("x", b"{}", 0) is None


def test_a_document_comes_back_as_it_was_written(tmp_path: Path) -> None:
    samples = RequestSamples(
        ok=np.array([True, False]),
        prompt_tokens=np.array([5.0, np.nan]),
        output_tokens=np.array([2.0, 0.0]),
        ttft_s=np.array([0.1, np.nan]),
        e2e_s=np.array([0.2, np.nan]),
        chunk_gaps_s=np.array([0.1]),
        chunk_gap_counts=np.array([1, 0]),
        errors=("", "refused"),
    )
    point = Point(measured_at="client", requests=samples, flags=(Flag("prefix_cache_hits", "Hits rose by 3.", (), {"hits": 3.0}),))
    path = tmp_path / "result.json"
    write_document(path, {"format": "other"})
    write_document(path, document("endpoint_sweep", "m", {}, [point]))
    (run,) = read_runs("x", path.read_bytes()).runs
    assert run.samples is not None
    for name in ("ok", "prompt_tokens", "output_tokens", "ttft_s", "e2e_s", "chunk_gaps_s", "chunk_gap_counts"):
        assert np.array_equal(getattr(run.samples, name), getattr(samples, name), equal_nan=name != "ok"), name
    assert run.samples.errors == samples.errors
    assert next(flag for flag in run.flags if flag.flag == "prefix_cache_hits").withholds == ("prefill_tokens_per_s",)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("channels", "threads", "expected"),
    [
        ({"other_processes": [0, 2]}, None, "2 other processes"),
        ({"cpu_steal_cores": [0.2, 0.2]}, None, "took 0.2 processor cores"),
        ({"cpu_busy_cores": [1.8, 2.0]}, 1, "1.9 processor cores were busy while the run used 1"),
        ({"cpu_busy_cores": [1.8, 2.0]}, 2, None),
        ({"cpu_busy_cores": [1.8, 2.0]}, None, None),
        ({"other_processes": [0, 0], "unheard_of": [1, 1]}, 1, None),
    ],
)
def test_a_machine_that_was_not_alone_is_said(channels: dict[str, list[float]], threads: int | None, expected: str | None) -> None:
    telemetry = {"t_s": [10.0, 11.0], "channels": channels}
    (run,) = read_back(Point(passes=PASSES, threads=threads, window_s=(9.0, 12.0)), telemetry=telemetry)
    said = [flag.evidence for flag in run.flags if flag.flag == "contended"]
    assert [expected in text for text in said] == [True] if expected is not None else said == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"version": 2}, "version is 2"),
        ({"runs": []}, "no point"),
        ({"runs": [3]}, r"runs\[0\] is no object"),
        ({"runs": [{}]}, "the point has no figures"),
        ({"runs": [{"status": "lost"}]}, "known are ok, oom, timeout, error"),
        ({"runs": [{"passes": {"prefill_s": [0.1], "steps_s": [[0.1], [0.1]]}}]}, "one entry for each repeat"),
        ({"runs": [{"requests": {"ok": [True], "ttft_s": [0.1]}}]}, "prompt_tokens must have one entry"),
        ({"runs": [{"device": {"products": []}}]}, "no rate"),
    ],
)
def test_documents_without_figures_are_refused(change: dict[str, Any], expected: str) -> None:
    whole = {**document("inprocess_sweep", "inprocess 1", {}, [Point(passes=PASSES)]), **change}
    with pytest.raises(ImportRefused, match=expected):
        read_runs("x", json.dumps(whole).encode())
