"""The run summary of the public contract: the one shape in which API, command line and exports show a run."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from app.domain.metrics import METRICS
from app.domain.observed import measured_times
from app.domain.percentile_rules import OF_TOOLS
from app.domain.readings import load_reading
from app.domain.run import STATS, Distribution, Flag, MetricValue, Run
from app.services.assessment import Assessment

_ALWAYS_SHOWN = ("ttft_s", "tpot_s", "itl_s", "chunk_gap_s", "e2e_s", "prefill_s", "queue_s")
_WHERE_KNOWN = ("pp", "ep", "dp", "kv_dtype", "load_mode", "measured_at", "token_count_source")


def run_summary(run: Run, assessment: Assessment | None = None) -> dict[str, Any]:
    """JSON-ready summary of `run`: SI units, null for what is not known, a key absent where it does not apply.

    Withheld metrics (see the flags) are null. `efficiency` is there only when model and hardware are known.
    """
    flags = (*run.flags, *(assessment.flags if assessment else ()))
    withheld = {name for flag in flags for name in flag.withholds}
    summary: dict[str, Any] = {
        "format": run.format,
        "engine": run.engine,
        "engine_version": run.engine_version,
        "model": run.model,
        "hardware": run.hardware,
        "devices": run.devices,
        "tp": run.tp,
        "weight_dtype": run.weight_dtype,
        "started_at": timestamp(run.started_at),
        "duration_s": number(run.duration_s),
        "label": run.label,
        "workload": _workload(run),
        "requests": {"sent": run.requests.sent, "completed": run.requests.completed, "failed": run.requests.failed},
        "metrics": metrics_json(run.metrics, withheld),
        "mean_request": _mean_request(run),
        "in_flight": _in_flight(run),
        "flags": flags_json(flags),
        "labels": dict(run.labels),
        "importer_version": run.importer_version,
    }
    summary.update({key: getattr(run, key) for key in _WHERE_KNOWN if getattr(run, key) is not None})
    if (rule := OF_TOOLS.get(run.format)) is not None and run.samples is None:
        summary["percentiles_reported_by"] = rule
    if run.workload.rate_unlimited:
        summary["rate_unlimited"] = True
    warnings = list(run.warnings)
    if assessment is not None:
        if (efficiency := _efficiency(assessment)) is not None:
            summary["efficiency"] = efficiency
        warnings.extend(assessment.reasons)
    summary["warnings"] = warnings
    return summary


def flags_json(flags: Iterable[Flag]) -> list[dict[str, Any]]:
    """Flags with their evidence in words and figures."""
    return [
        {
            "flag": flag.flag,
            "evidence": flag.evidence,
            "withholds": list(flag.withholds),
            "figures": {key: number(value) for key, value in flag.figures.items()},
        }
        for flag in flags
    ]


def metrics_json(metrics: Mapping[str, MetricValue], withheld: set[str]) -> dict[str, Any]:
    """Each metric by key; the latencies are always there, null when not known or withheld."""
    shown: dict[str, Any] = dict.fromkeys(_ALWAYS_SHOWN)
    for key in METRICS:
        value = metrics.get(key)
        if value is None or key in withheld:
            continue
        if isinstance(value, Distribution):
            shown[key] = {
                **{stat: None if f"{key}.{stat}" in withheld else number(value.stat(stat)) for stat in STATS},
                "n": value.n,
                "from": value.origin,
                "definition": value.definition,
            }
        else:
            shown[key] = {"value": number(value.value), "scope": value.scope, "from": value.origin, "definition": value.definition}
    return shown


def _workload(run: Run) -> dict[str, Any]:
    workload = run.workload
    return {
        "prompt_tokens_mean": number(workload.prompt_tokens_mean),
        "output_tokens_mean": number(workload.output_tokens_mean),
        "prompt_tokens_total": workload.prompt_tokens_total,
        "output_tokens_total": workload.output_tokens_total,
        "concurrency": workload.concurrency,
        "request_rate_per_s": number(workload.request_rate_per_s),
        "rate_unlimited": workload.rate_unlimited,
        "context_depth_tokens": workload.context_depth_tokens,
        "shortest_length": number(workload.shortest_length),
        "dataset": workload.dataset,
    }


def _mean_request(run: Run) -> dict[str, Any]:
    """One request in its two halves, from the mean or else the median of each."""
    times = measured_times(run)
    return {
        "first_token_s": number(times.first_token_s),
        "step_s": number(times.step_s),
        "steps": number(times.steps),
        "total_s": number(times.total_s),
    }


def _in_flight(run: Run) -> dict[str, Any]:
    """How many were under way by Little's law, and the two times per token that differ by it."""
    reading = load_reading(run)
    return {
        "requests": number(reading.in_flight),
        "decoding": number(reading.decoding),
        "server_s_per_token": number(reading.server_s_per_token),
        "user_s_per_token": number(reading.user_s_per_token),
    }


def _efficiency(assessment: Assessment) -> dict[str, Any] | None:
    if assessment.prediction is None:
        return None
    return {
        "decode_floor_s": number(assessment.decode_floor_s),
        "mbu": number(assessment.mbu),
        "prefill_floor_s": number(assessment.prefill_floor_s),
        "mfu": number(assessment.mfu),
        "mfu_from_ttft": assessment.mfu_from_ttft,
        "against": "peak",
    }


def number(value: float | None) -> float | None:
    """A finite number or None: NaN and infinity never leave through JSON."""
    return value if value is not None and isfinite(value) else None


def timestamp(value: datetime | None) -> str | None:
    """ISO 8601 in UTC with a Z; None stays None."""
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if value else None
