"""The runs of a series in time order, with the settings that tell them apart and the figures that are judged: light, for they are many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Row, and_, func, or_, select
from sqlmodel import Session, col

from app.domain.comparison import LENGTH_TOLERANCE
from app.domain.counted_labels import COUNTED
from app.domain.run import Workload
from app.domain.series import Series, series_of
from app.domain.trends import LABEL
from app.store.rows import flags_from_json
from app.store.tables import MetricValueRow, RunRow, UploadRow

# What people change on purpose, and the tool that measured it.
SETTINGS = ("engine_version", "devices", "tp", "pp", "ep", "dp", "weight_dtype", "kv_dtype", "format", "dataset")
# Words of a file that say when it was written, what it is worth or what was counted meanwhile, and set nothing.
NOT_SETTINGS = frozenset({"date", "date_timezone", "verdict"}) | COUNTED
# Labels from which an importer takes a fact of the run: where both say the same, the fact is the one that is shown.
_SAID_BY_THE_RUN = {
    "engine_version": ("vllm_version", "engine_version"),
    "hardware": ("hardware", "gpu", "gpu_type", "gpu_name", "accelerator"),
    "weight_dtype": ("weight_dtype", "quantization", "dtype"),
    "kv_dtype": ("kv_cache_dtype", "kv_dtype", "cache_dtype"),
    "tp": ("tp", "tensor_parallel_size", "tp_size"),
    "pp": ("pp", "pipeline_parallel_size", "pp_size"),
    "ep": ("ep", "ep_size", "expert_parallel_size"),
    "dp": ("dp", "dp_size", "data_parallel_size"),
    "devices": ("devices", "num_gpus", "n_gpus", "gpu_count"),
}
_FACT_OF = {label: fact for fact, labels in _SAID_BY_THE_RUN.items() for label in labels}
_SERIES = (
    "project", "model_slug", "model", "hardware_slug", "hardware", "engine", "load_mode", "measured_at", "concurrency",
    "context_depth_tokens", "request_rate_per_s", "prompt_tokens_mean", "output_tokens_mean",
)  # fmt: skip
SERIES_COLUMNS = tuple(getattr(RunRow, name) for name in _SERIES)
_COLUMNS = ("id", "label", "happened_at", "requests_completed", "flags", "labels", "hardware", *SETTINGS)


class HasSeries(Protocol):
    """Anything with the columns that say which series a run belongs to: a row, an item of the list."""

    @property
    def project(self) -> str: ...
    @property
    def model_slug(self) -> str | None: ...
    @property
    def model(self) -> str | None: ...
    @property
    def hardware_slug(self) -> str | None: ...
    @property
    def hardware(self) -> str | None: ...
    @property
    def engine(self) -> str | None: ...
    @property
    def load_mode(self) -> str | None: ...
    @property
    def measured_at(self) -> str | None: ...
    @property
    def concurrency(self) -> int | None: ...
    @property
    def context_depth_tokens(self) -> int: ...
    @property
    def request_rate_per_s(self) -> float | None: ...
    @property
    def prompt_tokens_mean(self) -> float | None: ...
    @property
    def output_tokens_mean(self) -> float | None: ...


@dataclass(frozen=True)
class Figure:
    """One statistic of one metric of a run in its SI unit."""

    value: float
    definition: str
    n: int | None


@dataclass(frozen=True)
class SeriesRun:
    """A run of a series. `settings` are what may be changed on purpose, labels of the file among them as `label: …`; absent is not known.

    `figures` by (metric, statistic) hold none that a flag of the file's importer withholds.
    """

    id: int
    name: str
    happened_at: datetime
    completed: int | None
    settings: Mapping[str, str | int]
    withheld: frozenset[str]
    figures: Mapping[tuple[str, str], Figure]


def series_in(row: HasSeries) -> Series | None:
    """The series that a row's columns put it in; None while model, hardware or engine is not known."""
    workload = Workload(
        prompt_tokens_mean=row.prompt_tokens_mean,
        output_tokens_mean=row.output_tokens_mean,
        concurrency=row.concurrency,
        request_rate_per_s=row.request_rate_per_s,
        context_depth_tokens=row.context_depth_tokens,
    )
    identity = (row.model_slug or row.model, row.hardware_slug or row.hardware, row.engine)
    return series_of(row.project, identity, row.load_mode, row.measured_at, workload)


def newest(session: Session, series: Series, limit: int) -> tuple[SeriesRun, ...]:
    """The newest runs of a series, oldest of them first. Two queries."""
    order = (col(RunRow.happened_at).desc(), col(RunRow.id).desc())
    rows = session.execute(_select().where(*_conditions(series)).order_by(*order).limit(limit)).all()
    return _runs(session, rows[::-1])


def around(session: Session, series: Series, run_id: int, moment: datetime, each: int) -> tuple[SeriesRun, ...]:
    """Of a series the run with this number, which happened at `moment`, and at most `each` before it and after it, oldest first."""
    at, number = col(RunRow.happened_at), col(RunRow.id)
    earlier = or_(at < moment, and_(at == moment, number <= run_id))
    later = or_(at > moment, and_(at == moment, number > run_id))
    statement = _select().where(*_conditions(series))
    before = session.execute(statement.where(earlier).order_by(at.desc(), number.desc()).limit(each + 1)).all()
    after = session.execute(statement.where(later).order_by(at, number).limit(each)).all()
    return _runs(session, [*before[::-1], *after])


def settings_of(labels: Mapping[str, str], facts: Mapping[str, object]) -> dict[str, str]:
    """The labels that set something, under the names that tell them from facts; those that repeat a fact of the run are left out."""
    return {
        f"{LABEL}{key}": value
        for key, value in labels.items()
        if key not in NOT_SETTINGS and not (key in _FACT_OF and str(facts.get(_FACT_OF[key])) == value)
    }


def _select() -> Any:
    columns = [col(getattr(RunRow, name)) for name in _COLUMNS]
    return select(*columns, col(UploadRow.name).label("file_name")).join(UploadRow, col(UploadRow.id) == col(RunRow.upload_id))


def _runs(session: Session, rows: Sequence[Row[Any]]) -> tuple[SeriesRun, ...]:
    figures = _figures(session, [row.id for row in rows])
    return tuple(_run(row, figures.get(row.id, {})) for row in rows)


def _run(row: Row[Any], figures: Mapping[tuple[str, str], Figure]) -> SeriesRun:
    withheld = frozenset(name for flag in flags_from_json(row.flags) for name in flag.withholds)
    kept = {at: found for at, found in figures.items() if not withheld & {at[0], f"{at[0]}.{at[1]}"}}
    settings = {name: value for name in SETTINGS if (value := getattr(row, name)) is not None}
    labels = settings_of(row.labels or {}, {**settings, "hardware": row.hardware})
    name = row.label or row.file_name.rsplit("/", 1)[-1]
    return SeriesRun(row.id, name, row.happened_at, row.requests_completed, {**settings, **labels}, withheld, kept)


def _figures(session: Session, run_ids: Sequence[int]) -> dict[int, dict[tuple[str, str], Figure]]:
    table = MetricValueRow
    statement = select(col(table.run_id), col(table.key), col(table.stat), col(table.value), col(table.definition), col(table.n))
    found: dict[int, dict[tuple[str, str], Figure]] = {}
    for run_id, key, stat, value, definition, n in session.execute(statement.where(col(table.run_id).in_(run_ids))):
        found.setdefault(run_id, {})[key, stat] = Figure(value, definition, n)
    return found


def _conditions(series: Series) -> list[ColumnElement[bool]]:
    conditions = [
        col(RunRow.project) == series.project,
        _named(RunRow.model_slug, RunRow.model, series.model),
        _named(RunRow.hardware_slug, RunRow.hardware, series.hardware),
        col(RunRow.context_depth_tokens) == series.context_depth_tokens,
    ]
    for name in ("engine", "load_mode", "measured_at", "concurrency"):
        conditions.append(_same(getattr(RunRow, name), getattr(series, name)))
    for column, anchor in (
        (RunRow.request_rate_per_s, series.request_rate_per_s),
        (RunRow.prompt_tokens_mean, series.prompt_tokens),
        (RunRow.output_tokens_mean, series.output_tokens),
    ):
        conditions.append(_near(column, anchor))
    return conditions


def _same(column: Any, value: str | int | None) -> ColumnElement[bool]:
    return col(column).is_(None) if value is None else col(column) == value


def _near(column: Any, anchor: float | None) -> ColumnElement[bool]:
    if anchor is None:
        return col(column).is_(None)
    room = LENGTH_TOLERANCE * anchor
    return col(column).between(anchor - room, anchor + room)


def _named(slug: Any, words: Any, name: str) -> ColumnElement[bool]:
    return or_(col(slug) == name, and_(col(slug).is_(None), col(words) == name))


def every(session: Session, project: str | None = None) -> list[tuple[Series | None, int, int]]:
    """Of every combination of series columns that runs have: the series, its newest run, and how many runs; newest first. One query."""
    columns = [col(column) for column in SERIES_COLUMNS]
    order = (col(RunRow.happened_at).desc(), col(RunRow.id).desc())
    ranked = select(
        *columns,
        col(RunRow.id).label("id"),
        col(RunRow.happened_at).label("happened_at"),
        func.row_number().over(partition_by=columns, order_by=order).label("place"),
        func.count().over(partition_by=columns).label("runs"),
    )
    inner = (ranked if project is None else ranked.where(col(RunRow.project) == project)).subquery()
    newest_first = select(inner).where(inner.c.place == 1).order_by(inner.c.happened_at.desc(), inner.c.id.desc())
    return [(series_in(row), row.id, row.runs) for row in session.execute(newest_first)]
