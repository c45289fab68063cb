"""The commands: each parses, calls a service, prints. With --json one JSON object stands on standard output and nothing else.

Errors go to standard error as one sentence; exit code 2 for what the user can mend, 1 for a fault of ours.
"""

import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
import uvicorn

from app import __version__
from app.catalog import load
from app.client import Client
from app.domain.checks import as_shown
from app.domain.comparison import Comparison, Side, compare
from app.domain.errors import ImportRefused, InvalidRequest, PhaselineError, TooLarge
from app.domain.simulation import Target
from app.domain.text import clean_text
from app.formats import joined, read_runs
from app.services import calibrating
from app.services import runs as stored_runs
from app.services.comparing import compare_runs, explained
from app.services.comparison_json import comparison_json
from app.services.context import Context, make_context
from app.services.diagnosing import Explained, explain_files
from app.services.importing import ImportOutcome
from app.services.local_profiles import local_book
from app.services.markdown import comparison_markdown
from app.services.plain_text import comparison_lines, prediction_lines, reading_lines, run_line, under_load_lines
from app.services.predicting import answer, question_of
from app.services.prediction_json import answer_json
from app.services.profiles import catalog_book, read_book
from app.services.reading import read_files
from app.services.refusals import refusal_json
from app.services.rereading import reread_files
from app.services.sample_runs import SampleRuns, load_samples
from app.services.samples import sample_files
from app.services.startup import prepare, soundness
from app.services.storing import store_files
from app.services.strict_json import strict_json
from app.services.under_load import Arrivals, simulate
from app.settings import UPLOAD_CEILING_BYTES, Settings, load_settings

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Phaseline: prefill and decode of LLM requests, predicted and measured.")

# Options of `predict` whose key in a request is another.
_REQUEST_KEYS = {"prompt": "prompt_tokens", "output": "output_tokens", "cached_prefix": "cached_prefix_tokens"}

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Files = Annotated[list[Path], typer.Argument(help="Result files.")]


def main() -> None:
    """Run a command. An error is one sentence: exit code 2 for what the user can mend, 1 for a fault of ours."""
    sys.excepthook = _say_fault
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal or pipe that is not UTF-8 gets what it can show, and never an error.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = typer.main.get_command(app).main(prog_name="phaseline", standalone_mode=False)
    except PhaselineError as error:
        print(f"phaseline: {error}", file=sys.stderr)
        sys.exit(2)
    except typer.TyperException as error:
        # Without arguments the help was printed, and there is no message.
        if message := " ".join(error.format_message().split()).rstrip("."):
            print(f"phaseline: {message}. See `phaseline --help`.", file=sys.stderr)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(1)
    sys.exit(code or 0)


def _say_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What is printed before the interpreter ends with exit code 1; the trace too in its development mode."""
    if sys.flags.dev_mode or not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, trace)
    print(f"phaseline: {kind.__name__}, a fault of ours: run the command as `python -X dev -m app …` and report it.", file=sys.stderr)


@app.callback(invoke_without_command=True)
def version_option(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Options of every command."""
    if version:
        print(__version__)
        raise typer.Exit()


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; HOST when not given.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; PORT when not given.", min=0, max=65535)] = None,
) -> None:
    """Migrate the database, load the catalog, serve pages and API."""
    from app.main import create_app

    settings = load_settings()
    settings = settings.model_copy(update={"host": host or settings.host, "port": port if port is not None else settings.port})
    settings.refuse_open_address()
    application = create_app(settings)
    prepare(application.state.context)
    listener = _listen(settings)
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{shown}:{listener.getsockname()[1]}{settings.root_path}/"
    print(f"Phaseline {__version__} serves {address}  (stop with Ctrl C)", flush=True)
    config = uvicorn.Config(
        application,
        log_level="warning",
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=30,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listen(settings: Settings) -> socket.socket:
    """The socket to serve on, taken before an address is printed. Raises InvalidRequest when it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        raise InvalidRequest(
            "port", f"Port {settings.port} of {settings.host} cannot be had ({error.strerror}): stop what uses it, or set PHASELINE_PORT."
        ) from error


@app.command()
def predict(
    context: typer.Context,
    model: Annotated[str, typer.Option(help="Slug of the catalog, or the path of a config.json.")] = "textbook-8b",
    hardware: Annotated[str, typer.Option(help="Slug of the catalog, or the path of a hardware .json.")] = "textbook-h100",
    prompt: Annotated[int, typer.Option(help="Prompt tokens.")] = 2000,
    output: Annotated[int, typer.Option(help="Output tokens.")] = 300,
    batch: Annotated[int, typer.Option(help="Sequences in one pass.")] = 1,
    concurrency: Annotated[int | None, typer.Option(help="Closed-loop clients.")] = None,
    cached_prefix: Annotated[int, typer.Option(help="Prompt tokens already in the cache.")] = 0,
    tp: Annotated[int, typer.Option(help="Tensor-parallel degree.")] = 1,
    pp: Annotated[int, typer.Option(help="Pipeline degree.")] = 1,
    ep: Annotated[int, typer.Option(help="Expert-parallel degree.")] = 1,
    dp: Annotated[int, typer.Option(help="Attention ranks that share the sequences.")] = 1,
    weight_dtype: Annotated[str, typer.Option(help="Number format of the weights.")] = "bf16",
    activation_dtype: Annotated[str, typer.Option(help="Number format of the activations.")] = "bf16",
    kv_dtype: Annotated[str, typer.Option(help="Number format of the KV cache.")] = "bf16",
    moe_dtype: Annotated[str | None, typer.Option(help="Number format of the experts; else what checkpoints use.")] = None,
    comm_dtype: Annotated[str | None, typer.Option(help="Number format of what crosses a link; else the activations'.")] = None,
    engine: Annotated[str | None, typer.Option(help="Engine profile.")] = None,
    calibration: Annotated[str, typer.Option(help="textbook, default, or the number of a calibration stored here.")] = "default",
    requests_per_client: Annotated[int, typer.Option(help="Requests that each client sends, the burst at the start among them.")] = 10,
    shortest_length: Annotated[float, typer.Option(help="Lengths are drawn between this share and 1 of the given ones; 1: equal.")] = 1.0,
    draft_tokens: Annotated[int, typer.Option(help="Speculation: tokens drafted in each step.")] = 0,
    acceptance: Annotated[float, typer.Option(help="Speculation: chance that a drafted token is accepted, given those before.")] = 0.0,
    simulated: Annotated[bool, typer.Option("--simulate", help="Run the load of the clients pass by pass.")] = False,
    rate: Annotated[float | None, typer.Option(help="Simulate requests that come at this rate a second instead of from clients.")] = None,
    requests: Annotated[int, typer.Option(help="How many of them.")] = 300,
    seed: Annotated[int, typer.Option(help="Draws arrivals and lengths.")] = 0,
    ttft_target: Annotated[float | None, typer.Option(help="Goodput: seconds to the first token at most.")] = None,
    tpot_target: Annotated[float | None, typer.Option(help="Goodput: seconds for each further token at most.")] = None,
    as_json: Json = False,
) -> None:
    """What both halves of a request cost, without a server."""
    base = read_book(_context()) if calibration.isdigit() else catalog_book(load())
    book, names = local_book(base, model, hardware)
    values = {_REQUEST_KEYS.get(name, name): value for name, value in context.params.items()}
    found, target = answer(book, question_of({**values, **names})), Target(ttft_target, tpot_target)
    served = None
    if simulated or rate is not None or target != Target():
        served = simulate(found, Arrivals(request_rate_per_s=rate, requests=requests, seed=seed), target)
    if as_json:
        _print_json(answer_json(found, served))
        return
    print("\n".join([*(under_load_lines(served) if served else ()), *prediction_lines(found.prediction)]))


@app.command()
def calibrate(
    hardware: Annotated[str, typer.Option(help="Slug of the device.")],
    engine: Annotated[str | None, typer.Option(help="Engine profile; left out: runs whose engine has none.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Weight format, where the runs have several.")] = None,
    as_json: Json = False,
) -> None:
    """Fit five scalars to the stored runs of a device and an engine."""
    found = calibrating.calibrate(_context(), hardware, engine, dtype, datetime.now(UTC))
    if as_json:
        _print_json(calibrating.calibration_json(found))
        return
    print("\n".join(calibrating.calibration_lines(found)))


@app.command()
def parse(files: Files, as_json: Json = False) -> None:
    """Read result files and store nothing."""
    report = read_files(catalog_book(load()), _contents(files))
    if as_json:
        _print_json(report)
    else:
        for run in report["runs"]:
            print(f"{run['file']}: {run_line(run)}")
        for refusal in report["refused"]:
            print(f"{refusal['file']}: refused: {refusal['reason']}", file=sys.stderr)
    if report["refused"]:
        raise typer.Exit(2)


@app.command(name="import")
def import_command(
    files: Annotated[list[Path] | None, typer.Argument(help="Result files.")] = None,
    samples: Annotated[bool, typer.Option("--samples", help="Load the sample runs.")] = False,
    model: Annotated[str | None, typer.Option(help="Model, when the files do not say.")] = None,
    hardware: Annotated[str | None, typer.Option(help="Hardware, when the files do not say.")] = None,
    engine: Annotated[str | None, typer.Option(help="Engine, when the files do not say.")] = None,
    devices: Annotated[int | None, typer.Option(help="Number of devices.")] = None,
    tp: Annotated[int | None, typer.Option(help="Tensor-parallel degree.")] = None,
    pp: Annotated[int | None, typer.Option(help="Pipeline degree.")] = None,
    ep: Annotated[int | None, typer.Option(help="Expert-parallel degree.")] = None,
    dp: Annotated[int | None, typer.Option(help="Data-parallel copies.")] = None,
    weight_dtype: Annotated[str | None, typer.Option(help="Number format of the weights.")] = None,
    kv_dtype: Annotated[str | None, typer.Option(help="Number format of the KV cache.")] = None,
    project: Annotated[str | None, typer.Option(help="Project to store in.")] = None,
    label: Annotated[str | None, typer.Option(help="What to call the runs.")] = None,
    tags: Annotated[str | None, typer.Option(help="Tags, comma-separated.")] = None,
    server: Annotated[str | None, typer.Option(help="Store on this server instead of in DATA_DIR.")] = None,
    token: Annotated[str | None, typer.Option(help="Token for that server, where it asks for one.")] = None,
    as_json: Json = False,
) -> None:
    """Store result files in DATA_DIR, or on a server."""
    if not files and not samples:
        raise InvalidRequest("files", "Name at least one result file, or --samples.")
    values = {"model": model, "hardware": hardware, "engine": engine, "devices": devices, "tp": tp, "weight_dtype": weight_dtype}
    values |= {"pp": pp, "ep": ep, "dp": dp, "kv_dtype": kv_dtype, "project": project, "label": label, "tags": tags}
    if server is not None:
        _import_on_server(Client(server, token), _to_send(files or [], values, samples), as_json)
        return
    context = _context()
    now = datetime.now(UTC)
    outcome = store_files(context, _to_store(files or []), values, now)
    loaded = load_samples(context, now) if samples else None
    _report_import(context, outcome, loaded, as_json)
    if outcome.refused:
        raise typer.Exit(2)


def _to_send(files: Sequence[Path], values: Mapping[str, Any], samples: bool) -> list[tuple[str, bytes, dict[str, str]]]:
    """Name, bytes and fields of each file that goes to a server."""
    fields = {key: str(value) for key, value in values.items() if value is not None}
    sending = [(name, data, fields) for name, data in joined(_to_store(files))]
    for sample in sample_files() if samples else ():
        told = {key: ",".join(value) if key == "tags" else str(value) for key, value in sample.overrides.items()}
        sending.append((sample.name, sample.data, told))
    return sending


def _import_on_server(client: Client, sending: Sequence[tuple[str, bytes, dict[str, str]]], as_json: bool) -> None:
    """Each file on its own; one that is refused does not stop the others."""
    report: dict[str, list[Any]] = {"runs": [], "refused": [], "warnings": []}
    for name, data, fields in sending:
        try:
            stored = client.upload(name, data, fields)
        except ImportRefused as error:
            report["refused"].append(refusal_json(name, error.reason, error.tried, error.flag))
            continue
        report["runs"].extend(stored.runs)
        report["warnings"].extend(stored.warnings)
    client.close()
    if as_json:
        _print_json(report)
    else:
        _print_report([f"run {run['id']}: {run_line(dict(run))}" for run in report["runs"]], report["warnings"], report["refused"])
    if report["refused"]:
        raise typer.Exit(2)


def _print_report(lines: Sequence[str], warnings: Sequence[str], refused: Sequence[Mapping[str, Any]]) -> None:
    for line in lines:
        print(line)
    for message in (*warnings, *(f"{item['file']}: refused: {item['reason']}" for item in refused)):
        print(message, file=sys.stderr)


def _report_import(context: Context, outcome: ImportOutcome, loaded: SampleRuns | None, as_json: bool) -> None:
    views = stored_runs.views(context, [*outcome.run_ids, *(loaded.run_ids if loaded else ())])
    refused = [refusal_json(item.file, item.reason, item.tried, item.flag) for item in outcome.refused]
    if as_json:
        _print_json({"runs": [view.summary() for view in views], "refused": refused, "warnings": list(outcome.warnings)})
        return
    lines = [f"run {view.id}: {view.title}" for view in views]
    if loaded is not None:
        lines.append(f"compare the samples: phaseline compare {loaded.base} {loaded.other}")
    _print_report(lines, outcome.warnings, refused)


@app.command(name="compare")
def compare_command(
    runs: Annotated[list[str], typer.Argument(help="Run ids or files; the first is the base.")],
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
) -> None:
    """Which phase moved between runs, by how much, and why."""
    comparisons, reasons = _comparisons(runs)
    if markdown and not as_json:
        print(comparison_markdown(comparisons, reasons), end="")
        return
    if as_json:
        _print_json(comparison_json(comparisons, reasons))
        return
    for comparison, reason in zip(comparisons, reasons, strict=True):
        print("\n".join(comparison_lines(comparison, reason)))


def _comparisons(names: Sequence[str]) -> tuple[list[Comparison], list[Explained]]:
    if all(name.isascii() and name.isdigit() and len(name) < 1000 for name in names):
        views, comparisons = compare_runs(_context(), [int(name) for name in names])
        return comparisons, explained(views, comparisons)
    sides: list[Side] = []
    if any(name.isdigit() for name in names):
        raise InvalidRequest("runs", "Name run ids or files, not both in one comparison.")
    for name, data in joined(_contents([Path(name) for name in names])):
        for run in map(as_shown, read_runs(name, data).runs):
            settings = {"model": run.model, "hardware": run.hardware, "engine": run.engine, "tp": run.tp, "weight_dtype": run.weight_dtype}
            sides.append(Side(len(sides) + 1, run, {**settings, "concurrency": run.workload.concurrency}))
    if len(sides) < 2:
        raise InvalidRequest("runs", "A comparison needs two runs: name two files or ids, the first is the base.")
    comparisons = [compare(sides[0], side) for side in sides[1:]]
    return comparisons, [explain_files(comparison) for comparison in comparisons]


@app.command()
def reimport(
    runs: Annotated[list[int] | None, typer.Argument(help="Run ids; the whole file of each is read again.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every file that an older importer read.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change and store nothing.")] = False,
    remove_gone: Annotated[
        bool, typer.Option("--remove-gone", help="Delete runs that a file no longer gives, instead of marking them.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read stored files again with the importers of now."""
    if bool(runs) == everything:
        raise InvalidRequest("runs", "Name the runs whose files are to be read again, or give --all.")
    context = _context()
    report = reread_files(context, runs or None, datetime.now(UTC), dry_run=dry_run, remove_gone=remove_gone)
    if as_json:
        _print_json(report)
    else:
        _print_report(reading_lines(report), [], report["refused"])
    if report["refused"]:
        raise typer.Exit(2)


@app.command()
def check(as_json: Json = False) -> None:
    """Say whether this installation is sound."""
    context = make_context(load_settings())
    checks = soundness(context)
    ok = all(item.ok for item in checks)
    if as_json:
        _print_json({"ok": ok, "checks": [{"name": item.name, "ok": item.ok, "detail": item.detail} for item in checks]})
    else:
        for item in checks:
            print(f"{'ok ' if item.ok else 'BAD'} {item.name}: {item.detail}")
    if not ok:
        raise typer.Exit(2)


def _context(settings: Settings | None = None) -> Context:
    context = make_context(settings or load_settings())
    prepare(context)
    return context


def _contents(files: Sequence[Path]) -> list[tuple[str, bytes]]:
    return [(clean_text(path.name) or "unnamed", _bytes(path)) for path in files]


def _to_store(files: Sequence[Path]) -> list[tuple[str, bytes]]:
    """Files under the names they are stored by: with the folders below this one, since those may hint at what was measured."""
    told = (path.name if path.is_absolute() or ".." in path.parts else path.as_posix() for path in files)
    return [(clean_text(name) or "unnamed", _bytes(path)) for name, path in zip(told, files, strict=True)]


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(UPLOAD_CEILING_BYTES + 1)
    except OSError as error:
        raise ImportRefused(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > UPLOAD_CEILING_BYTES:
        limit = UPLOAD_CEILING_BYTES // 2**20
        raise TooLarge(f"{path} is larger than {limit} MiB, the most this version reads; cut it, or leave per-request arrays out.")
    return data


def _print_json(value: Any) -> None:
    in_utf8 = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    sys.stdout.write(strict_json(value, ascii_only=not in_utf8) + "\n")
