"""What routes ask for, declared once."""

from typing import Annotated, Literal

from fastapi import Depends, Path, Query, Request
from pydantic import Field

from app.services.comparing import SIDE_PATTERN
from app.services.context import Context


def get_context(request: Request) -> Context:
    """The context that create_app made for this process."""
    context: Context = request.app.state.context
    return context


ContextDep = Annotated[Context, Depends(get_context)]
Id = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of a stored run")]
Number = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of what is asked for")]
_SIDE = "Number of a stored run, or those of repeats of one measurement joined by commas: 12,15,18"
SideIds = Annotated[str, Query(pattern=SIDE_PATTERN, description=_SIDE, examples=["12", "12,15,18"])]
BaseIds = Annotated[
    Annotated[str, Field(pattern=SIDE_PATTERN)] | Literal["baseline"],
    Query(description=f"{_SIDE}; or `baseline`: the run that is the one of the other's series", examples=["12", "12,15,18"]),
]
OtherIds = Annotated[list[SideIds], Query(min_length=1, max_length=7, description=_SIDE)]
Slug = Annotated[str, Path(min_length=1, max_length=100, description="Slug of a profile")]
Limit = Annotated[int, Query(ge=1, le=500, description="Items on one page")]
