"""ollama's answers: the JSON of /api/generate and /api/chat, whole or as a stream whose last object carries the timings, and the text
that `ollama run --verbose` prints after an answer (ollama_text.py).

Times are nanoseconds. `load_duration` is the loading of the model and can dominate `total_duration`, so it is taken out of the request.
When a prompt is in the cache `prompt_eval_count` and `prompt_eval_duration` are left out of the answer altogether.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.domain.checks import Evidence, flagged
from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.domain.text import duration, percent
from app.formats.document import Document
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.ollama_text import text_decline, verbose_entries
from app.formats.record import Record
from app.formats.server_timing import ServerTiming, cache_flag, timed

ID = "ollama"
_NS = 1e-9
_LOAD_SHARE = 0.05
NO_TIMINGS = "no key eval_duration: only the last object of an answer carries the timings"


def matches(document: Document) -> str | None:
    """None for JSON objects that are answers (`model` and `done`), at least one with `eval_duration`; or the text of `--verbose`."""
    if not document.is_json:
        return text_decline(document.text)
    if (reason := json_decline(document, "model", "done")) is not None:
        return reason
    return None if any("eval_duration" in entry.values for entry in document.entries) else NO_TIMINGS


def parse(document: Document) -> list[Run]:
    """One run for each answer that ended. Raises ImportRefused when none holds a time."""
    entries = document.entries if document.is_json else verbose_entries(document.text)
    records = [Record(entry.values, entry.where) for entry in entries if "eval_duration" in entry.values]
    runs = [_run(record) for record in records]
    measured = [run for run in runs if run.metrics]
    if not measured:
        raise ImportRefused("eval_duration and prompt_eval_duration hold no time: there is nothing to import.")
    return measured


def _run(record: Record) -> Run:
    total, load = record.positive("total_duration"), record.positive("load_duration")
    decode, prompt = record.positive("eval_duration"), record.positive("prompt_eval_duration")
    timing = ServerTiming(
        prompt_tokens=record.count("prompt_eval_count") or None,
        prompt_s=prompt * _NS if prompt else None,
        output_tokens=record.count("eval_count"),
        decode_s=decode * _NS if decode else None,
    )
    run = Run(
        format=ID,
        engine="ollama",
        model=record.text("model"),
        started_at=_started(record, total),
        duration_s=total * _NS if total else None,
        measured_at="server",
        labels=_labels(record, load),
        warnings=(*(() if record.text("model") else (NO_MODEL,)), *_load_note(total, load)),
    )
    answer = (total - (load or 0)) * _NS if total else None
    run = timed(run, replace(timing, total_s=answer if answer and answer > 0 else None))
    cached = cache_flag(timing)
    run = flagged(run, Evidence(not_numbers=tuple(record.not_numbers), negative=tuple(record.negative)))
    return replace(run, flags=(*((cached,) if cached else ()), *run.flags), warnings=(*run.warnings, *record.warnings))


def _load_note(total: float | None, load: float | None) -> tuple[str, ...]:
    if not total or not load or load < _LOAD_SHARE * total:
        return ()
    share = percent(load / total)
    return (f"Loading the model took {duration(load * _NS)}, {share} of the request; it is in no latency here, but in the duration.",)


def _labels(record: Record, load: float | None) -> dict[str, str]:
    labels = {} if load is None else {"load_s": f"{load * _NS:.4g}"}
    if (reason := record.text("done_reason")) is not None:
        labels["done_reason"] = reason
    return labels


def _started(record: Record, total: float | None) -> datetime | None:
    """When the request began: the answer carries the time of its end. None when that is no time with a zone."""
    word = record.text("created_at")
    try:
        ended = datetime.fromisoformat(word) if word else None
        if ended is None or ended.tzinfo is None:
            return None
        return ended.astimezone(UTC) - timedelta(seconds=(total or 0) * _NS)
    except (ValueError, OverflowError):
        record.warnings.append(f"{record.path('created_at')} is no time as ollama writes it; left out.")
        return None


IMPORTER = Importer(ID, "ollama answers (JSON of generate and chat, text of --verbose)", matches, parse)
