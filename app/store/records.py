"""What goes into the store and what comes out: frozen, without a session behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict

from app.domain.identity import Words
from app.domain.run import Flag, Run

DEFAULT_PROJECT = "default"


@dataclass(frozen=True)
class NewRun:
    """A run about to be stored, with what the person and the catalog add to it.

    `mbu` is the share of the decode floor, `mfu` the share of the prefill peak, `prefill_share` the prefill part of a whole request
    (all fractions); None where model or hardware is unknown. `run` carries the words that count; what the file said and what a person
    said in its place stand beside it.
    """

    run: Run
    model_slug: str | None = None
    hardware_slug: str | None = None
    tags: tuple[str, ...] = ()
    notes: str = ""
    mbu: float | None = None
    mfu: float | None = None
    prefill_share: float | None = None
    said_by_file: Words | None = None
    said_by_person: Words = field(default_factory=dict)


@dataclass(frozen=True)
class NewUpload:
    """A file about to be stored: the name it came with, the format found in it, where it belongs and when it came (UTC)."""

    name: str
    format: str
    received_at: datetime
    project: str = DEFAULT_PROJECT


@dataclass(frozen=True)
class Upload:
    """A stored file. `size` is that of the original, in bytes."""

    id: int
    project: str
    name: str
    format: str
    sha256: str
    size: int
    received_at: datetime


@dataclass(frozen=True)
class StoredRun:
    """A stored run with everything known about it but its samples, which `requests` reads apart.

    `said_by_file` is None where it was not noted when the run was stored; `gone_since` as in the table.
    """

    id: int
    run: Run
    upload: Upload
    seq_in_file: int
    project: str
    model_slug: str | None
    hardware_slug: str | None
    tags: tuple[str, ...]
    notes: str
    mbu: float | None
    mfu: float | None
    prefill_share: float | None
    has_samples: bool
    said_by_file: Words | None
    said_by_person: Words
    gone_since: int | None
    happened_at: datetime
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class SavedUpload:
    """What storing a file gave. `is_new` is False when the same bytes were there already: then nothing was changed."""

    upload: Upload
    run_ids: tuple[int, ...]
    is_new: bool


class RunChanges(TypedDict, total=False):
    """What may be changed about a stored run; a key left out stays as it is, None clears it."""

    label: str | None
    notes: str
    tags: tuple[str, ...]
    engine: str | None
    engine_version: str | None
    model: str | None
    model_slug: str | None
    hardware: str | None
    hardware_slug: str | None
    devices: int | None
    tp: int | None
    pp: int | None
    ep: int | None
    dp: int | None
    weight_dtype: str | None
    kv_dtype: str | None
    said_by_person: Words
    flags: tuple[Flag, ...]
    warnings: tuple[str, ...]
    mbu: float | None
    mfu: float | None
    prefill_share: float | None


@dataclass(frozen=True)
class RunFilters:
    """Which runs a list shows; None or empty means all.

    `model` and `hardware` match the slug or the file's words, `q` holds words that must all occur in label, model, hardware, engine,
    tags or file name; case never matters except in a tag and a project. `since` is inclusive, `until` exclusive, of the time the
    run was measured (received, where the file does not say). `read_before` holds for each format the version of its importer that a
    run must be older than.
    """

    project: str | None = None
    model: str | None = None
    hardware: str | None = None
    engine: str | None = None
    format: str | None = None
    tag: str | None = None
    q: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    read_before: Mapping[str, int] | None = None


@dataclass(frozen=True)
class RunListItem:
    """One row of a list of runs: the scalars a table shows, without metrics or samples."""

    id: int
    project: str
    label: str | None
    file_name: str
    format: str
    engine: str | None
    engine_version: str | None
    model: str | None
    model_slug: str | None
    hardware: str | None
    hardware_slug: str | None
    devices: int | None
    tp: int | None
    weight_dtype: str | None
    load_mode: str | None
    measured_at: str | None
    prompt_tokens_mean: float | None
    output_tokens_mean: float | None
    concurrency: int | None
    request_rate_per_s: float | None
    rate_unlimited: bool
    context_depth_tokens: int
    requests_completed: int | None
    requests_failed: int | None
    ttft_p50_s: float | None
    ttft_mean_s: float | None
    prefill_mean_s: float | None
    itl_mean_s: float | None
    tpot_mean_s: float | None
    e2e_mean_s: float | None
    output_tokens_per_s: float | None
    mbu: float | None
    mfu: float | None
    prefill_share: float | None
    flags: tuple[str, ...]
    started_at: datetime | None
    happened_at: datetime
    created_at: datetime
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunPage:
    """A page of a list; `next` is the cursor of the page after it, None at the end."""

    items: tuple[RunListItem, ...]
    next: str | None


@dataclass(frozen=True)
class RunFacets:
    """The values that runs have, each with how many runs have it: what a filter may offer, most frequent first."""

    projects: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, int] = field(default_factory=dict)
    hardware: Mapping[str, int] = field(default_factory=dict)
    engines: Mapping[str, int] = field(default_factory=dict)
    formats: Mapping[str, int] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RequestRecord:
    """One request of a run, in sent order; times in seconds, None where not known."""

    index: int
    ok: bool
    prompt_tokens: float | None
    output_tokens: float | None
    ttft_s: float | None
    e2e_s: float | None
    start_s: float | None
    queue_s: float | None
    chunk_gaps: int | None
    error: str | None


@dataclass(frozen=True)
class RequestPage:
    """A page of requests; `next` is the index the page after it starts at, None at the end; `total` counts all of the run's."""

    items: tuple[RequestRecord, ...]
    total: int
    next: int | None
