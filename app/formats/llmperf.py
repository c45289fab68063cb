"""llmperf: the summary of a run (also a map of runs by concurrency) and its individual responses.

Seconds throughout. What it calls `inter_token_latency_s` is (TTFT + the gaps) / n, the whole request over its tokens: normalised latency
here, neither ITL nor TPOT. ITL follows exactly from the means of a summary; TPOT from individual responses alone. Requests that failed are
in no statistic of the summary, and rows with an error among the responses. Tokens of every model are counted by one Llama tokenizer.
`request_output_throughput_token_per_s` is of one request and with TTFT inside: not read.
"""

from dataclasses import replace

import numpy as np

from app.domain.checks import Evidence, flagged
from app.domain.derive import request_distributions, with_request_rates
from app.domain.run import CANONICAL, Distribution, MetricValue, RequestCounts, RequestSamples, Run, Workload
from app.domain.text import clean_text
from app.formats.document import Document, Entry
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.load import offered_load
from app.formats.record import Record
from app.formats.serving import CLIENT_TOKENIZER, deployment_rates, itl_from_report, per_request, token_totals
from app.formats.stat_export import NO_ENGINE, exact_total

ID = "llmperf"
_LATENCIES = {"ttft_s": "results_ttft_s", "e2e_s": "results_end_to_end_latency_s", "ntpot_s": "results_inter_token_latency_s"}
_STATS = {
    "mean": "mean",
    "std": "stddev",
    "min": "min",
    "max": "max",
    **{stat: f"quantiles_{stat}" for stat in ("p50", "p90", "p95", "p99")},
}
_MEASURED = frozenset({"mean", "p50", "p90", "p95", "p99"})
_CONSUMED = frozenset(
    {"model", "mean_input_tokens", "stddev_input_tokens", "mean_output_tokens", "stddev_output_tokens", "api", "num_concurrent_requests"}
)
_OUTPUT_RATE, _PER_MINUTE = "results_mean_output_throughput_token_per_s", "results_num_completed_requests_per_min"
_MOST_LABELS = 40
ONE_TOKENIZER = "llmperf counts the tokens of every model with one Llama tokenizer: another model's own count differs."
NO_ITL = (
    "What llmperf calls inter-token latency is the whole request over its tokens, with TTFT inside: normalised latency, not ITL or TPOT."
)
ALONE = (
    "Individual responses name neither model, engine nor concurrency, and not when they were sent: choose them under Edit, "
    "or send the summary of the same run."
)


def matches(document: Document) -> str | None:
    """None for summaries, a map of them by concurrency, or a list of individual responses."""
    if (reason := json_decline(document)) is not None:
        return reason
    if not document.entries:
        return "no object"
    if all(_is_response(entry) for entry in document.entries):
        return None
    for entry in document.entries:
        if not _is_summary(entry) and not _is_map(entry):
            return f"{entry.where}no keys results_ttft_s…, and no request_output_throughput_token_per_s"
    return None


def parse(document: Document) -> list[Run]:
    """One run for each summary, one for all individual responses of a file."""
    if all(_is_response(entry) for entry in document.entries):
        return [_run_of_responses(document)]
    runs: list[Run] = []
    for entry in document.entries:
        parts = [entry] if _is_summary(entry) else [Entry(f"{entry.where}{key}.", value) for key, value in _by_concurrency(entry)]
        runs.extend(_run_of_summary(Record(part.values, part.where)) for part in parts)
    return runs


def _is_summary(entry: Entry) -> bool:
    return any(key.startswith("results_ttft_s") for key in entry.values)


def _is_response(entry: Entry) -> bool:
    return "request_output_throughput_token_per_s" in entry.values and "ttft_s" in entry.values


def _is_map(entry: Entry) -> bool:
    """Runs by concurrency, as scripts around llmperf gather them: every key is a number."""
    return bool(entry.values) and all(
        key.isdecimal() and isinstance(value, dict) and _is_summary(Entry("", value)) for key, value in entry.values.items()
    )


def _by_concurrency(entry: Entry) -> list[tuple[str, dict[str, object]]]:
    return [(clean_text(key, 20), value) for key, value in entry.values.items() if isinstance(value, dict)]


def _run_of_summary(record: Record) -> Run:
    completed = record.count("results_num_completed_requests")
    load = offered_load(None, record.count("num_concurrent_requests"))
    prompt, output = record.positive("results_number_input_tokens_mean"), record.positive("results_number_output_tokens_mean")
    model = record.text("model")
    run = Run(
        format=ID,
        model=model,
        duration_s=_duration_s(record, completed),
        load_mode=load.mode,
        measured_at="client",
        token_count_source=CLIENT_TOKENIZER,
        requests=RequestCounts(record.count("results_num_requests_started"), completed, record.count("results_number_errors")),
        labels=_labels(record),
        workload=Workload(
            prompt_tokens_mean=prompt,
            output_tokens_mean=output,
            prompt_tokens_total=exact_total(prompt, completed),
            output_tokens_total=exact_total(output, completed),
            concurrency=load.concurrency,
        ),
        warnings=(*(() if model else (NO_MODEL,)), NO_ENGINE, ONE_TOKENIZER),
    )
    if completed == 0:
        return flagged(replace(run, warnings=(*run.warnings, *record.warnings)), _evidence(record))
    return _measured(run, record)


def _measured(run: Run, record: Record) -> Run:
    metrics = {key: found for key, stem in _LATENCIES.items() if (found := _distribution(record, stem, run.requests.completed)) is not None}
    finding = itl_from_report(metrics, run.requests.completed, run.workload.output_tokens_total)
    if finding.itl is not None:
        metrics["itl_s"] = finding.itl
    per_minute = record.positive(_PER_MINUTE)
    own = Record({"requests_per_s": per_minute / 60 if per_minute else None, "output_tokens_per_s": record.positive(_OUTPUT_RATE)})
    names = {key: (key,) for key in ("requests_per_s", "output_tokens_per_s", "total_tokens_per_s")}
    rates = deployment_rates(own, names, run.duration_s, run.requests, run.workload)
    notes = (*run.warnings, *([NO_ITL] if "ntpot_s" in metrics else []), *rates.warnings, *record.warnings)
    done = replace(run, metrics={**metrics, **rates.rates}, warnings=notes)
    return flagged(with_request_rates(done), _evidence(record))


def _duration_s(record: Record, completed: int | None) -> float | None:
    """Completed requests / their rate: the summary has the rate alone."""
    per_minute = record.positive(_PER_MINUTE)
    return completed / per_minute * 60 if completed and per_minute else None


def _distribution(record: Record, stem: str, n: int | None) -> Distribution | None:
    values = {stat: record.number(f"{stem}_{key}") for stat, key in _STATS.items()}
    # A mean or percentile of 0 is no measurement.
    values.update({stat: values[stat] or None for stat in _MEASURED})
    if all(values[stat] is None for stat in _MEASURED):
        return None
    return Distribution(**values, n=n, origin="reported", definition=CANONICAL)


def _evidence(record: Record) -> Evidence:
    asked = {
        word: record.positive(f"mean_{word}_tokens") if record.raw(f"stddev_{word}_tokens") == 0 else None for word in ("input", "output")
    }
    return Evidence(
        not_numbers=tuple(record.not_numbers),
        negative=tuple(record.negative),
        requested_prompt_tokens=asked["input"],
        requested_output_tokens=asked["output"],
    )


def _labels(record: Record) -> dict[str, str]:
    """Everything that is neither a result nor read elsewhere: the run's name, and what people add (`--metadata`)."""
    labels: dict[str, str] = {}
    for key, _ in record.items():
        if key in _CONSUMED or key.startswith("results_") or len(labels) >= _MOST_LABELS:
            continue
        if (value := record.label(key)) is not None:
            labels[clean_text(key, 60)] = value
    errors = record.raw("results_error_code_frequency")
    if isinstance(errors, (str, dict, list)) and errors not in ("{}", {}, [], ""):
        labels["error_codes"] = clean_text(str(errors))
    return labels


def _run_of_responses(document: Document) -> Run:
    records = [Record(entry.values, entry.where) for entry in document.entries]
    samples = _samples(records)
    completed = int(samples.ok.sum())
    odd = [warning for record in records for warning in record.warnings][:10]
    run = Run(
        format=ID,
        measured_at="client",
        token_count_source=CLIENT_TOKENIZER,
        requests=RequestCounts(samples.size, completed, samples.size - completed),
        samples=samples if completed else None,
        warnings=(ALONE, ONE_TOKENIZER, NO_ITL, *odd),
    )
    evidence = Evidence(
        not_numbers=tuple(key for record in records for key in record.not_numbers),
        negative=tuple(clause for record in records for clause in record.negative),
    )
    if not completed:
        return flagged(run, evidence)
    totals = token_totals(None, None, samples)
    workload = Workload(
        prompt_tokens_mean=per_request(totals.prompt, completed),
        output_tokens_mean=per_request(totals.output, completed),
        prompt_tokens_total=totals.prompt,
        output_tokens_total=totals.output,
    )
    metrics: dict[str, MetricValue] = {**request_distributions(samples)}
    return flagged(with_request_rates(replace(run, workload=workload, metrics=metrics)), evidence)


def _samples(records: list[Record]) -> RequestSamples:
    """Columns in the file's order. A response with an error text or code failed; a failed one has no latency."""
    errors = tuple(_error(record) for record in records)
    columns = {
        key: np.array([value if (value := record.positive(key)) is not None else np.nan for record in records])
        for key in ("ttft_s", "end_to_end_latency_s")
    }
    tokens = {
        key: np.array([np.nan if (value := record.count(key)) is None else float(value) for record in records])
        for key in ("number_input_tokens", "number_output_tokens")
    }
    ok = np.array([not error for error in errors], dtype=np.bool_) & np.isfinite(columns["end_to_end_latency_s"])
    return RequestSamples(
        ok=ok,
        prompt_tokens=np.where(ok, tokens["number_input_tokens"], np.nan),
        output_tokens=np.where(ok, tokens["number_output_tokens"], np.nan),
        ttft_s=np.where(ok, columns["ttft_s"], np.nan),
        e2e_s=np.where(ok, columns["end_to_end_latency_s"], np.nan),
        errors=errors if any(errors) else (),
    )


def _error(record: Record) -> str:
    code, text = record.raw("error_code"), record.raw("error_msg")
    if not code and not text:
        return ""
    words = [clean_text(str(word)) for word in (code, text) if isinstance(word, (str, int, float)) and word]
    return clean_text(" ".join(words)) or "error"


IMPORTER = Importer(ID, "llmperf", matches, parse, version=2)
