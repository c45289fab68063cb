"""`phaseline parse`, `import` and `reimport`: result files, read, stored and read again."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from app.catalog import load
from app.client import Client
from app.commands.common import Files, Json, contents, print_json, print_report, ready_context, to_store
from app.domain.errors import ImportRefused, InvalidRequest
from app.formats import joined
from app.services import runs as stored_runs
from app.services.context import Context
from app.services.importing import ImportOutcome
from app.services.plain_text import reading_lines, run_line
from app.services.profiles import catalog_book
from app.services.reading import read_files
from app.services.refusals import refusal_json
from app.services.rereading import reread_files
from app.services.sample_runs import SampleRuns, load_samples
from app.services.samples import sample_files
from app.services.storing import store_files


def parse(files: Files, as_json: Json = False) -> None:
    """Read result files and store nothing."""
    report = read_files(catalog_book(load()), contents(files))
    if as_json:
        print_json(report)
    else:
        for run in report["runs"]:
            print(f"{run['file']}: {run_line(run)}")
        for refusal in report["refused"]:
            print(f"{refusal['file']}: refused: {refusal['reason']}", file=sys.stderr)
    if report["refused"]:
        raise typer.Exit(2)


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
    context = ready_context()
    now = datetime.now(UTC)
    outcome = store_files(context, to_store(files or []), values, now)
    loaded = load_samples(context, now) if samples else None
    _report_import(context, outcome, loaded, as_json)
    if outcome.refused:
        raise typer.Exit(2)


def _to_send(files: Sequence[Path], values: Mapping[str, Any], samples: bool) -> list[tuple[str, bytes, dict[str, str]]]:
    """Name, bytes and fields of each file that goes to a server."""
    fields = {key: str(value) for key, value in values.items() if value is not None}
    sending = [(name, data, fields) for name, data in joined(to_store(files))]
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
        print_json(report)
    else:
        print_report([f"run {run['id']}: {run_line(dict(run))}" for run in report["runs"]], report["warnings"], report["refused"])
    if report["refused"]:
        raise typer.Exit(2)


def _report_import(context: Context, outcome: ImportOutcome, loaded: SampleRuns | None, as_json: bool) -> None:
    views = stored_runs.views(context, [*outcome.run_ids, *(loaded.run_ids if loaded else ())])
    refused = [refusal_json(item.file, item.reason, item.tried, item.flag) for item in outcome.refused]
    if as_json:
        print_json({"runs": [view.summary() for view in views], "refused": refused, "warnings": list(outcome.warnings)})
        return
    lines = [f"run {view.id}: {view.title}" for view in views]
    if loaded is not None:
        lines.append(f"compare the samples: phaseline compare {loaded.base} {loaded.other}")
    print_report(lines, outcome.warnings, refused)


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
    context = ready_context()
    report = reread_files(context, runs or None, datetime.now(UTC), dry_run=dry_run, remove_gone=remove_gone)
    if as_json:
        print_json(report)
    else:
        print_report(reading_lines(report), [], report["refused"])
    if report["refused"]:
        raise typer.Exit(2)
