"""llama-batched-bench of llama.cpp: JSON lines, or the markdown table inside a log; one static batch a row.

`t_pp` is the prompt pass of B x PP tokens in process, `t_tg` the TG decode steps after it, each of which gives every sequence a token:
a step takes t_tg / TG. With a shared prompt (`is_pp_shared`) the pass reads PP tokens once for the whole batch; with `is_tg_separate`
the sequences decode one after another, so that there are B x TG steps.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from app.domain.checks import Evidence, flagged
from app.domain.derive import with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import Distribution, MetricValue, Rate, RequestCounts, Run
from app.formats.document import Document, Entry
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.record import Record
from app.formats.static_batch import EXACT_COUNT, StaticBatch, read_batch

ID = "llama_batched_bench"
ROUNDED = "Times are rounded to milliseconds, as the table prints them."
SHARED_PROMPT = "The prompt was shared: its pass read it once for the whole batch."
SEPARATE = "The sequences decoded one after another: a step is one sequence's."
_KEYS = ("pp", "tg", "pl", "t_pp", "t_tg")
_HEADER = re.compile(
    r"^\|[ \t]*PP[ \t]*\|[ \t]*TG[ \t]*\|[ \t]*B[ \t]*\|[ \t]*N_KV[ \t]*\|[ \t]*T_PP s[ \t]*\|[ \t]*S_PP t/s[ \t]*\|[ \t]*T_TG s[ \t]*\|",
    re.MULTILINE,
)
_COLUMNS = ("pp", "tg", "pl", "n_kv", "t_pp", "speed_pp", "t_tg", "speed_tg", "t", "speed")
_WHOLE = frozenset({"pp", "tg", "pl", "n_kv"})
_SETTING = re.compile(r"\b(n_kv_max|n_batch|n_ubatch|flash_attn|is_pp_shared|is_tg_separate|n_gpu_layers|n_threads) = (-?\d{1,9})\b")
_LABELS = ("n_kv_max", "n_batch", "n_ubatch", "flash_attn", "is_pp_shared", "is_tg_separate", "n_gpu_layers", "n_threads")
_LONGEST_ROW = 400


def matches(document: Document) -> str | None:
    """None for JSON objects with the sizes and times of a batch, or a text with the header of the table."""
    if not document.is_json:
        return None if _HEADER.search(document.text) else "no header of llama-batched-bench's table"
    return json_decline(document, *_KEYS)


def parse(document: Document) -> list[Run]:
    """One run for each row. Raises ImportRefused when there is none, or one has no batch or no time."""
    entries = document.entries if document.is_json else tuple(_table(document.text))
    if not entries:
        raise ImportRefused("The table has a header and no result rows: the benchmark may have crashed before its first result.")
    notes = (NO_MODEL,) if document.is_json else (NO_MODEL, ROUNDED)
    return [_run(Record(entry.values, entry.where), notes) for entry in entries]


def _table(text: str) -> Iterator[Entry]:
    """The rows under each header, with the settings printed before it, under the names of the JSON lines."""
    settings: dict[str, object] = {}
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        row = line.strip()
        if len(row) > _LONGEST_ROW or not row.startswith("|"):
            inside = False
            settings.update((name, int(value)) for name, value in _SETTING.findall(row[:_LONGEST_ROW]))
        elif _HEADER.match(row):
            inside = True
        elif inside and row.strip("|-: \t"):
            yield Entry(f"line {number}: ", {**settings, **_cells(row, number)})


def _cells(row: str, number: int) -> Mapping[str, object]:
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    if len(cells) != len(_COLUMNS):
        raise ImportRefused(
            f"The row on line {number} has {len(cells)} cells under {len(_COLUMNS)} columns: its figures cannot be told apart."
        )
    return {name: _figure(cell, name in _WHOLE, number) for name, cell in zip(_COLUMNS, cells, strict=True)}


def _figure(cell: str, whole: bool, number: int) -> object:
    try:
        return int(cell) if whole and cell.isdecimal() and len(cell) < 20 else float(cell)
    except ValueError as error:
        raise ImportRefused(f"The row on line {number} holds “{cell[:40]}”, which is no number.") from error


def _run(record: Record, notes: tuple[str, ...]) -> Run:
    batch = read_batch(record, "pl", "pp", "tg")
    shared, separate = record.raw("is_pp_shared") in (1, True), record.raw("is_tg_separate") in (1, True)
    total = _total(record)
    metrics = {**_phases(record, batch, shared, separate), **_rates(record, batch, total, shared)}
    if total is not None:
        metrics["e2e_s"] = Distribution(mean=total)
    if "prefill_s" not in metrics and "itl_s" not in metrics:
        raise ImportRefused(f"{record.path('t_pp')} and t_tg hold no time: there is nothing to import.")
    said = (*((SHARED_PROMPT,) if shared else ()), *((SEPARATE,) if separate else ()))
    run = Run(
        format=ID,
        engine="llama.cpp",
        duration_s=total,
        load_mode=batch.load_mode,
        measured_at="in_process",
        token_count_source=EXACT_COUNT,
        workload=batch.workload(),
        requests=RequestCounts(completed=batch.size),
        metrics=metrics,
        labels={key: label for key in _LABELS if (label := record.label(key)) is not None},
        warnings=(*notes, *said, *record.warnings),
    )
    return flagged(with_request_rates(run), Evidence(not_numbers=tuple(record.not_numbers), negative=tuple(record.negative)))


def _total(record: Record) -> float | None:
    own = record.positive("t")
    prefill, decode = record.number("t_pp"), record.number("t_tg")
    return own if own is not None else (prefill + decode or None) if prefill is not None and decode is not None else None


def _phases(record: Record, batch: StaticBatch, shared: bool, separate: bool) -> dict[str, MetricValue]:
    metrics: dict[str, MetricValue] = {}
    if batch.prompt_tokens and (prefill := record.positive("t_pp")) is not None:
        metrics["prefill_s"] = Distribution(mean=prefill)
        # One prompt for all: the rate is that of one pass over one prompt.
        read = replace(batch, size=1) if shared else batch
        metrics["prefill_tokens_per_s"] = replace(read.prefill_rate(prefill), scope=batch.scope)
    if batch.output_tokens and (decode := record.positive("t_tg")) is not None:
        steps = batch.output_tokens * (batch.size if separate else 1)
        metrics["itl_s"] = metrics["step_s"] = Distribution(mean=decode / steps, n=steps, origin="derived")
    return metrics


def _rates(record: Record, batch: StaticBatch, total: float | None, shared: bool) -> dict[str, MetricValue]:
    rates = batch.rates(total)
    if shared:
        # Prompt tokens that were read once must not count for every sequence; the file counts them once.
        rates.pop("total_tokens_per_s", None)
        if (own := record.positive("speed")) is not None:
            rates["total_tokens_per_s"] = Rate(own, "aggregate", "reported")
    return rates


IMPORTER = Importer(ID, "llama-batched-bench (JSONL, markdown table)", matches, parse, version=2)
