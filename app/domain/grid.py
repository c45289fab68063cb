"""Predictions for every cell of a grid at once, through the same functions as a single one, row-major over the axes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.phases import PricedRequest, Question
from app.domain.pools import price
from app.domain.prediction import Request
from app.domain.request_rules import Load, check_device, check_mode, number_of, rules, whole_number
from app.domain.work import Quantity

AXES = (
    *("prompt_tokens", "output_tokens", "batch", "concurrency", "cached_prefix_tokens", "tp", "pp", "ep", "dp"),
    *("prefill_replicas", "decode_replicas", "prefill_tp", "prefill_dp", "prefill_ep"),
)
CELL_LIMIT = 4_000_000
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Refusal:
    """Cells (flat, row-major indices) that cannot be priced, the request field to mend and the sentence about it."""

    field: str
    message: str
    cells: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """A sweep. `axes` in order, `columns` of one value a cell in SI units (NaN where refused), row-major: the last axis runs fastest.

    `fits` is 1.0, 0.0 or NaN (memory not known, or refused). `priced` is False exactly in the cells of `refused`.
    """

    axes: Mapping[str, tuple[int, ...]]
    columns: Mapping[str, Floats]
    priced: npt.NDArray[np.bool_]
    refused: tuple[Refusal, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return tuple(len(values) for values in self.axes.values())


def predict_grid(
    architecture: ModelArchitecture,
    hardware: HardwareProfile,
    request: Request,
    *,
    axes: Mapping[str, Sequence[int]],
    engine: EngineProfile | None = None,
) -> Grid:
    """Predictions for the product of the axes (keys of AXES), other values as in `request`.

    Raises InvalidRequest for an unknown or empty axis, a value that is no whole number, more than CELL_LIMIT cells, or a format,
    mode or device that cannot be priced. A single impossible cell is not an error: it is NaN, with its reason in `refused`.
    """
    check_mode(request)
    check_device(hardware)
    values = _axis_values(axes)
    load = _broadcast_load(request, values)
    shape = tuple(len(points) for points in values.values())
    refused, priced = _refusals(architecture, hardware, request.calibration, load, shape)
    question = Question.of(architecture, hardware, request, load, engine)
    with np.errstate(all="ignore"):  # refused cells may divide by zero; they are blanked below
        columns = {key: _flat(quantity, shape, priced) for key, quantity in _quantities(price(question)).items()}
    return Grid(values, columns, priced, refused)


def _quantities(cells: PricedRequest) -> dict[str, Quantity]:
    itl = cells.itl_s
    fits = cells.footprint.fits
    return {
        "ttft_s": cells.ttft_s,
        "itl_s": itl,
        "total_s": cells.total_s,
        "queue_s": cells.queue_s,
        "prefill_s": cells.prefill.time_s,
        "prefill_floor_s": cells.prefill.floor_s,
        "prefill_compute_s": cells.prefill.compute_s,
        "prefill_memory_s": cells.prefill.memory_s,
        "decode_s": cells.decode.time_s,
        "decode_floor_s": cells.decode.floor_s,
        "decode_compute_s": cells.decode.compute_s,
        "decode_memory_s": cells.decode.memory_s,
        "request_tokens_per_s": 1.0 / itl,
        "aggregate_tokens_per_s": cells.running / itl,
        "fits": float("nan") if fits is None else fits,
    }


def _axis_values(axes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    values: dict[str, tuple[int, ...]] = {}
    for key, points in axes.items():
        if key not in AXES:
            raise InvalidRequest("sweep", f"{str(key)[:40]!r} cannot be swept; axes are {', '.join(AXES)}.")
        if not len(points):
            raise InvalidRequest(key, f"the axis {key} is empty; give a list of whole numbers.")
        values[key] = tuple(int(whole_number(key, point)) for point in points)
    cells = 1
    for listed in values.values():
        cells *= len(listed)
    if cells > CELL_LIMIT:
        raise InvalidRequest("sweep", f"the sweep has {cells} cells, more than {CELL_LIMIT}; take fewer points.")
    return values


def _broadcast_load(request: Request, values: Mapping[str, tuple[int, ...]]) -> Load:
    """The request with each axis as an array along its own dimension, so that quantities stay as small as they depend on."""
    numbers: dict[str, Quantity | None] = {key: number_of(key, getattr(request, key)) for key in Load.__dataclass_fields__}
    for place, (key, points) in enumerate(values.items()):
        shape = [1] * len(values)
        shape[place] = len(points)
        numbers[key] = np.asarray(points, dtype=np.float64).reshape(shape)
    return Load(**numbers)  # type: ignore[arg-type]


def _refusals(
    architecture: ModelArchitecture, hardware: HardwareProfile, mode: str, load: Load, shape: tuple[int, ...]
) -> tuple[tuple[Refusal, ...], npt.NDArray[np.bool_]]:
    """Each broken rule with its cells (the first rule a cell breaks speaks for it), and the mask of cells that break none."""
    priced = np.ones(shape, dtype=np.bool_)
    refused = []
    for rule in rules(architecture, hardware, mode):
        broken = np.asarray(rule.broken(load), dtype=np.bool_)
        if not broken.any():
            continue
        fresh = np.broadcast_to(broken, shape) & priced
        if fresh.any():
            refused.append(Refusal(rule.field, f"{rule.field} {rule.sentence}", np.flatnonzero(fresh)))
            priced &= ~fresh
    return tuple(refused), priced.ravel()


def _flat(quantity: Quantity, shape: tuple[int, ...], priced: npt.NDArray[np.bool_]) -> Floats:
    flat = np.broadcast_to(np.asarray(quantity, dtype=np.float64), shape).reshape(-1).copy()
    flat[~priced] = np.nan
    return flat
