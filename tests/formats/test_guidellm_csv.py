"""GuideLLM's CSV and YAML say what its JSON says, as far as they say it; rows under headers of others are not read."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Run
from app.formats import ParsedFile, read_runs
from app.formats.guidellm import STEPS
from app.services.summary import run_summary

Reader = Callable[[str], ParsedFile]
DATA = Path(__file__).resolve().parents[1] / "data" / "guidellm"
# A table has the clock of a machine without its zone, no counts beside latencies, and not who counted the tokens.
NOT_IN_A_TABLE = ("started_at", "token_count_source", "labels", "samples")


def text(name: str) -> str:
    return (DATA / name).read_text()


def read(data: str) -> tuple[Run, ...]:
    parsed = read_runs("x", data.encode())
    assert parsed.format == "guidellm"
    return parsed.runs


def without_requests(name: str) -> str:
    value = json.loads(text(name))
    for benchmark in value["benchmarks"]:
        benchmark.pop("requests", None)
    return json.dumps(value)


def comparable(run: Run) -> dict[str, Any]:
    summary = {key: value for key, value in run_summary(run).items() if key not in NOT_IN_A_TABLE}
    for metric in summary["metrics"].values():
        if isinstance(metric, dict):
            metric.pop("n", None)
    return summary


@pytest.mark.parametrize("name", ["2025-09_schema_0", "2026-03_schema_1", "2026-08_schema_2"])
def test_a_table_says_what_the_report_says(name: str) -> None:
    tables, reports = read(text(f"{name}.csv")), read(without_requests(f"{name}.json"))
    assert [comparable(run) for run in tables] == [comparable(run) for run in reports]


def test_yaml_is_the_report_itself() -> None:
    ours, theirs = read(text("2026-03_schema_1.yaml")), read(text("2026-03_schema_1.json"))
    assert [run_summary(run) for run in ours] == [run_summary(run) for run in theirs]


def test_a_table_of_one_line_of_headers(read_data: Reader) -> None:
    (run,) = read_data("guidellm/2025-09_schema_0.csv").runs
    assert (run.model, run.load_mode, run.workload.request_rate_per_s) == ("acme/tiny-8b", "open", 2.0)
    assert run.distribution("ttft_s") == Distribution(
        mean=0.15, p50=0.15, p90=0.15, p95=0.15, p99=0.2, std=0.05, min=0.1, max=0.2, n=None, origin="reported"
    )
    assert run.labels["started_at_local"] == "2025-09-01 10:00:00"
    assert run.started_at is None
    assert STEPS in run.warnings


def rows(name: str) -> list[str]:
    return text(name).splitlines()


def test_strategies_of_a_sweep_come_from_what_the_profile_ran() -> None:
    lines = rows("2026-03_schema_1.csv")
    second = lines[3].replace("r,0,", "r,1,", 1)
    ran = '{""type_"": ""synchronous"", ""max_concurrency"": 1}'
    both = [line.replace(f"[{ran}", f'[{ran}, {{""type_"": ""constant"", ""rate"": 3.5}}', 1) for line in (lines[3], second)]
    both[1] = both[1].replace("b,synchronous,", "b,constant,", 1)
    first, other = read("\r\n".join([*lines[:3], *both]) + "\r\n")
    assert (first.load_mode, first.workload.concurrency) == ("single", 1)
    assert (other.load_mode, other.workload.request_rate_per_s) == ("open", 3.5)


def test_a_row_with_outcomes_of_its_own_is_refused_before_0_8() -> None:
    lines = rows("2026-03_schema_1.csv")
    counts = "5,0,0,5"
    assert f",{counts}," in lines[3]
    shifted = lines[3].replace(f",{counts},", ",5,0,2,7,", 1)
    with pytest.raises(ImportRefused, match=rf"The row on line {len(lines) + 1} has outcomes .* that the first row has not"):
        read("\n".join([*lines, shifted]) + "\n")
    longer = lines[3] + ",1"
    with pytest.raises(ImportRefused, match=f"row on line {len(lines) + 1} is longer than its header"):
        read("\n".join([*lines, longer]) + "\n")


def test_0_8_aligns_its_columns() -> None:
    lines = rows("2026-08_schema_2.csv")
    counts = next(part for part in ("2,0,0,2", "3,0,0,3", "2,1,0,3") if f",{part}," in lines[3])
    assert len(read("\n".join([*lines, lines[3].replace(f",{counts},", ",2,0,1,3,", 1)]) + "\n")) == 2


def test_a_strategy_of_0_8_carries_its_rate() -> None:
    lines = rows("2026-08_schema_2.csv")
    for word, mode, rate, limit in (
        ("concurrent@8", "closed", None, 8),
        ("throughput@unlimited", "offline", None, None),
        ("poisson@2.50", "open", 2.5, None),
        ("synchronous", "single", None, 1),
        ("something else", None, None, None),
    ):
        (run,) = read("\n".join([*lines[:3], lines[3].replace("constant@4.00", word)]) + "\n")
        assert (run.load_mode, run.workload.request_rate_per_s, run.workload.concurrency) == (mode, rate, limit)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lines: lines[:3], "a header and no row under it"),
        (lambda lines: [*lines[:3], lines[3].replace('""type_""', '""type_', 1)], "a cell begins like JSON and is none"),
        (lambda lines: [*lines[:3], lines[3] + '"open'], "is no CSV row"),
    ],
)
def test_tables_that_cannot_be_read(change: Callable[[list[str]], list[str]], expected: str) -> None:
    with pytest.raises(ImportRefused, match=expected):
        read("\n".join(change(copy.copy(rows("2026-03_schema_1.csv")))) + "\n")
