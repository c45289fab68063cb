"""The nearest published measurements of a prediction, under the catalog's names."""

from functools import cache
from typing import Any

from app.catalog import load
from app.catalog.measured import measurements
from app.domain.dtypes import number_format
from app.domain.errors import InvalidRequest
from app.domain.measurement import Measurement
from app.domain.nearest import Measured, Near, Point
from app.services.predicting import Answer


def nearest(found: Answer) -> tuple[Near, ...]:
    """Up to three measurements near the question of an answer; none in textbook mode, whose arithmetic stands for no measurement."""
    request = found.prediction.request
    if request.calibration == "textbook":
        return ()
    prompt, output = (max(1, round(mean)) for mean in request.mean_lengths)
    asked = Point(
        model=found.model.slug,
        hardware=found.hardware.slug,
        engine=found.engine.slug if found.engine else None,
        weight_dtype=number_format(request.weight_dtype).key,
        devices=request.tp * request.pp * request.dp,
        sequences=request.concurrency or request.batch,
        prompt_tokens=prompt,
        output_tokens=output,
    )
    return _measured().nearest(asked)


@cache
def _measured() -> Measured:
    rows = measurements()
    return Measured(rows, [_point(row) for row in rows])


@cache
def _slugs(model: str, hardware: str, engine: str) -> tuple[str | None, str | None, str | None]:
    catalog = load()
    found = (catalog.find_model(model), catalog.find_hardware(hardware), catalog.find_engine(engine))
    return tuple(None if entry is None else entry.slug for entry in found)  # type: ignore[return-value]


def _point(row: Measurement) -> Point:
    model, hardware, engine = _slugs(row.model, row.hardware, row.engine)
    return Point(
        model=model,
        hardware=hardware,
        engine=engine or row.engine,
        weight_dtype=_format(row.weight_dtype or "bf16"),
        devices=row.layout.devices,
        sequences=row.sequences,
        prompt_tokens=row.prompt_tokens or row.context_tokens or 1,
        output_tokens=row.output_tokens or 1,
    )


@cache
def _format(words: str) -> str:
    try:
        return number_format(words).key
    except InvalidRequest:
        return words


def nearest_json(found: Answer) -> list[dict[str, Any]]:
    """The same as JSON-ready data; names of model, device and engine are the source's own."""
    return [
        {
            "id": near.measurement.id,
            "source": near.measurement.source,
            "engine": near.measurement.engine,
            "engine_version": near.measurement.engine_version or None,
            "model": near.measurement.model,
            "hardware": near.measurement.hardware,
            "weight_dtype": near.measurement.weight_dtype or None,
            "devices": near.measurement.layout.devices,
            "sequences": near.measurement.sequences,
            "prompt_tokens": near.measurement.prompt_tokens,
            "output_tokens": near.measurement.output_tokens,
            "ttft_s": near.measurement.ttft_s,
            "prefill_s": near.measurement.prefill_s,
            "tpot_s": near.measurement.tpot_s,
            "differs": list(near.differs),
            "distance": near.distance,
        }
        for near in nearest(found)
    ]
