"""The run summary of the contract: null for unknown, absent where it does not apply, withheld where a flag says so."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from math import inf, nan

import pytest

from app.api.shapes import RunSummary
from app.domain.run import Distribution, Flag, Rate, Run
from app.services.assessment import assess
from app.services.summary import number, run_summary, timestamp
from tests.services.measured import TEXTBOOK, TEXTBOOK_H100, measured


def test_the_emptiest_run_has_the_whole_shape() -> None:
    summary = run_summary(Run("generic"))
    RunSummary.model_validate(summary)
    assert summary["metrics"] == dict.fromkeys(("ttft_s", "tpot_s", "itl_s", "chunk_gap_s", "e2e_s", "prefill_s", "queue_s"))
    assert summary["started_at"] is None
    for key in ("efficiency", "pp", "ep", "kv_dtype", "load_mode", "measured_at", "token_count_source", "rate_unlimited"):
        assert key not in summary


def test_what_is_known_is_told() -> None:
    run = measured(pp=2, kv_dtype="fp8", token_count_source="server")
    summary = run_summary(run, assess(run, TEXTBOOK, TEXTBOOK_H100))
    RunSummary.model_validate(summary)
    assert (summary["kv_dtype"], summary["pp"], summary["load_mode"], summary["measured_at"]) == ("fp8", 2, "single", "client")
    assert summary["metrics"]["ttft_s"] == {
        "mean": 0.095, "p50": 0.094, "p90": None, "p95": None, "p99": None, "std": None, "min": None, "max": None, "n": 100,
        "from": "reported", "definition": "canonical",
    }  # fmt: skip


def test_a_rate_is_never_told_without_its_scope() -> None:
    run = measured(metrics={"output_tokens_per_s": Rate(4211.0, "aggregate"), "decode_tokens_per_s": Rate(143.0, "request", "derived")})
    metrics = run_summary(run)["metrics"]
    assert metrics["output_tokens_per_s"] == {"value": 4211.0, "scope": "aggregate", "from": "reported", "definition": "canonical"}
    assert metrics["decode_tokens_per_s"]["scope"] == "request"


def test_a_withheld_metric_is_null_and_a_withheld_statistic_too() -> None:
    flags = (Flag("a", "because", ("itl_s",)), Flag("b", "so", ("ttft_s.mean",)))
    summary = run_summary(measured(flags=flags))
    assert summary["metrics"]["itl_s"] is None
    assert (summary["metrics"]["ttft_s"]["mean"], summary["metrics"]["ttft_s"]["p50"]) == (None, 0.094)
    assert summary["flags"][0] == {"flag": "a", "evidence": "because", "withholds": ["itl_s"], "figures": {}}


def test_reasons_of_the_assessment_stand_among_the_warnings() -> None:
    run = measured(hardware=None, warnings=("from the file.",))
    summary = run_summary(run, assess(run, TEXTBOOK, None))
    assert summary["warnings"] == ["from the file.", "No prediction: the file does not name the hardware; choose one under Edit."]
    assert "efficiency" not in summary


@pytest.mark.parametrize(("value", "told"), [(None, None), (nan, None), (inf, None), (-inf, None), (0.0, 0.0), (1.5, 1.5)])
def test_a_number_is_finite_or_null(value: float | None, told: float | None) -> None:
    assert number(value) == told


def test_no_value_of_a_run_is_told_as_nan() -> None:
    run = replace(measured(), duration_s=nan, metrics={"ttft_s": Distribution(mean=nan, p50=inf), "requests_per_s": Rate(inf, "aggregate")})
    json.dumps(run_summary(run), allow_nan=False)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, None),
        (datetime(2026, 5, 1, 12, tzinfo=UTC), "2026-05-01T12:00:00Z"),
        (datetime(2026, 5, 1, 12, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2))), "2026-05-01T10:00:00Z"),
    ],
)
def test_moments_are_utc_with_a_z(moment: datetime | None, text: str | None) -> None:
    assert timestamp(moment) == text
