"""llama.cpp's own timings of a request: `timings` in an answer of llama-server, and the lines that llama-server and llama-cli log.

Milliseconds. `prompt_n` counts the prompt tokens that were computed, `cache_n` those found in the cache; it is 0 or -1 when all of them
were. llama-server divides generation by `predicted_n` tokens, the first included; llama-cli prints passes ("runs"), one fewer than
tokens. What llama-cli calls total time holds the user's pauses and is not read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from app.domain.checks import Evidence, flagged
from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.domain.text import clean_text, percent
from app.formats.document import Document, Entry
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.record import Record
from app.formats.server_timing import ServerTiming, cache_flag, timed

ID = "llama_cpp_timings"
ROUNDED = "Times are rounded to hundredths of a millisecond, as the log prints them."
_MS = 1e-3
_NAMED = ("predicted_n", "predicted_ms", "prompt_ms")
_LINE = re.compile(r"(prompt +)?eval time *= *([\d.]{1,20}) ms */ *(\d{1,12}) (tokens|runs)")
_ANY_TIME = re.compile(r"prompt eval time *= *[\d.]{1,20} ms */ *\d{1,12} (?:tokens|runs)")
_LONGEST_LINE = 400
_NEW_PROMPT = re.compile(r"\| task (\d{1,12}) \| new prompt,.*?\bn_(?:prompt_)?tokens = (\d{1,12})")
_TIMING_OF = re.compile(r"print_timings?: .*\| task (\d{1,12}) \|")
_BUILD = re.compile(r"\bbuild(?:_info)?: (?:b(\d{1,9})-[0-9a-f]{4,40}|(\d{1,9}) \([0-9a-f]{4,40}\))|\bbuild = (\d{1,9}) \(")
_MODEL_FILE = re.compile(r"(?:loading model '([^']+)'|loaded meta data with .* from (.+?) \(version)")
_NAME = re.compile(r"(?:print_info|llm_load_print_meta): general\.name +=(.+)")
_FILE_TYPE = re.compile(r"(?:print_info: file type|llm_load_print_meta: model ftype) += (?:all |mostly )?(\w+)(?: - (Small|Medium|Large))?")
_CACHE_TYPE = re.compile(r"\bK \((\w{1,12})\):")
_DEVICE = re.compile(r"using device (\S+) \((.+?)\)(?: \([0-9a-fA-F:.]+\))? - \d+ MiB free")
_SETTING = re.compile(r"llama_(?:context|new_context_with_model): (n_seq_max|n_batch|n_ubatch) += (\d{1,9})\b")
_OFFLOADED = re.compile(r"load_tensors: offloaded (\d{1,6})/(\d{1,6}) layers to GPU")
_FINGERPRINT = re.compile(r"b(\d{1,9})-[0-9a-f]{4,40}\Z")


def matches(document: Document) -> str | None:
    """None for JSON objects with `timings` (or that are such an object), or a text with a line "prompt eval time"."""
    if not document.is_json:
        return None if _ANY_TIME.search(document.text) else "no line “prompt eval time = … ms / … tokens”"
    if (reason := json_decline(document)) is not None:
        return reason
    for entry in document.entries:
        missing = [key for key in _NAMED if key not in _timings(entry.values)]
        if missing:
            return f"{entry.where}no key timings.{missing[0]}"
    return None


def _timings(values: Mapping[str, object]) -> Mapping[str, object]:
    own = values.get("timings")
    return own if isinstance(own, dict) else values


def parse(document: Document) -> list[Run]:
    """One run for each answer, or each pair of lines. Raises ImportRefused when none holds a time."""
    runs = [_answer(entry) for entry in document.entries] if document.is_json else [_logged(each) for each in _pairs(document.text)]
    measured = [run for run in runs if run.metrics]
    if not measured:
        raise ImportRefused("The timings of the prompt and of the generation are all 0 or missing: there is nothing to import.")
    return measured


def _answer(entry: Entry) -> Run:
    record = Record(entry.values, entry.where)
    times = record.child("timings") if isinstance(record.raw("timings"), dict) else record
    timing = _answer_timing(record, times)
    model, build = record.text("model"), _FINGERPRINT.match(record.text("system_fingerprint") or "")
    labels = {key: label for key in ("draft_n", "draft_n_accepted") if (label := times.label(key)) is not None}
    if (stop := record.text("stop_type")) is not None:
        labels["stop_type"] = stop
    labels |= _generation(record.child("generation_settings"))
    run = Run(
        format=ID,
        engine="llama.cpp",
        engine_version=build.group(1) if build else None,
        model=_base_name(model) if model else None,
        measured_at="server",
        labels=labels,
        warnings=(*(() if model else (NO_MODEL,)), *_speculation(times)),
    )
    return _with_flags(timed(run, timing), timing, (record, times))


def _generation(settings: Record) -> dict[str, str]:
    """What of an answer's own settings acts on its steps: drafts, adapters, a grammar; "off" where the server says that there is none."""
    found = {}
    if (types := settings.label("speculative.types")) is not None:
        found["speculative_types"] = types
    if (adapters := settings.sequence("lora")) is not None:
        found["lora_modules"] = str(len(adapters)) if adapters else "off"
    if isinstance(grammar := settings.raw("grammar"), str):
        found["grammar"] = "on" if grammar.strip() else "off"
    return found


def _answer_timing(record: Record, times: Record) -> ServerTiming:
    prompt_tokens = None if times.raw("prompt_n") == -1 else times.count("prompt_n")
    prompt, decode = times.positive("prompt_ms") if prompt_tokens else None, times.positive("predicted_ms")
    cached = times.count("cache_n")
    if cached is None:
        whole = record.count("tokens_evaluated")
        cached = max(0, whole - prompt_tokens) if whole is not None and prompt_tokens is not None else None
    return ServerTiming(
        prompt_tokens=prompt_tokens,
        prompt_s=prompt * _MS if prompt else None,
        output_tokens=times.count("predicted_n"),
        decode_s=decode * _MS if decode else None,
        cached_tokens=cached,
    )


def _speculation(times: Record) -> tuple[str, ...]:
    drafted, accepted = times.count("draft_n"), times.count("draft_n_accepted")
    if not drafted or accepted is None:
        return ()
    share = percent(accepted / drafted)
    return (f"Speculative decoding: {accepted} of {drafted} drafted tokens ({share}) were accepted; a step made more than one token.",)


def _with_flags(run: Run, timing: ServerTiming, records: tuple[Record, ...]) -> Run:
    not_numbers = tuple(key for record in records for key in record.not_numbers)
    negative = tuple(clause for record in records for clause in record.negative)
    run = flagged(run, Evidence(not_numbers=not_numbers, negative=negative))
    cached = cache_flag(timing)
    said = tuple(dict.fromkeys(note for record in records for note in record.warnings))
    return replace(run, flags=(*((cached,) if cached else ()), *run.flags), warnings=(*run.warnings, *said))


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] or path


@dataclass
class _Log:
    """What the lines so far say about the model, the build and the machine."""

    build: str | None = None
    file: str | None = None
    name: str | None = None
    weights: str | None = None
    cache: str | None = None
    devices: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, int] = field(default_factory=dict)
    task: str | None = None
    settings: dict[str, str] = field(default_factory=dict)

    def take(self, line: str) -> None:
        """Note what a line says."""
        if found := _BUILD.search(line):
            self.build = next(group for group in found.groups() if group)
        if found := _MODEL_FILE.search(line):
            self.file = clean_text(_base_name(found.group(1) or found.group(2)))
        if found := _NAME.search(line):
            self.name = clean_text(found.group(1)) or None
        if found := _FILE_TYPE.search(line):
            self.weights = (f"{found.group(1)}_{found.group(2)[0]}" if found.group(2) else found.group(1)).lower()
        if found := _CACHE_TYPE.search(line):
            self.cache = found.group(1).lower()
        if found := _DEVICE.search(line):
            self.devices[found.group(1)] = clean_text(found.group(2))
        if found := _SETTING.search(line):
            self.settings[found.group(1)] = found.group(2)
        if found := _OFFLOADED.search(line):
            self.settings |= {"n_gpu_layers": found.group(1), "n_layers": found.group(2)}
        if found := _NEW_PROMPT.search(line):
            self.prompts[found.group(1)] = int(found.group(2))
        if found := _TIMING_OF.search(line):
            self.task = found.group(1)


@dataclass(frozen=True)
class _Pair:
    """The timing of one request with the run that stands for it before its figures are known."""

    run: Run
    timing: ServerTiming


def _pairs(text: str) -> Iterator[_Pair]:
    """Each line of a prompt with the line of its generation, which follows it."""
    log = _Log()
    prompt: re.Match[str] | None = None
    for line in text.splitlines():
        cut = line[:_LONGEST_LINE]
        found = _LINE.search(cut)
        if found is None:
            log.take(cut)
        elif found.group(1):
            if prompt is not None:
                yield _pair(log, prompt, None)
            prompt = found
        elif prompt is not None:
            yield _pair(log, prompt, found)
            prompt = None
    if prompt is not None:
        yield _pair(log, prompt, None)


def _pair(log: _Log, prompt: re.Match[str], decode: re.Match[str] | None) -> _Pair:
    prompt_s, decode_s = _seconds(prompt), _seconds(decode) if decode else None
    prompt_tokens = int(prompt.group(3)) if prompt_s else None
    counted = int(decode.group(3)) if decode else None
    in_process = decode is not None and decode.group(4) == "runs"
    passes = counted if in_process and decode_s else None
    # The first token comes with the prompt pass, so there is one more than passes.
    output = passes + 1 if passes else None if in_process else counted
    whole = None if in_process else log.prompts.get(log.task or "")
    cached = None if whole is None else max(0, whole - (prompt_tokens or 0))
    log.task = None
    timing = ServerTiming(prompt_tokens, prompt_s, output, decode_s, cached, passes)
    return _Pair(_identified(log, in_process), timing)


def _seconds(line: re.Match[str]) -> float | None:
    return Record({"ms": _figure(line.group(2))}).positive("ms")


def _figure(text: str) -> float | None:
    try:
        return float(text) * _MS
    except ValueError:
        return None


def _identified(log: _Log, in_process: bool) -> Run:
    names = list(log.devices.values())
    model = log.name or log.file
    return Run(
        format=ID,
        engine="llama.cpp",
        engine_version=log.build,
        model=model,
        hardware=", ".join(dict.fromkeys(names)) or None,
        devices=len(names) if len(set(names)) == 1 else None,
        weight_dtype=log.weights,
        kv_dtype=log.cache,
        measured_at="in_process" if in_process else "server",
        labels={**({"model_file": log.file} if log.file else {}), **log.settings},
        warnings=(ROUNDED,) if model else (NO_MODEL, ROUNDED),
    )


def _logged(pair: _Pair) -> Run:
    return _with_flags(timed(pair.run, pair.timing), pair.timing, ())


IMPORTER = Importer(ID, "llama-server timings (JSON) and llama.cpp logs", matches, parse, version=2)
