"""What routes ask for, declared once."""

from typing import Annotated, Literal

from fastapi import Depends, Path, Query, Request
from pydantic import Field

from app.services.context import Context


def get_context(request: Request) -> Context:
    """The context that create_app made for this process."""
    context: Context = request.app.state.context
    return context


ContextDep = Annotated[Context, Depends(get_context)]
Id = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of a stored run")]
Number = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of what is asked for")]
RunId = Annotated[int, Query(ge=1, le=2**63 - 1, description="Number of a stored run")]
BaseRun = Annotated[
    Annotated[int, Field(ge=1, le=2**63 - 1)] | Literal["baseline"],
    Query(description="Number of a stored run, or `baseline`: the one of the other run's series"),
]
Slug = Annotated[str, Path(min_length=1, max_length=100, description="Slug of a profile")]
Limit = Annotated[int, Query(ge=1, le=500, description="Items on one page")]
