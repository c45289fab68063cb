"""`llama_bench`: the llama-bench that this worker's owner allows, on a model of their folder; its own JSON is the result.

Which binary and which folder stand in the worker's environment (PHASELINE_LLAMA_BENCH, PHASELINE_LLAMA_MODELS), never in a job: a job names
a file, and numbers. The command is a list of words; no shell reads it.
"""

import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from app.domain.errors import ImportRefused
from app.formats import read_runs
from app.jobs.llama_bench import LlamaBench
from app.worker.measure.job import Failed, Job, Refused
from app.worker.measure.reporter import Reporter

BINARY, MODELS = "PHASELINE_LLAMA_BENCH", "PHASELINE_LLAMA_MODELS"
RESULT = "llama-bench.json"
FORMAT = "llama_bench"


def run(job: Job, reporter: Reporter) -> None:
    """Run it to its end or its limit. Raises Refused for what the worker does not allow, Failed when it gave no result."""
    parameters = job.parameters
    if not isinstance(parameters, LlamaBench):
        raise Refused("The parameters are none of a llama_bench.")
    command = command_of(parameters, os.environ, on_gpu=not job.device.is_cpu)
    tests = (len(parameters.prompt_tokens) + len(parameters.output_tokens)) * len(parameters.depths)
    reporter.begin(1)
    reporter.step(f"llama-bench, {tests} tests of {parameters.repeats} repeats")
    result = job.folder / RESULT
    with result.open("wb") as out:
        ended = _ended(command, out, parameters.limit_s, reporter)
    data = result.read_bytes()
    if ended is not None and not data.strip():
        raise Failed(f"llama-bench {ended} and gave no result.")
    try:
        found = read_runs(RESULT, data).runs
    except ImportRefused as refusal:
        raise Failed(f"llama-bench {ended or 'ended'}, and what it gave cannot be read: {refusal.reason}") from refusal
    reporter.result(result, FORMAT)
    reporter.finished({"label": parameters.gguf, "status": "ok" if ended is None else "error", "runs": len(found)})
    if ended is not None:
        raise Failed(f"llama-bench {ended}; what it had done by then is kept.")


def command_of(parameters: LlamaBench, environment: Mapping[str, str], on_gpu: bool) -> list[str]:
    """The words of the command. Raises Refused where the worker has no llama-bench, or no such model."""
    binary = Path(environment.get(BINARY, ""))
    if not binary.is_absolute() or not os.access(binary, os.X_OK) or not binary.is_file():
        raise Refused(f"This worker allows no llama-bench: its owner sets {BINARY} to the path of the binary.")
    folder = Path(environment.get(MODELS, ""))
    if not folder.is_absolute() or not folder.is_dir():
        raise Refused(f"This worker has no model folder: its owner sets {MODELS} to the folder of the .gguf files.")
    model = folder / parameters.gguf
    if not model.is_file():
        names = ", ".join(sorted(path.name for path in folder.glob("*.gguf"))[:10]) or "none"
        raise Refused(f"There is no {parameters.gguf} in this worker's model folder; there are: {names}.")
    words = {
        "-p": _joined(parameters.prompt_tokens),
        "-n": _joined(parameters.output_tokens),
        "-d": _joined(parameters.depths),
        "-r": str(parameters.repeats),
        "-t": str(parameters.threads),
        "-ngl": str(parameters.gpu_layers if on_gpu else 0),
        "-o": "json",
    }
    return [str(binary), "-m", str(model), *(word for pair in words.items() for word in pair)]


def _joined(counts: tuple[int, ...]) -> str:
    """Counts as llama-bench takes them; 0 leaves a kind of test out."""
    return ",".join(map(str, counts)) or "0"


def _ended(command: list[str], out: IO[bytes], limit_s: float, reporter: Reporter) -> str | None:
    """None when it ended well, else how it did. Its messages go into the log as they come."""
    with subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, errors="replace") as process:  # noqa: S603
        overdue = threading.Timer(limit_s, process.kill)
        overdue.start()
        try:
            for line in process.stderr or ():
                if line.strip():
                    reporter.log(line.strip()[:400])
            code = process.wait()
        finally:
            late = not overdue.is_alive()
            overdue.cancel()
    if late:
        return f"took longer than its limit of {limit_s:g} s"
    return None if code == 0 else f"ended with code {code}"
