"""How a page is drawn: one template gives the whole page and, for htmx, the block of it that changed."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2_fragments import render_block

from app import __version__
from app.charts import svg
from app.domain import quantity
from app.paths import STATIC, TEMPLATES
from app.services.context import Context

_MACRO_FILES = {"ui": "ui", "fields": "predict_form", "bars": "bars", "runs_table": "runs_table"}
NAV = (
    ("/predict", "Predict"),
    ("/runs", "Runs"),
    ("/compare", "Compare"),
    ("/trends", "Trends"),
    ("/hardware", "Hardware"),
    ("/models", "Models"),
    ("/jobs", "Jobs"),
    ("/learn", "Learn"),
    ("/glossary", "Glossary"),
)


def make_environment(templates: Path = TEMPLATES) -> Environment:
    """Jinja with autoescape on for every suffix, undefined names as errors, and the house's number formats as filters."""
    environment = Environment(
        loader=FileSystemLoader(templates), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update({name.rstrip("_"): getattr(quantity, name) for name in quantity.FILTERS})
    environment.filters.update(pairs=pairs, grouped=grouped, value_part=value_part, unit_part=unit_part)
    environment.globals.update(version=__version__, nav=NAV, asset=asset, svg=svg)
    return environment


def pairs(values: Iterable[str]) -> list[tuple[str, str]]:
    """Values that are their own names, as the choices of a field."""
    return [(value, value) for value in values]


def grouped(text: str) -> str:
    """A whole number with commas between thousands; any other text as it is."""
    return f"{int(text):,}" if text.isascii() and text.isdigit() else text


def value_part(text: str) -> str:
    """The number of a quantity in words, without its unit."""
    return text.replace(quantity.NBSP, " ").split(" ")[0] if text != quantity.NOT_KNOWN else text


def unit_part(text: str) -> str:
    """The unit of a quantity in words."""
    return text.replace(quantity.NBSP, " ").partition(" ")[2] if text != quantity.NOT_KNOWN else ""


def asset(path: str) -> str:
    """The address of a static file below /static, with its time of change so that a new version is fetched at once."""
    return f"static/{path}?v={int((STATIC / path).stat().st_mtime)}"


ENVIRONMENT = make_environment()


@lru_cache(maxsize=8)
def macros(root: str) -> Mapping[str, Any]:
    """The macro files by name, for every template and every block of it; `root` is the path prefix that their links carry."""
    return {name: ENVIRONMENT.get_template(f"parts/{file}.html").make_module({"root": root}) for name, file in _MACRO_FILES.items()}


def wants_fragment(request: Request) -> bool:
    """True when htmx asks for a part of a page. Back and reload ask for the whole page and get it."""
    return request.headers.get("HX-Request-Type") == "partial"


def render(
    request: Request,
    template: str,
    values: Mapping[str, Any],
    *,
    block: str | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The page `template`, or only its `block` when htmx asked for a part."""
    root = request.scope.get("root_path", "")
    context = {
        "root": root,
        "base_url": str(request.base_url).rstrip("/"),
        "path": request.url.path.removeprefix(root) or "/",
        "query": request.url.query,
        **macros(root),
        **values,
    }
    if block is not None and wants_fragment(request):
        text = render_block(ENVIRONMENT, template, block, context)
    else:
        text = ENVIRONMENT.get_template(template).render(context)
    # A page and its fragment share one address: a cache must keep them apart.
    return HTMLResponse(text, status_code=status, headers={"vary": "HX-Request-Type", "cache-control": "no-store", **(headers or {})})


def page_context(request: Request) -> Context:
    """The context that create_app made for this process."""
    context: Context = request.app.state.context
    return context
