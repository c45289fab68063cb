"""/predict/change: the levers as sliders, with both phases before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.domain.errors import InvalidRequest, PhaselineError
from app.domain.what_if import RANGES, Change, Lever
from app.pages.form import PredictForm, read_form
from app.pages.rendering import page_context, render, wants_fragment
from app.services.profiles import read_book
from app.services.what_if import WhatIf, what_if

router = APIRouter()

_LABELS: Mapping[Lever, str] = {
    "bandwidth": "Bandwidth",
    "flops": "FLOP/s",
    "weight_bytes": "Bytes per weight",
    "batch": "Batch",
    "tp": "Devices",
}


@dataclass(frozen=True)
class Slider:
    """One lever on the page: `value` is a power of two between `low` and `high`."""

    key: str
    title: str
    low: float
    high: float
    step: float
    value: float

    @property
    def words(self) -> str:
        """The factor that the power stands for: "×2", "÷4", "as it is"."""
        if not self.value:
            return "as it is"
        return f"×{2**self.value:.3g}" if self.value > 0 else f"÷{2**-self.value:.3g}"


def sliders(change: Change) -> tuple[Slider, ...]:
    """The five levers at the places of `change`."""
    return tuple(
        Slider(f"{lever}_log2", _LABELS[lever], span.low, span.high, span.step, getattr(change, lever)) for lever, span in RANGES.items()
    )


@router.get("/predict/change")
def change_page(request: Request) -> Response:
    """Both phases before and after the levers are moved; a fragment while they move."""
    form = read_form(request.query_params)
    found, errors, status = _answered(request, form)
    change = found.change if found else Change()
    moved = {f"{lever}_log2": f"{getattr(change, lever):g}" for lever in change.moved}
    values = {"form": form, "found": found, "errors": errors, "sliders": sliders(change), "query": _query(form, moved)}
    shown = 200 if wants_fragment(request) else status
    return render(request, "pages/predict_change.html", values, block="outcome", status=shown)


def _answered(request: Request, form: PredictForm) -> tuple[WhatIf | None, Mapping[str, str], int]:
    if form.question is None:
        return None, form.errors, 422
    try:
        change = Change(**{lever: _power(request.query_params.get(f"{lever}_log2", ""), lever) for lever in RANGES})
        return what_if(read_book(page_context(request)), form.question, change), {}, 200
    except InvalidRequest as error:
        return None, {error.field: str(error)}, 422
    except PhaselineError as error:
        return None, {"model": str(error)}, 422


def _power(text: str, lever: Lever) -> float:
    try:
        return float(text) if text.strip() else 0.0
    except ValueError as error:
        raise InvalidRequest(f"{lever}_log2", f"{lever}_log2 must be a power of two as a number, such as 1 for twice.") from error


def _query(form: PredictForm, moved: Mapping[str, Any]) -> str:
    """The query that leads back to this state, without its question mark; defaults left out."""
    _, _, asked = form.address("").partition("?")
    return "&".join(part for part in (asked, urlencode(moved)) if part)
