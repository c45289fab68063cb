"""Maps: one figure of a prediction over two axes, with the line at which arithmetic and memory take equally long.

Every cell is a prediction of its own, through the same functions as a single one. On the context axis a cell is the decode step that
reads exactly so many positions; on the others it is the request as asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.grid import Grid, predict_grid
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request

Hue = Literal["prefill", "decode", "rest"]
Floats = npt.NDArray[np.float64]
LONGEST_PROMPT = 131_072
_BATCHES = tuple(sorted({round(2 ** (step / 2)) for step in range(21)}))
_DEGREES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Axis:
    """One axis of a map: the key of the request it sets, its title and its points."""

    key: str
    title: str
    values: tuple[int, ...]


@dataclass(frozen=True)
class Metric:
    """What a map shows: `unit` is "s" or "tokens/s"; `phase` is the pass whose limit the boundary is drawn for."""

    key: str
    title: str
    unit: str
    hue: Hue
    phase: Literal["prefill", "decode"]


METRICS: Mapping[str, Metric] = {
    "prefill": Metric("prefill", "Prefill", "s", "prefill", "prefill"),
    "decode": Metric("decode", "Decode, per token", "s", "decode", "decode"),
    "throughput": Metric("throughput", "Output per device", "tokens/s", "rest", "decode"),
}
# Map -> its horizontal axis; the vertical one is the batch.
MAPS: Mapping[str, str] = {"prompt": "Prompt × batch", "context": "Context × batch", "tp": "Devices × batch"}


@dataclass(frozen=True)
class HeatMap:
    """A map; arrays have a row per `y` value and a column per `x` value, NaN where a cell cannot be priced.

    `balance` is log2(arithmetic time / memory time) of the metric's pass: above 0 arithmetic sets the pace. `fits` is 1, 0 or NaN.
    """

    x: Axis
    y: Axis
    metric: Metric
    values: Floats
    balance: Floats
    fits: Floats
    refused: tuple[str, ...]

    @property
    def shown(self) -> Floats:
        """The values of the cells that fit in memory, or whose memory is not known; NaN in the others."""
        return np.where(self.fits == 0, np.nan, self.values)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The smallest and the largest value shown; None where no cell is."""
        shown = self.shown[np.isfinite(self.shown)]
        return (float(shown.min()), float(shown.max())) if shown.size else None


def heat_map(
    architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, engine: EngineProfile | None, over: str, show: str
) -> HeatMap:
    """The map `over` (a key of MAPS) of the metric `show` (a key of METRICS) for a request, whose batch and clients are the map's own.

    Raises InvalidRequest for unknown keys and for what cannot be priced at all.
    """
    metric = METRICS.get(show)
    if metric is None or over not in MAPS:
        field, known = ("over", MAPS) if over not in MAPS else ("show", METRICS)
        raise InvalidRequest(field, f"{field} must be one of {', '.join(known)}.")
    x = _axis(over, architecture, request)
    y = Axis("batch", "batch, sequences in a pass", _BATCHES)
    asked = replace(request, concurrency=None, open_loop=False, batch=1)
    if over == "context":
        asked = replace(asked, output_tokens=2, cached_prefix_tokens=0)
    elif over == "prompt":
        asked = replace(asked, cached_prefix_tokens=0)
    grid = predict_grid(architecture, hardware, asked, axes={"batch": y.values, x.key: x.values}, engine=engine)
    if not grid.priced.any():
        raise InvalidRequest(grid.refused[0].field, f"No cell of this map can be priced: {grid.refused[0].message}")
    shape = grid.shape
    with np.errstate(all="ignore"):
        balance = np.log2(grid.columns[f"{metric.phase}_compute_s"] / grid.columns[f"{metric.phase}_memory_s"])
    return HeatMap(
        x=x,
        y=y,
        metric=metric,
        values=_values(grid, metric, asked, over).reshape(shape),
        balance=balance.reshape(shape),
        fits=grid.columns["fits"].reshape(shape),
        refused=tuple(refusal.message for refusal in grid.refused),
    )


def _axis(over: str, architecture: ModelArchitecture, request: Request) -> Axis:
    if over == "tp":
        return Axis("tp", "devices, tensor parallel", _DEGREES)
    longest = min(architecture.max_positions or LONGEST_PROMPT, LONGEST_PROMPT)
    longest = max(longest, 128)
    steps = int(np.floor(4 * np.log2(longest / 64)))
    points = tuple(sorted({round(64 * 2 ** (step / 4)) for step in range(steps + 1)}))
    title = "prompt, tokens" if over == "prompt" else "context, positions before the token"
    return Axis("prompt_tokens", title, points)


def _values(grid: Grid, metric: Metric, request: Request, over: str) -> Floats:
    """The metric in each cell: seconds of a pass, or output tokens per second and device.

    The rate counts the whole request, prefill included; on the context axis, where there is no request, the decode step alone.
    """
    columns = grid.columns
    if metric.key == "prefill":
        return columns["prefill_s"]
    if metric.key == "decode":
        return columns["decode_s"]
    devices = float(request.pp) * (np.broadcast_to(np.asarray(grid.axes["tp"]), grid.shape).ravel() if over == "tp" else float(request.tp))
    if over == "context":
        return columns["aggregate_tokens_per_s"] / devices
    running = columns["aggregate_tokens_per_s"] * columns["itl_s"]
    rate: Floats = running * request.mean_lengths[1] / columns["total_s"] / devices
    return rate
