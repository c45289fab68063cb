"""Result files of other tools: the registry of importers, and the one call that reads a file.

To add a format: one file beside these with an `IMPORTER`, one line in IMPORTERS, a folder of small files in tests/data. The first
importer that matches reads the file; the generic one is asked last; SGLang stands before vLLM, since its files have vLLM's keys too.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.domain.checks.files import TRUNCATED_FILE, UNKNOWN_SCHEMA, cut_off
from app.domain.derive import with_length_spread
from app.domain.errors import ImportRefused
from app.domain.text import clean_text
from app.formats import (
    aiperf,
    genai_perf,
    generic,
    guidellm,
    inference_perf,
    inferencemax,
    llama_batched_bench,
    llama_bench,
    llama_cpp_timings,
    llmperf,
    ollama,
    optimum_benchmark,
    phaseline,
    sglang_bench_serving,
    sglang_one_batch,
    trtllm_bench,
    trtllm_gptmanager_csv,
    vllm_bench_latency,
    vllm_bench_serve,
    vllm_bench_serve_log,
    vllm_bench_throughput,
    vllm_prometheus,
)
from app.formats.companions import companion_of
from app.formats.document import Document, archive_kind, read_document
from app.formats.importer import Importer, ParsedFile
from app.formats.joining import joined_parts
from app.formats.storable import storable

__all__ = ["IMPORTERS", "ParsedFile", "archive_kind", "current_versions", "joined", "read_runs"]

IMPORTERS: tuple[Importer, ...] = (
    phaseline.IMPORTER,
    sglang_bench_serving.IMPORTER,
    vllm_bench_serve.IMPORTER,
    llama_bench.IMPORTER,
    vllm_bench_serve_log.IMPORTER,
    vllm_bench_latency.IMPORTER,
    vllm_bench_throughput.IMPORTER,
    vllm_prometheus.IMPORTER,
    sglang_one_batch.IMPORTER,
    aiperf.IMPORTER,
    llama_batched_bench.IMPORTER,
    ollama.IMPORTER,
    llama_cpp_timings.IMPORTER,
    guidellm.IMPORTER,
    inferencemax.IMPORTER,
    inference_perf.IMPORTER,
    llmperf.IMPORTER,
    genai_perf.IMPORTER,
    optimum_benchmark.IMPORTER,
    trtllm_bench.IMPORTER,
    trtllm_gptmanager_csv.IMPORTER,
    generic.IMPORTER,
)
_KEYS_NAMED = 8


def read_runs(name: str, data: bytes) -> ParsedFile:
    """Recognise a file by its content and read its runs; `name` is for messages alone.

    Raises ImportRefused, and nothing else, with a sentence that says what is wrong and where, and with what each importer said.
    """
    document = read_document(name, data)
    if (companion := companion_of(document)) is not None:
        raise ImportRefused(companion.reason)
    tried: list[tuple[str, str]] = []
    for importer in IMPORTERS:
        reason = importer.matches(document)
        if reason is None:
            return _parsed(importer, document, tuple(tried))
        tried.append((importer.id, reason))
    flag = TRUNCATED_FILE if document.ends_early else UNKNOWN_SCHEMA if document.is_json else None
    raise ImportRefused(document.broken or _unknown(document), tuple(tried), flag)


def joined(files: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """The (name, bytes) of one upload, with files that are results only together as one file; every other as it came."""
    return joined_parts(files, IMPORTERS)


def _parsed(importer: Importer, document: Document, tried: tuple[tuple[str, str], ...]) -> ParsedFile:
    try:
        runs = importer.parse(document)
    except ImportRefused as refusal:
        raise ImportRefused(refusal.reason, (*tried, (importer.id, refusal.reason)), refusal.flag) from refusal
    partial = (cut_off(document.cut),) if document.cut else ()
    done = tuple(
        replace(storable(with_length_spread(run)), importer_version=importer.reading_version, flags=(*run.flags, *partial)) for run in runs
    )
    return ParsedFile(importer.id, done, document.warnings)


def current_versions() -> dict[str, int]:
    """The version with which each format is read now; a stored run of a lower one was read by an older importer."""
    return {importer.id: importer.reading_version for importer in IMPORTERS}


def _unknown(document: Document) -> str:
    known = ", ".join(importer.title for importer in IMPORTERS)
    if not document.is_json:
        return f"The text is no result of a tool that is read here. These are: {known}."
    if not document.entries:
        return f"The {document.language} has no object in it, so no result. These are read: {known}."
    keys = [clean_text(key, 40) for key in document.entries[0].values]
    named = ", ".join(keys[:_KEYS_NAMED]) + (f" and {len(keys) - _KEYS_NAMED} more" if len(keys) > _KEYS_NAMED else "")
    return f"The {document.language}, with the keys {named or '(none)'}, is no result of a tool that is read here. These are: {known}."
