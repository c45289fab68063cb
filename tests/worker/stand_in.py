"""A stand-in for the measuring process: keeps the protocol and measures nothing. `seed` of the parameters says how it behaves.

0 succeeds at once · 1 fails · 2 hangs, ignores TERM and has a child in a session of its own that does so too · 3 loses the device
4 is killed as for want of memory · 5 declines · 6 works for `seconds_per_shape`, then succeeds · 7 succeeds without a result
8 as 6, after telling a secret · 9 prints what is no event, then succeeds
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def say(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def report(number: int) -> dict[str, Any]:
    """A result as `vllm bench serve` writes it; each number gives another file, and each process one of its own."""
    figures = {f"{stat}_{key}_ms": 10.0 + number / 1e3 for key in ("ttft", "tpot", "itl") for stat in ("mean", "median", "p99")}
    counts = {"num_prompts": 8, "completed": 8, "failed": 0, "total_input_tokens": 800, "total_output_tokens": 80, "max_concurrency": 1}
    rates = {"request_throughput": 4.0, "output_throughput": 40.0, "total_token_throughput": 440.0, "duration": 2.0 + os.getpid() / 1e9}
    return {"date": "20260501-120000", "endpoint_type": "vllm", "model_id": "stand-in", "tokenizer_id": "stand-in", "request_rate": "inf",
            "burstiness": 1.0, **counts, **rates, **figures}  # fmt: skip


def finish(folder: Path, job: dict[str, Any]) -> None:
    (folder / "result.json").write_text(json.dumps(report(int(job["id"]))))
    say(event="result", file="result.json", format="phaseline")


def main() -> int:
    folder = Path(sys.argv[2])
    job = json.loads((folder / "job.json").read_text())
    seed, seconds = job["parameters"]["seed"], job["parameters"]["seconds_per_shape"]
    say(event="progress", done=0, total=2, current="stand-in", eta_s=seconds)
    if seed == 1:
        say(event="log", level="error", text="it did not work")
        sys.stderr.write("Traceback\nValueError: no such thing\n")
        return 1
    if seed == 2:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", STUBBORN], start_new_session=True)
        finish(folder, job)
        say(event="log", text="hanging")
        time.sleep(600)
    if seed == 3:
        say(event="log", level="error", text="the GPU fell off the bus")
        return 75
    if seed == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 5:
        say(event="log", level="error", text="too large for this device")
        return 2
    if seed in (6, 8):
        if seed == 8:
            say(event="log", text="calling with Bearer abcdef0123456789 and sk-canary0123456789")
        time.sleep(seconds)
    if seed == 7:
        return 0
    if seed == 9:
        sys.stdout.write("hello\n[1]\n{}\n" + '{"event": "point", "point": {"a": {"deep": 1}, "b": 1e999}}\n')
    say(event="point", point={"phase": "decode", "itl_s": 0.01})
    say(event="progress", done=2, total=2, current=None, eta_s=0.0)
    finish(folder, job)
    return 0


if __name__ == "__main__":
    sys.exit(main())
