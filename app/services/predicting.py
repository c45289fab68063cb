"""Predictions for API, command line and pages: names in, both phases out; presets and grids."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from app.catalog import ModelEntry
from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.open_loop import InFlight, at_rate
from app.domain.prediction import Prediction, Request
from app.domain.request_rules import check
from app.domain.serving import predict
from app.services.profiles import ProfileBook

FOUNDING_MODEL = "textbook-8b"
FOUNDING_HARDWARE = "textbook-h100"
FOUNDING_REQUEST = Request(calibration="textbook")


@dataclass(frozen=True)
class Question:
    """A request with the names of its model and device; `request_rate_per_s` makes it an open loop of as many requests as are in flight."""

    model: str = FOUNDING_MODEL
    hardware: str = FOUNDING_HARDWARE
    request: Request = FOUNDING_REQUEST
    request_rate_per_s: float | None = None


@dataclass(frozen=True)
class Answer:
    """A prediction with what it was made from."""

    question: Question
    model: ModelEntry
    hardware: HardwareProfile
    engine: EngineProfile | None
    prediction: Prediction


@dataclass(frozen=True)
class Preset:
    """A one-click question: `changes` are the keys it sets, everything else is the founding case."""

    slug: str
    title: str
    why: str
    changes: Mapping[str, Any]


PRESETS = (
    Preset("founding", "Founding case", "2,000 tokens in, 300 out, one request", {}),
    Preset("long-prompt", "32 k prompt", "attention bends the line", {"prompt_tokens": 32_000}),
    Preset("inverted", "100 k prompt, 50 tokens", "the picture inverts", {"prompt_tokens": 100_000, "output_tokens": 50}),
    Preset("batch", "Batch of 32", "one read serves all", {"batch": 32}),
    Preset("half-bytes", "Half the bytes", "8-bit weights", {"weight_dtype": "int8"}),
    Preset("two-cards", "Two cards", "each reads half", {"tp": 2}),
)

REQUEST_KEYS = tuple(item.name for item in fields(Request))


def question_of(values: Mapping[str, Any]) -> Question:
    """A question from the keys of the public request; absent keys keep the founding case's values."""
    names = {key: str(values[key]) for key in ("model", "hardware") if values.get(key)}
    request = replace(FOUNDING_REQUEST, **{key: values[key] for key in REQUEST_KEYS if key in values})
    return Question(request=request, request_rate_per_s=values.get("request_rate_per_s"), **names)


def at_own_moments(question: Question, rate_per_s: float | None) -> Question:
    """The question of a load that is simulated at a rate, in closed form too where it has one: not for clients, a batch or pools."""
    request = question.request
    if rate_per_s is None or request.concurrency is not None or request.batch > 1 or request.prefill_replicas is not None:
        return question
    return replace(question, request_rate_per_s=question.request_rate_per_s or rate_per_s)


def is_answerable(book: ProfileBook, question: Question) -> bool:
    """Whether `question` has an answer, by the rules for what may be asked: nothing is priced."""
    try:
        check(question.request, book.model(question.model).architecture, book.hardware(question.hardware))
    except PhaselineError:
        return False
    return True


def answer(book: ProfileBook, question: Question) -> Answer:
    """Price `question`. Raises UnknownName, UnsupportedModel or InvalidRequest with a sentence."""
    model = book.model(question.model)
    hardware = book.hardware(question.hardware)
    engine = book.engine_of(question.request, hardware)
    prediction = priced(model.architecture, hardware, question, engine)
    return Answer(question, model, hardware, engine, prediction)


def priced(architecture: ModelArchitecture, hardware: HardwareProfile, question: Question, engine: EngineProfile | None) -> Prediction:
    """The prediction of `question` on `hardware`; at a rate of requests that of those in flight. Raises InvalidRequest."""
    rate = question.request_rate_per_s
    if rate is None:
        return predict(architecture, hardware, question.request, engine=engine)
    found = at_rate(architecture, hardware, question.request, rate, engine)
    prediction = predict(architecture, hardware, found.request, engine=engine)
    return replace(prediction, assumptions=(_at_rate(found, rate), *prediction.assumptions))


def _at_rate(found: InFlight, rate: float) -> str:
    said = f"{found.request.concurrency:,} requests are in flight where {rate:g} come a second"
    if found.kept_up_with:
        return f"{said}; at most {found.at_most_per_s:.3g} a second are answered."
    return (
        f"{rate:g} requests come a second and at most {found.at_most_per_s:.3g} are answered: the queue grows for as long as they come. "
        f"The times are those of a full server, {found.request.concurrency:,} requests, without that queue."
    )
