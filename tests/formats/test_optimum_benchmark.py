"""optimum-benchmark: prompt pass and steps of a static batch, sizes from throughputs, a per-token list that says too much."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.identity import NO_MODEL
from app.formats.optimum_benchmark import FORWARD, NO_LENGTHS

Reader = Callable[[str], ParsedFile]
DATA = Path(__file__).resolve().parents[1] / "data" / "optimum_benchmark"


def one(parsed: ParsedFile) -> Run:
    (run,) = parsed.runs
    assert parsed.format == run.format == "optimum_benchmark"
    return run


def report(name: str = "2025-05_report.json") -> dict[str, Any]:
    value: dict[str, Any] = json.loads((DATA / name).read_text())
    return value


def mean(run: Run, key: str) -> float | None:
    found = run.distribution(key)
    assert found is not None
    return found.mean


def test_a_report_alone_tells_batch_and_steps_by_its_throughputs(read_data: Reader) -> None:
    run = one(read_data("optimum_benchmark/2025-05_report.json"))
    prefill = run.distribution("prefill_s")
    assert prefill is not None
    # 0.19, 0.2, 0.2 and 0.21 s
    assert (prefill.mean, prefill.p50, prefill.n, prefill.origin) == (pytest.approx(0.2), pytest.approx(0.2), 4, "samples")
    # 10 samples/s x 0.2 s = 2 sequences; 40 tokens/s x 0.5 s = 20 tokens = 10 steps of 2, so 11 tokens each.
    assert (run.workload.concurrency, run.workload.output_tokens_mean, run.load_mode) == (2, 11.0, "static_batch")
    assert run.requests == RequestCounts(completed=4)
    itl = run.distribution("itl_s")
    assert itl is not None
    # 0.5 s / 10 steps; the 40 gaps of per_token are one a step, so their percentiles hold.
    assert (itl.mean, itl.n, itl.max) == (pytest.approx(0.05), 40, pytest.approx(0.06))
    assert run.distribution("step_s") == itl
    assert mean(run, "e2e_s") == pytest.approx(0.7)
    # 2 x 11 tokens / 0.7 s
    assert run.rate("output_tokens_per_s") == Rate(pytest.approx(22 / 0.7), "aggregate", "derived")
    assert run.rate("prefill_tokens_per_s") is None
    assert run.model is None
    assert run.warnings == (NO_MODEL, NO_LENGTHS)


def test_memory_and_energy_are_labels_in_bytes_and_joules(read_data: Reader) -> None:
    labels = one(read_data("optimum_benchmark/2025-05_report.json")).labels
    assert labels["load_s"] == "12.5"
    assert labels["prefill_max_allocated_bytes"] == "8400250000"
    # 3.1e-6 kWh
    assert labels["prefill_energy_j"] == "11.16"


def test_a_benchmark_names_all_and_shows_gaps_that_are_too_many(read_data: Reader) -> None:
    run = one(read_data("optimum_benchmark/2025-05_benchmark.json"))
    assert (run.engine, run.engine_version, run.model, run.label) == ("transformers", "4.50.0", "acme/tiny-8b", "tiny_run")
    # The devices asked for are the second and the third.
    assert (run.hardware, run.devices, run.weight_dtype) == ("NVIDIA A10G", 2, "float16")
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean, run.workload.concurrency) == (100.0, 11.0, 2)
    assert run.rate("prefill_tokens_per_s") == Rate(pytest.approx(2 * 100 / 0.2), "aggregate", "derived")
    itl = run.distribution("itl_s")
    assert itl == Distribution(mean=pytest.approx(0.05), n=40, origin="derived")
    assert "per_token holds 83 gaps where 4 runs of 10 steps have 40" in run.warnings[0]


def test_an_older_prompt_pass_counts_tokens(read_data: Reader) -> None:
    run = one(read_data("optimum_benchmark/2024-03_prefill_in_tokens.json"))
    # Without samples a second the batch is not known, and with it neither lengths nor steps.
    assert run.workload.concurrency is None
    assert mean(run, "prefill_s") == pytest.approx(0.5)
    assert run.distribution("itl_s") is None
    value = report("2024-03_prefill_in_tokens.json")
    value["generate"] = {"latency": None, "throughput": None}
    config = {"scenario": {"input_shapes": {"batch_size": 1}}}
    run = one(read_runs("x", json.dumps({"config": config, "report": value}).encode()))
    # 200 tokens/s x 0.5 s; 20 tokens/s x 1 s
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean) == (100.0, 21.0)
    assert mean(run, "itl_s") == pytest.approx(0.05)


def test_a_pass_of_an_unknown_task_is_no_prefill(read_data: Reader) -> None:
    run = one(read_data("optimum_benchmark/2024-06_forward_only.json"))
    found = run.distribution("prefill_s")
    assert found is not None
    assert (found.mean, found.definition) == (pytest.approx(0.3), FORWARD)
    assert run.workload.concurrency == 8
    config = {"backend": {"task": "text-generation", "name": "pytorch"}}
    text = one(read_runs("x", json.dumps({"config": config, "report": report("2024-06_forward_only.json")}).encode()))
    assert text.distribution("prefill_s") == Distribution(
        mean=pytest.approx(0.3),
        p50=pytest.approx(0.3),
        p90=pytest.approx(0.34),
        p95=pytest.approx(0.345),
        p99=pytest.approx(0.349),
        std=pytest.approx(0.05),
        min=0.25,
        max=0.35,
        n=2,
        origin="samples",
    )


def test_a_table_of_2023_has_three_digits_and_a_rate(read_data: Reader) -> None:
    run = one(read_data("optimum_benchmark/2023-09_with_units.csv"))
    # 40 samples/s x 0.1 s = 4 sequences; 79.2 tokens/s x 5 s = 396 tokens = 99 steps of 4.
    assert (run.workload.concurrency, run.workload.output_tokens_mean) == (4, 100.0)
    assert mean(run, "prefill_s") == pytest.approx(0.1)
    assert mean(run, "itl_s") == pytest.approx(5 / 99)
    assert mean(run, "e2e_s") == pytest.approx(5.1)
    assert run.labels["forward_max_allocated_bytes"] == "8000000000"


def test_figures_too_coarse_to_count_steps_still_give_a_step() -> None:
    text = "forward.latency(s),forward.throughput(samples/s),decode.latency(s),decode.throughput(tokens/s)\n0.0543,18.4,17.0,30.1\n"
    run = one(read_runs("x", text.encode()))
    # 30.1 x 17 = 511.7 is no whole number of steps.
    assert run.workload.output_tokens_mean is None
    assert run.distribution("itl_s") == Distribution(mean=pytest.approx(1 / 30.1), origin="derived")


def test_flattened_reports_are_runs(read_data: Reader) -> None:
    first, second = read_data("optimum_benchmark/2024-10_flattened.csv").runs
    assert (first.model, first.weight_dtype, first.workload.prompt_tokens_mean) == ("acme/tiny-8b", "bfloat16", 256.0)
    assert mean(first, "itl_s") == pytest.approx(1.26 / 63)
    assert mean(second, "itl_s") == pytest.approx(0.01)
    assert first.requests == RequestCounts(completed=5)


def test_a_statistic_that_its_values_contradict_is_flagged() -> None:
    value = report()
    value["prefill"]["latency"]["mean"] = 0.3
    run = one(read_runs("x", json.dumps(value).encode()))
    assert mean(run, "prefill_s") == pytest.approx(0.2)
    assert [flag.evidence for flag in run.flags if flag.flag == "metric_bug"] == [
        "The file contradicts its own samples: prefill.latency.mean says 300 ms and its values give 200 ms."
    ]
    value["prefill"]["latency"]["values"] = [0.1, -1]
    run = one(read_runs("x", json.dumps(value).encode()))
    assert mean(run, "prefill_s") == pytest.approx(0.3)
    assert any("negative value" in warning for warning in run.warnings)


def test_runs_that_stand_apart_are_flagged() -> None:
    value = report()
    value["decode"]["latency"]["values"] = [0.5, 0.5, 0.51, 0.49, 0.5, 0.9]
    run = one(read_runs("x", json.dumps(value).encode()))
    (flag,) = (flag for flag in run.flags if flag.flag == "bimodal_runs")
    assert flag.evidence.startswith("1 of 6 repeats stand apart: 0.9 where the median is 0.5")
    assert "bimodal_runs" not in {flag.flag for flag in one(read_runs("x", json.dumps(report()).encode())).flags}


def test_another_unit_is_left_out_and_said() -> None:
    value = report()
    value["prefill"]["latency"]["unit"] = "ms"
    run = one(read_runs("x", json.dumps(value).encode()))
    assert run.distribution("prefill_s") is None
    assert any("prefill.latency.unit is not s" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({"prefill": {"latency": {"unit": "s"}}}), "hold no time"),
        ("generate.latency(s)\n", "a header and no row under it"),
        ("generate.latency(s)\n0\n", "line 2: .* hold no time"),
        ("report.prefill.latency.mean,report.prefill.latency.mean.x\n1,2\n", "lies inside another that has a value"),
        (json.dumps({"call": {"latency": {"unit": "s", "mean": 1.0}}}), "no result of a tool"),
    ],
)
def test_files_without_a_run_are_refused(text: str, expected: str) -> None:
    with pytest.raises(ImportRefused, match=expected):
        read_runs("x", text.encode())
