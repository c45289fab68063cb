"""What vLLM `bench serve` prints: "Serving Benchmark Result" blocks in a console log, each one run.

The log has progress bars (lines rewritten with carriage returns), the arguments as one `Namespace(...)`, and figures printed with two
decimals. A block is brought under the names of the JSON report and read by the same rules.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from app.domain.checks import Evidence
from app.domain.derive import SHORTEST_SHARE
from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.formats.document import Document
from app.formats.importer import Importer
from app.formats.record import Record
from app.formats.vllm_bench_serve import serving_run

ID = "vllm_bench_serve_log"
_TITLE = re.compile(r"Serving Benchmark Result *=")
_LINE = re.compile(r"\s*([A-Za-z][^:]*?) *:\s+(\S+)\s*\Z")
_LONGEST_LINE = 300
_LONGEST_ARGUMENTS = 40_000
_STATISTIC = re.compile(r"(Mean|Median|Std|P[\d.]+) (TTFT|TPOT|ITL|E2EL|Client Queue Time|E2EL incl\. Client Queue) \(ms\)\Z")
_STEMS = {"Client Queue Time": "client_queue_time", "E2EL incl. Client Queue": "e2el_including_client_queue"}
_NAMES = {
    "successful requests": "completed",
    "failed requests": "failed",
    "maximum request concurrency": "max_concurrency",
    "request rate configured (rps)": "request_rate",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "request throughput (req/s)": "request_throughput",
    "request goodput (req/s)": "request_goodput",
    "output token throughput (tok/s)": "output_throughput",
    "peak output token throughput (tok/s)": "max_output_tokens_per_s",
    "peak concurrent requests": "max_concurrent_requests",
    "total token throughput (tok/s)": "total_token_throughput",
    "acceptance rate (%)": "spec_decode_acceptance_rate",
    "acceptance length": "spec_decode_acceptance_length",
}
_WHOLE = frozenset({"completed", "failed", "max_concurrency", "total_input_tokens", "total_output_tokens"})
_ARGUMENT = re.compile(r"\b([a-z_]+)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?[\d.]+(?:e[+-]?\d+)?|inf|None|True|False)")
_KEPT_ARGUMENTS = {
    "model": "model_id",
    "backend": "backend",
    "endpoint_type": "endpoint_type",
    "num_prompts": "num_prompts",
    "max_concurrency": "max_concurrency",
    "request_rate": "request_rate",
    "dataset_name": "dataset_name",
    "label": "label",
    "burstiness": "burstiness",
    "endpoint": "endpoint",
}
_LENGTHS = re.compile(r"Sampling input_len from \[(\d+), (\d+)\] and output_len from \[(\d+), (\d+)\]")
_TRAFFIC = re.compile(r"Traffic request rate: *(\S+)")
_CLIENTS = re.compile(r"Maximum request concurrency: *(\S+)")
ROUNDED = "Figures are rounded to two decimals, as the log prints them."
CUT_OFF = "The result has no closing line: the log may be cut off, and figures may be missing."


def matches(document: Document) -> str | None:
    """None for a text with a result block of vLLM's client."""
    if document.is_json:
        return "JSON, not a console log"
    title = _TITLE.search(document.text)
    if title is None:
        return "no line “Serving Benchmark Result”"
    if re.search(r"^Backend: ", document.text[title.end() : title.end() + 2000], re.MULTILINE):
        return "a result block of SGLang's client, which prints its backend: send the JSONL file that it wrote"
    return None


@dataclass(frozen=True)
class _Block:
    """The printed lines of one result, what stood between it and the one before, and whether its closing rule is there."""

    before: str
    lines: tuple[str, ...]
    complete: bool


def parse(document: Document) -> list[Run]:
    """One run for each block. Raises ImportRefused when no block has a result."""
    blocks = list(_blocks(document.text))
    runs = []
    arguments: dict[str, object] = {}
    for number, block in enumerate(blocks, 1):
        arguments = _arguments(block.before) or arguments
        where = f"block {number}: " if len(blocks) > 1 else ""
        run = _run(block, arguments, where)
        if run is not None:
            runs.append(run)
    if not runs:
        raise ImportRefused("The log has a line “Serving Benchmark Result” and no result under it: the benchmark may have been stopped.")
    return runs


def _blocks(text: str) -> Iterator[_Block]:
    # A progress bar rewrites its line with carriage returns; each rewriting is a line of its own here.
    text = text.replace("\r", "\n")
    titles = list(_TITLE.finditer(text))
    previous = 0
    for title, following in zip(titles, [*titles[1:], None], strict=True):
        lines = text[title.end() : following.start() if following else len(text)].split("\n")
        # The first line is what is left of the title's own row of signs.
        rule = next((index for index, line in enumerate(lines) if index and line.strip() and not line.strip(" =")), None)
        kept = lines if rule is None else lines[:rule]
        yield _Block(text[previous : title.start()], tuple(kept), rule is not None)
        previous = title.end()


def _run(block: _Block, arguments: dict[str, object], where: str) -> Run | None:
    printed = _printed(block.lines, where)
    if "completed" not in printed or "duration" not in printed:
        return None
    values = {**arguments, **_announced(block.before), **printed}
    run = serving_run(Record(values, where), ID, _lengths_asked(block.before))
    run = replace(run, workload=replace(run.workload, shortest_length=_shortest_drawn(block.before)))
    notes = (ROUNDED,) if block.complete else (ROUNDED, f"{where}{CUT_OFF}")
    return replace(run, warnings=(*run.warnings, *notes))


def _printed(lines: tuple[str, ...], where: str) -> dict[str, object]:
    values: dict[str, object] = {}
    for line in lines:
        match = _LINE.match(line) if len(line) < _LONGEST_LINE else None
        if match is None:
            continue
        key = _key(match.group(1))
        if key is not None:
            values[key] = _figure(match.group(2), key in _WHOLE, f"{where}{match.group(1).strip()}")
    return values


def _key(name: str) -> str | None:
    statistic = _STATISTIC.match(name.strip())
    if statistic is not None:
        stem = _STEMS.get(statistic.group(2), statistic.group(2).lower())
        return f"{statistic.group(1).lower()}_{stem}_ms"
    return _NAMES.get(name.strip().lower())


def _figure(text: str, whole: bool, where: str) -> object:
    if text == "None":
        return None
    try:
        return int(text) if whole and text.isdecimal() and len(text) < 40 else float(text)
    except ValueError as error:
        raise ImportRefused(f"{where} is “{text[:40]}” in the log, which is no number.") from error


def _arguments(text: str) -> dict[str, object]:
    """The arguments worth keeping from the last `Namespace(...)`, under the names of the JSON report."""
    start = text.rfind("Namespace(")
    if start < 0:
        return {}
    line = text[start : text.find("\n", start) if "\n" in text[start:] else len(text)]
    found: dict[str, object] = {}
    for match in _ARGUMENT.finditer(line[:_LONGEST_ARGUMENTS]):
        name = _KEPT_ARGUMENTS.get(match.group(1))
        if name is not None and name not in found:
            found[name] = _argument(match.group(2))
    return {name: value for name, value in found.items() if value is not None}


def _argument(text: str) -> object:
    if text[0] in "'\"":
        return text[1:-1]
    if text in ("None", "True", "False"):
        return None if text == "None" else text == "True"
    try:
        return int(text) if text.isdecimal() and len(text) < 40 else float(text)
    except ValueError:
        return None


def _announced(text: str) -> dict[str, object]:
    """Rate and limit from the lines printed before the run starts."""
    found: dict[str, object] = {}
    traffic, clients = _last(_TRAFFIC, text), _last(_CLIENTS, text)
    if traffic is not None:
        found["request_rate"] = traffic.group(1)
    if clients is not None and clients.group(1).isdecimal() and len(clients.group(1)) < 40:
        found["max_concurrency"] = int(clients.group(1))
    return found


def _lengths_asked(text: str) -> Evidence:
    """The lengths the client says it asks for, where it asks for one length and not a range."""
    match = _last(_LENGTHS, text)
    if match is None:
        return Evidence()
    shortest_in, longest_in, shortest_out, longest_out = (float(group) if len(group) < 16 else 0.0 for group in match.groups())
    return Evidence(
        requested_prompt_tokens=longest_in if longest_in == shortest_in else None,
        requested_output_tokens=longest_out if longest_out == shortest_out else None,
    )


def _shortest_drawn(text: str) -> float | None:
    """The shortest answer that the client asks for as a share of the longest, where it says that they are drawn."""
    match = _last(_LENGTHS, text)
    if match is None:
        return None
    shortest, longest = (float(group) if len(group) < 16 else 0.0 for group in match.groups()[2:])
    return max(round(shortest / longest, 3), SHORTEST_SHARE) if 0 < shortest < longest else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007 - the last match is what is wanted
        continue
    return found


IMPORTER = Importer(ID, "vLLM bench serve (console log)", matches, parse, version=3)
