"""/ and /predict: one request priced, live as its fields change."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.domain.dtypes import FORMATS
from app.domain.errors import InvalidRequest, PhaselineError, UnknownName
from app.domain.what_if import Change
from app.formats import IMPORTERS
from app.pages.form import PredictForm, read_form
from app.pages.job_links import measure_prediction
from app.pages.pools_view import pools_view
from app.pages.prediction_view import PredictionView, tries_of, view_of
from app.pages.rendering import page_context, render, wants_fragment
from app.pages.under_load import bound_words, load_view, rates_view, within_words
from app.pages.what_if import sliders
from app.services.predicting import PRESETS, Preset, Question, answer, is_answerable
from app.services.profiles import ProfileBook, read_book
from app.services.runs import page as run_page
from app.services.what_if import what_if
from app.store.calibrations import StoredCalibration
from app.store.records import RunFilters

router = APIRouter()

_WEIGHT_DTYPES = tuple(key for key, item in FORMATS.items() if item.weights)
_ACTIVATION_DTYPES = tuple(key for key, item in FORMATS.items() if item.activations)
_KV_DTYPES = tuple(key for key, item in FORMATS.items() if item.kv)
_MODES = (("textbook", "textbook: weights only"), ("default", "default: every operator"))
_LAST_RUNS = 5


@router.get("/")
def home(request: Request) -> Response:
    """The founding case, and a place to bring a result."""
    context = page_context(request)
    book = read_book(context)
    form, view, status = _priced(book, request)
    values = {**_choices(book), "form": form, "view": view, "tries": tries_of(book, form, view.prediction) if view else (), "action": "/"}
    if not wants_fragment(request):
        values["formats"] = [importer.id for importer in IMPORTERS]
        values["last"] = run_page(context, RunFilters(), "-id", None, _LAST_RUNS).items
    return _shown(request, "pages/home.html", values, form, status)


@router.get("/predict")
def predict_page(request: Request) -> Response:
    """The two phases as one table, with operators, memory and what was assumed."""
    book = read_book(page_context(request))
    form, view, status = _priced(book, request)
    presets = _presets(book, form)
    values = {**_choices(book), "form": form, "view": view, "presets": presets, "action": "/predict"}
    values["measure_link"] = measure_prediction(view.answer) if view else None
    if view is not None:
        values.update(
            as_it_would_run=_as_it_would_run(book, form, view.answer.question),
            load=load_view(view.answer, request.query_params),
            bound_words=bound_words,
            rates=rates_view(book, view.answer, request.query_params),
            within_words=within_words,
            pools=pools_view(view.answer),
            found=what_if(book, view.answer.question, Change()),
            sliders=sliders(Change()),
            query=form.address("").partition("?")[2],
        )
    return _shown(request, "pages/predict.html", values, form, status)


def _as_it_would_run(book: ProfileBook, form: PredictForm, question: Question) -> str | None:
    """Where a textbook question is priced with the engine or the clients it names; None where it names none, or they have no price."""
    asked = question.request
    served = asked.concurrency is not None or question.request_rate_per_s is not None
    if asked.calibration != "textbook" or (asked.engine is None and not served):
        return None
    changed = replace(question, request=replace(asked, calibration="default"))
    return form.address("/predict", calibration="default") if is_answerable(book, changed) else None


def _presets(book: ProfileBook, form: PredictForm) -> list[tuple[Preset, str]]:
    """The presets with their addresses, without those that this model on this device has no answer to."""
    found = []
    for preset in PRESETS:
        changes = _preset_values(preset.changes)
        asked = form.question
        if asked is None or is_answerable(book, replace(asked, request=replace(asked.request, **changes), request_rate_per_s=None)):
            found.append((preset, form.address("/predict", **changes, request_rate_per_s=None)))
    return found


def _preset_values(changes: Any) -> dict[str, Any]:
    """A preset sets the workload and keeps the model, the device and the mode."""
    founding = {"prompt_tokens": 2000, "output_tokens": 300, "batch": 1, "tp": 1, "weight_dtype": "bf16", "cached_prefix_tokens": 0}
    return {**founding, "concurrency": None, "open_loop": False, **changes}


def _priced(book: ProfileBook, request: Request) -> tuple[PredictForm, PredictionView | None, int]:
    form = read_form(request.query_params)
    if form.question is None:
        return form, None, 422
    try:
        return form, view_of(answer(book, form.question)), 200
    except PhaselineError as error:
        return PredictForm(form.shown, None, {_field(error): str(error)}), None, 422


def _field(error: PhaselineError) -> str:
    if isinstance(error, InvalidRequest):
        return error.field
    if isinstance(error, UnknownName) and "device" in str(error):
        return "hardware"
    return "model"


def _choices(book: ProfileBook) -> dict[str, Any]:
    return {
        "models": [(entry.slug, entry.name) for _, entry in book.all_models()],
        "devices": [(item.slug, item.name) for _, item in book.all_hardware()],
        "engines": [(item.slug, item.name) for item in book.catalog.engines.values()],
        "modes": [*_MODES, *((str(item.id), _calibration_words(item)) for item in book.calibrations.values())],
        "weight_dtypes": _WEIGHT_DTYPES,
        "activation_dtypes": _ACTIVATION_DTYPES,
        "kv_dtypes": _KV_DTYPES,
    }


def _calibration_words(item: StoredCalibration) -> str:
    return f"calibration {item.id}: {item.hardware_slug}, {item.engine_slug or 'no engine'}, {item.weight_dtype}"


def _shown(request: Request, template: str, values: dict[str, Any], form: PredictForm, status: int) -> Response:
    """A fragment that says what is wrong with a half-typed field is the right answer to it; a page asked for by its address is not."""
    shown = 200 if wants_fragment(request) else status
    return render(request, template, values, block="answer", status=shown, headers=_address(request, form))


def _address(request: Request, form: PredictForm) -> dict[str, str]:
    """While fields change the address follows, without the defaults, and without filling the history."""
    root = request.scope.get("root_path", "")
    path = request.url.path.removeprefix(root) or "/"
    return {"HX-Replace-Url": root + form.address(path)} if wants_fragment(request) and form.question is not None else {}
