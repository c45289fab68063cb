"""The shapes of the answers about calibrations, for the published schema."""

from app.api.shapes import Shape


class CalibrationShape(Shape):
    """Factors on the rates of a profile, fitted to stored runs; errors by phase before, after, and left out of the fit."""

    id: int
    hardware: str
    engine: str | None
    weight_dtype: str
    model_version: str
    current: bool
    points: int
    scalars: dict[str, float]
    before: dict[str, dict[str, float]]
    after: dict[str, dict[str, float]]
    left_out: dict[str, dict[str, float]]
    untold: list[dict[str, str]]
    run_ids: list[int]


class CalibrationList(Shape):
    """Calibrations."""

    items: list[CalibrationShape]
    next: str | None
