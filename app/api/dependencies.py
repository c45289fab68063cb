"""What routes ask for, declared once."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from app.services.context import Context


def get_context(request: Request) -> Context:
    """The context that create_app made for this process."""
    context: Context = request.app.state.context
    return context


ContextDep = Annotated[Context, Depends(get_context)]
Id = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of a stored run")]
Number = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of a calibration")]
Slug = Annotated[str, Path(min_length=1, max_length=100, description="Slug of a profile")]
Limit = Annotated[int, Query(ge=1, le=500, description="Items on one page")]
