"""From the numbers of a case to deployments that can be diagnosed: names and units are changed here, nothing is worked out."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.domain.comparison import Comparison, Side, compare
from app.domain.diagnosis import Diagnosis, Setup, Subject, diagnose, diagnose_pair
from app.domain.run import Distribution, Rate, Run
from tests.cases.building import MS, is_number, shown

Given = Mapping[str, Any]
PCT = 0.01

# The case's name of a fact of the deployment -> ours, and what its unit is multiplied by.
SETUP = {
    "max_num_batched_tokens": ("chunk_budget_tokens", 1.0),
    "cuda_graph_max_batch": ("graph_limit", 1.0),
    "active_params": ("active_parameters", 1.0),
    "params": ("parameters", 1.0),
    "total_params": ("parameters", 1.0),
    "bytes_per_param": ("bytes_per_parameter", 1.0),
    "bits_per_weight": ("bytes_per_parameter", 1 / 8),
    "compute_bytes_per_param": ("compute_bytes_per_parameter", 1.0),
    "weight_bytes": ("step_weight_bytes", 1.0),
    "active_bytes": ("step_weight_bytes", 1.0),
    "read_bytes_per_token": ("step_weight_bytes", 1.0),
    "bytes": ("step_weight_bytes", 1.0),
    "resident_bytes": ("resident_bytes", 1.0),
    "gpu_bytes_s": ("bandwidth_bytes_per_s", 1.0),
    "cpu_bytes_s": ("slow_bandwidth_bytes_per_s", 1.0),
    "gpu_fraction": ("fast_share", 1.0),
    "long_prompt_tokens": ("long_prompt_tokens", 1.0),
    "layers": ("layers", 1.0),
    "kv_heads": ("kv_heads", 1.0),
    "head_dim": ("head_dim", 1.0),
    "kv_bytes": ("kv_element_bytes", 1.0),
    "context": ("context_tokens", 1.0),
    "streams": ("sequences", 1.0),
    "tp": ("devices", 1.0),
    "allreduce_per_layer": ("all_reduces_per_layer", 1.0),
    "allreduce_ms": ("all_reduce_s", MS),
    "hbm_bytes_s": ("bandwidth_bytes_per_s", 1.0),
    "mem_bytes_s": ("bandwidth_bytes_per_s", 1.0),
    "advertised_bytes_s": ("bandwidth_bytes_per_s", 1.0),
    "achievable_bytes_s": ("achieved_bandwidth_bytes_per_s", 1.0),
    "measured_read_bytes_s": ("achieved_bandwidth_bytes_per_s", 1.0),
    "peak_flops": ("peak_flops_per_s", 1.0),
}
# Statistics that are not means: the case's name -> metric, statistic and factor.
STATISTICS = {
    "ttft_p50_ms": ("ttft_s", "p50", MS),
    "itl_p50_ms": ("itl_s", "p50", MS),
    "itl_p99_ms": ("itl_s", "p99", MS),
    "ttft_p90_s": ("ttft_s", "p90", 1.0),
    "max_ttft_s": ("ttft_s", "max", 1.0),
    "ttft_s": ("ttft_s", "mean", 1.0),
    "short_ttft_s": ("ttft_s", "mean", 1.0),
}
RATES = {
    "decode_tok_s": ("decode_tokens_per_s", "request"),
    "tok_s": ("decode_tokens_per_s", "request"),
    "measured_tok_s": ("decode_tokens_per_s", "request"),
    "out_tok_s": ("output_tokens_per_s", "aggregate"),
    "measured_bytes_s": ("bytes_per_s", "device"),
    "prefill_tok_s": ("prefill_tokens_per_s", "request"),
}
TOLD = {"measured_itl_change_pct": ("itl_change", PCT)}
PAIR_SUFFIXES = (("before", "after"), ("plain", "guided"))


def setup_of(given: Given) -> Setup:
    """The facts of a deployment, those of its model and hardware among them; a budget of null means that prompts are never split."""
    flat = {**given, **given.get("model", {}), **given.get("hardware", {})}
    known = {ours: flat[name] * unit for name, (ours, unit) in SETUP.items() if is_number(flat.get(name))}
    if "max_num_batched_tokens" in flat and flat["max_num_batched_tokens"] is None:
        known["chunk_budget_tokens"] = math.inf
    return Setup(**known)


def measured(given: Given) -> Run:
    """One run of a deployment with every figure that the case gives of it."""
    plain = {name: value for name, value in given.items() if name not in STATISTICS and name not in RATES}
    run = shown({**plain, **({"concurrency": given["running"]} if is_number(given.get("running")) else {})})
    metrics = dict(run.metrics)
    for name, (key, stat, unit) in STATISTICS.items():
        if is_number(given.get(name)):
            held = run.distribution(key) or metrics.get(key) or Distribution()
            metrics[key] = replace(held, **{stat: given[name] * unit})
    metrics |= {key: Rate(given[name], scope) for name, (key, scope) in RATES.items() if is_number(given.get(name))}  # type: ignore[arg-type]
    workload = run.workload
    for name in ("prompt", "short_prompt_tokens"):
        if is_number(given.get(name)):
            workload = replace(workload, prompt_tokens_mean=given[name])
    if is_number(given.get("burst")):
        workload = replace(workload, concurrency=given["burst"])
    return replace(run, metrics=metrics, workload=workload, tp=given["tp"] if is_number(given.get("tp")) else None)


def subject(points: Iterable[Given]) -> Subject:
    """One deployment from its points; the setup is that of the first."""
    listed = list(points)
    return Subject(tuple(measured(point) for point in listed), setup_of(listed[0]))


def spread_out(given: Given, names: Iterable[str]) -> list[dict[str, Any]]:
    """A table of columns as rows, what stands beside the columns in every row."""
    columns = list(names)
    if not columns:
        return [dict(given)]
    beside = {name: value for name, value in given.items() if name not in columns}
    return [{**beside, **dict(zip(columns, row, strict=True))} for row in zip(*(given[name] for name in columns), strict=True)]


def columns_of(given: Given) -> list[str]:
    """The names of lists of numbers."""
    return [name for name, value in given.items() if isinstance(value, list) and value and all(is_number(each) for each in value)]


def two_columns(given: Given) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A table whose columns are named for two sides (`ttft_before_ms`, `ttft_after_ms`) as the rows of each."""
    for first, second in PAIR_SUFFIXES:
        mine = [name for name in given if f"_{first}" in name]
        if not mine:
            continue
        sides = []
        for word, against in ((first, second), (second, first)):
            kept = {name.replace(f"_{word}", ""): value for name, value in given.items() if f"_{against}" not in name}
            sides.append(spread_out(kept, columns_of(kept)))
        return sides[0], sides[1]
    raise AssertionError(f"no two sides in {sorted(given)}")


def two_values(given: Given) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two sides given as lists of two."""
    both = [name for name in columns_of(given) if len(given[name]) == 2]
    first, second = spread_out(given, both)
    return first, second


def told(given: Given) -> dict[str, float]:
    """Observables that the case states as such."""
    return {ours: given[name] * unit for name, (ours, unit) in TOLD.items() if name in given}


@dataclass(frozen=True)
class Asked:
    """What was asked: deployments by the case's name for each, their diagnoses or that of their difference, and the comparison of two."""

    subjects: Mapping[str, Subject]
    diagnoses: tuple[Diagnosis, ...]
    compared: Comparison | None = None


def points_of(side: Given) -> list[dict[str, Any]]:
    """The points of one side: a burst comes with the same request alone."""
    if "single_ttft_ms" not in side:
        return [dict(side)]
    shared = {name: side[name] for name in ("prompt_tokens", "itl_ms")}
    return [
        {**shared, "concurrency": 1, "ttft_ms": side["single_ttft_ms"]},
        {**shared, "burst": side["burst"], "max_ttft_s": side["max_ttft_s"]},
    ]


def both_sides(names: tuple[str, str]) -> Callable[[Given], Asked]:
    """Two named sides, and what stands beside them in both."""

    def asked(given: Given) -> Asked:
        shared = {name: value for name, value in given.items() if name not in names}
        return between(*(points_of({**shared, **given[name]}) for name in names), names=names)

    return asked


def between(
    base: list[dict[str, Any]],
    other: list[dict[str, Any]],
    stated: Mapping[str, float] | None = None,
    names: tuple[str, str] = ("before", "after"),
) -> Asked:
    """The difference of two deployments."""
    subjects = {name: subject(points) for name, points in zip(names, (base, other), strict=True)}
    first, second = subjects.values()
    compared = compare(Side(1, first.runs[-1]), Side(2, second.runs[-1]))
    return Asked(subjects, (diagnose_pair(first, second, compared, stated),), compared)


def each(points: Mapping[str, list[dict[str, Any]]]) -> Asked:
    """Deployments one by one."""
    subjects = {name: subject(listed) for name, listed in points.items()}
    return Asked(subjects, tuple(diagnose(found) for found in subjects.values()))


def columns_asked(given: Given) -> Asked:
    return between(*two_columns(given))


def values_asked(given: Given) -> Asked:
    first, second = two_values(given)
    return between([first], [second], told(given))


def rows_asked(given: Given) -> Asked:
    shared = {name: value for name, value in given.items() if name != "rows"}
    return each({str(index): [{**shared, **row}] for index, row in enumerate(given["rows"])})


def by_running(given: Given) -> Asked:
    shared = {name: value for name, value in given.items() if name != "itl_ms_by_running"}
    return each({"": [{**shared, "running": running, "itl_ms": itl} for running, itl in given["itl_ms_by_running"]]})


def by_devices(given: Given) -> Asked:
    shared = {name: value for name, value in given.items() if name != "tok_s"}
    return each({"": [{**shared, "tp": int(name.removeprefix("tp")), "tok_s": rate} for name, rate in given["tok_s"].items()]})


def table_asked(given: Given) -> Asked:
    """Columns of a sweep, points of a curve, or one deployment."""
    points = given.get("points")
    if points:
        return each({"": [{**given, **point} for point in points]})
    return each({"": spread_out(given, columns_of(given))})


def in_two_columns(given: Given) -> bool:
    return any(f"_{word}" in name for name in given for pair in PAIR_SUFFIXES for word in pair)


ASKED: tuple[tuple[Callable[[Given], bool], Callable[[Given], Asked]], ...] = (
    (lambda given: isinstance(given.get("before"), dict), both_sides(("before", "after"))),
    (lambda given: "measured_itl_change_pct" in given or "gpu_fraction" in given, values_asked),
    (in_two_columns, columns_asked),
    (lambda given: "rows" in given, rows_asked),
    (lambda given: "itl_ms_by_running" in given, by_running),
    (lambda given: isinstance(given.get("tok_s"), dict), by_devices),
    (lambda given: True, table_asked),
)


def asked(given: Given) -> Asked:
    """A case's question through the first shape that it has."""
    return next(ask for knows, ask in ASKED if knows(given))(given)
