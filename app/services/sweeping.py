"""A grid of predictions in one call: numbers vectorised, words walked, unpriceable cells null with their reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.errors import InvalidRequest, PhaselineError
from app.domain.grid import AXES
from app.domain.serving import predict_grid
from app.services.predicting import REQUEST_KEYS, Question
from app.services.profiles import ProfileBook
from app.services.summary import number

MAX_CELLS = 10_000
_NAMED_KEYS = ("model", "hardware")
_WHOLE_KEYS = AXES
Axes = Mapping[str, Sequence[int | str]]
Columns = dict[str, npt.NDArray[np.float64]]
Position = tuple[int | slice, ...]


def sweep(book: ProfileBook, question: Question, axes: Axes) -> dict[str, Any]:
    """Columns over the grid of `axes`, row-major in their order. Raises InvalidRequest for a grid too large or an unknown axis."""
    if question.request_rate_per_s is not None:
        raise InvalidRequest("request_rate_per_s", "A sweep prices requests in flight: give concurrency, with open_loop, or sweep it.")
    shape = _checked_shape(axes)
    columns: Columns = {}
    refused: list[dict[str, Any]] = []
    for index, words in _word_combinations(axes):
        try:
            _fill(book, _with(question, words), axes, index, shape, columns, refused)
        except PhaselineError as error:
            refused.append({"at": words, "reason": str(error)})
    if not columns:
        raise InvalidRequest("sweep", f"No point of this grid can be priced: {refused[0]['reason']}")
    return {
        "axes": [{"key": key, "values": list(values)} for key, values in axes.items()],
        "columns": {name: [number(value) for value in column.ravel().tolist()] for name, column in columns.items()},
        "refused": refused,
    }


def _checked_shape(axes: Axes) -> tuple[int, ...]:
    allowed = {*_NAMED_KEYS, *REQUEST_KEYS}
    for key, values in axes.items():
        if key not in allowed:
            raise InvalidRequest("sweep", f"“{key}” cannot be swept; known are {', '.join(sorted(allowed))}.")
        if key in _WHOLE_KEYS and any(isinstance(value, str | bool) for value in values):
            raise InvalidRequest("sweep", f"“{key}” is swept over numbers.")
        if key not in _WHOLE_KEYS and any(not isinstance(value, str) for value in values):
            raise InvalidRequest("sweep", f"“{key}” is swept over names.")
    shape = tuple(len(values) for values in axes.values())
    cells = int(np.prod(shape, dtype=np.float64)) if shape else 0
    if not 1 <= cells <= MAX_CELLS:
        raise InvalidRequest("sweep", f"The grid has {cells:,} points; one call prices 1 to {MAX_CELLS:,}.")
    return shape


def _word_combinations(axes: Axes) -> Iterator[tuple[Position, dict[str, int | str]]]:
    """Each combination of the axes that are not vectorised, with the slice of the grid that it fills."""
    words = [key for key in axes if key not in AXES]
    for positions in product(*(range(len(axes[key])) for key in words)):
        at = dict(zip(words, positions, strict=True))
        index: Position = tuple(at.get(key, slice(None)) for key in axes)
        yield index, {key: axes[key][position] for key, position in at.items()}


def _with(question: Question, words: Mapping[str, int | str]) -> Question:
    names = {key: value for key, value in words.items() if key in _NAMED_KEYS}
    formats = {key: value for key, value in words.items() if key not in _NAMED_KEYS}
    changed: dict[str, Any] = {**names, "request": replace(question.request, **formats)}  # type: ignore[arg-type]
    return replace(question, **changed)


def _fill(
    book: ProfileBook,
    question: Question,
    axes: Axes,
    index: Position,
    shape: tuple[int, ...],
    columns: Columns,
    refused: list[dict[str, Any]],
) -> None:
    """Price the numeric axes for one combination of words and put them where they belong."""
    numbers = {key: [int(value) for value in values] for key, values in axes.items() if key in AXES}
    # Without a numeric axis the combination is one point: priced as a grid of one.
    single = not numbers
    asked = {"batch": [question.request.batch]} if single else numbers
    model, hardware = book.model(question.model), book.hardware(question.hardware)
    engine = book.engine_of(question.request, hardware)
    grid = predict_grid(model.architecture, hardware, question.request, axes=asked, engine=engine)
    words = {key: axes[key][at] for key, at in zip(axes, index, strict=True) if isinstance(at, int)}
    for refusal in grid.refused:
        for cell in refusal.cells:
            at = np.unravel_index(int(cell), grid.shape)
            point = {} if single else {key: numbers[key][int(position)] for key, position in zip(numbers, at, strict=True)}
            refused.append({"at": {**words, **point}, "reason": refusal.message})
    for name, values in grid.columns.items():
        target = columns.setdefault(name, np.full(shape, np.nan))
        target[index] = values[0] if single else values.reshape(grid.shape)
