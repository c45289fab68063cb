"""A server seen from outside: runs of one sweep with one request in flight, fitted to what its inside must be; beside it what it says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.domain.black_box import BlackBox, Inferred, Memory, NotTold, Observed, infer
from app.domain.derive import tpot_values
from app.domain.dtypes import number_format
from app.domain.errors import PhaselineError
from app.domain.run import Distribution, RequestSamples, Run
from app.services.context import Context
from app.services.runs import RunView, stored_runs, views
from app.services.summary import number
from app.store import requests as request_rows
from app.store import uploads

_BF16_BYTES = 2.0
_MOST_RUNS = 64
TITLES: Mapping[str, str] = {
    "front_end_s": "Front-end",
    "prefill_s": "Prompt pass",
    "prefill_tokens_per_s": "Prefill rate",
    "attention_share": "Attention’s share",
    "step_s": "Decode step",
    "step_without_context_s": "Decode step without context",
    "step_per_1000_tokens_s": "For 1,000 tokens of context",
    "decode_bytes_per_s": "Bandwidth of decode",
}


@dataclass(frozen=True)
class Server:
    """What the server itself measured at one prompt length, means in seconds; None where it does not say."""

    run_id: int
    prompt_tokens: float
    queue_s: float | None
    prefill_s: float | None


@dataclass(frozen=True)
class SeenFromOutside:
    """What follows from the runs that were used. `reason` says why nothing does; `assumptions` what was taken for granted."""

    run_ids: tuple[int, ...]
    box: BlackBox | None
    reason: str | None
    server: tuple[Server, ...] = ()
    assumptions: tuple[str, ...] = ()


def of_sweep(context: Context, run_id: int, beside: Sequence[int] = ()) -> SeenFromOutside:
    """From the runs of this run's file, or from it and those named `beside`. Raises NotFound for a run that is not there."""
    (asked,) = views(context, (run_id,))
    numbers = tuple(dict.fromkeys((run_id, *beside))) if beside else _of_file(context, asked)
    return _from_outside(context, asked, numbers)


def for_page(context: Context, view: RunView) -> SeenFromOutside | None:
    """The same for the page of a run; None, at no cost, for a run that cannot be a part of such a sweep."""
    if not view.stored.has_samples or not _is_alone(view.stored.run):
        return None
    numbers = _of_file(context, view)
    return _from_outside(context, view, numbers) if len(numbers) > 1 else None


def _of_file(context: Context, view: RunView) -> tuple[int, ...]:
    with context.database.read() as session:
        return uploads.run_ids(session, view.stored.upload.id)[:_MOST_RUNS]


def _from_outside(context: Context, asked: RunView, numbers: Sequence[int]) -> SeenFromOutside:
    # Of a sweep over loads all but one have company: they are not priced to find that out.
    alone = [stored.id for stored in stored_runs(context, numbers) if _is_alone(stored.run)]
    together = [view for view in views(context, alone) if _same_server(view, asked)]
    with context.database.read() as session:
        found = {view.id: request_rows.load(session, view.id) for view in together if view.stored.has_samples}
    points = {number: point for number, samples in found.items() if samples is not None and (point := _observed(samples)) is not None}
    memory, assumptions = _memory(asked)
    used = tuple(sorted(points))
    try:
        box = infer([points[number] for number in used], memory)
    except NotTold as missing:
        return SeenFromOutside(used, None, str(missing))
    server = tuple(said for view in together if view.id in points and (said := _said(view, points[view.id])) is not None)
    return SeenFromOutside(used, box, None, server, assumptions)


def _same_server(view: RunView, asked: RunView) -> bool:
    one, other = view.stored.run, asked.stored.run
    return (view.model_name, one.engine, one.hardware) == (asked.model_name, other.engine, other.hardware)


def _is_alone(run: Run) -> bool:
    """One request in flight at a time, timed at a client: nothing waits for another."""
    return run.workload.concurrency == 1 and run.measured_at == "client" and run.load_mode in (None, "closed", "single")


def _observed(samples: RequestSamples) -> Observed | None:
    ok = samples.ok & np.isfinite(samples.ttft_s) & np.isfinite(samples.prompt_tokens)
    if not ok.any():
        return None
    output = samples.output_tokens[ok]
    steps = tpot_values(samples)[ok]
    return Observed(
        prompt_tokens=float(samples.prompt_tokens[ok].mean()),
        output_tokens=float(output.mean()) if np.isfinite(output).all() else 0.0,
        ttft_s=samples.ttft_s[ok],
        itl_s=steps[np.isfinite(steps)],
    )


def _memory(view: RunView) -> tuple[Memory | None, tuple[str, ...]]:
    """What one decode step reads over all devices, where the model is known, and what had to be assumed for it."""
    if view.model is None:
        return None, ()
    run, architecture = view.stored.run, view.model.architecture
    weights, cache = _bytes_of(run.weight_dtype), _bytes_of(run.kv_dtype)
    assumed = [word for word, known in (("weights", weights), ("cache", cache)) if known is None]
    said = (f"The {' and the '.join(assumed)} of the server are taken as 16 bit: the run does not say.",) if assumed else ()
    read = architecture.decode_weight_parameters * (weights or _BF16_BYTES)
    return Memory(read, architecture.kv_bytes_per_token(cache or _BF16_BYTES)), said


def _bytes_of(dtype: str | None) -> float | None:
    if dtype is None:
        return None
    try:
        return number_format(dtype).bytes
    except PhaselineError:
        return None


def _said(view: RunView, point: Observed) -> Server | None:
    queue, prefill = (_mean(view.stored.run.metrics.get(key)) for key in ("queue_s", "prefill_s"))
    return None if queue is None and prefill is None else Server(view.id, point.prompt_tokens, queue, prefill)


def _mean(value: Any) -> float | None:
    return value.mean if isinstance(value, Distribution) else None


def black_box_json(seen: SeenFromOutside) -> dict[str, Any]:
    """JSON-ready: each figure with its interval and the word `inferred`; what the server itself says apart from it."""
    box = seen.box
    return {
        "runs": list(seen.run_ids),
        "reason": seen.reason,
        "figures": {} if box is None else {key: _figure(value) for key, value in box.figures.items()},
        "first_token": [] if box is None else _rows(box.curve, "prompt_tokens"),
        "decode_step": [] if box is None else _rows(box.steps, "context_tokens"),
        "untold": [] if box is None else list(box.untold),
        "assumptions": list(seen.assumptions),
        "server": [
            {"run": each.run_id, "prompt_tokens": each.prompt_tokens, "queue_s": number(each.queue_s), "prefill_s": number(each.prefill_s)}
            for each in seen.server
        ],
    }


def _figure(value: Inferred) -> dict[str, Any]:
    interval = [number(value.low), number(value.high)]
    return {"value": number(value.value), "range": interval, "label": "inferred", "said": value.said}


def _rows(rows: Sequence[tuple[float, float, float]], axis: str) -> list[dict[str, float | None]]:
    return [{axis: at, "measured_s": number(measured), "fitted_s": number(fitted)} for at, measured, fitted in rows]
