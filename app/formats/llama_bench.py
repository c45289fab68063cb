"""llama-bench of llama.cpp: JSON, JSON lines, CSV, SQL statements, and the markdown table inside a log.

A pp row is the pass over a prompt, in process: no sampling, no queue, so `prefill_s`. A tg row is the generation of n tokens from an
empty context or from `n_depth` tokens: its time per token is ITL. A row with both is a whole request. One run is one pp row and one
tg row of the same build, model, configuration and depth; where there are more of either, each row is a run of its own.
"""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.domain.checks import Evidence, flagged
from app.domain.derive import statistics, with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import STATS, Distribution, Floats, MetricValue, Origin, Rate, RequestCounts, Run, Workload
from app.domain.text import clean_text
from app.formats.document import Document
from app.formats.importer import Importer, json_decline
from app.formats.llama_bench_tables import Table, TableRow, read_table, table_kind
from app.formats.record import ArrayProblem, Record, floats
from app.formats.serving import CONTRADICTION

ID = "llama_bench"
_OF_THE_TEST = frozenset(
    {
        *("n_prompt", "n_gen", "n_depth", "test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts", "samples_ns", "samples_ts"),
    }
)
_OF_THE_RUN = frozenset({"build_number", "cpu_info", "gpu_info", "model_type", "model_filename"})
_WEIGHTS = re.compile(r"\b((?:I?Q|TQ)\d\w*|BF16|F16|F32|MXFP4|NVFP4)\b(?: - (Small|Medium|Large))?")
_TIME_FORMATS = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S")
IN_PROCESS_COUNT = "exact"
NO_ROWS = "The file has the header of llama-bench and no result rows: the benchmark may have crashed before its first result."
ROUNDED = "Rates are rounded to two decimals, as the table prints them; times are derived from them."


def matches(document: Document) -> str | None:
    """None for JSON objects with `build_commit` and a speed, or a text with a header of one of the tables."""
    if not document.is_json:
        return None if table_kind(document.text) is not None else "no header of llama-bench's CSV, SQL or markdown output"
    if (reason := json_decline(document, "build_commit", "n_prompt", "n_gen")) is not None:
        return reason
    for entry in document.entries:
        if "avg_ts" not in entry.values and "avg_ns" not in entry.values:
            return f"{entry.where}no key avg_ts or avg_ns"
    return None


def parse(document: Document) -> list[Run]:
    """One run for each pair of rows, or for each row. Raises ImportRefused when there are no rows, or none with a figure."""
    kind = None if document.is_json else table_kind(document.text)
    table = read_table(document.text, kind) if kind else Table(tuple(TableRow(each.where, each.values) for each in document.entries))
    if not table.rows:
        raise ImportRefused(NO_ROWS)
    rows = [_row(Record(row.values, row.where), rounded=kind == "markdown") for row in table.rows]
    left_out = [note for row in rows if row.test is None for note in row.record.warnings]
    runs = [_run(group, (*table.warnings, *left_out)) for group in _grouped([row for row in rows if row.test is not None])]
    if not runs:
        raise ImportRefused("No row has a time or a rate: there is nothing to import.")
    return runs


@dataclass(frozen=True)
class _Row:
    """One test. `seconds` is the time of a whole repetition, `repeats` of each; `test` is pp, tg or pg, None when the row says nothing."""

    record: Record
    test: str | None
    prompt: int
    generated: int
    depth: int
    seconds: Distribution | None
    tokens_per_s: Rate | None
    rounded: bool
    repeats: tuple[float, ...] = ()

    @property
    def tokens(self) -> int:
        return self.prompt + self.generated


def _row(record: Record, rounded: bool) -> _Row:
    prompt, generated, depth = (record.count(key) or 0 for key in ("n_prompt", "n_gen", "n_depth"))
    test = "pg" if prompt and generated else "pp" if prompt else "tg" if generated else None
    rate = record.positive("avg_ts")
    tokens = prompt + generated
    samples = _samples(record) if tokens else None
    seconds = _seconds(record, samples, tokens, rate) if tokens else None
    if test is None or seconds is None or not seconds.mean:
        record.warnings.append(f"{record.path('n_prompt')}, n_gen and the times give no figure; the row is left out.")
        return _Row(record, None, prompt, generated, depth, None, None, rounded)
    origin: Origin = "reported" if rate else "derived"
    value = _checked_rate(record, rate, seconds, tokens) if rate else tokens / seconds.mean
    repeats = () if samples is None else tuple(samples.tolist())
    return _Row(record, test, prompt, generated, depth, seconds, Rate(value, "request", origin), rounded, repeats)


def _seconds(record: Record, samples: Floats | None, tokens: int, rate: float | None) -> Distribution | None:
    """Seconds of one repetition: from the samples, else the file's mean, else from its rate."""
    mean_ns = record.positive("avg_ns")
    if samples is not None and (computed := statistics(samples)) is not None and computed.mean:
        if mean_ns is not None and abs(mean_ns / 1e9 / computed.mean - 1) > CONTRADICTION:
            record.warnings.append(
                f"{record.path('avg_ns')} says {mean_ns / 1e9:.6g} s, its samples give {computed.mean:.6g} s, which is used."
            )
        return computed
    if mean_ns is not None:
        # A single repetition has no spread; the file writes 0 for it.
        deviation = record.positive("stddev_ns")
        return Distribution(mean=mean_ns / 1e9, std=deviation / 1e9 if deviation else None)
    return Distribution(mean=tokens / rate, origin="derived") if rate else None


def _samples(record: Record) -> Floats | None:
    values = record.sequence("samples_ns")
    if not values:
        return None
    try:
        seconds = floats(values, "samples_ns") / 1e9
    except ArrayProblem as problem:
        record.warnings.append(f"{record.path('samples_ns')} left aside: {problem}.")
        return None
    return seconds if bool((seconds > 0).all()) else None


def _checked_rate(record: Record, rate: float, seconds: Distribution, tokens: int) -> float:
    """The file's mean rate, or tokens / time where the two contradict each other beyond what the spread explains."""
    follows = tokens / (seconds.mean or float("nan"))
    spread = (seconds.std or 0.0) / (seconds.mean or 1.0)
    # The mean of rates exceeds the rate of the mean by about the squared relative spread.
    if abs(rate / follows - 1) <= CONTRADICTION + spread**2:
        return rate
    record.warnings.append(f"{record.path('avg_ts')} says {rate:.6g} tokens/s where tokens / time give {follows:.6g}, which is used.")
    return follows


def _grouped(rows: list[_Row]) -> list[tuple[_Row, ...]]:
    """Rows that belong to one run, in file order."""
    groups: dict[tuple[object, ...], list[_Row]] = {}
    for row in rows:
        groups.setdefault((*_configuration(row.record), row.depth), []).append(row)
    found: list[tuple[_Row, ...]] = []
    for group in groups.values():
        prompts = [row for row in group if row.test == "pp"]
        generations = [row for row in group if row.test == "tg"]
        if len(prompts) == 1 and len(generations) == 1:
            found.append((prompts[0], generations[0]))
            found.extend((row,) for row in group if row.test == "pg")
        else:
            found.extend((row,) for row in group)
    order = {id(row): index for index, row in enumerate(rows)}
    return sorted(found, key=lambda group: min(order[id(row)] for row in group))


def _configuration(record: Record) -> tuple[object, ...]:
    """Everything a row says beside its test: build, model and settings, in words."""
    return tuple(sorted((key, str(value)) for key, value in record.items() if key not in _OF_THE_TEST))


def _run(rows: tuple[_Row, ...], notes: tuple[str, ...]) -> Run:
    first = rows[0].record
    metrics: dict[str, MetricValue] = {}
    for row in rows:
        metrics.update(_metrics(row))
    started_at = _started(rows)
    warnings = [*notes, *(note for row in rows for note in row.record.warnings)]
    if any(row.rounded for row in rows):
        warnings.append(ROUNDED)
    run = replace(
        _identified(first),
        started_at=started_at,
        load_mode="single",
        measured_at="in_process",
        token_count_source=IN_PROCESS_COUNT,
        workload=_workload(rows),
        requests=RequestCounts(completed=_repetitions(rows)),
        metrics=metrics,
    )
    run = replace(run, warnings=(*warnings, *run.warnings), labels={**run.labels, "test": " + ".join(_named(row) for row in rows)})
    not_numbers = tuple(key for row in rows for key in row.record.not_numbers)
    negative = tuple(clause for row in rows for clause in row.record.negative)
    # Of a prompt test and a generation test the latter takes longer, and shows a machine that changes its mind.
    repeats = next((row.repeats for row in reversed(rows) if row.repeats), ())
    return flagged(with_request_rates(run), Evidence(not_numbers=not_numbers, negative=negative, repeats=repeats))


def _metrics(row: _Row) -> dict[str, MetricValue]:
    seconds, rate = row.seconds, row.tokens_per_s
    if seconds is None or rate is None:
        return {}
    if row.test == "pp":
        return {"prefill_s": seconds, "prefill_tokens_per_s": rate}
    if row.test == "tg":
        return {"itl_s": _per_token(seconds, row.generated), "decode_tokens_per_s": rate}
    return {"e2e_s": seconds, "total_tokens_per_s": replace(rate, scope="aggregate")}


def _per_token(seconds: Distribution, tokens: int) -> Distribution:
    """The distribution of a generation's time, divided by its tokens."""
    scaled = {stat: None if (value := seconds.stat(stat)) is None else value / tokens for stat in STATS}
    return Distribution(n=seconds.n, origin=seconds.origin, definition=seconds.definition, **scaled)


def _workload(rows: tuple[_Row, ...]) -> Workload:
    prompt = sum(row.prompt for row in rows)
    generated = sum(row.generated for row in rows)
    return Workload(
        prompt_tokens_mean=float(prompt) if prompt else None,
        output_tokens_mean=float(generated) if generated else None,
        concurrency=1,
        context_depth_tokens=rows[0].depth,
    )


def _repetitions(rows: tuple[_Row, ...]) -> int | None:
    counts = [row.seconds.n for row in rows if row.seconds is not None and row.seconds.n is not None]
    return min(counts) if len(counts) == len(rows) else None


def _named(row: _Row) -> str:
    """The test as the markdown table calls it."""
    parts = [f"pp{row.prompt}" if row.prompt else "", f"tg{row.generated}" if row.generated else ""]
    return "+".join(part for part in parts if part) + (f" @ d{row.depth}" if row.depth else "")


def _identified(record: Record) -> Run:
    model = record.text("model_type") or _file_name(record)
    build = record.count("build_number")
    hardware, devices, notes = _hardware(record)
    key_type = record.text("type_k")
    if key_type is None and (record.raw("f16_kv") in (True, "1", 1) or _prints_defaults_away(record)):
        key_type = "f16"
    return Run(
        format=ID,
        engine="llama.cpp",
        engine_version=None if build is None else str(build),
        model=model,
        hardware=hardware,
        devices=devices,
        weight_dtype=_weight_dtype(record.text("model_type") or ""),
        kv_dtype=key_type,
        labels=_labels(record),
        warnings=notes,
    )


def _prints_defaults_away(record: Record) -> bool:
    """Whether the row is from the markdown table, which has a column for the cache's type only when it is not f16."""
    return "model_n_params_text" in record


def _weight_dtype(model_type: str) -> str | None:
    """The weight format at the end of a model's description: `llama 8B Q4_K - Medium` -> `q4_k_m`; None when there is none."""
    found = list(_WEIGHTS.finditer(model_type))
    if not found:
        return None
    name, size = found[-1].groups()
    return f"{name}_{size[0]}".lower() if size else name.lower()


def _file_name(record: Record) -> str | None:
    path = record.text("model_filename")
    return path.replace("\\", "/").rsplit("/", 1)[-1] or None if path else None


def _hardware(record: Record) -> tuple[str | None, int | None, tuple[str, ...]]:
    """The device's name in the file's words, how many of it, and what has to be said about that."""
    gpu, cpu = record.text("gpu_info"), record.text("cpu_info")
    if gpu and cpu and str(record.raw("n_gpu_layers")) == "0":
        return cpu, None, (f"No layer was on the GPU (n_gpu_layers 0): the hardware is the CPU, not “{gpu}”.",)
    if not gpu:
        return cpu, None, ()
    names = [name.strip() for name in gpu.split(",")]
    if len(set(names)) == 1:
        return names[0], len(names), ()
    return gpu, None, (f"The file lists several devices ({gpu}): say under Edit which of them ran the model.",)


def _labels(record: Record) -> dict[str, str]:
    labels = {}
    for key, _ in record.items():
        if key in _OF_THE_TEST or key in _OF_THE_RUN:
            continue
        if (value := record.label(key)) is not None:
            labels[clean_text(key, 60)] = value
    if (name := _file_name(record)) is not None:
        labels["model_file"] = name
    size, parameters = record.positive("model_size"), record.positive("model_n_params")
    if size and parameters:
        labels["bits_per_weight"] = f"{8 * size / parameters:.4g}"
    return labels


def _started(rows: tuple[_Row, ...]) -> datetime | None:
    """When the first row was measured; the tool writes UTC. None when the words are no such time."""
    times = []
    for row in rows:
        word = row.record.text("test_time")
        time = _time(word) if word else None
        if word and time is None:
            row.record.warnings.append(f"{row.record.path('test_time')} is “{word[:40]}”, no time as the tool writes it; left out.")
        times.extend([time] if time else [])
    return min(times, default=None)


def _time(word: str) -> datetime | None:
    for form in _TIME_FORMATS:
        try:
            return datetime.strptime(word, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


IMPORTER = Importer(ID, "llama-bench (JSON, JSON lines, CSV, SQL, markdown)", matches, parse, version=2)
