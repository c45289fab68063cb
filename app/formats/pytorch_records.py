"""The form of the PyTorch benchmark database, in which vLLM's benches write a second file (`*.pytorch.json`).

A list of records, one a metric: `benchmark.extra_info.args` are the arguments of the command, `model.name` the model, `metric.name` and
`metric.benchmark_values` the figures, `metric.extra_info` the rest of the bench's own report. Unlike that report it says what was asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.text import clean_text
from app.formats.document import Document, Entry


@dataclass(frozen=True)
class BenchReport:
    """The records of one command brought together: its arguments, its model, and its report under the bench's own names."""

    where: str
    arguments: Mapping[str, object]
    model: str | None
    values: Mapping[str, object]


def metric_names(document: Document) -> frozenset[str] | None:
    """The metrics of the records in the file, None when not every object is such a record."""
    names = [_metric(entry).get("name") for entry in document.entries]
    known = [clean_text(name, 40) for name in names if isinstance(name, str)]
    return frozenset(known) if document.entries and len(known) == len(names) else None


def bench_reports(document: Document) -> list[BenchReport]:
    """One report for each run of records with the same arguments and model, in file order."""
    reports: list[BenchReport] = []
    for entry in document.entries:
        benchmark, model, metric = (_object(entry.values.get(key)) for key in ("benchmark", "model", "metric"))
        arguments = _object(_object(benchmark.get("extra_info")).get("args"))
        name = model.get("name")
        figures = {**_object(metric.get("extra_info")), str(metric.get("name")): metric.get("benchmark_values")}
        report = BenchReport(entry.where, arguments, (clean_text(name) or None) if isinstance(name, str) else None, figures)
        last = reports[-1] if reports else None
        if last is not None and last.arguments == report.arguments and last.model == report.model and not _told_anew(last, figures):
            reports[-1] = BenchReport(last.where, arguments, last.model, {**last.values, **figures})
        else:
            reports.append(report)
    return reports


def _told_anew(last: BenchReport, figures: Mapping[str, object]) -> bool:
    """Whether a metric comes again with other figures: then the same command ran again."""
    return any(key in last.values and last.values[key] != value for key, value in figures.items())


def _metric(entry: Entry) -> Mapping[str, object]:
    if not all(isinstance(entry.values.get(key), dict) for key in ("benchmark", "model", "metric")):
        return {}
    metric = _object(entry.values["metric"])
    return metric if isinstance(metric.get("benchmark_values"), list) else {}


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
