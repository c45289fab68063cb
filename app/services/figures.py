"""The numbers behind the charts and the figures drawn from them, for a prediction and for a run."""

from dataclasses import asdict
from typing import Any, TypeVar

from app.charts import figure, page_figure
from app.domain.comparison import Comparison
from app.domain.decomposition import Decomposition, decompose
from app.domain.distribution import Spread, spread_of
from app.domain.errors import NotFound
from app.domain.operating_points import Roofline, ceilings_of, roofline_of
from app.domain.run import RequestSamples
from app.services.predicting import Answer
from app.services.runs import RunView

Found = TypeVar("Found")
# Two percentiles are a line, not a distribution: the table says as much.
_FEWEST_MARKS = 3
_DRAWN = ("ttft_s", "prefill_s", "tpot_s", "chunk_gap_s", "itl_s", "e2e_s")


def prediction_roofline(found: Answer) -> dict[str, Any]:
    """The roofline of a prediction, for a page."""
    ceilings = ceilings_of(found.model.architecture, found.hardware, found.prediction.request, found.engine)
    return page_figure("roofline", roofline_of(found.prediction, ceilings))


def roofline(view: RunView) -> Roofline | None:
    """Ceilings and points of a run, predicted and measured; None when there is no prediction to place them by."""
    prediction, model, hardware = view.assessment.prediction, view.model, view.hardware
    if prediction is None or model is None or hardware is None:
        return None
    ceilings = ceilings_of(model.architecture, hardware, prediction.request, view.engine)
    return roofline_of(prediction, ceilings, view.stored.run)


def decomposition(view: RunView) -> Decomposition | None:
    """The blocks of a run's mean request; None when there is no prediction to split it by."""
    prediction = view.assessment.prediction
    return None if prediction is None else decompose(prediction, view.stored.run, view.hardware)


def roofline_numbers(view: RunView) -> dict[str, Any]:
    """Ceilings and points as JSON-ready data. Raises NotFound with the reason when there is no prediction."""
    found = _known(roofline(view), view)
    ceilings = found.ceilings
    return {
        "ceilings": {
            **asdict(ceilings),
            "ridge_flops_per_byte": {"peak": ceilings.ridge_peak, "achieved": ceilings.ridge_achieved},
        },
        "points": [
            {**asdict(point), "intensity_flops_per_byte": point.intensity_flops_per_byte, "flops_per_s": point.flops_per_s}
            for point in found.points
        ],
        "notes": list(found.notes),
    }


def roofline_figure(view: RunView) -> dict[str, Any]:
    """The roofline as a plotly figure. Raises NotFound with the reason when there is no prediction."""
    return figure("roofline", _known(roofline(view), view))


def decomposition_numbers(view: RunView) -> dict[str, Any]:
    """Both halves with their blocks as JSON-ready data; the blocks of a half sum to it. Raises NotFound with the reason."""
    found = _known(decomposition(view), view)
    return {
        "total_s": found.total_s,
        "measured": found.measured,
        "halves": [
            {
                "phase": half.phase,
                "each_s": half.total_s,
                "times": half.times,
                "total_s": half.seconds,
                "unexplained_s": half.unexplained_s,
                "blocks": [
                    {
                        "key": block.key,
                        "title": block.title,
                        "kind": block.kind,
                        "each_s": block.each_s,
                        "total_s": block.seconds,
                        "arithmetic": block.arithmetic,
                    }
                    for block in half.blocks
                ],
            }
            for half in (found.prefill, found.decode)
        ],
    }


def decomposition_figure(view: RunView) -> dict[str, Any]:
    """The decomposition as a plotly figure. Raises NotFound with the reason when there is no prediction."""
    return figure("decomposition", _known(decomposition(view), view))


def waterfall_figure(comparison: Comparison) -> dict[str, Any]:
    """The change of a mean request by part, as a plotly figure. Raises NotFound where one side lacks a half or the output length."""
    if comparison.attribution is None:
        raise NotFound("The change cannot be split: one side does not have both phases and the output length.")
    return figure("waterfall", comparison.attribution)


def spreads(view: RunView, samples: RequestSamples | None) -> list[Spread]:
    """The distributions of a run that can be drawn, from its samples where it has them, else from what the file states."""
    found = [spread for key in _DRAWN if (spread := spread_of(view.stored.run, key, samples)) is not None]
    found = [spread for spread in found if spread.samples.size or len(spread.outline) >= _FEWEST_MARKS]
    # ITL has no samples of its own: where the gaps it is made of are drawn, its few percentiles add nothing.
    return [spread for spread in found if spread.key != "itl_s" or len(found) == 1]


def _known(found: Found | None, view: RunView) -> Found:
    if found is None:
        reasons = " ".join(view.assessment.reasons) or "No prediction can be made for this run."
        raise NotFound(reasons)
    return found
