"""Lists of runs: filtered, sorted, searched, a page at a time, in a constant number of queries.

A page is found by the sort value and the id of the last row of the page before (a cursor), not by counting rows from the start:
it costs the same at any depth, and runs that arrive meanwhile move nothing. Rows without a value come last in either direction.
"""

import base64
import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlmodel import Session, col

from app.domain.errors import InvalidRequest
from app.store.readings import older
from app.store.records import RunFacets, RunFilters, RunListItem, RunPage
from app.store.rows import fold
from app.store.runs import tags_of
from app.store.tables import RunRow, RunTagRow, UploadRow
from app.store.types import MAX_INT64, storable_text

MAX_PAGE = 500
DEFAULT_SORT = "-happened_at"
_MAX_QUERY_LENGTH = 200
_MAX_WORDS = 12
_TEXT_SORTS = ("label", "format", "engine", "model", "hardware", "project", "weight_dtype", "load_mode")
_TIME_SORTS = ("happened_at", "created_at", "started_at")
_NUMBER_SORTS = (
    "id", "devices", "tp", "duration_s", "concurrency", "request_rate_per_s", "prompt_tokens_mean", "output_tokens_mean",
    "requests_completed", "requests_failed", "ttft_p50_s", "ttft_mean_s", "prefill_mean_s", "itl_mean_s", "tpot_mean_s", "e2e_mean_s",
    "output_tokens_per_s", "mbu", "mfu", "prefill_share",
)  # fmt: skip
SORT_KEYS = (*_TIME_SORTS, *_TEXT_SORTS, *_NUMBER_SORTS)
_ITEM_COLUMNS = tuple(name for name in RunListItem.__dataclass_fields__ if name not in ("file_name", "flags", "tags"))


def page(
    session: Session,
    filters: RunFilters | None = None,
    *,
    sort: str = DEFAULT_SORT,
    cursor: str | None = None,
    limit: int = 50,
) -> RunPage:
    """One page of runs in two queries. `sort` is one of SORT_KEYS, with a leading minus for descending; `limit` is at most MAX_PAGE.

    Raises InvalidRequest for a sort key, cursor or search that cannot be answered.
    """
    key, descending = _sort_key(sort)
    expression = _sort_expression(key)
    limit = min(max(limit, 1), MAX_PAGE)
    columns = [getattr(RunRow, name) for name in _ITEM_COLUMNS]
    statement = select(expression, col(UploadRow.name), col(RunRow.flags), *columns)
    statement = statement.join(UploadRow, col(UploadRow.id) == col(RunRow.upload_id)).where(*_conditions(filters or RunFilters()))
    if cursor is not None:
        statement = statement.where(_after(expression, descending, *_read_cursor(cursor, sort)))
    rows = session.execute(_ordered(statement, expression, descending).limit(limit + 1)).all()
    shown = rows[:limit]
    position = _ITEM_COLUMNS.index("id") + 3
    tags = tags_of(session, [row[position] for row in shown]) if shown else {}
    items = tuple(_item(row, tags.get(row[position], ())) for row in shown)
    following = _write_cursor(sort, shown[-1][0], items[-1].id) if len(rows) > limit else None
    return RunPage(items, following)


def count(session: Session, filters: RunFilters | None = None) -> int:
    """How many runs pass the filters; one query."""
    statement = select(func.count()).select_from(RunRow).where(*_conditions(filters or RunFilters()))
    return int(session.execute(statement).scalar_one())


def ids(session: Session, filters: RunFilters | None = None) -> tuple[int, ...]:
    """The ids of all runs that pass the filters, ascending: for going through them all."""
    statement = select(col(RunRow.id)).where(*_conditions(filters or RunFilters())).order_by(col(RunRow.id))
    return tuple(int(run_id) for run_id in session.execute(statement).scalars() if run_id)


def facets(session: Session, project: str | None = None) -> RunFacets:
    """What a filter may offer in a project (in all when None), in four queries that read indexes alone.

    A model or device goes by its slug, by the file's words where it has none.
    """
    models = _counted(session, project, RunRow.model_slug, RunRow.model)
    hardware = _counted(session, project, RunRow.hardware_slug, RunRow.hardware)
    served = _counted(session, project, RunRow.engine, RunRow.format)
    tags = select(col(RunTagRow.tag), func.count()).group_by(col(RunTagRow.tag))
    if project is not None:
        tags = tags.where(col(RunTagRow.project) == project)
    return RunFacets(
        projects=_tally((name, number) for name, _, _, number in models),
        models=_tally((slug or words, number) for _, slug, words, number in models),
        hardware=_tally((slug or words, number) for _, slug, words, number in hardware),
        engines=_tally((engine, number) for _, engine, _, number in served),
        formats=_tally((name, number) for _, _, name, number in served),
        tags=_tally((tag, number) for tag, number in session.execute(tags)),
    )


def _counted(session: Session, project: str | None, first: Any, second: Any) -> list[tuple[str, str | None, str | None, int]]:
    """How many runs have each pair of values in each project. The columns and their order are those of an index."""
    keys = (col(RunRow.project), col(first), col(second))
    statement = select(*keys, func.count()).where(*_conditions(RunFilters(project=project))).group_by(*keys)
    return [(name, one, other, int(number)) for name, one, other, number in session.execute(statement)]


def _tally(pairs: Iterable[tuple[str | None, int]]) -> dict[str, int]:
    """The sum for each value, most frequent first; nothing for a run without the value."""
    counts: dict[str, int] = {}
    for value, number in pairs:
        if value:
            counts[value] = counts.get(value, 0) + number
    return _most_frequent(counts)


def _most_frequent(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _item(row: Sequence[Any], tags: tuple[str, ...]) -> RunListItem:
    _, file_name, flags, *values = row
    named = dict(zip(_ITEM_COLUMNS, values, strict=True))
    return RunListItem(**named, file_name=file_name, flags=tuple(flag["flag"] for flag in flags), tags=tags)


def _sort_key(sort: str) -> tuple[str, bool]:
    key = sort.removeprefix("-")
    if key not in SORT_KEYS:
        raise InvalidRequest(
            "sort", f"Runs cannot be sorted by “{key}”: use one of {', '.join(SORT_KEYS)}, with a leading minus for descending."
        )
    return key, sort.startswith("-")


def _sort_expression(key: str) -> ColumnElement[Any]:
    column: ColumnElement[Any] = getattr(RunRow, key)
    return func.lower(column) if key in _TEXT_SORTS else column


def _ordered(statement: Select[*tuple[Any, ...]], expression: ColumnElement[Any], descending: bool) -> Select[*tuple[Any, ...]]:
    if descending:
        return statement.order_by(expression.desc().nulls_last(), col(RunRow.id).desc())
    return statement.order_by(expression.asc().nulls_last(), col(RunRow.id).asc())


def _after(expression: ColumnElement[Any], descending: bool, value: Any, last_id: int) -> ColumnElement[bool]:
    """True for the rows that come after (value, last_id) in the order of `_ordered`."""
    later_id = col(RunRow.id) < last_id if descending else col(RunRow.id) > last_id
    if value is None:
        return and_(expression.is_(None), later_id)
    beyond = expression < value if descending else expression > value
    return or_(beyond, and_(expression == value, later_id), expression.is_(None))


def _conditions(filters: RunFilters) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.project:
        conditions.append(col(RunRow.project) == filters.project)
    if filters.format:
        conditions.append(col(RunRow.format) == filters.format.lower())
    if filters.engine:
        conditions.append(func.lower(col(RunRow.engine)) == storable_text(filters.engine).lower())
    if filters.model:
        conditions.append(_either(RunRow.model_slug, RunRow.model, filters.model))
    if filters.hardware:
        conditions.append(_either(RunRow.hardware_slug, RunRow.hardware, filters.hardware))
    if filters.tag:
        tagged = select(col(RunTagRow.run_id)).where(col(RunTagRow.tag) == storable_text(filters.tag).strip())
        conditions.append(col(RunRow.id).in_(tagged))
    if filters.since:
        conditions.append(col(RunRow.happened_at) >= filters.since)
    if filters.until:
        conditions.append(col(RunRow.happened_at) < filters.until)
    if filters.read_before is not None:
        conditions.append(older(filters.read_before))
    return conditions + [col(RunRow.search).contains(word, autoescape=True) for word in _words(filters.q or "")]


def _either(slug: Any, words: Any, wanted: str) -> ColumnElement[bool]:
    lowered = storable_text(wanted).lower()
    return or_(col(slug) == lowered, func.lower(col(words)) == lowered)


def _words(query: str) -> list[str]:
    words = fold(query).split()
    if len(query) > _MAX_QUERY_LENGTH or len(words) > _MAX_WORDS:
        raise InvalidRequest("q", f"A search holds at most {_MAX_WORDS} words and {_MAX_QUERY_LENGTH} characters; leave some out.")
    return words


def _write_cursor(sort: str, value: Any, run_id: int) -> str:
    plain = value.isoformat() if isinstance(value, datetime) else value
    return base64.urlsafe_b64encode(json.dumps([sort, plain, run_id]).encode()).decode().rstrip("=")


def _read_cursor(cursor: str, sort: str) -> tuple[Any, int]:
    """The sort value and id a cursor holds. Raises InvalidRequest for one that is damaged or belongs to another order."""
    try:
        made_for, value, run_id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if made_for != sort or not isinstance(run_id, int) or not 1 <= run_id <= MAX_INT64:
            raise ValueError
        return _sort_value(sort.removeprefix("-"), value), run_id
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidRequest("cursor", "The cursor does not belong to this list: start again without it.") from error


def _sort_value(key: str, value: Any) -> Any:
    """The value as its column compares it. Raises ValueError or TypeError when it cannot be one."""
    if value is None:
        return None
    if key in _TIME_SORTS:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
        return moment.astimezone(UTC)
    if key in _TEXT_SORTS:
        if not isinstance(value, str):
            raise TypeError
        return storable_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    if not math.isfinite(value) or (isinstance(value, int) and abs(value) > MAX_INT64):
        raise ValueError
    return value
