"""The odd inputs of the format specification, row by row, each with what is said about it."""

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.formats import ParsedFile, read_runs
from tests.sample_runs import evidence, mean

Json = dict[str, Any]
ReadOne = Callable[[Any], Run]


def refusal(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(ImportRefused) as refused:
        read_runs("x.json", data)
    return refused.value.reason


def test_row_01_infinite_rate(read_one: ReadOne, report: Json) -> None:
    run = read_one({**report, "request_rate": float("inf")})
    assert run.workload.request_rate_per_s is None
    assert run.workload.rate_unlimited


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_rows_02_and_03_a_latency_that_is_no_number(literal: str, report: Json) -> None:
    text = json.dumps(report).replace('"mean_ttft_ms": 50.0', f'"mean_ttft_ms": {literal}')
    (run,) = read_runs("x.json", text.encode()).runs
    assert mean(run, "ttft_s") is None
    assert evidence(run)["nan_values"] == "Not a finite number in the file, left out: mean_ttft_ms."


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-3", "2.5", '"20"', "true", "[20]"])
def test_row_03_a_count_that_is_none_is_refused(literal: str, report: Json) -> None:
    text = json.dumps(report).replace('"completed": 20', f'"completed": {literal}')
    assert refusal(text.encode()).startswith("completed must be a whole number of 0 or more")


def test_row_04_truncated_json(report: Json) -> None:
    data = json.dumps([report, report]).encode()[:-200]
    assert refusal(data).startswith(f"The JSON ends at byte {len(data)}, inside [1]")


def test_row_05_last_line_cut(report: Json) -> None:
    line = json.dumps(report)
    parsed = read_runs("x.jsonl", f"{line}\n{line}\n{line[:300]}".encode())
    assert len(parsed.runs) == 2
    assert parsed.warnings == ("Line 3 is cut off and left out; the 2 lines before it are read.",)


def test_rows_06_and_07_lines_in_a_json_file_and_documents_without_a_newline(report: Json) -> None:
    line = json.dumps(report)
    assert len(read_runs("results.json", f"{line}\n{line}\n".encode()).runs) == 2
    assert len(read_runs("results.txt", f"{line}{line}{line}".encode()).runs) == 3


def test_row_08_nothing_completed(read_one: ReadOne, report: Json) -> None:
    zeros = {key: 0.0 for key in report if key.endswith("_ms")}
    run = read_one({**report, **zeros, "completed": 0, "failed": 20, "output_throughput": 0.0})
    assert run.metrics == {}
    assert set(evidence(run)) == {"zero_completed"}


def test_row_09_failures_are_told_by_error_and_length_never_by_ttft(read_one: ReadOne, detailed: Json) -> None:
    # The first request has a TTFT of 0 and an answer: it stays, its TTFT is not known.
    run = read_one({**detailed, "ttfts": [0.0, 0.2, 0.3, 0.0, 0.4]})
    assert run.requests.completed == 4
    assert run.distribution("ttft_s").n == 3  # type: ignore[union-attr]
    assert mean(run, "ttft_s") == pytest.approx(0.3)


def test_row_09_requests_without_output_are_left_out(read_one: ReadOne, report: Json) -> None:
    # Four of eight produced nothing; 450 ms for the others, 225 ms with the zeros.
    kept = {key: value for key, value in report.items() if not key.endswith("_ms")}
    run = read_one(
        {
            **kept,
            "num_prompts": 8,
            "completed": 8,
            "max_concurrency": 8,
            "total_input_tokens": 1024,
            "total_output_tokens": 512,
            "output_throughput": 0.0,
            "mean_ttft_ms": 225.0,
            "output_lens": [128, 0] * 4,
            "ttfts": [0.45, 0.0] * 4,
            "input_lens": [128] * 8,
        }
    )
    assert mean(run, "ttft_s") == pytest.approx(0.45)
    assert run.requests.completed == 4
    assert run.metrics["output_tokens_per_s"].value == pytest.approx(51.2)  # type: ignore[union-attr]
    assert evidence(run)["empty_outputs"].startswith("4 of 8 requests produced no token")
    assert "metric_bug" not in evidence(run)
    assert any("says 225 ms and its samples give 450 ms" in warning for warning in run.warnings)


def test_rows_10_and_11_single_tokens_have_no_itl(read_one: ReadOne, report: Json) -> None:
    zeros = {key: 0.0 for key in report if "tpot" in key or "itl" in key}
    run = read_one({**report, **zeros, "total_output_tokens": 20, "output_throughput": 2.0, "total_token_throughput": 202.0})
    assert not {"tpot_s", "itl_s", "chunk_gap_s", "decode_tokens_per_s"} & set(run.metrics)
    assert mean(run, "ttft_s") == pytest.approx(0.05)
    assert "tpot_undefined_single_token" in evidence(run)


@pytest.mark.parametrize("value", [{}, [], [{}]])
def test_row_12_nothing_in_it(value: object) -> None:
    assert "there are no runs in it" in refusal(value)


def test_row_12_empty_file() -> None:
    assert refusal(b"") == "The file is empty: there are no runs in it."


def test_row_13_lengths_that_differ(read_one: ReadOne, detailed: Json) -> None:
    run = read_one({**detailed, "input_lens": [10, 20, 30]})
    assert run.samples is None
    assert mean(run, "ttft_s") == pytest.approx(0.25)
    assert run.metrics["ttft_s"].origin == "reported"
    assert any("their lengths differ (ttfts 5, output_lens 5, input_lens 3, itls 5, errors 5)" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("ttfts", [0.1, "x", 0.3, 0.0, 0.4], "ttfts holds something that is no number"),
        ("ttfts", [0.1, True, 0.3, 0.0, 0.4], "ttfts holds something that is no number"),
        ("itls", [0.1, 0.2, 0.3, 0.0, 0.4], "itls holds something that is no list of gaps"),
        ("ttfts", [0.1, 10**400, 0.3, 0.0, 0.4], "ttfts holds an integer that no figure can be"),
    ],
)
def test_row_13_arrays_that_are_no_figures(read_one: ReadOne, detailed: Json, key: str, value: list[Any], why: str) -> None:
    run = read_one({**detailed, key: value})
    assert run.samples is None
    assert any(why in warning for warning in run.warnings)


def test_row_14_a_request_longer_than_the_run(read_one: ReadOne, detailed: Json) -> None:
    run = read_one({**detailed, "itls": [[0.01, 0.01], [9.0, 0.02, 0.02, 0.02], [0.03], [], []]})
    assert run.samples is None
    assert mean(run, "e2e_s") == pytest.approx(0.2825)
    assert any("does not fit into a run of 2 s" in warning for warning in run.warnings)


def test_row_15_an_aggregate_that_disagrees_with_its_arrays(read_one: ReadOne, detailed: Json) -> None:
    run = read_one({**detailed, "mean_ttft_ms": 260.0})
    assert mean(run, "ttft_s") == pytest.approx(0.25)
    assert "ttft_s.mean says 260 ms and its samples give 250 ms" in evidence(run)["metric_bug"]
    assert any("260 ms" in warning and "250 ms" in warning for warning in run.warnings)
    within = read_one({**detailed, "mean_ttft_ms": 252.0})
    assert "metric_bug" not in evidence(within)


def test_row_16_units_are_fixed_and_an_implausible_figure_is_flagged(read_one: ReadOne, report: Json) -> None:
    # Seconds written under a name that says milliseconds: 10 ms become 10 microseconds, and no factor is guessed.
    run = read_one({**report, "mean_tpot_ms": 0.01, "mean_itl_ms": 0.01, "mean_e2el_ms": None})
    assert mean(run, "tpot_s") == pytest.approx(1e-5)
    flag = next(flag for flag in run.flags if flag.flag == "unit_mismatch")
    assert set(flag.withholds) == {"tpot_s", "itl_s"}
    late = read_one({**report, "mean_ttft_ms": 50_000.0, "mean_e2el_ms": None})
    assert "ttft_s is 50 s in a run that lasted 10 s" in evidence(late)["unit_mismatch"]


def test_row_18_integers_that_no_count_can_be(report: Json) -> None:
    assert (
        refusal({**report, "total_output_tokens": 2**63 + 1}) == "total_output_tokens is an integer beyond 63 bits: no count is that large."
    )
    assert "mean_ttft_ms is an integer beyond 63 bits" in refusal({**report, "mean_ttft_ms": 2**70})
    text = json.dumps([report, report]).replace('"total_input_tokens": 2000', '"total_input_tokens": ' + "9" * 5000, 1)
    assert "[0].total_input_tokens holds a number of more than 4300 digits" in refusal(text.encode())


def test_row_18_a_float_that_cannot_be(read_one: ReadOne, report: Json) -> None:
    run = read_one({**report, "mean_ttft_ms": 1e300})
    assert mean(run, "ttft_s") is None
    assert any("mean_ttft_ms is 1e+300, which cannot be" in warning for warning in run.warnings)


def test_row_19_deep_nesting(report: Json) -> None:
    deep: object = 1
    for _ in range(100):
        deep = [deep]
    assert "nested more than 64 levels deep" in refusal({**report, "extra": deep})


def test_row_20_a_key_twice(report: Json) -> None:
    text = json.dumps(report)[:-1]
    assert "“mean_ttft_ms” stands twice" in refusal(f'{text}, "mean_ttft_ms": 60.0}}'.encode())
    parsed = read_runs("x.json", f'{text}, "mean_ttft_ms": 50.0}}'.encode())
    assert parsed.warnings == ("The key “mean_ttft_ms” stands twice in one object (line 1, mean_ttft_ms), with the same value.",)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_row_21_other_encodings(report: Json, encoding: str) -> None:
    parsed = read_runs("x.json", json.dumps(report).encode(encoding))
    assert mean(parsed.runs[0], "ttft_s") == pytest.approx(0.05)
    assert parsed.warnings


def test_row_22_old_encoding_in_a_name(report: Json) -> None:
    parsed = read_runs("x.json", json.dumps({**report, "model_id": "modèle"}, ensure_ascii=False).encode("latin-1"))
    assert parsed.runs[0].model == "modèle"
    assert "not UTF-8" in parsed.warnings[0]


def test_rows_23_and_24_characters_that_cannot_be_stored(report: Json) -> None:
    text = json.dumps(report).replace("acme/tiny-8b", "ac\\ud800me\\u0000/ti\\u202eny\\u001b", 1)
    (run,) = read_runs("x.json", text.encode()).runs
    assert run.model == "acme/tiny"


def test_row_32_markup_and_formulas_pass_through_unchanged(read_one: ReadOne, detailed: Json) -> None:
    # They are escaped where they are written; here they are only words.
    errors = copy.deepcopy(detailed["errors"])
    errors[3] = '"><img src=x onerror=alert(1)>'
    run = read_one({**detailed, "model_id": "<script>alert(1)</script>", "team": "=cmd()", "errors": errors})
    assert run.model == "<script>alert(1)</script>"
    assert run.labels["team"] == "=cmd()"
    assert run.samples is not None
    assert run.samples.errors[3] == errors[3]


def test_row_33_long_and_path_like_names(read_one: ReadOne, report: Json) -> None:
    assert read_one({**report, "model_id": "../../etc/passwd"}).model == "../../etc/passwd"
    assert len(read_one({**report, "model_id": "m" * 4096}).model or "") == 200


def test_row_34_equal_lines_are_runs_of_their_own(report: Json) -> None:
    line = json.dumps(report)
    assert len(read_runs("x.jsonl", f"{line}\n{line}\n".encode()).runs) == 2


def test_row_36_unknown_keys_are_labels(read_one: ReadOne, report: Json) -> None:
    run = read_one({**report, "a_key_of_next_year": 42, "another": {"nested": True}})
    assert run.labels["a_key_of_next_year"] == "42"
    assert "another" not in run.labels


def test_row_37_no_model(report: Json) -> None:
    record = {"backend": "sglang", "dataset_name": "random", "completed": 1, "duration": 1.0, "total_output_tokens_retokenized": 1}
    (run,) = read_runs("x", json.dumps(record).encode()).runs
    assert run.model is None
    assert any("does not name the model" in warning for warning in run.warnings)


def test_row_39_durations_and_gaps_below_zero(read_one: ReadOne, report: Json, detailed: Json) -> None:
    for duration in (0, -5.0):
        run = read_one({**report, "duration": duration, "request_throughput": 0.0, "output_throughput": 0.0, "total_token_throughput": 0.0})
        assert not {"output_tokens_per_s", "requests_per_s"} & set(run.metrics)
        assert "duration is" in evidence(run)["negative_duration"]
    run = read_one({**detailed, "itls": [[0.01, -0.01], [0.02] * 4, [0.03], [], []]})
    assert run.samples is None
    assert "itls holds a negative value" in evidence(run)["negative_duration"]


def test_row_39_a_negative_mean_is_left_out(read_one: ReadOne, report: Json) -> None:
    run = read_one({**report, "mean_tpot_ms": -3.0})
    assert mean(run, "tpot_s") is None
    assert evidence(run)["negative_duration"] == "mean_tpot_ms is negative (-3)."


def test_row_40_gaps_of_zero_are_legal(read_one: ReadOne, report: Json) -> None:
    run = read_one({**report, "median_itl_ms": 0.0})
    assert run.distribution("chunk_gap_s").p50 == 0.0  # type: ignore[union-attr]


def test_row_50_percentiles_that_are_absent_stay_absent(read_one: ReadOne, report: Json) -> None:
    run = read_one({key: value for key, value in report.items() if not key.startswith(("median_", "p99_tpot"))})
    assert run.distribution("ttft_s").p50 is None  # type: ignore[union-attr]
    assert run.distribution("tpot_s").p99 is None  # type: ignore[union-attr]


def test_row_50_other_percentiles(read_one: ReadOne, report: Json) -> None:
    run = read_one({**report, "p90_ttft_ms": 60.0, "p95_ttft_ms": 65.0, "p99.9_ttft_ms": 80.0})
    ttft = run.distribution("ttft_s")
    assert ttft is not None
    assert (ttft.p90, ttft.p95) == (pytest.approx(0.06), pytest.approx(0.065))
    assert "p99.9_ttft_ms" not in run.labels


def test_row_51_n_stands_beside_the_percentiles(read_one: ReadOne, report: Json) -> None:
    assert read_one(report).distribution("ttft_s").n == 20  # type: ignore[union-attr]


def test_row_53_a_web_page() -> None:
    assert refusal(b"<html><head><title>Sign in</title></head></html>").startswith("This is HTML")


def test_row_54_who_counted_the_tokens(read_one: ReadOne, report: Json) -> None:
    assert read_one(report).token_count_source == "server_usage"
    assert read_one({**report, "date": "20240101-000000"}).token_count_source == "client_tokenizer"


def test_nothing_that_is_no_number_is_ever_in_a_run(read_data: Callable[[str], ParsedFile], report: Json) -> None:
    odd = {key: (float("nan") if index % 2 else float("inf")) for index, key in enumerate(report) if key.endswith("_ms")}
    runs = [*read_data("sglang_bench_serving/2025-06_nothing_completed.jsonl").runs]
    runs.extend(read_runs("x", json.dumps({**report, **odd}).encode()).runs)
    for run in runs:
        for value in run.metrics.values():
            figures = [value.value] if hasattr(value, "value") else [value.stat(name) for name in ("mean", "p50", "p99", "std")]
            assert all(figure is None or np.isfinite(figure) for figure in figures)


def test_many_gaps_without_aggregates_are_read(detailed: Json) -> None:
    # 200 requests of 501 tokens with gaps of 10 ms.
    count, gaps = 200, 500
    big = {
        **{key: value for key, value in detailed.items() if not key.endswith("_ms")},
        "num_prompts": count,
        "completed": count,
        "failed": 0,
        "duration": 600.0,
        "input_lens": [10] * count,
        "output_lens": [gaps + 1] * count,
        "ttfts": [0.1] * count,
        "itls": [[0.01] * gaps] * count,
        "errors": [""] * count,
    }
    (run,) = read_runs("x", json.dumps(big).encode()).runs
    assert run.samples is not None
    assert run.samples.chunk_gaps_s.size == count * gaps
    assert mean(run, "itl_s") == pytest.approx(0.01)
