"""Hugging Face optimum-benchmark: benchmark_report.json, benchmark.json (the same with its configuration), and tables of 2023 and later.

In process, seconds and MB. A target (`prefill`, `decode`, `per_token`, `generate`, `forward`) is timed run by run over one static batch.
`prefill` makes one token, `decode` is `generate` without it, so a step is decode / (new tokens - 1). `per_token` repeats the gaps of
earlier runs and holds the pauses between runs in the versions seen: its percentiles are used only where there is one gap a step.
A report alone names neither model nor lengths; its throughputs give the batch (samples/s x latency) and the steps (tokens/s x latency).
`forward` alone is one pass over the batch, of a task that the report does not name.
"""

from dataclasses import dataclass, replace

from app.domain.checks import Evidence, flagged
from app.domain.derive import aggregate_rates, statistics, with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import CANONICAL, Distribution, MetricValue, Rate, RequestCounts, Run, Scope, Workload
from app.domain.text import duration
from app.formats.document import Document, Entry
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.optimum_benchmark_setup import setup_of
from app.formats.optimum_benchmark_tables import table_decline, table_entries
from app.formats.record import ArrayProblem, Record, floats
from app.formats.serving import CONTRADICTION, first_known
from app.formats.static_batch import EXACT_COUNT

ID = "optimum_benchmark"
FORWARD = "one pass over the whole batch, of a task that the file does not name"
_TARGETS = ("prefill", "decode", "generate", "forward", "per_token")
_STATS = {"mean": "mean", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
# A throughput is a whole number of samples or tokens divided by the latency; figures of a table have three digits.
_WHOLE = 0.005
_MB, _KWH_J = 1e6, 3.6e6
_MEMORY = ("max_ram", "max_global_vram", "max_process_vram", "max_reserved", "max_allocated")
NO_LENGTHS = "The report does not say how long the prompt was: benchmark.json of the same run has model, lengths and device."


def matches(document: Document) -> str | None:
    """None for objects with a target that has `latency.unit`, at top level or under `report`; or a table of these."""
    if not document.is_json:
        return table_decline(document.text)
    if (reason := json_decline(document)) is not None:
        return reason
    for entry in document.entries:
        report = _report(Record(entry.values))
        if not any("unit" in report.child(target).child("latency") for target in _TARGETS):
            return f"{entry.where}no latency.unit under {', '.join(_TARGETS)}"
    return None if document.entries else "no object"


def parse(document: Document) -> list[Run]:
    """One run for each report or row. Raises ImportRefused for one without a time."""
    entries = document.entries if document.is_json else table_entries(document.text)
    return [_run(entry) for entry in entries]


def _report(record: Record) -> Record:
    return record.child("report") if isinstance(record.raw("report"), dict) else record


@dataclass
class _Measured:
    """The latencies of a report by target, in seconds, and what was odd about them."""

    report: Record
    latencies: dict[str, Distribution]
    evidence: Evidence
    warnings: tuple[str, ...]

    def mean(self, target: str) -> float | None:
        """Mean seconds of one run of a target."""
        found = self.latencies.get(target)
        return None if found is None else found.mean

    def volume(self, target: str, unit: str) -> float | None:
        """What one run of a target works through: throughput x mean latency; None in another unit."""
        throughput, mean = self.report.child(target).child("throughput"), self.mean(target)
        rate = throughput.positive("value") if throughput.raw("unit") == unit else None
        return rate * mean if rate and mean else None


def _run(entry: Entry) -> Run:
    record = Record(entry.values, entry.where)
    measured = _measure(_report(record))
    if not measured.latencies:
        raise ImportRefused(f"{entry.where}{', '.join(_TARGETS)} hold no time: there is nothing to import.")
    setup = setup_of(record)
    batch = first_known(setup.batch, _batch(measured))
    prompt = first_known(setup.prompt_tokens, _prompt(measured, batch))
    steps = first_known(setup.output_tokens - 1 if setup.output_tokens else None, _steps(measured, batch))
    runs = next((found.n for target in _TARGETS if (found := measured.latencies.get(target)) is not None and found.n), None)
    notes = [*([] if setup.run.model else [NO_MODEL]), *([] if prompt else [NO_LENGTHS]), *measured.warnings]
    metrics = _phases(measured, setup.makes_text, _Sizes(batch, steps), notes)
    run = replace(
        setup.run,
        format=ID,
        load_mode=None if batch is None else "single" if batch == 1 else "static_batch",
        measured_at="in_process",
        token_count_source=EXACT_COUNT,
        workload=Workload(
            prompt_tokens_mean=float(prompt) if prompt else None,
            output_tokens_mean=float(steps + 1) if steps else None,
            concurrency=batch,
        ),
        requests=RequestCounts(completed=runs),
        labels={**setup.run.labels, **_trackers(measured.report)},
    )
    run = replace(run, metrics={**metrics, **_rates(run, metrics, batch)}, warnings=tuple(dict.fromkeys(notes)))
    return flagged(with_request_rates(run), measured.evidence)


def _measure(report: Record) -> _Measured:
    found: dict[str, Distribution] = {}
    read: list[Record] = []
    contradictions: list[str] = []
    for target in _TARGETS:
        latency = report.child(target).child("latency")
        read.append(latency)
        if (distribution := _latency(latency, contradictions)) is not None:
            found[target] = distribution
    evidence = Evidence(
        not_numbers=tuple(key for each in read for key in each.not_numbers),
        negative=tuple(clause for each in read for clause in each.negative),
        contradictions=tuple(contradictions),
        repeats=_repeats(report),
    )
    return _Measured(report, found, evidence, tuple(note for each in read for note in each.warnings))


def _latency(latency: Record, contradictions: list[str]) -> Distribution | None:
    """Statistics of the values where those are there and sound, else the file's own. Only seconds are read."""
    if latency.raw("unit") != "s":
        if "unit" in latency:
            latency.warnings.append(f"{latency.path('unit')} is not s: the times under it are left out.")
        return None
    values = {stat: latency.positive(key) for stat, key in _STATS.items()}
    own = None
    if any(value is not None for value in values.values()):
        own = Distribution(**values, std=latency.number("stdev"), n=latency.count("count"), origin="reported", definition=CANONICAL)
        if own.n == 1:
            own = replace(own, std=None)
    try:
        samples = floats(latency.sequence("values") or [], latency.path("values"))
    except ArrayProblem as problem:
        latency.warnings.append(f"Times left aside: {problem}.")
        return own
    computed = statistics(samples[samples > 0])
    if computed is None or computed.mean is None:
        return own
    if own is not None and own.mean is not None and abs(own.mean / computed.mean - 1) > CONTRADICTION:
        contradictions.append(f"{latency.path('mean')} says {duration(own.mean)} and its values give {duration(computed.mean)}")
    return computed


def _repeats(report: Record) -> tuple[float, ...]:
    """The time of each run: of its decoding, else of its prompt pass."""
    for target in ("decode", "generate", "prefill", "forward"):
        latency = report.child(target).child("latency")
        values = latency.sequence("values") if latency.raw("unit") == "s" else None
        if values and all(isinstance(value, (int, float)) and 0 < value < 1e9 for value in values):
            return tuple(float(value) for value in values if isinstance(value, (int, float)))
    return ()


def _batch(measured: _Measured) -> int | None:
    """Sequences of a batch, from the samples a second of the prompt pass or of the whole."""
    volumes = (measured.volume(target, "samples/s") for target in ("prefill", "generate", "forward"))
    return next((whole for volume in volumes if (whole := _whole(volume)) is not None), None)


def _prompt(measured: _Measured, batch: int | None) -> int | None:
    """Prompt tokens of a sequence, in versions whose prompt pass has a throughput in tokens."""
    volume = measured.volume("prefill", "tokens/s")
    return _whole(volume / batch) if volume and batch else None


def _steps(measured: _Measured, batch: int | None) -> int | None:
    """Decode steps of a run: the tokens of its decoding, divided by the sequences."""
    volume = measured.volume("decode", "tokens/s")
    return _whole(volume / batch) if volume and batch else None


def _whole(value: float | None) -> int | None:
    if value is None or not 0.5 < value < 1e9:
        return None
    whole = round(value)
    # Beyond a hundred a relative margin would let any figure be whole.
    return whole if abs(value - whole) <= min(_WHOLE * whole, 0.05) else None


@dataclass(frozen=True)
class _Sizes:
    """Sequences of the batch and decode steps of a run, None where not known."""

    batch: int | None
    steps: int | None


def _phases(measured: _Measured, makes_text: bool, sizes: _Sizes, notes: list[str]) -> dict[str, MetricValue]:
    found = measured.latencies
    metrics: dict[str, MetricValue] = {}
    generates = "decode" in found or "generate" in found or makes_text
    prefill = found.get("prefill") or (found.get("forward") if generates else None)
    if prefill is not None:
        metrics["prefill_s"] = prefill
    elif "forward" in found:
        metrics["prefill_s"] = replace(found["forward"], definition=FORWARD)
    if (itl := _itl(measured, sizes, notes)) is not None:
        metrics["itl_s"] = metrics["step_s"] = itl
    prefill_s, decode_s = None if prefill is None else prefill.mean, measured.mean("decode")
    if "generate" in found:
        metrics["e2e_s"] = found["generate"]
    elif prefill_s is not None and decode_s is not None:
        metrics["e2e_s"] = Distribution(mean=prefill_s + decode_s, n=found["decode"].n, origin="derived")
    return metrics


def _itl(measured: _Measured, sizes: _Sizes, notes: list[str]) -> Distribution | None:
    """Time of a step, which is that of a token of every sequence."""
    decode, gaps = measured.latencies.get("decode"), measured.latencies.get("per_token")
    batch, steps = sizes.batch, sizes.steps
    if decode is None or decode.mean is None or not steps:
        rate = measured.report.child("decode").child("throughput")
        value = rate.positive("value") if rate.raw("unit") == "tokens/s" else None
        # The rate alone tells the step where figures are too coarse to count the steps.
        return gaps if gaps is not None else Distribution(mean=batch / value, origin="derived") if value and batch else None
    counted = decode.n * steps if decode.n else None
    if gaps is not None and gaps.n == counted:
        return replace(gaps, mean=decode.mean / steps)
    if gaps is not None and gaps.n is not None and counted is not None:
        notes.append(
            f"per_token holds {gaps.n} gaps where {decode.n} runs of {steps} steps have {counted}: it repeats gaps and has the pauses "
            "between runs in it. ITL is decode / steps, without percentiles."
        )
    return Distribution(mean=decode.mean / steps, n=counted, origin="derived")


def _rates(run: Run, metrics: dict[str, MetricValue], batch: int | None) -> dict[str, MetricValue]:
    """Prompt tokens of the batch over its prompt pass, output tokens over the whole."""
    prompt, output = run.workload.prompt_tokens_mean, run.workload.output_tokens_mean
    prefill, e2e = metrics.get("prefill_s"), metrics.get("e2e_s")
    rates: dict[str, MetricValue] = {}
    if batch and prompt and isinstance(prefill, Distribution) and prefill.mean:
        scope: Scope = "request" if batch == 1 else "aggregate"
        rates["prefill_tokens_per_s"] = Rate(batch * prompt / prefill.mean, scope, "derived", prefill.definition)
    if batch and output and isinstance(e2e, Distribution) and e2e.mean:
        made = aggregate_rates(e2e.mean, batch, round(batch * prompt) if prompt else None, round(batch * output))
        rates |= {key: Rate(value, "aggregate", "derived") for key, value in made.items() if key != "requests_per_s"}
    return rates


def _trackers(report: Record) -> dict[str, str]:
    """Peak memory and energy of each target as labels, in bytes and joules."""
    labels: dict[str, str] = {}
    for target in ("load", "load_model", *_TARGETS):
        memory, energy = report.child(target).child("memory"), report.child(target).child("energy")
        if memory.raw("unit") == "MB":
            for key in _MEMORY:
                if (value := memory.positive(key)) is not None:
                    labels[f"{target}_{key}_bytes"] = f"{value * _MB:.0f}"
        if energy.raw("unit") == "kWh" and (total := energy.positive("total")) is not None:
            labels[f"{target}_energy_j"] = f"{total * _KWH_J:.6g}"
        seconds = report.child(target).child("latency")
        if target.startswith("load") and seconds.raw("unit") == "s" and (mean := seconds.positive("mean")) is not None:
            labels["load_s"] = f"{mean:.6g}"
    return labels


IMPORTER = Importer(ID, "optimum-benchmark (JSON, CSV)", matches, parse, version=3)
