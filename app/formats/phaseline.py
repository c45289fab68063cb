"""Our own measurements (`phaseline_document` says what they look like): one run a point, figures from its raw samples.

What a repeat's passes give: TTFT and prefill are the prompt pass, since nothing stands before it in the process; a step gives each
sequence of the batch one token, so that its time is the gap between the tokens of every sequence. The first repeat is in no figure.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import get_args

import numpy as np

from app.domain.checks import Evidence, flagged
from app.domain.checks.measuring import STATED, contended, noisy_samples, throttled
from app.domain.derive import statistics, with_request_rates
from app.domain.errors import ImportRefused
from app.domain.metrics import METRICS
from app.domain.run import (
    STATS,
    Distribution,
    Flag,
    LoadMode,
    MeasuredAt,
    MetricValue,
    Rate,
    RequestCounts,
    Run,
    Scope,
    Workload,
)
from app.domain.stability import spread, worst
from app.domain.telemetry import Telemetry
from app.domain.text import clean_text
from app.formats.document import Document
from app.formats.identity import said_size
from app.formats.importer import Importer, json_decline
from app.formats.phaseline_device import device_metrics, device_words
from app.formats.phaseline_document import FORMAT, STATUSES, VERSION
from app.formats.phaseline_samples import first_of, passes_of, requests_of
from app.formats.phaseline_telemetry import telemetry_of
from app.formats.record import Record

MOST_SAMPLES = 2_000
DEVICE_KIND = "device_microbench"
_TEXTS = ("engine", "engine_version", "model", "hardware", "weight_dtype", "kv_dtype", "token_count_source", "label")
_FAILED = {"oom": "The device had not enough memory for this point", "timeout": "This point took longer than its limit"}
# What of the environment says how figures of two runs may differ; what changes from minute to minute stays in the document.
_SETTING = (
    *("device", "driver", "cuda", "torch", "numpy", "blas", "python", "kernel", "cpu_model", "governor", "compute_mode", "ecc", "mig"),
    *("power_limit_w", "container_cpus", "code_version"),
)


def matches(document: Document) -> str | None:
    """None for objects that say `"format": "phaseline"` and have `kind` and `runs`."""
    if (reason := json_decline(document, "format", "kind", "runs")) is not None:
        return reason
    other = next((entry for entry in document.entries if entry.values["format"] != FORMAT), None)
    return None if other is None else f'{other.where}format is not "{FORMAT}"'


def parse(document: Document) -> list[Run]:
    """One run for each point. Raises ImportRefused for a later version, and for a document without a point."""
    found = []
    for entry in document.entries:
        record = Record(entry.values, entry.where)
        if (version := record.count("version")) != VERSION:
            raise ImportRefused(f"{record.path('version')} is {version}, and {VERSION} is what this version reads: update Phaseline.")
        points = record.sequence("runs") or []
        telemetry = telemetry_of(record.child("telemetry"))
        for index, point in enumerate(points):
            if not isinstance(point, dict):
                raise ImportRefused(f"{record.path('runs')}[{index}] is no object.")
            found.append(_run(record, Record(point, f"{record.path('runs')}[{index}]."), telemetry))
    if not found:
        raise ImportRefused("The document has no point in `runs`: the measurement ended before its first.")
    return found


def _run(whole: Record, point: Record, telemetry: Telemetry | None) -> Run:
    status = point.text("status") or "ok"
    if status not in STATUSES:
        raise ImportRefused(f"{point.path('status')} is “{status}”; known are {', '.join(STATUSES)}.")
    run = _described(whole, point)
    during = _during(point, telemetry)
    run = replace(run, telemetry=during, metrics={**_stated_metrics(point), **_clocks(during)})
    if status != "ok":
        reason = _FAILED.get(status) or "This point failed"
        said = point.text("reason")
        warning = f"{reason}{f': {said}' if said else ''}."
        return flagged(replace(run, requests=RequestCounts(sent=1, completed=0, failed=1), warnings=(*run.warnings, warning)))
    if "device" in point:
        run = _with_device(run, point)
    elif "passes" in point:
        run = _with_passes(run, point)
    elif "requests" in point:
        run = _with_requests(run, point)
    if not run.metrics and run.requests.completed is None:
        raise ImportRefused(f"{point.path('passes')}, requests and device are not there: the point has no figures.")
    own = _stated_flags(point)
    checked = flagged(run, Evidence(not_numbers=tuple(point.not_numbers), negative=tuple(point.negative)))
    named = {flag.flag for flag in (*own, *run.flags)}
    others = tuple(flag for flag in checked.flags if flag.flag not in named)
    return with_request_rates(replace(checked, flags=(*run.flags, *own, *others), warnings=(*checked.warnings, *point.warnings)))


def _described(whole: Record, point: Record) -> Run:
    """What the point says of itself, without figures."""
    # A sweep may look at the device before it; that point is a microbenchmark whatever the document is.
    kind, method = DEVICE_KIND if "device" in point else whole.text("kind"), whole.text("method")
    stated = point.child("labels")
    labels = {key: label for key, _ in stated.items() if (label := stated.label(key)) is not None}
    environment = whole.child("environment")
    around = {f"environment.{key}": label for key in _SETTING if (label := environment.label(key)) is not None}
    named = {key: word for key, word in (("kind", kind), ("method", method), ("threads", point.label("threads"))) if word is not None}
    concurrency = point.count("concurrency")
    texts = {key: point.text(key) for key in _TEXTS}
    return Run(
        format=FORMAT,
        **texts,  # type: ignore[arg-type]
        devices=said_size(point, "devices"),
        tp=said_size(point, "tp"),
        started_at=_moment(point.text("started_at") or whole.text("started_at")),
        duration_s=point.positive("duration_s"),
        load_mode=_one_of(point.text("load_mode"), get_args(LoadMode)),  # type: ignore[arg-type]
        measured_at=_one_of(point.text("measured_at"), get_args(MeasuredAt)),  # type: ignore[arg-type]
        workload=Workload(
            prompt_tokens_mean=point.positive("prompt_tokens"),
            output_tokens_mean=point.positive("output_tokens"),
            concurrency=concurrency,
            request_rate_per_s=point.positive("request_rate_per_s"),
        ),
        labels={**named, **labels, **around},
        warnings=tuple(text for item in point.sequence("warnings") or () if isinstance(item, str) and (text := clean_text(item, 400))),
    )


def _with_passes(run: Run, point: Record) -> Run:
    passes, batch = point.child("passes"), run.workload.concurrency or 1
    samples = passes_of(passes, run.workload.prompt_tokens_mean)
    steps = samples.chunk_gaps_s
    prefill, decode = spread(samples.ttft_s), spread(steps)
    metrics: dict[str, MetricValue] = {}
    if (pass_s := statistics(samples.ttft_s)) is not None:
        metrics["prefill_s"] = pass_s
    if (step_s := statistics(steps)) is not None:
        metrics["step_s"] = step_s
    said = (noisy_samples(prefill, decode), contended(run.telemetry, said_size(point, "threads")), throttled(run.telemetry))
    verdict, first = worst(prefill, decode), first_of(passes)
    apart = () if first is None else (f"The first run is kept apart: {first}.",)
    done = int(samples.ok.sum()) * batch
    total_s = float(np.nansum(samples.e2e_s))
    output = float(np.nansum(samples.output_tokens)) * batch
    run = replace(
        run,
        samples=samples,
        metrics={**run.metrics, **metrics, **_energy(run.telemetry, output)},
        requests=RequestCounts(sent=done, completed=done, failed=0),
        duration_s=run.duration_s or total_s or None,
        flags=tuple(flag for flag in said if flag is not None),
        labels={**run.labels, **({} if verdict is None else {"verdict": verdict})},
        warnings=(*apart, *run.warnings),
    )
    # Between the repeats the process does other things, so that a rate counts the passes' own time.
    return replace(run, metrics={**_pass_rates(run, total_s, done, output), **run.metrics})


def _pass_rates(run: Run, total_s: float, done: int, output: float) -> Mapping[str, MetricValue]:
    if total_s <= 0 or not done:
        return {}
    prompt = run.workload.prompt_tokens_mean
    rates = {"requests_per_s": done / total_s, "output_tokens_per_s": output / total_s}
    if prompt:
        rates |= {"input_tokens_per_s": done * prompt / total_s, "total_tokens_per_s": (output + done * prompt) / total_s}
    return {key: Rate(value, "aggregate", "samples") for key, value in rates.items() if value > 0}


def _with_requests(run: Run, point: Record) -> Run:
    samples = requests_of(point.child("requests"))
    done = int(samples.ok.sum())
    verdict = _one_of(point.text("verdict"), ("stable", "noisy", "unusable"))
    output = float(np.nansum(samples.output_tokens[samples.ok]))
    work = run.workload
    if done and work.prompt_tokens_mean is None and np.isfinite(mean := float(samples.prompt_tokens[samples.ok].mean())):
        work = replace(work, prompt_tokens_mean=mean or None)
    if done and work.output_tokens_mean is None and np.isfinite(mean := float(samples.output_tokens[samples.ok].mean())):
        work = replace(work, output_tokens_mean=mean or None)
    sent = point.count("sent")
    return replace(
        run,
        samples=samples,
        workload=work,
        requests=RequestCounts(sent if sent is not None else samples.size, done, samples.size - done),
        metrics={**run.metrics, **_energy(run.telemetry, output)},
        labels={**run.labels, **({} if verdict is None else {"verdict": verdict})},
        flags=tuple(flag for flag in (throttled(run.telemetry),) if flag is not None),
    )


def _with_device(run: Run, point: Record) -> Run:
    device = point.child("device")
    flags = tuple(flag for flag in (contended(run.telemetry, said_size(device, "threads")), throttled(run.telemetry)) if flag is not None)
    return replace(run, metrics={**run.metrics, **device_metrics(device)}, flags=flags, labels={**run.labels, **device_words(device)})


def _energy(telemetry: Telemetry | None, output_tokens: float) -> dict[str, MetricValue]:
    energy = None if telemetry is None else telemetry.energy_j
    if energy is None or output_tokens <= 0:
        return {}
    return {"energy_per_output_token_j": Rate(energy / output_tokens, "device", "derived")}


def _clocks(telemetry: Telemetry | None) -> dict[str, MetricValue]:
    """The clocks of the device while the run lasted."""
    if telemetry is None:
        return {}
    found = {key: statistics(telemetry.known(key)) for key in ("sm_clock_hz", "memory_clock_hz")}
    return {key: value for key, value in found.items() if value is not None}


def _during(point: Record, telemetry: Telemetry | None) -> Telemetry | None:
    window = point.sequence("window_s")
    if telemetry is None or window is None or len(window) != 2:
        return None
    ends = [float(end) if isinstance(end, (int, float)) and not isinstance(end, bool) and abs(end) < 1e15 else np.nan for end in window]
    during = telemetry.between(ends[0], ends[1]) if ends[0] < ends[1] else None
    return None if during is None else during.thinned(MOST_SAMPLES)


def _stated_metrics(point: Record) -> dict[str, MetricValue]:
    """Figures that the document states beside its samples, under keys of the registry."""
    stated: dict[str, MetricValue] = {}
    metrics = point.child("metrics")
    for key, _ in metrics.items():
        known = METRICS.get(key)
        value = metrics.child(key)
        definition = value.text("definition") or "canonical"
        if known is None:
            continue
        if known.kind == "rate":
            number, scope = value.positive("value"), _one_of(value.text("scope"), get_args(Scope))
            if number is not None and scope is not None:
                stated[key] = Rate(number, scope, "reported", definition)  # type: ignore[arg-type]
            continue
        figures = {name: number for name in STATS if (number := value.number(name)) is not None}
        if figures:
            stated[key] = Distribution(**figures, n=value.count("n"), definition=definition)  # type: ignore[arg-type]
        point.warnings.extend(value.warnings)
    return stated


def _stated_flags(point: Record) -> tuple[Flag, ...]:
    found = []
    for item in point.sequence("flags") or ():
        stated = Record(item if isinstance(item, dict) else {})
        make, evidence = STATED.get(stated.text("flag") or ""), stated.text("evidence")
        figures = stated.child("figures")
        if make is not None and evidence is not None:
            found.append(make(evidence, {key: number for key, _ in figures.items() if (number := figures.number(key)) is not None}))
    return tuple({flag.flag: flag for flag in found}.values())


def _one_of(word: str | None, words: tuple[str, ...]) -> str | None:
    return word if word in words else None


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


IMPORTER = Importer(FORMAT, "Phaseline's own measurements (JSON)", matches, parse)
