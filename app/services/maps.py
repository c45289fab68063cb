"""Maps of predictions for API and pages."""

from typing import Any

from app.charts import figure, page_figure
from app.domain.maps import MAPS, METRICS, HeatMap, heat_map
from app.services.predicting import Question
from app.services.profiles import ProfileBook
from app.services.summary import number

__all__ = ["MAPS", "METRICS", "map_figure", "map_json", "map_of", "map_page_figure", "map_table"]


def map_of(book: ProfileBook, question: Question, over: str, show: str) -> HeatMap:
    """The map of a question. Raises UnknownName, UnsupportedModel or InvalidRequest with a sentence."""
    hardware = book.hardware(question.hardware)
    engine = book.engine_of(question.request, hardware)
    return heat_map(book.model(question.model).architecture, hardware, question.request, engine, over, show)


def map_json(found: HeatMap) -> dict[str, Any]:
    """The map as JSON-ready data: a row for each value of `y`, null where a cell cannot be priced."""
    return {
        "x": {"key": found.x.key, "values": list(found.x.values)},
        "y": {"key": found.y.key, "values": list(found.y.values)},
        "metric": {"key": found.metric.key, "unit": found.metric.unit, "phase": found.metric.phase},
        "values": [[number(value) for value in row] for row in found.values.tolist()],
        "compute_over_memory_log2": [[number(value) for value in row] for row in found.balance.tolist()],
        "fits": [[None if value != value else bool(value) for value in row] for row in found.fits.tolist()],
        "refused": list(found.refused),
    }


def map_figure(found: HeatMap) -> dict[str, Any]:
    """The map as a plotly figure."""
    return figure("heatmap", found)


def map_page_figure(found: HeatMap) -> dict[str, Any]:
    """The same for a page, in both themes."""
    return page_figure("heatmap", found)


def map_table(found: HeatMap) -> tuple[list[int], list[tuple[int, list[float]]]]:
    """The table twin: the columns at whole powers of four and their rows at powers of four, as (x values, [(y value, cells)])."""
    columns = [
        place for place, value in enumerate(found.x.values) if found.x.key == "tp" or (value.bit_length() % 2 and value & (value - 1) == 0)
    ]
    rows = [place for place, value in enumerate(found.y.values) if value & (value - 1) == 0 and value.bit_length() % 2]
    return [found.x.values[place] for place in columns], [
        (found.y.values[row], [float(found.values[row, column]) for column in columns]) for row in rows
    ]
