"""`phaseline measure endpoint URL`: what a running server delivers, as a table that grows and a file that imports."""

import os
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from app.commands.common import Json, print_json
from app.domain.addresses import ANY_NETWORK, parse_destination
from app.domain.errors import InvalidRequest, PhaselineError
from app.domain.text import duration
from app.jobs import DeviceFacts, read_parameters
from app.jobs.endpoint_sweep import EndpointSweep
from app.worker.environment import capture
from app.worker.load.link import Link, checked_address
from app.worker.load.point import Shape, progress_words
from app.worker.load.recording import Told, on_uvloop, record
from app.worker.load.request import Asking

Number = TypeVar("Number", int, float)
_COLUMNS = (("load", 12), ("prompt", 8), ("output", 8), ("requests", 9), ("failed", 7), ("TTFT p50", 10), ("p99", 10), ("ITL", 10))
_LAST = ("tokens/s", "flags")


class FileExists(PhaselineError):
    """The file to write is there already."""


def endpoint(
    url: Annotated[str, typer.Argument(help="Address of an OpenAI-compatible server, as http://gpu.example:8000; /v1 is added to it.")],
    model: Annotated[str, typer.Option("--model", help="Model name as the server knows it.")],
    concurrency: Annotated[str, typer.Option("--concurrency", help="Closed loop: requests in flight, joined by commas.")] = "1",
    rate: Annotated[str, typer.Option("--rate", help="Open loop instead: requests per second with Poisson arrivals.")] = "",
    prompt: Annotated[str, typer.Option("--prompt", help="Prompt tokens, joined by commas.")] = "512",
    output: Annotated[str, typer.Option("--output", help="Output tokens, joined by commas.")] = "128",
    api: Annotated[Literal["completions", "chat"], typer.Option("--api", help="Which API to call.")] = "completions",
    duration_s: Annotated[float, typer.Option("--duration", help="Seconds of a point, at least.")] = 20.0,
    requests: Annotated[int, typer.Option("--requests", help="Requests of a point, at least.")] = 20,
    warmup: Annotated[int, typer.Option("--warmup", help="Requests of each stream before a point, kept apart.")] = 2,
    ramp_s: Annotated[float, typer.Option("--ramp", help="Seconds over which clients start.")] = 0.0,
    knee: Annotated[bool, typer.Option("--knee", help="Double the last load until throughput stops growing.")] = False,
    arrivals: Annotated[Path | None, typer.Option("--arrivals", help="Open loop by a file with one moment in seconds a line.")] = None,
    timeout_s: Annotated[float, typer.Option("--timeout", help="Seconds a request may take.")] = 600.0,
    hardware: Annotated[str | None, typer.Option("--hardware", help="What the server runs on, by name or slug.")] = None,
    devices: Annotated[int | None, typer.Option("--devices", help="How many of them the model runs on.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="Of the server, as vllm.")] = None,
    weight_dtype: Annotated[str | None, typer.Option("--weight-dtype", help="Number format of the weights.")] = None,
    processes: Annotated[int | None, typer.Option("--processes", help="Of this client: one, or more where one has no time left.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of prompts and arrivals.")] = 0,
    key_env: Annotated[str | None, typer.Option("--key-env", help="Environment variable that holds the server's key.")] = None,
    key_file: Annotated[Path | None, typer.Option("--key-file", help="File that holds the server's key.")] = None,
    ca: Annotated[Path | None, typer.Option("--ca", help="Certificate (PEM) that vouches for the server.")] = None,
    out: Annotated[Path, typer.Option("--out", help="File to write.")] = Path("endpoint-sweep.json"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file where it is there already.")] = False,
    as_json: Json = False,
) -> None:
    """Measure a running server and write a file that imports."""
    destination = parse_destination(url, ANY_NETWORK)
    arrivals_s = _moments(arrivals)
    open_loop = bool(rate or arrivals_s)
    deployment = {"hardware": hardware, "devices": devices, "engine": engine, "weight_dtype": weight_dtype}
    client: dict[str, Any] = {"duration_s": duration_s, "min_requests": requests, "warmup_requests": warmup, "ramp_s": ramp_s}
    client |= {"find_knee": knee, "timeout_s": timeout_s, "processes": processes, "seed": seed}
    parameters = read_parameters(
        EndpointSweep,
        {
            "target": destination.authority,
            "model": model,
            "api": api,
            "prompt_tokens": _numbers("--prompt", prompt, int),
            "output_tokens": _numbers("--output", output, int),
            "concurrency": () if open_loop else _numbers("--concurrency", concurrency, int),
            "rates_per_s": _numbers("--rate", rate, float),
            "arrivals_s": arrivals_s,
            **deployment,
            **client,
        },
    )
    assert isinstance(parameters, EndpointSweep)
    if out.exists() and not force:
        raise FileExists(f"{out} is there already: name another file with --out, or replace it with --force.")
    key = _key(key_env, key_file)
    asking = Asking(destination, model, api, authorization=None if key is None else f"Bearer {key}")
    document = on_uvloop(_measured(parameters, asking, _checked(ca), out, as_json))
    if as_json:
        print_json(document)
    else:
        print(f"\nWritten: {out}. Store it with: phaseline import {out}")


async def _measured(parameters: EndpointSweep, asking: Asking, authority: Path | None, out: Path, quiet: bool) -> Mapping[str, Any]:
    link = Link(asking.destination, await checked_address(asking.destination), authority)
    table = _Table(sys.stderr.isatty() and not quiet, quiet)
    # The machine of the client, not of the server: what its figures may owe to itself.
    environment = capture(DeviceFacts(name="load client", kind="cpu", backends=()))
    return await record(parameters, asking, link, out, Told(table.planned, table.working, table.done), environment)


class _Table:
    """A row a point on standard output, and on a terminal one line of what is going on."""

    def __init__(self, live: bool, quiet: bool) -> None:
        self._live, self._quiet = live, quiet
        self._total = self._done = 0

    def planned(self, points: int) -> None:
        """The number of points is known: the head of the table."""
        self._total = points
        if not self._quiet:
            print("".join(f"{title:>{width}}" for title, width in _COLUMNS) + f"{_LAST[0]:>11}  {_LAST[1]}", flush=True)

    def working(self, shape: Shape, ended: int, since_s: float) -> None:
        """One line that is written over."""
        if self._live:
            text = f"{self._done + 1} of {max(self._total, self._done + 1)}: {progress_words(shape, ended, since_s)}"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def done(self, shape: Shape, row: Mapping[str, Any]) -> None:
        """One row."""
        self._done += 1
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        if self._quiet:
            return
        load = f"{shape.concurrency} clients" if shape.concurrency else f"{shape.rate_per_s:g}/s" if shape.rate_per_s else "trace"
        times = (_time(row[key]) for key in ("ttft_s", "ttft_p99_s", "itl_s"))
        cells = (load, shape.prompt_tokens, shape.output_tokens, row["requests"], row["failed"], *times)
        rate = "–" if row["tokens_per_s"] is None else f"{row['tokens_per_s']:.4g}"
        line = "".join(f"{cell!s:>{width}}" for cell, (_, width) in zip(cells, _COLUMNS, strict=True))
        print(f"{line}{rate:>11}  {row['flags']}".rstrip(), flush=True)


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else duration(seconds)


def _numbers(option: str, text: str, kind: Callable[[str], Number]) -> tuple[Number, ...]:
    try:
        return tuple(kind(word) for word in text.split(",") if word.strip())
    except ValueError as error:
        raise InvalidRequest(option, f"{option} must be numbers joined by commas, and is {text!r}.") from error


def _moments(file: Path | None) -> tuple[float, ...]:
    if file is None:
        return ()
    try:
        return tuple(float(line) for line in file.read_text(encoding="utf-8").split())
    except (OSError, ValueError) as error:
        raise InvalidRequest("--arrivals", f"{file} cannot be read as moments in seconds, one a line: {error}.") from error


def _key(variable: str | None, file: Path | None) -> str | None:
    """The server's key; never an option of its own, which other users of the machine could see."""
    if variable is not None:
        if not os.environ.get(variable):
            raise InvalidRequest("--key-env", f"The environment variable {variable} is not set.")
        return os.environ[variable].strip()
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest("--key-file", f"{file} cannot be read as a key.") from error
    return None


def _checked(authority: Path | None) -> Path | None:
    """The file, once it is known to hold certificates."""
    if authority is not None:
        try:
            ssl.create_default_context(cafile=authority)
        except OSError as error:
            raise InvalidRequest("--ca", f"{authority} holds no certificate in PEM form.") from error
    return authority
