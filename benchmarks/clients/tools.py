"""Whole benchmark tools as peers of the client: each from an environment of its own, with its result read by our importer.

A tool states statistics and not its stamps, so its figures are those that a reader of its file gets. Its processor time holds its start
and its report as well, which is why it is kept under another name than a client's.
"""

import json
import os
import resource
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.domain.run import Distribution
from app.formats import read_runs
from benchmarks.clients.outcome import PROMPT, Task

_LIMIT_S = 600.0
_LEVELS = ("p50", "p99", "mean")


@dataclass(frozen=True)
class Tool:
    """A tool: its command for a task (the environment's bin folder and a scratch folder are given), and the file it leaves there."""

    command: Callable[[Path, Task, Path], list[str]]
    result: str
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Stated:
    """What a tool says: statistics in seconds, None where its file has none, and the processor seconds of all its processes."""

    ttft_s: Mapping[str, float | None]
    itl_s: Mapping[str, float | None]
    cpu_s: float


def _guidellm(bin_folder: Path, task: Task, scratch: Path) -> list[str]:
    prompts = scratch / "prompts.jsonl"
    row = {"prompt": PROMPT, "output_tokens_count": task.tokens}
    prompts.write_text(f"{json.dumps(row)}\n" * (task.streams * task.requests))
    return [
        *(str(bin_folder / "guidellm"), "run", "--disable-console"),
        *("--backend", f"kind=openai_http,target=http://127.0.0.1:{task.port},model=mock,request_format=/v1/chat/completions"),
        *("--profile", f"kind=concurrent,streams={task.streams}"),
        *("--constraint", f"kind=max_requests,count={task.streams * task.requests}"),
        *("--data", f"kind=json_file,path={prompts}"),
        *("--output", f"kind=json,path={scratch / 'guidellm.json'}"),
    ]


def _aiperf(bin_folder: Path, task: Task, scratch: Path) -> list[str]:
    return [
        *(str(bin_folder / "aiperf"), "profile", "--model", "mock", "--url", f"http://127.0.0.1:{task.port}"),
        *(
            "--endpoint-type",
            "chat",
            "--streaming",
            "--use-server-token-count",
            "--tokenizer",
            str(_tokenizer(scratch / "tokenizer")),
            "--ui",
            "none",
        ),
        *("--concurrency", str(task.streams), "--request-count", str(task.streams * task.requests)),
        *("--synthetic-input-tokens-mean", "100", "--output-tokens-mean", str(task.tokens), "--output-tokens-stddev", "0"),
        *("--output-artifact-dir", str(scratch)),
    ]


def _tokenizer(folder: Path) -> Path:
    """A tokenizer with a token for each byte, for a tool that makes prompts with one: nothing is fetched."""
    # GPT-2's letters for bytes: printable ones stand for themselves, the others for letters from 256 on.
    printable = [byte for byte in range(256) if byte in range(33, 127) or byte in range(161, 173) or byte >= 174]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + place) for place, byte in enumerate(others)}
    vocabulary = {letter: place for place, letter in enumerate([*sorted(letters.values()), "<s>", "</s>"])}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    whole = {
        "version": "1.0",
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
        "pre_tokenizer": level,
        "decoder": level,
        "added_tokens": [],
    }
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    words = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(words))
    return folder


TOOLS: Mapping[str, Tool] = {
    "guidellm": Tool(_guidellm, "guidellm.json", {"GUIDELLM__MAX_WORKER_PROCESSES": "1"}),
    "aiperf": Tool(_aiperf, "profile_export_aiperf.json", {}),
}


def stated(name: str, environment: Path, task: Task, scratch: Path, core: int | None) -> Stated:
    """Let a tool do the task on a core, and read its file.

    Raises CalledProcessError where it fails, ImportRefused for a file of another shape.
    """
    tool = TOOLS[name]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = tool.command(environment.absolute() / "bin", task, scratch)
    where = ["taskset", "-c", str(core)] if core is not None else []
    variables = {**os.environ, **tool.variables}
    subprocess.run([*where, *command], cwd=scratch, env=variables, capture_output=True, timeout=_LIMIT_S, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = next(scratch.rglob(tool.result))
    (run,) = read_runs(path.name, path.read_bytes()).runs
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Stated(_levels(run.metrics.get("ttft_s")), _levels(run.metrics.get("itl_s")), cpu)


def _levels(found: object) -> Mapping[str, float | None]:
    return {level: getattr(found, level) if isinstance(found, Distribution) else None for level in _LEVELS}
