"""One run as its page shows it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from app.charts import page_figure
from app.domain.checks import READING_AIDS
from app.domain.decomposition import explanation
from app.domain.metrics import METRICS, Metric
from app.domain.observed import measured_times, observed_first_token, observed_step
from app.domain.quantity import NOT_KNOWN, bytes_, count, factor, in_metric_unit, moment, number, percent, seconds, tokens_rate
from app.domain.run import Distribution, Rate, RequestCounts, RequestSamples, Run
from app.pages.causes_view import causes_view
from app.pages.identity_view import identity_rows
from app.pages.job_links import run_links
from app.pages.prediction_view import Row, phase_rows
from app.services import figures
from app.services.diagnosing import explain_run
from app.services.predicting import Answer, Question
from app.services.runs import RunView
from app.services.sentences import run_sentence, verdict_words

_SAMPLES_BEYOND = 10
_TAILS = {"p90": 0.10, "p95": 0.05, "p99": 0.01}
SHOWN_STATS = ("mean", "p50", "p90", "p95", "p99", "max")


@dataclass(frozen=True)
class Tile:
    """A figure with its reason: the floor, the expectation or n. `value` reads "not known" where it is."""

    title: str
    key: str
    value: str
    why: str


@dataclass(frozen=True)
class MetricRow:
    """A distribution as a table row; a cell is (text, rests on too little data)."""

    metric: Metric
    cells: tuple[tuple[str, bool], ...]
    n: str
    origin: str
    definition: str


def run_page_values(view: RunView, samples: RequestSamples | None) -> dict[str, Any]:
    """Everything the page of a run needs."""
    run = view.stored.run
    roofline = figures.roofline(view)
    split = figures.decomposition(view)
    flags = (*run.flags, *view.assessment.flags)
    withheld = run.withheld.union(*(flag.withholds for flag in view.assessment.flags))
    explained = explain_run(view)
    return {
        "run": view,
        "sentence": run_sentence(run, view.assessment),
        "lead": " ".join((_lead(view), *verdict_words(explained.diagnosis))),
        "facts": _facts(view),
        "tiles": _tiles(view),
        "decomposition": split,
        "explanations": {half.phase: explanation(half) for half in (split.prefill, split.decode)} if split else {},
        "times": measured_times(run),
        "roofline": page_figure("roofline", roofline) if roofline else None,
        "roofline_notes": roofline.notes if roofline else (),
        "beside": _beside(view),
        "phases": _phases(view),
        "why": causes_view(explained),
        "measurements": run_links(view),
        "pace": _pace(run),
        "spreads": [(spread, page_figure("distribution", spread)) for spread in figures.spreads(view, samples)],
        "distributions": _distributions(run, withheld),
        "rates": [(METRICS[key], value) for key, value in run.metrics.items() if isinstance(value, Rate)],
        "withheld": withheld,
        "reading_aids": READING_AIDS,
        "flags": sorted(flags, key=lambda flag: flag.flag in READING_AIDS),
        "stats": SHOWN_STATS,
        "workload": _workload(run),
        "identity": identity_rows(view),
        "file": _file(view),
        "predict_link": _predict_link(view),
        "roofline_points": roofline.of_kind("measured", "bounded", "predicted") if roofline else (),
    }


def _predict_link(view: RunView) -> str:
    """The page that predicts this run's own question."""
    prediction = view.assessment.prediction
    if prediction is None or view.model is None or view.hardware is None:
        return "/predict"
    request = prediction.request
    query = {
        "model": view.model.slug,
        "hardware": view.hardware.slug,
        "prompt_tokens": request.prompt_tokens,
        "output_tokens": request.output_tokens,
        "concurrency": request.concurrency,
        "open_loop": "true" if request.open_loop else None,
        "shortest_length": None if request.concurrency is None or request.shortest_length == 1.0 else request.shortest_length,
        "tp": request.tp,
        "weight_dtype": request.weight_dtype,
        "kv_dtype": request.kv_dtype,
        "engine": request.engine,
        "calibration": request.calibration,
    }
    return f"/predict?{urlencode({key: value for key, value in query.items() if value is not None})}"


def _lead(view: RunView) -> str:
    """One sentence of numbers under the finding."""
    step, floor = observed_step(view.stored.run), view.assessment.decode_floor_s
    if step is not None and floor is not None and view.assessment.prediction is not None:
        moved = bytes_(view.assessment.prediction.decode.bytes)
        return f"Each token takes {seconds(step.value_s)} where moving {moved} needs at least {seconds(floor)}."
    return " ".join(view.assessment.reasons[:1]) or "There is no prediction to set this beside."


def _facts(view: RunView) -> list[tuple[str, str]]:
    run, stored = view.stored.run, view.stored
    engine = " ".join(part for part in (run.engine, run.engine_version) if part)
    tokens = f"{count(run.workload.prompt_tokens_mean)} → {count(run.workload.output_tokens_mean)} tokens"
    devices = f"{run.devices} × " if run.devices and view.hardware_name else ""
    return [
        ("Model", view.model_name or NOT_KNOWN),
        ("Hardware", f"{devices}{view.hardware_name or NOT_KNOWN}"),
        ("Weights", run.weight_dtype or NOT_KNOWN),
        ("Engine", engine or NOT_KNOWN),
        ("Prompt → output", tokens),
        ("Load", _load(run)),
        ("Measured", moment(run.started_at)) if run.started_at else ("Uploaded", moment(stored.created_at)),
    ]


def run_words(view: RunView) -> str:
    """A run in one line, for a comparison."""
    return ", ".join(text for title, text in _facts(view) if title not in ("Measured", "Uploaded") and text != NOT_KNOWN)


def _load(run: Run) -> str:
    workload = run.workload
    words = []
    if workload.concurrency is not None:
        words.append(f"{workload.concurrency:,} client{'s' if workload.concurrency != 1 else ''}")
    elif workload.request_rate_per_s is not None:
        words.append(f"{number(workload.request_rate_per_s)} requests/s")
    elif workload.rate_unlimited:
        words.append("all at once")
    elif run.load_mode:
        words.append(run.load_mode.replace("_", " "))
    if run.requests.completed is not None:
        words.append(f"{run.requests.completed:,} requests")
    return ", ".join(words) or NOT_KNOWN


def _tiles(view: RunView) -> list[Tile]:
    run, prediction = view.stored.run, view.assessment.prediction
    first, step = observed_first_token(run), observed_step(run)
    expected = f", expected {seconds(prediction.ttft_s)}" if prediction else ""
    titles = {"ttft_s": "Time to first token", "prefill_s": "Prompt pass alone"}
    tiles = []
    if first is not None:
        if first.key == "prefill_s" and prediction:
            expected = f", expected {seconds(prediction.prefill.time_s)}"
        tiles.append(Tile(titles.get(first.key, "Time to first token"), "prefill", seconds(first.value_s), first.words + expected))
    else:
        tiles.append(Tile("Time to first token", "prefill", NOT_KNOWN, "this file does not record it, or it was withheld"))
    if step is not None:
        floor = f", floor {seconds(view.assessment.decode_floor_s)}" if prediction else ""
        title = "Inter-token latency" if step.key == "itl_s" else "Time per output token"
        tiles.append(Tile(title, "decode", seconds(step.value_s), step.words + floor))
        most = (
            f"at most {count(round(1 / prediction.decode.floor_s))} tokens/s"
            if prediction and prediction.decode.floor_s
            else "1 ÷ the time per token"
        )
        tiles.append(Tile("Decode, per request", "decode", f"{number(1 / step.value_s)} tokens/s", most))
    else:
        tiles.append(Tile("Inter-token latency", "decode", NOT_KNOWN, "this file does not record it, or it was withheld"))
    times = measured_times(run)
    if times.total_s is not None and first is not None and step is not None and times.steps is not None:
        tiles.append(
            Tile("Whole request", "", seconds(times.total_s), f"{seconds(first.value_s)} + {count(times.steps)} × {seconds(step.value_s)}")
        )
    output = run.rate("output_tokens_per_s")
    if output is not None:
        tiles.append(Tile("Output, aggregate", "", f"{number(output.value)} tokens/s", f"{_load(run)}, {output.origin}"))
    return tiles


@dataclass(frozen=True)
class Beside:
    """One phase: floor, expectation, measurement, and the measured share of the limit."""

    phase: str
    floor: str
    expected: str
    likely: str
    measured: str
    share: str


def _beside(view: RunView) -> list[Beside]:
    """Prediction beside measurement, phase by phase; empty when there is no prediction."""
    found, run = view.assessment, view.stored.run
    prediction = found.prediction
    if prediction is None:
        return []
    first, step = observed_first_token(run), observed_step(run)
    alone = first is not None and first.key == "prefill_s"
    prefill_expected = prediction.prefill.time_s if alone else prediction.ttft_s
    return [
        Beside(
            "prefill",
            seconds(found.prefill_floor_s),
            seconds(prefill_expected),
            _between(prediction.ttft_range_s),
            seconds(first.value_s) if first else NOT_KNOWN,
            NOT_KNOWN if found.mfu is None else f"{'at least ' if found.mfu_from_ttft else ''}{percent(found.mfu)} of the peak (MFU)",
        ),
        Beside(
            "decode",
            seconds(found.decode_floor_s),
            seconds(prediction.itl_s),
            _between(prediction.itl_range_s),
            seconds(step.value_s) if step else NOT_KNOWN,
            NOT_KNOWN if found.mbu is None else f"{percent(found.mbu)} of the bandwidth (MBU)",
        ),
    ]


def _phases(view: RunView) -> tuple[Row, ...]:
    """The two-phase table of the run's own question; empty when there is no prediction."""
    prediction, model, hardware = view.assessment.prediction, view.model, view.hardware
    if prediction is None or model is None or hardware is None:
        return ()
    question = Question(model.slug, hardware.slug, prediction.request)
    return phase_rows(Answer(question, model, hardware, view.engine, prediction))


def _pace(run: Run) -> str:
    """How far apart the tokens of the two phases come, where both rates are one request's."""
    prefill, decode = run.rate("prefill_tokens_per_s"), run.rate("decode_tokens_per_s")
    if prefill is None or decode is None or prefill.scope != "request" or decode.scope != "request" or not decode.value:
        return ""
    rates = f"{tokens_rate(prefill.value)} in prefill and {tokens_rate(decode.value)} in decode, both per request"
    return f"{rates}: {factor(prefill.value / decode.value)}, although a token costs about the same arithmetic in either."


def _between(band: tuple[float, float]) -> str:
    return f"{seconds(band[0])} to {seconds(band[1])}"


def _distributions(run: Run, withheld: frozenset[str]) -> list[MetricRow]:
    rows = []
    for key, metric in METRICS.items():
        found = run.distribution(key)
        if found is None:
            continue
        cells = tuple(_cell(found, stat, metric.unit, key in withheld or f"{key}.{stat}" in withheld) for stat in SHOWN_STATS)
        rows.append(MetricRow(metric, cells, "" if found.n is None else f"{found.n:,}", found.origin, found.definition))
    return rows


def _cell(found: Distribution, stat: str, unit: str, withheld: bool) -> tuple[str, bool]:
    value = found.stat(stat)
    if withheld:
        return "withheld", True
    if value is None:
        return "", True
    tail = _TAILS.get(stat)
    return in_metric_unit(value, unit), tail is not None and (found.n is None or found.n * tail < _SAMPLES_BEYOND)


def _workload(run: Run) -> list[tuple[str, str]]:
    workload, requests = run.workload, run.requests
    rows = [
        ("Prompt tokens, mean", count(workload.prompt_tokens_mean)),
        ("Output tokens, mean", count(workload.output_tokens_mean)),
        ("Prompt tokens, all", "" if workload.prompt_tokens_total is None else count(workload.prompt_tokens_total)),
        ("Output tokens, all", "" if workload.output_tokens_total is None else count(workload.output_tokens_total)),
        ("Answers' lengths", _lengths(workload.shortest_length)),
        ("Context before", f"{workload.context_depth_tokens:,} tokens" if workload.context_depth_tokens else ""),
        ("Clients", "" if workload.concurrency is None else f"{workload.concurrency:,}"),
        ("Request rate", "" if workload.request_rate_per_s is None else f"{number(workload.request_rate_per_s)} a second"),
        ("Rate limit", "none" if workload.rate_unlimited else ""),
        ("Dataset", workload.dataset or ""),
        ("Kind of load", (run.load_mode or "").replace("_", " ")),
        ("Measured at", (run.measured_at or "").replace("_", " ")),
        ("Tokens counted by", run.token_count_source or ""),
        ("Requests", _outcomes(requests)),
        ("Duration", "" if run.duration_s is None else seconds(run.duration_s)),
    ]
    return [(title, text) for title, text in rows if text]


def _lengths(shortest: float | None) -> str:
    """How far answers lie apart, "" where that is not known."""
    if shortest is None:
        return ""
    return "all equal" if shortest == 1.0 else f"apart as if drawn from {percent(shortest)} to 100 % of the longest"


def _outcomes(requests: RequestCounts) -> str:
    known = ((requests.completed, "completed"), (requests.failed, "failed"))
    return ", ".join(f"{amount:,} {word}" for amount, word in known if amount is not None)


def _file(view: RunView) -> list[tuple[str, str]]:
    upload, run = view.stored.upload, view.stored.run
    return [
        ("Name", upload.name),
        ("Read as", f"{run.format}, importer {run.importer_version}"),
        ("Size", bytes_(upload.size)),
        ("SHA-256", upload.sha256),
        ("Received", moment(upload.received_at)),
    ]
