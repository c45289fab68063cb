"""Runs whose measured figures are those of another upload: most likely the same run, exported again or in another output of its tool."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, case, func, or_, select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from app.store.tables import RunRow
from app.store.types import is_id

_MEASURED = ("ttft_mean_s", "prefill_mean_s", "itl_mean_s", "e2e_mean_s")
_ALIKE = (*_MEASURED, "duration_s", "requests_completed", "prompt_tokens_mean", "output_tokens_mean")
# Two measured means that agree in six digits do not do so by chance.
_FEWEST_MEASURED = 2
_SAME = 1e-6


def twins_of(session: Session, run_ids: Sequence[int]) -> dict[int, int]:
    """For each of these runs that has one: the oldest run of the same project, from another file, with the same figures. One query.

    What one of the two files does not state is no difference; two measured means must be stated by both.
    """
    wanted = [run_id for run_id in run_ids if is_id(run_id)]
    if not wanted:
        return {}
    mine, other = aliased(RunRow), aliased(RunRow)
    alike = [_alike(getattr(mine, name), getattr(other, name)) for name in _ALIKE]
    both = [case((and_(getattr(mine, name).is_not(None), getattr(other, name).is_not(None)), 1), else_=0) for name in _MEASURED]
    statement = (
        select(col(mine.id), func.min(col(other.id)))
        .join(other, and_(col(other.project) == col(mine.project), col(other.upload_id) < col(mine.upload_id)))
        .where(col(mine.id).in_(wanted), *alike, sum(both[1:], both[0]) >= _FEWEST_MEASURED)
        .group_by(col(mine.id))
    )
    return {int(run_id): int(twin) for run_id, twin in session.execute(statement)}


def _alike(mine: ColumnElement[float | None], other: ColumnElement[float | None]) -> ColumnElement[bool]:
    near = other.between(mine * (1 - _SAME), mine * (1 + _SAME))
    return or_(mine.is_(None), other.is_(None), near)
