"""GuideLLM: three schemas, what its ITL and TPOT mean in each, requests by outcome, the measured stretch, load and lengths."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.checks import as_shown
from app.domain.errors import ImportRefused
from app.domain.run import CANONICAL, Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.guidellm import STEPS, WEIGHTED, WEIGHTED_WHOLE
from tests.sample_runs import evidence, mean

Reader = Callable[[str], ParsedFile]
Json = dict[str, Any]
DATA = Path(__file__).resolve().parents[1] / "data" / "guidellm"


def loaded(name: str) -> Json:
    value: Json = json.loads((DATA / name).read_text())
    return value


def read(value: Json) -> Run:
    parsed = read_runs("x.json", json.dumps(value).encode())
    assert parsed.format == "guidellm"
    return parsed.runs[0]


def test_schema_0_has_samples_of_successful_and_errored_requests(read_data: Reader) -> None:
    (run,) = read_data("guidellm/2025-09_schema_0.json").runs
    assert run.requests == RequestCounts(sent=4, completed=2, failed=1)
    assert run.samples is not None
    assert run.samples.ok.tolist() == [True, True, False]
    assert run.samples.start_s is not None
    assert run.samples.start_s.tolist() == [0.0, 0.5, 0.75]
    assert run.samples.errors == ("", "", "ConnectError: refused")
    # 20 + 80 ms over 2 + 4 gaps; a request each: 10 and 20 ms.
    assert mean(run, "itl_s") == pytest.approx(0.1 / 6, rel=1e-5)
    assert mean(run, "tpot_s") == pytest.approx(0.015, rel=1e-5)
    # To the last token: 120 and 280 ms, without the 0.1 ms in which the response was closed.
    assert mean(run, "e2e_s") == pytest.approx(0.2, rel=1e-5)
    assert run.labels["incomplete_requests"] == "1"
    assert any("1 requests were cut off by the end of the run" in warning for warning in run.warnings)
    assert "failures_excluded" in evidence(run)
    assert "metric_bug" not in evidence(run)


def test_schema_0_identity_and_load(read_data: Reader) -> None:
    (run,) = read_data("guidellm/2025-09_schema_0.json").runs
    assert (run.model, run.load_mode, run.workload.request_rate_per_s, run.duration_s) == ("acme/tiny-8b", "open", 2.0, 2.0)
    assert (run.workload.prompt_tokens_total, run.workload.output_tokens_total) == (20, 8)
    assert run.rate("output_tokens_per_s") == Rate(4.0, "aggregate", "reported")
    assert run.labels["schema"] == "0"
    assert not {"short_outputs_eos", "input_length_mismatch"} & set(evidence(run))


def test_time_per_output_token_changed_its_meaning_and_is_tpot_in_neither(read_data: Reader) -> None:
    (old,) = read_data("guidellm/2025-09_schema_0.json").runs
    kept, alone = read_data("guidellm/2026-03_schema_1.json").runs[0], read_data("guidellm/2026-08_schema_2.json").runs[0]
    assert old.labels["decode_s_per_output_token"] == "0.0125"  # 100 ms / 8 tokens, without TTFT
    assert "ntpot_s" not in old.metrics
    # Of requests that are in the file it is computed: 1.1 s / 11 tokens, TTFT inside.
    assert "ntpot_s" not in kept.metrics
    assert mean(as_shown(kept), "ntpot_s") == pytest.approx(0.1)
    assert mean(kept, "tpot_s") == pytest.approx(0.1, rel=1e-5)
    # Lengths differ, so the file's own mean weights requests by their tokens.
    assert alone.distribution("ntpot_s").definition == WEIGHTED_WHOLE  # type: ignore[union-attr]


def test_schema_1_counts_requests_that_overlap_the_measured_stretch(read_data: Reader) -> None:
    whole, part = read_data("guidellm/2026-03_schema_1.json").runs
    # The first of six ends before warm-up does.
    assert whole.samples is not None
    assert whole.samples.size == whole.requests.completed == 5
    assert mean(whole, "ttft_s") == pytest.approx(0.1)
    assert mean(whole, "itl_s") == pytest.approx(0.1, rel=1e-5)
    # 5 requests of 11 tokens in 4 s would be 13.75 a second: parts of them lie outside.
    assert whole.rate("output_tokens_per_s") == Rate(9.0, "aggregate", "reported")
    assert (whole.load_mode, whole.workload.concurrency, part.load_mode, part.workload.concurrency) == ("single", 1, "closed", 4)
    assert whole.workload.dataset == "prompts.jsonl"  # the path is the person's own
    assert whole.token_count_source == "server_usage"


def test_a_part_of_the_requests_is_left_aside(read_data: Reader) -> None:
    part = read_data("guidellm/2026-03_schema_1.json").runs[1]
    assert part.samples is None
    assert any("keeps 1 of 40 successful requests" in warning for warning in part.warnings)
    assert STEPS in part.warnings
    ttft, tpot = part.distribution("ttft_s"), part.distribution("tpot_s")
    assert ttft is not None
    assert tpot is not None
    assert (ttft.mean, ttft.n, ttft.origin) == (0.1, 40, "reported")
    assert (tpot.definition, tpot.n) == (CANONICAL, 40)  # all answers have 11 tokens


def test_schema_2_without_requests_has_weighted_tpot(read_data: Reader) -> None:
    (run,) = read_data("guidellm/2026-08_schema_2.json").runs
    tpot, itl = run.distribution("tpot_s"), run.distribution("itl_s")
    assert tpot is not None
    assert itl is not None
    assert (tpot.definition, itl.definition, itl.n) == (WEIGHTED, CANONICAL, 6)
    assert itl.mean == pytest.approx(0.1 / 6)
    assert itl.p50 is None  # the file's percentiles are of requests, not of gaps
    # 10 240 is the tool's own ceiling, nobody's limit.
    assert (run.load_mode, run.workload.request_rate_per_s, run.workload.concurrency) == ("open", 4.0, None)
    assert run.labels["site"] == "lab"
    assert run.token_count_source == "client_tokenizer"
    assert "chunk_tokens_gt_1" in evidence(run)
    # 40 prompt tokens asked for, 32 counted.
    assert "input_length_mismatch" in evidence(run)
    # 210 ms against 150 + 3 x 16.67 ms.
    assert evidence(run)["transport_buffering"].startswith("4.76 % of the mean request")


@pytest.mark.parametrize(
    ("strategy", "profile", "mode", "rate", "limit"),
    [
        ({"type_": "throughput", "max_concurrency": 512}, {}, "offline", None, None),
        ({"type_": "throughput"}, {"max_concurrency": 64}, "closed", None, 64),
        ({"type_": "poisson", "rate": 3.0}, {"max_concurrency": None}, "open", 3.0, None),
        ({"type_": "concurrent", "streams": 1}, {}, "single", None, 1),
        ({}, {}, None, None, None),
    ],
)
def test_strategies(strategy: Json, profile: Json, mode: str | None, rate: float | None, limit: int | None) -> None:
    value = loaded("2026-08_schema_2.json")
    value["benchmarks"][0]["config"].update(strategy=strategy, profile=profile)
    run = read(value)
    assert (run.load_mode, run.workload.request_rate_per_s, run.workload.concurrency) == (mode, rate, limit)


def test_nothing_succeeded_and_a_newer_schema() -> None:
    value = loaded("2026-08_schema_2.json")
    value["metadata"]["version"] = 3
    value["benchmarks"][0]["metrics"]["request_totals"] = {"successful": 0, "errored": 2, "incomplete": 0, "total": 2}
    run = read(value)
    assert (run.metrics, set(evidence(run))) == ({}, {"zero_completed"})
    assert any("schema 3, newer than what is known" in warning for warning in run.warnings)


def test_a_mean_that_contradicts_the_requests_is_named() -> None:
    value = loaded("2025-09_schema_0.json")
    value["benchmarks"][0]["metrics"]["time_to_first_token_ms"]["successful"]["mean"] = 300.0
    run = read(value)
    assert "ttft_s.mean says 300 ms and its samples give 150 ms" in evidence(run)["metric_bug"]


def test_requests_with_a_negative_time_are_left_aside() -> None:
    value = loaded("2025-09_schema_0.json")
    value["benchmarks"][0]["requests"]["successful"][0]["time_to_first_token_ms"] = -1.0
    run = read(value)
    assert run.samples is None
    assert mean(run, "ttft_s") == 0.15
    assert "negative_duration" in evidence(run)


def test_what_is_no_benchmark_is_named() -> None:
    value = loaded("2026-08_schema_2.json")
    broken = copy.deepcopy(value)
    broken["benchmarks"].append({"type_": "generative_benchmark"})
    with pytest.raises(ImportRefused, match=r"benchmarks\[1\] has no object metrics"):
        read(broken)
    with pytest.raises(ImportRefused) as refused:
        read({**value, "benchmarks": []})
    assert dict(refused.value.tried)["guidellm"] == "no benchmarks[0].type_"


def test_a_cut_down_report_keeps_every_point_of_its_sweep() -> None:
    points = [
        {
            "config": {"strategy": {"type_": "constant", "rate": rate}},
            "metrics": {"time_to_first_token_ms": {"successful": {"mean": ttft, "percentiles": {"p50": ttft, "p95": 2 * ttft}}}},
        }
        for rate, ttft in ((2, 60), (5, 75))
    ]
    runs = read_runs("x", json.dumps({"metadata": {"version": 1}, "benchmarks": points}).encode()).runs
    assert [run.workload.request_rate_per_s for run in runs] == [2.0, 5.0]
    assert [mean(run, "ttft_s") for run in runs] == [0.06, 0.075]
    assert runs[0].distribution("ttft_s").p95 == pytest.approx(0.12)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (
            {"metadata": {"version": 99}, "runs": [{"metrics_v9": {"ttft": {"mean": 60}}}]},
            "there is no list benchmarks; its keys are metadata, runs",
        ),
        (
            {"metadata": {"version": 99}, "benchmarks": [{"type_": "x", "metrics": {"ttft": {"mean": 60}}}]},
            "benchmarks[0].metrics has none of the metrics known here; its keys are ttft",
        ),
    ],
)
def test_a_shape_that_is_not_known_is_never_an_empty_success(value: Json, what: str) -> None:
    with pytest.raises(ImportRefused) as refused:
        read(value)
    assert refused.value.reason.startswith("This looks like a GuideLLM (guidellm) report of schema 99, and ")
    assert what in refused.value.reason
