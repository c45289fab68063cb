"""GuideLLM: benchmarks as JSON, YAML and CSV of schema 0 (0.2, 0.3: no metadata), 1 (0.4 to 0.7) and 2 (0.8 on); one run each benchmark.

Times are in ms where the key says so, `request_latency` in seconds. Every statistic stands apart for successful, incomplete (cut off by
the end of the run) and errored requests; the successful are read.

`inter_token_latency_ms` is (last token - first token) / (n - 1) of each request, weighted by its n - 1 gaps: its mean is the
token-weighted ITL, its percentiles are of requests, not of gaps. `time_per_output_token_ms` changed its meaning and is TPOT in neither
era: schema 0 has (last - first) / n, later schemas (last - start) / n, the whole request over its tokens (tags v0.3.1 and v0.4.0).
Percentiles are steps, not interpolated. Warm-up and cool-down are cut from the measurement since schema 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.domain.checks import flagged
from app.domain.checks.files import UNKNOWN_SCHEMA
from app.domain.derive import with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import CANONICAL, Distribution, Flag, RequestCounts, RequestSamples, Run, Workload
from app.domain.text import clean_text, percent
from app.formats.document import Document
from app.formats.guidellm_csv import csv_entries, csv_kind
from app.formats.guidellm_requests import read_requests
from app.formats.guidellm_setup import Setup, setup_of
from app.formats.importer import Importer, json_decline
from app.formats.record import Record
from app.formats.serving import Merged, deployment_rates, first_known, merged, per_request, token_totals
from app.formats.stat_export import NO_ENGINE, instant

ID = "guidellm"
WEIGHTED = "TPOT of requests, each weighted by its tokens"
WEIGHTED_WHOLE = "whole requests / tokens, each weighted by its tokens"
STEPS = "Percentiles are GuideLLM's own: steps between requests, not interpolated."
_LATENCIES = {"ttft_s": ("time_to_first_token_ms", 1e-3), "e2e_s": ("request_latency", 1.0)}
_ITL, _PER_TOKEN = "inter_token_latency_ms", "time_per_output_token_ms"
_RATES = {
    "requests_per_s": "requests_per_second",
    "output_tokens_per_s": "output_tokens_per_second",
    "total_tokens_per_s": "tokens_per_second",
}
_PERCENTILES = ("p90", "p95", "p99")
_EQUAL_LENGTHS = 1e-6
_IDENTITY = 0.005
_TELLING = frozenset({"time_to_first_token_ms", "inter_token_latency_ms", "request_concurrency"})


def matches(document: Document) -> str | None:
    """None when every object has a list `benchmarks` of this tool's, or is a report of its in a shape that is not known; or its CSV."""
    if not document.is_json:
        return None if csv_kind(document.text) else "no first line like Type,Run Id,Id,Name or Run Info,Run Info"
    if (reason := json_decline(document)) is not None:
        return reason
    for entry in document.entries:
        if _unknown_shape(entry.values):
            continue
        benchmarks = entry.values.get("benchmarks")
        if not isinstance(benchmarks, list):
            return f"{entry.where}no list benchmarks"
        if not benchmarks or not isinstance(benchmarks[0], dict) or not _is_benchmark(benchmarks[0]):
            return f"{entry.where}no benchmarks[0].type_"
    return None if document.entries else "no object"


def _is_benchmark(value: Mapping[str, object]) -> bool:
    metrics = value.get("metrics")
    return "type_" in value or (isinstance(metrics, dict) and bool(metrics.keys() & _TELLING))


def _unknown_shape(values: Mapping[str, object]) -> bool:
    """Whether an object has this tool's versioned metadata and lists of objects with metrics, but no benchmarks."""
    metadata = values.get("metadata")
    if "benchmarks" in values or not isinstance(metadata, dict) or not isinstance(metadata.get("version"), int):
        return False
    lists = [value[0] for value in values.values() if isinstance(value, list) and value]
    return any(isinstance(first, dict) and any(key.startswith("metrics") for key in first) for first in lists)


def parse(document: Document) -> list[Run]:
    """One run for each benchmark. Raises ImportRefused where an element of the list is none, or the report's shape is not known."""
    kind = None if document.is_json else csv_kind(document.text)
    runs = []
    for entry in document.entries if kind is None else csv_entries(document.text, kind):
        report = Record(entry.values, entry.where)
        if _unknown_shape(entry.values):
            raise ImportRefused(_unknown(report, report, "there is no list benchmarks"), flag=UNKNOWN_SCHEMA)
        for index, values in enumerate(report.sequence("benchmarks") or []):
            where = f"{entry.where}benchmarks[{index}]."
            if not isinstance(values, dict) or not isinstance(values.get("metrics"), dict):
                raise ImportRefused(f"{where.removesuffix('.')} has no object metrics: it is no benchmark of GuideLLM.")
            benchmark = Record(values, where)
            run = _run(report, benchmark)
            if not run.metrics and run.requests.completed != 0:
                raise ImportRefused(
                    _unknown(report, benchmark.child("metrics"), f"{where}metrics has none of the metrics known here"), flag=UNKNOWN_SCHEMA
                )
            runs.append(run)
    return runs


def _unknown(report: Record, holder: Record, what: str) -> str:
    """Why a report cannot be read: the version that it names, and the keys that were found."""
    version = report.child("metadata").label("version") or "not stated"
    keys = ", ".join(clean_text(key, 40) for key, _ in list(holder.items())[:8]) or "none"
    return (
        f"This looks like a GuideLLM (guidellm) report of schema {clean_text(version, 20)}, and {what}; its keys are {keys}. "
        "Schemas 0, 1 and 2 are read: write the report with a version that has one of these."
    )


@dataclass
class _Metrics:
    """The statistics of successful requests, and what was odd in those that were read."""

    record: Record
    read: list[Record]

    def statistics(self, key: str) -> Record:
        """The object of one metric; an empty one where there is none or where it counts nothing."""
        found = self.record.child(key).child("successful")
        self.read.append(found)
        return found if found.raw("count") != 0 else Record({})

    def latency(self, key: str, unit_s: float, definition: str = CANONICAL) -> Distribution | None:
        """Statistics of a time, in seconds; a mean or percentile of 0 is what the tool writes for no value."""
        found = self.statistics(key)
        percentiles = found.child("percentiles")
        self.read.append(percentiles)
        values = {"mean": found.positive("mean"), "p50": first_known(found.positive("median"), percentiles.positive("p50"))}
        values.update({name: percentiles.positive(name) for name in _PERCENTILES})
        if all(value is None for value in values.values()):
            return None
        values.update(std=found.number("std_dev"), min=found.number("min"), max=found.number("max"))
        scaled = {name: None if value is None else value * unit_s for name, value in values.items()}
        return Distribution(**scaled, n=found.count("count"), origin="reported", definition=definition)

    def warnings(self) -> list[str]:
        """Sentences about what was left out."""
        return list(dict.fromkeys(warning for each in self.read for warning in each.warnings))


def _run(report: Record, benchmark: Record) -> Run:
    setup = setup_of(report, benchmark)
    metrics = _Metrics(benchmark.child("metrics"), [])
    totals = _totals(benchmark)
    counts, incomplete = _counts(totals), totals.count("incomplete")
    notes = [NO_ENGINE, *setup.notes]
    if incomplete:
        notes.append(f"{incomplete} requests were cut off by the end of the run: they did not fail, and are in no latency.")
    # The CSV writes the clock of the machine without its zone, which is no instant.
    local = {"started_at_local": word} if (word := benchmark.text("start_time")) else {}
    run = Run(
        format=ID,
        model=setup.model,
        started_at=None if local else instant(benchmark.number("start_time")),
        duration_s=benchmark.positive("duration"),
        load_mode=setup.load.mode,
        measured_at="client",
        token_count_source=setup.token_count_source,
        requests=counts,
        labels={**setup.labels, **({"incomplete_requests": str(incomplete)} if incomplete else {}), **local},
        workload=_workload(setup, None, None, None),
        warnings=tuple(notes),
    )
    if counts.completed == 0:
        return flagged(run, setup.evidence)
    return _measured(run, benchmark, metrics, setup)


def _totals(benchmark: Record) -> Record:
    """Requests by outcome, of the measured stretch."""
    for place in (benchmark.child("metrics").child("request_totals"), benchmark.child("request_totals")):
        if "successful" in place:
            return place
    return benchmark.child("run_stats").child("requests_made")


def _counts(totals: Record) -> RequestCounts:
    return RequestCounts(totals.count("total"), totals.count("successful"), totals.count("errored"))


def _workload(setup: Setup, prompt: int | None, output: int | None, completed: int | None) -> Workload:
    return Workload(
        prompt_tokens_mean=per_request(prompt, completed),
        output_tokens_mean=per_request(output, completed),
        prompt_tokens_total=prompt,
        output_tokens_total=output,
        concurrency=setup.load.concurrency,
        request_rate_per_s=setup.load.request_rate_per_s,
        rate_unlimited=setup.load.rate_unlimited,
        dataset=setup.dataset,
    )


def _measured(run: Run, benchmark: Record, metrics: _Metrics, setup: Setup) -> Run:
    """The run with its figures, samples, flags and warnings."""
    completed = run.requests.completed
    at_a_rate = run.workload.request_rate_per_s is not None
    requests = read_requests(benchmark, completed, at_a_rate)
    totals = token_totals(_tokens(metrics, "prompt_token_count"), _tokens(metrics, "output_token_count"), requests.samples)
    workload = _workload(setup, totals.prompt, totals.output, completed)
    together = _latencies(metrics, requests.samples, setup.schema, totals.output, completed)
    labels = {**run.labels, **_normalised(metrics, setup.schema)}
    trimmed = any(benchmark.positive(key) for key in ("warmup_duration", "cooldown_duration"))
    # With its ends cut off the window holds parts of requests: totals of requests / duration would be another quantity.
    rates = deployment_rates(*_own_rates(metrics), None if trimmed else run.duration_s, run.requests, workload)
    contradictions = [f"The file contradicts itself: {each}; the value from the samples is used." for each in together.contradictions]
    notes = (*run.warnings, *requests.warnings, *totals.warnings, *rates.warnings, *contradictions, *metrics.warnings())
    if requests.samples is None:
        notes = (*notes, STEPS)
    done = replace(
        run,
        workload=workload,
        labels=labels,
        samples=requests.samples,
        metrics={
            **(_client_wait(benchmark) if at_a_rate and not trimmed and requests.samples is None else {}),
            **together.metrics,
            **rates.rates,
        },
        warnings=notes,
    )
    evidence = replace(
        setup.evidence,
        not_numbers=tuple(key for each in (*metrics.read, benchmark) for key in each.not_numbers),
        negative=(*(clause for each in (*metrics.read, benchmark) for clause in each.negative), *requests.negative),
        contradictions=together.contradictions,
        tokens_per_chunk=_tokens_per_chunk(metrics),
    )
    return _with_unexplained(flagged(with_request_rates(done), evidence))


def _client_wait(benchmark: Record) -> dict[str, Distribution]:
    """The mean time between the moments that requests were due and sent, of a schedule at a rate; of other loads all are due at once."""
    delays = (
        (benchmark.child("scheduler_metrics"), "request_targeted_start_delay_avg"),
        (
            benchmark.child("run_stats"),
            "request_start_time_targeted_delay_avg",
        ),
    )
    mean = first_known(*(holder.number(key) for holder, key in delays))
    return {} if mean is None else {"client_queue_s": Distribution(mean=mean, origin="reported")}


def _tokens(metrics: _Metrics, key: str) -> int | None:
    total = metrics.statistics(key).number("total_sum")
    # A sum of whole numbers that went through floating point.
    return round(total) if total is not None and abs(total - round(total)) <= 1e-6 * max(1.0, total) else None


def _latencies(metrics: _Metrics, samples: RequestSamples | None, schema: int, output_tokens: int | None, completed: int | None) -> Merged:
    own = {key: found for key, (name, unit_s) in _LATENCIES.items() if (found := metrics.latency(name, unit_s)) is not None}
    tpot = metrics.latency(_ITL, 1e-3)
    gaps = output_tokens - completed if output_tokens is not None and completed else None
    if tpot is not None and tpot.mean is not None:
        own["itl_s"] = Distribution(mean=tpot.mean, n=gaps if gaps and gaps > 0 else None, origin="reported")
    if tpot is not None:
        if _equal_lengths(metrics):
            own["tpot_s"] = replace(tpot, n=completed)
        elif samples is None:
            own["tpot_s"] = replace(tpot, definition=WEIGHTED)
    if schema and samples is None and (whole := metrics.latency(_PER_TOKEN, 1e-3)) is not None:
        # Of requests that are kept it is computed like everything else.
        own["ntpot_s"] = whole if _equal_lengths(metrics) else replace(whole, definition=WEIGHTED_WHOLE)
    if samples is not None:
        # Its percentiles follow another rule, which is no contradiction; its means must agree.
        own = {key: Distribution(mean=found.mean, n=found.n) for key, found in own.items()}
    return merged(own, samples)


def _equal_lengths(metrics: _Metrics) -> bool:
    """Whether every answer has as many tokens as the next, so that weights by tokens are equal weights."""
    lengths = metrics.statistics("output_token_count")
    spread, mean = lengths.number("std_dev"), lengths.positive("mean")
    return spread is not None and mean is not None and spread <= _EQUAL_LENGTHS * mean


def _normalised(metrics: _Metrics, schema: int) -> dict[str, str]:
    """What schema 0 calls time per output token, which no definition of ours is, under a name that says what it is."""
    value = metrics.statistics(_PER_TOKEN).positive("mean") if schema == 0 else None
    return {} if value is None else {"decode_s_per_output_token": f"{value / 1e3:.6g}"}


def _own_rates(metrics: _Metrics) -> tuple[Record, dict[str, tuple[str, ...]]]:
    values: dict[str, object] = {key: metrics.statistics(key).positive("mean") for key in _RATES.values()}
    return Record(values), {metric: (key,) for metric, key in _RATES.items()}


def _tokens_per_chunk(metrics: _Metrics) -> float | None:
    return metrics.statistics("iter_tokens_per_iteration").positive("mean")


def _with_unexplained(run: Run) -> Run:
    """Flags time after the last token: in reports it is inside the whole request and in no other figure."""
    ttft, itl, e2e, tokens = (*(run.distribution(key) for key in ("ttft_s", "itl_s", "e2e_s")), run.workload.output_tokens_mean)
    if run.samples is not None or not (ttft and itl and e2e and ttft.mean and itl.mean and e2e.mean) or not tokens or tokens < 1:
        return run
    share = 1 - (ttft.mean + (tokens - 1) * itl.mean) / e2e.mean
    if share <= _IDENTITY or any(flag.flag == "transport_buffering" for flag in run.flags):
        return run
    text = f"{percent(share)} of the mean request is neither TTFT nor time between tokens: it comes after the last token."
    return replace(run, flags=(*run.flags, Flag("transport_buffering", text)))


IMPORTER = Importer(ID, "GuideLLM (JSON, YAML, CSV)", matches, parse, version=3)
