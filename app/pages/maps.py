"""/predict/map: one figure of a prediction over two axes."""

from collections.abc import Mapping
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.domain.errors import InvalidRequest, PhaselineError
from app.domain.maps import HeatMap
from app.pages.form import PredictForm, read_form
from app.pages.rendering import page_context, render
from app.services.maps import MAPS, METRICS, map_of, map_page_figure, map_table
from app.services.profiles import read_book

router = APIRouter()
_DEFAULT_METRIC = {"prompt": "prefill", "context": "decode", "tp": "throughput"}


@router.get("/predict/map")
def map_page(request: Request) -> Response:
    """A map with its table; the two switches are links."""
    form = read_form(request.query_params)
    over = request.query_params.get("over", "") or "prompt"
    show = request.query_params.get("show", "") or _DEFAULT_METRIC.get(over, "prefill")
    found, errors = _answered(request, form, over, show)
    values = {
        "form": form,
        "found": found,
        "errors": errors,
        "figure": map_page_figure(found) if found else None,
        "table": map_table(found) if found else None,
        "finding": _finding(found) if found else "",
        "over": [(title, _address(form, key, ""), key == over) for key, title in MAPS.items()],
        "show": [(metric.title, _address(form, over, key), key == show) for key, metric in METRICS.items()],
        "json": _address(form, over, show),
    }
    return render(request, "pages/predict_map.html", values, status=200 if found else 422)


def _answered(request: Request, form: PredictForm, over: str, show: str) -> tuple[HeatMap | None, Mapping[str, str]]:
    if form.question is None:
        return None, form.errors
    try:
        return map_of(read_book(page_context(request)), form.question, over, show), {}
    except InvalidRequest as error:
        return None, {error.field: str(error)}
    except PhaselineError as error:
        return None, {"model": str(error)}


def _address(form: PredictForm, over: str, show: str) -> str:
    """The address of another map of the same question, without its path."""
    _, _, asked = form.address("").partition("?")
    chosen = {key: value for key, value in (("over", over), ("show", show)) if value}
    return "&".join(part for part in (asked, urlencode(chosen)) if part)


def _finding(found: HeatMap) -> str:
    """What the map shows, in a sentence."""
    compute = float((found.balance[found.balance == found.balance] > 0).mean())
    if compute == 0:
        return f"Memory sets the pace of {found.metric.phase} everywhere on this map."
    if compute == 1:
        return f"Arithmetic sets the pace of {found.metric.phase} everywhere on this map."
    return f"The line is where arithmetic and memory take equally long in {found.metric.phase}: beyond it a larger batch costs time."
