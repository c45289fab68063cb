"""How true the load client is: `python -m benchmarks.fidelity [--json] [--streams 1,32,128,256] [--rounds N] [--peer NAME=ENVIRONMENT]`.

A mock server (TTFT 50 ms, ITL 10 ms) logs when each request was there and when it wrote each event. Against that log stand what our
client, aiohttp and httpx say of the same load in the same run, one process and one core each, the server on another core where there is
one. Rounds of all clients alternate, and each figure is the median over rounds: on a busy machine the ratios still mean something.
Whole tools that are installed in an environment of their own join with `--peer guidellm=FOLDER --peer aiperf=FOLDER`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np

from benchmarks.clients.outcome import Task
from benchmarks.clients.tools import TOOLS, Stated, stated
from benchmarks.report import Report, Target, as_json, as_text, machine

Floats = np.typing.NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
STREAMS = (1, 32, 128, 256)
TTFT_S, ITL_S = 0.05, 0.01
CLIENTS = {"phaseline": "own", "aiohttp": "with_aiohttp", "httpx": "with_httpx"}
JUDGED = 128
TARGETS = {
    "cpu_ratio_to_aiohttp": Target(0.7),
    "ttft_error_ratio_to_aiohttp": Target(1.0),
    f"ttft_p50_error_s_{JUDGED}": Target(0.002),
    **{f"itl_mean_error_{streams}": Target(0.005) for streams in STREAMS},
}
_LIMIT_S = 300.0
_ERRORS = ("ttft_p50_error_s", "ttft_p99_error_s", "itl_mean_error", "itl_p99_error_s", "cpu_us_per_event")


@dataclass(frozen=True)
class Cores:
    """Which core the client and the server run on; None where the machine does not let us choose."""

    client: int | None
    server: int | None


def cores() -> Cores:
    """The first and the last core that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        return Cores(None, None)
    mine = sorted(os.sched_getaffinity(0))
    return Cores(mine[0], mine[-1])


@contextmanager
def mock(where: Cores) -> Iterator[int]:
    """A mock server in a process of its own; its port."""
    command = [sys.executable, "-m", "benchmarks.mock_server", "--ttft", str(TTFT_S), "--itl", str(ITL_S)]
    command += [] if where.server is None else ["--core", str(where.server)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _get(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return json.load(answer)


def once(client: str, port: int, streams: int, requests: int, tokens: int, where: Cores) -> Mapping[str, float]:
    """One client's errors against the server's log, and what it cost. Raises CalledProcessError where it fails."""
    _get(port, "/forget")
    command = [sys.executable, "-m", f"benchmarks.clients.{CLIENTS[client]}", *map(str, (port, streams, requests, tokens))]
    command += [] if where.client is None else ["--core", str(where.client)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_S, check=True)
    return errors(json.loads(done.stdout), _log(port, tokens))


def with_tool(name: str, environment: Path, port: int, streams: int, requests: int, tokens: int, where: Cores) -> Mapping[str, float]:
    """The errors of what a tool's file says, and what it cost. Raises CalledProcessError where the tool fails."""
    _get(port, "/forget")
    with TemporaryDirectory() as scratch:
        said = stated(name, environment, Task(port, streams, requests, tokens), Path(scratch), where.client)
    return stated_errors(said, _log(port, tokens))


def _log(port: int, tokens: int) -> list[Mapping[str, Any]]:
    return [served for served in _get(port, "/log") if len(served["sends"]) == tokens]


def _truth(log: Sequence[Mapping[str, Any]]) -> tuple[Floats, Floats]:
    """TTFT of each request and all gaps by the server's log, in seconds."""
    ttft = np.array([served["sends"][0] - served["received"] for served in log]) / 1e9
    return ttft, np.concatenate([np.diff(np.array(served["sends"], dtype=np.int64)) for served in log]) / 1e9


def stated_errors(said: Stated, log: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
    """The same errors from a tool's statistics; what it does not state has none. Raises ValueError where nothing was served."""
    if not log:
        raise ValueError("the server's log has no request of this length")
    ttft, gaps = _truth(log)
    compared = {
        "ttft_p50_error_s": (said.ttft_s["p50"], np.percentile(ttft, 50)),
        "ttft_p99_error_s": (said.ttft_s["p99"], np.percentile(ttft, 99)),
        "itl_p99_error_s": (said.itl_s["p99"], np.percentile(gaps, 99)),
    }
    found = {name: abs(value - float(true)) for name, (value, true) in compared.items() if value is not None}
    if said.itl_s["mean"] is not None:
        found["itl_mean_error"] = abs(said.itl_s["mean"] / float(gaps.mean()) - 1)
    events = sum(len(served["sends"]) for served in log)
    return {**found, "cpu_us_per_event_with_start": said.cpu_s / events * 1e6, "server_ttft_p50_s": float(np.percentile(ttft, 50))}


def errors(seen: Mapping[str, Any], log: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
    """What a client says less what the server's log says: TTFT by percentile and gaps at p99 in seconds, mean ITL as a fraction.

    Raises ValueError where a request failed or is not in the log: then there is nothing to compare.
    """
    if seen["failed"] or len(seen["ttft_s"]) != len(log) or not log:
        raise ValueError(f"{seen['failed']} requests failed, {len(seen['ttft_s'])} of {len(log)} in the server's log were seen")
    ttft, gaps = _truth(log)
    mine, mine_gaps = np.array(seen["ttft_s"]), np.array(seen["gaps_s"])
    return {
        "ttft_p50_error_s": abs(float(np.percentile(mine, 50) - np.percentile(ttft, 50))),
        "ttft_p99_error_s": abs(float(np.percentile(mine, 99) - np.percentile(ttft, 99))),
        "itl_mean_error": abs(float(mine_gaps.mean() / gaps.mean() - 1)) if gaps.size else 0.0,
        "itl_p99_error_s": abs(float(np.percentile(mine_gaps, 99) - np.percentile(gaps, 99))) if gaps.size else 0.0,
        "cpu_us_per_event": seen["cpu_s"] / seen["events"] * 1e6,
        "server_ttft_p50_s": float(np.percentile(ttft, 50)),
        "server_itl_mean_s": float(gaps.mean()) if gaps.size else 0.0,
    }


def measure(
    streams: Sequence[int],
    rounds: int,
    requests: int,
    tokens: int,
    clients: Sequence[str] = tuple(CLIENTS),
    peers: Mapping[str, Path] = MappingProxyType({}),
) -> Report:
    """Rounds of the clients, ours and aiohttp among them, and of the peers by their environments, at each number of streams."""
    where, before = cores(), machine()
    started = time.perf_counter()
    found: dict[tuple[str, int], list[Mapping[str, float]]] = {}
    with mock(where) as port:
        for _ in range(rounds):
            for count in streams:
                for client in clients:
                    found.setdefault((client, count), []).append(once(client, port, count, requests, tokens, where))
                for name, folder in peers.items():
                    found.setdefault((name, count), []).append(with_tool(name, folder, port, count, requests, tokens, where))
    middle = {key: {name: median(result[name] for result in results) for name in results[0]} for key, results in found.items()}
    groups = [
        {"by": {"client": client, "streams": count}, "n": rounds * count * requests, **values} for (client, count), values in middle.items()
    ]
    conditions = {
        **before,
        "load_average_1m_after": round(os.getloadavg()[0], 2),
        "seconds": round(time.perf_counter() - started, 1),
        "rounds": rounds,
        "requests_per_stream": requests,
        "tokens": tokens,
        "niceness": os.nice(0),
        "mock": {"ttft_s": TTFT_S, "itl_s": ITL_S},
        "cores": {"client": where.client, "server": where.server, "apart": where.client != where.server},
        "clients": {"aiohttp": version("aiohttp"), "httpx": version("httpx"), "uvloop": version("uvloop")},
    }
    return Report(_figures(middle, streams), groups, conditions)


def _figures(middle: Mapping[tuple[str, int], Mapping[str, float]], streams: Sequence[int]) -> Mapping[str, float]:
    """The contract's figures; cost and ratios are those at 128 streams, or at the most there are."""
    figures: dict[str, float] = {}
    for count in streams:
        for name in _ERRORS[:3]:
            figures[f"{name}_{count}"] = middle["phaseline", count][name]
    judged = JUDGED if JUDGED in streams else max(streams)
    own, peer = middle["phaseline", judged], middle["aiohttp", judged]
    figures["cpu_us_per_event"] = own["cpu_us_per_event"]
    figures["cpu_ratio_to_aiohttp"] = own["cpu_us_per_event"] / peer["cpu_us_per_event"]
    figures["ttft_error_ratio_to_aiohttp"] = own["ttft_p50_error_s"] / max(peer["ttft_p50_error_s"], 1e-9)
    return figures


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def _peer(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if name not in TOOLS or not (Path(folder) / "bin" / name).exists():
        raise argparse.ArgumentTypeError(f"{text!r}: say NAME=FOLDER with NAME of {', '.join(TOOLS)} and FOLDER its virtual environment")
    return name, Path(folder)


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--streams", type=_counts, default=STREAMS, help="streams at once, joined by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=3, help="requests of each stream")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument(
        "--peer", type=_peer, action="append", default=[], metavar="NAME=FOLDER", help=f"a tool ({', '.join(TOOLS)}) and its environment"
    )
    parser.add_argument("--without-httpx", action="store_true", help="leave out the peer that takes longest at many streams")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    clients = [client for client in CLIENTS if not (client == "httpx" and options.without_httpx)]
    report = measure(options.streams, options.rounds, options.requests, options.tokens, clients, dict(options.peer))
    print(as_json(report) if options.json else as_text(report, TARGETS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
