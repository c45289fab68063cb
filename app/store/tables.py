"""What the database holds. Times are UTC, seconds are seconds, NULL is "not known"; states are plain strings.

Importing this module makes `metadata` whole: the tables of the jobs are its neighbours.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, LargeBinary, UniqueConstraint
from sqlmodel import Field

from app.store import job_tables as job_tables
from app.store import webhook_tables as webhook_tables
from app.store.table_base import ROW_ID, Table
from app.store.table_base import metadata as metadata
from app.store.types import CleanText, FiniteDouble, FiniteJson, Name


class ProfileTable(Table):
    """A named set of facts: `data` is the domain dataclass as plain JSON, `source` what it was made from where that is kept.

    `origin` is `catalog` (shipped, read-only) or `user`.
    """

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    slug: str = Field(sa_type=Name, unique=True)
    name: str = Field(sa_type=CleanText)
    origin: str = Field(sa_type=Name)
    aliases: list[str] = Field(default_factory=list, sa_type=FiniteJson)
    data: dict[str, Any] = Field(sa_type=FiniteJson)
    source: dict[str, Any] | None = Field(default=None, sa_type=FiniteJson)
    notes: str = Field(default="", sa_type=CleanText)
    created_at: datetime
    updated_at: datetime


class HardwareProfileRow(ProfileTable, table=True):
    """One device."""

    __tablename__ = "hardware_profile"


class ModelProfileRow(ProfileTable, table=True):
    """One model's architecture."""

    __tablename__ = "model_profile"


class EngineProfileRow(ProfileTable, table=True):
    """One serving engine."""

    __tablename__ = "engine_profile"


class CalibrationRow(Table, table=True):
    """Scalars fitted to stored runs of one device, engine (NULL: none with a profile) and weight format; `data` is the domain's Fit."""

    __tablename__ = "calibration"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    hardware_slug: str = Field(sa_type=Name, index=True)
    engine_slug: str | None = Field(default=None, sa_type=Name)
    weight_dtype: str = Field(sa_type=Name)
    model_version: str = Field(sa_type=Name)
    data: dict[str, Any] = Field(sa_type=FiniteJson)
    created_at: datetime


class UploadRow(Table, table=True):
    """One file as it came, named by its content within a project. Its bytes are in `upload_chunk`.

    `deleted_runs` remembers which of its runs a person deleted, so that reading it again does not bring them back.
    """

    __tablename__ = "upload"
    # The same bytes twice in a project are one upload, whoever is faster.
    __table_args__ = (UniqueConstraint("project", "sha256"), {"sqlite_autoincrement": True})

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    project: str = Field(sa_type=Name)
    sha256: str = Field(sa_type=Name)
    name: str = Field(sa_type=CleanText)
    size: int = Field(sa_type=BigInteger)
    format: str = Field(sa_type=Name)
    chunk_count: int
    received_at: datetime
    deleted_runs: list[Any] | None = Field(default=None, sa_type=FiniteJson)


class UploadChunkRow(Table, table=True):
    """One MiB of the original, compressed; `position` counts from 0."""

    __tablename__ = "upload_chunk"

    upload_id: int = Field(primary_key=True, sa_type=BigInteger, foreign_key="upload.id", ondelete="CASCADE")
    position: int = Field(primary_key=True)
    data: bytes = Field(sa_type=LargeBinary)


class RunRow(Table, table=True):
    """One operating point: the scalars of a Run, and the columns that lists sort by (`ttft_p50_s` … `prefill_share`).

    `happened_at` is when it was measured, or received where the file does not say; `search` is the folded text that a search looks into.
    The columns of the identity (`model` … `kv_dtype`, `label`) hold the words that count; `said_by_file` is what the file says and
    `said_by_person` what a person said in its place, each by key. `said_by_file` is NULL where nobody noted it: in a run that was stored
    before the two were kept apart. `gone_since` is the importer's version that no longer finds this run in its file.
    """

    __tablename__ = "run"
    # An address like /runs/17 must never come to mean another run, so ids are not used again.
    # The three indexes that start with project and end in words answer what a filter may offer without reading a row.
    __table_args__ = (
        Index(None, "happened_at"),
        Index(None, "project", "happened_at"),
        Index(None, "project", "model_slug", "model"),
        Index(None, "project", "hardware_slug", "hardware"),
        Index(None, "project", "engine", "format"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    upload_id: int = Field(sa_type=BigInteger, foreign_key="upload.id", ondelete="CASCADE", index=True)
    seq_in_file: int
    project: str = Field(sa_type=Name)
    label: str | None = Field(default=None, sa_type=CleanText)
    notes: str = Field(default="", sa_type=CleanText)
    format: str = Field(sa_type=Name)
    importer_version: int = Field(sa_type=BigInteger)
    engine: str | None = Field(default=None, sa_type=Name)
    engine_version: str | None = Field(default=None, sa_type=CleanText)
    model: str | None = Field(default=None, sa_type=Name)
    model_slug: str | None = Field(default=None, sa_type=Name)
    hardware: str | None = Field(default=None, sa_type=Name)
    hardware_slug: str | None = Field(default=None, sa_type=Name)
    devices: int | None = Field(default=None, sa_type=BigInteger)
    tp: int | None = Field(default=None, sa_type=BigInteger)
    pp: int | None = Field(default=None, sa_type=BigInteger)
    ep: int | None = Field(default=None, sa_type=BigInteger)
    dp: int | None = Field(default=None, sa_type=BigInteger)
    weight_dtype: str | None = Field(default=None, sa_type=CleanText)
    kv_dtype: str | None = Field(default=None, sa_type=CleanText)
    started_at: datetime | None = None
    duration_s: float | None = Field(default=None, sa_type=FiniteDouble)
    load_mode: str | None = Field(default=None, sa_type=CleanText)
    measured_at: str | None = Field(default=None, sa_type=CleanText)
    token_count_source: str | None = Field(default=None, sa_type=CleanText)
    prompt_tokens_mean: float | None = Field(default=None, sa_type=FiniteDouble)
    output_tokens_mean: float | None = Field(default=None, sa_type=FiniteDouble)
    prompt_tokens_total: int | None = Field(default=None, sa_type=BigInteger)
    output_tokens_total: int | None = Field(default=None, sa_type=BigInteger)
    concurrency: int | None = Field(default=None, sa_type=BigInteger)
    request_rate_per_s: float | None = Field(default=None, sa_type=FiniteDouble)
    rate_unlimited: bool = False
    context_depth_tokens: int = Field(default=0, sa_type=BigInteger)
    dataset: str | None = Field(default=None, sa_type=CleanText)
    shortest_length: float | None = Field(default=None, sa_type=FiniteDouble)
    requests_sent: int | None = Field(default=None, sa_type=BigInteger)
    requests_completed: int | None = Field(default=None, sa_type=BigInteger)
    requests_failed: int | None = Field(default=None, sa_type=BigInteger)
    flags: list[Any] = Field(default_factory=list, sa_type=FiniteJson)
    labels: dict[str, Any] = Field(default_factory=dict, sa_type=FiniteJson)
    warnings: list[Any] = Field(default_factory=list, sa_type=FiniteJson)
    ttft_p50_s: float | None = Field(default=None, sa_type=FiniteDouble)
    ttft_mean_s: float | None = Field(default=None, sa_type=FiniteDouble)
    prefill_mean_s: float | None = Field(default=None, sa_type=FiniteDouble)
    itl_mean_s: float | None = Field(default=None, sa_type=FiniteDouble)
    tpot_mean_s: float | None = Field(default=None, sa_type=FiniteDouble)
    e2e_mean_s: float | None = Field(default=None, sa_type=FiniteDouble)
    output_tokens_per_s: float | None = Field(default=None, sa_type=FiniteDouble)
    mbu: float | None = Field(default=None, sa_type=FiniteDouble)
    mfu: float | None = Field(default=None, sa_type=FiniteDouble)
    prefill_share: float | None = Field(default=None, sa_type=FiniteDouble)
    said_by_file: dict[str, Any] | None = Field(default=None, sa_type=FiniteJson)
    said_by_person: dict[str, Any] | None = Field(default=None, sa_type=FiniteJson)
    gone_since: int | None = Field(default=None, sa_type=BigInteger)
    search: str = Field(default="", sa_type=CleanText)
    happened_at: datetime
    created_at: datetime
    updated_at: datetime


class BaselineRow(Table, table=True):
    """A run that the others of its series are set against. One run is one baseline at most; it goes with its run."""

    __tablename__ = "baseline"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    run_id: int = Field(sa_type=BigInteger, foreign_key="run.id", ondelete="CASCADE", unique=True)
    name: str = Field(sa_type=Name)
    notes: str = Field(default="", sa_type=CleanText)
    created_at: datetime
    updated_at: datetime


class RunAnnotationRow(Table, table=True):
    """What a person says happened when a run was measured; it stands on the trends of its series and goes with the run."""

    __tablename__ = "run_annotation"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    run_id: int = Field(sa_type=BigInteger, foreign_key="run.id", ondelete="CASCADE", index=True)
    text: str = Field(sa_type=CleanText)
    created_at: datetime


class RunTagRow(Table, table=True):
    """One tag of one run; `project` is the run's, so that the tags of a project are counted without reading its runs."""

    __tablename__ = "run_tag"
    __table_args__ = (Index(None, "project", "tag"),)

    run_id: int = Field(primary_key=True, sa_type=BigInteger, foreign_key="run.id", ondelete="CASCADE")
    tag: str = Field(primary_key=True, sa_type=Name, index=True)
    project: str = Field(sa_type=Name)


class RunReadingRow(Table, table=True):
    """That a run was read again from its file: when, by which versions of the importer, and what changed."""

    __tablename__ = "run_reading"

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    run_id: int = Field(sa_type=BigInteger, foreign_key="run.id", ondelete="CASCADE", index=True)
    read_at: datetime
    from_version: int = Field(sa_type=BigInteger)
    to_version: int = Field(sa_type=BigInteger)
    changes: list[Any] = Field(default_factory=list, sa_type=FiniteJson)


class MetricValueRow(Table, table=True):
    """One statistic of one metric: `stat` is a statistic's name, `value` for a rate, or `n` where only the count is known."""

    __tablename__ = "metric_value"

    run_id: int = Field(primary_key=True, sa_type=BigInteger, foreign_key="run.id", ondelete="CASCADE")
    key: str = Field(primary_key=True, sa_type=Name)
    stat: str = Field(primary_key=True, sa_type=Name)
    value: float = Field(sa_type=FiniteDouble)
    scope: str | None = Field(default=None, sa_type=Name)
    origin: str = Field(sa_type=Name)
    definition: str = Field(sa_type=Name)
    n: int | None = Field(default=None, sa_type=BigInteger)


class RunTelemetryRow(Table, table=True):
    """What a device did while a run lasted: {"t_s": [...], "channels": {key: [...]}}, thinned by the importer."""

    __tablename__ = "run_telemetry"

    run_id: int = Field(primary_key=True, sa_type=BigInteger, foreign_key="run.id", ondelete="CASCADE")
    series: dict[str, Any] = Field(sa_type=FiniteJson)


class RequestSamplesRow(Table, table=True):
    """That a run has per-request samples: how many requests, how many gaps between chunks, and the texts of its errors."""

    __tablename__ = "request_samples"

    run_id: int = Field(primary_key=True, sa_type=BigInteger, foreign_key="run.id", ondelete="CASCADE")
    size: int = Field(sa_type=BigInteger)
    gap_count: int = Field(sa_type=BigInteger)
    errors: bytes = Field(sa_type=LargeBinary)


class SampleChunkRow(Table, table=True):
    """A stretch of one column of samples, encoded by `samples.encode`; `position` counts stretches from 0."""

    __tablename__ = "sample_chunk"

    run_id: int = Field(primary_key=True, sa_type=BigInteger, foreign_key="request_samples.run_id", ondelete="CASCADE")
    name: str = Field(primary_key=True, sa_type=Name)
    position: int = Field(primary_key=True)
    data: bytes = Field(sa_type=LargeBinary)


class SampleHistogramRow(Table, table=True):
    """The histogram of one metric over the requests that succeeded, as `histogram.Histogram` writes it."""

    __tablename__ = "sample_histogram"

    run_id: int = Field(primary_key=True, sa_type=BigInteger, foreign_key="request_samples.run_id", ondelete="CASCADE")
    key: str = Field(primary_key=True, sa_type=Name)
    data: bytes = Field(sa_type=LargeBinary)
