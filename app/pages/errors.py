"""The page of an error: what is wrong and what to do, in the shell, never a trace."""

from fastapi import Request
from fastapi.responses import Response

from app.pages.rendering import render
from app.services.problems import Problem


def error_page(request: Request, problem: Problem) -> Response:
    """The error as a page, with its status."""
    return render(request, "pages/error.html", {"problem": problem}, block="main", status=problem.status)
