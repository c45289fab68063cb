"""Flat JSON with the unit in the key: read as the key says, under a definition that says that none is stated."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, Run
from app.formats import ParsedFile
from app.formats.generic import NOT_STATED

Reader = Callable[[Any], ParsedFile]


def test_each_unit_is_that_of_its_key(read_data: Callable[[str], ParsedFile]) -> None:
    (run,) = read_data("generic/units_in_keys.json").runs
    assert run.metrics["ttft_s"] == Distribution(mean=pytest.approx(0.12), p99=pytest.approx(0.41), definition=NOT_STATED)
    assert run.metrics["itl_s"] == Distribution(mean=pytest.approx(0.0115), definition=NOT_STATED)
    assert run.metrics["e2e_s"] == Distribution(p50=1.4, definition=NOT_STATED)
    # 12,000 tokens in 50 s
    assert run.metrics["output_tokens_per_s"] == Rate(240.0, "aggregate", "derived")
    assert (run.model, run.requests.completed, run.workload.prompt_tokens_total) == ("acme/tiny-8b", 100, 30_000)
    assert [flag.flag for flag in run.flags] == ["unit_mismatch"]
    assert "p99_TTFT_ms as p99 of ttft_s in ms" in run.warnings[0]
    assert "benchmark_time names no unit and is taken as seconds." in run.warnings


def test_one_unit_throughout_is_no_mismatch(read_one: Callable[[Any], Run]) -> None:
    run = read_one({"mean_ttft_s": 0.2, "mean_tpot_s": 0.01, "duration_ms": 4000, "total_output_tokens": 100})
    assert run.flags == ()
    assert run.duration_s == pytest.approx(4.0)
    assert not any("taken as seconds" in warning for warning in run.warnings)
    assert any("does not name the model" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    "values",
    [
        {"mean_ttft": 0.2, "mean_itl": 0.01},
        {"mean_ttft_ms": 200.0},
        {"mean_latency_ms": 1.0, "p99_latency_ms": 2.0},
        {"ttft_ms": 200.0, "itl_ms": 10.0},
        [{"mean_ttft_ms": 200.0, "mean_itl_ms": 10.0}, {"note": "x"}],
    ],
    ids=["no unit", "one figure", "no phase", "no statistic", "one of two objects"],
)
def test_what_does_not_say_its_unit_is_refused(read_json: Reader, values: Any) -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_json(values)
    assert refusal.value.flag == "unknown_schema"
    assert dict(refusal.value.tried)["generic"].endswith("such as avg_ttft_ms")
