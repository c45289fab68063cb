"""The roofline: work per byte against FLOP/s, both logarithmic; what the device allows, and where each pass stands under it."""

import math
from typing import Any

from app.charts.layout import ROOMY, Figure, axis_titles, figure, halo, log_axis, named_point, note
from app.charts.text import label, lines
from app.charts.theme import Theme
from app.domain.operating_points import Ceilings, Roofline, RooflinePoint
from app.domain.quantity import byte_rate, bytes_, flops, flops_rate, intensity, number, percent, seconds

_BOUND_WORDS = {
    "compute": "compute-bound",
    "memory": "bandwidth-bound",
    "communication": "bound by communication",
    "overhead": "bound by launches and scheduling",
}
# Decades between two roofs below which their labels would meet.
_CLOSE = 0.25
_UNITS = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))


def roofline(chart: Roofline, theme: Theme) -> Figure:
    """The figure: grounds and roofs at achieved rates, specification and ridge dotted, operators small, passes large and named."""
    scale, unit = _unit(chart.ceilings)
    plot = _Plot(chart, theme, scale)
    data = [
        *plot.grounds(),
        *plot.specification(),
        *plot.roofs(),
        plot.ridge(),
        *(plot.operators(phase) for phase in ("prefill", "decode") if any(point.phase == phase for point in chart.of_kind("operator"))),
        *(trace for point in chart.of_kind("bounded") for trace in plot.open_end(point)),
        *(plot.mark(point) for point in chart.of_kind("predicted", "bounded", "measured")),
    ]
    x_low, x_high, y_low, y_high = plot.window
    layout = {"xaxis": log_axis(x_low, x_high), "yaxis": log_axis(y_low, y_high)}
    titles = axis_titles("arithmetic per byte moved, FLOP/byte", unit)
    return figure(data, theme, layout, [*titles, *plot.ceiling_labels(), *plot.point_labels()])


def _unit(ceilings: Ceilings) -> tuple[float, str]:
    """The unit of the y axis: the largest in which the roof is at least 1."""
    return next((pair for pair in _UNITS if ceilings.achieved_flops_per_s >= pair[0]), _UNITS[-1])


class _Plot:
    """One drawing: the window that holds everything, and the traces in it. y values are in the axis unit."""

    def __init__(self, chart: Roofline, theme: Theme, scale: float) -> None:
        self.chart, self.theme, self.scale = chart, theme, scale
        self.ceilings = chart.ceilings
        self.window = self._window()

    def _window(self) -> tuple[float, float, float, float]:
        """Room for every point and its label, the ridge and the specification."""
        large = self.chart.of_kind("predicted", "bounded", "measured")
        xs = [point.intensity_flops_per_byte for point in self.chart.points] + [self.ceilings.ridge_peak]
        ys = [point.flops_per_s / self.scale for point in large]
        ys += [point.flops_per_s / self.scale for point in self.chart.of_kind("operator")]
        top = self.ceilings.peak_flops_per_s / self.scale
        x_low, x_high = min(min(xs) / 2, 0.5), max(10 ** math.ceil(math.log10(max(xs))), 1e4)
        # Without a point the roof at one FLOP a byte is where there is something to see.
        y_low = min(min(ys, default=self._slope(1.0, self.ceilings.achieved_bandwidth_bytes_per_s)) / 4, 1.0)
        return x_low, x_high, y_low, 1.6 * max([top, *ys])

    def _slope(self, x: float, bandwidth: float) -> float:
        return x * bandwidth / self.scale

    def grounds(self) -> list[dict[str, Any]]:
        """The wash of the limiting phase under each part of the roof."""
        x_low, x_high, y_low, _ = self.window
        ridge, roof = self.ceilings.ridge_achieved, self.ceilings.achieved_flops_per_s / self.scale
        start = max(x_low, y_low * self.scale / self.ceilings.achieved_bandwidth_bytes_per_s)
        left = ([start, ridge, ridge, start], [self._slope(start, self.ceilings.achieved_bandwidth_bytes_per_s), roof, y_low, y_low])
        right = ([ridge, x_high, x_high, ridge], [roof, roof, y_low, y_low])
        return [self._ground(left, "decode"), self._ground(right, "prefill")]

    def _ground(self, corners: tuple[list[float], list[float]], phase: str) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "lines",
            "x": corners[0],
            "y": corners[1],
            "fill": "toself",
            "fillcolor": self.theme.wash(phase),
            "line": {"width": 0},
            "hoverinfo": "skip",
            "name": f"{phase} ground",
        }

    def _line(self, name: str, x: list[float], y: list[float], color: str, dash: str = "solid") -> dict[str, Any]:
        line = {"color": color, "width": 2 if dash == "solid" else 1, "dash": dash}
        return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip", "name": name}

    def roofs(self) -> list[dict[str, Any]]:
        """What the device achieves: memory in blue up to the ridge, arithmetic in amber after it."""
        x_low, x_high, _, _ = self.window
        ridge, roof = self.ceilings.ridge_achieved, self.ceilings.achieved_flops_per_s / self.scale
        low = self._slope(x_low, self.ceilings.achieved_bandwidth_bytes_per_s)
        return [
            self._line("memory roof, achieved", [x_low, ridge], [low, roof], self.theme.decode),
            self._line("compute roof, achieved", [ridge, x_high], [roof, roof], self.theme.prefill),
        ]

    def specification(self) -> list[dict[str, Any]]:
        """What the specification promises; left out where it is what is achieved."""
        x_low, x_high, _, _ = self.window
        ridge, roof = self.ceilings.ridge_peak, self.ceilings.peak_flops_per_s / self.scale
        low = self._slope(x_low, self.ceilings.bandwidth_bytes_per_s)
        return [self._line("specification", [x_low, ridge, x_high], [low, roof, roof], self.theme.ink_3, "dot")]

    def ridge(self) -> dict[str, Any]:
        """The work per byte at which the limit changes hands."""
        ridge, roof = self.ceilings.ridge_achieved, self.ceilings.achieved_flops_per_s / self.scale
        return self._line("ridge", [ridge, ridge], [self.window[2], roof], self.theme.ink_3, "dot")

    def operators(self, phase: str) -> dict[str, Any]:
        """The operators of one pass as small marks that are read on hover."""
        points = [point for point in self.chart.of_kind("operator") if point.phase == phase]
        marker = {"size": 5, "color": self.theme.mark(phase), "opacity": 0.85, "line": {"width": 0}}
        return self._marks(f"{phase} operators", points, marker)

    def mark(self, point: RooflinePoint) -> dict[str, Any]:
        """One pass: measured filled with a ring, predicted and bounded open."""
        color = self.theme.mark(point.phase)
        marker: dict[str, Any] = {"size": 9, "color": color, "line": {"width": 2, "color": self.theme.surface}, "opacity": 1}
        if point.kind != "measured":
            width = 1.5 if point.kind == "predicted" else 2
            marker = {"size": 10, "symbol": "circle-open", "color": color, "line": {"width": width, "color": color}, "opacity": 1}
        return self._marks(f"{point.phase}, {point.kind}", [point], marker)

    def open_end(self, point: RooflinePoint) -> list[dict[str, Any]]:
        """A line from a bounded point up to the roof, without a cap: the rate is at least this."""
        x, y = point.intensity_flops_per_byte, point.flops_per_s / self.scale
        roof = self.ceilings.roof(x) / self.scale
        if roof <= y:
            return []
        return [self._line("open upper end", [x, x], [y, roof], self.theme.mark(point.phase), "3px,3px")]

    def _marks(self, name: str, points: list[RooflinePoint], marker: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [point.intensity_flops_per_byte for point in points],
            "y": [point.flops_per_s / self.scale for point in points],
            "marker": marker,
            "text": [_hover(point) for point in points],
            "hovertemplate": "%{text}<extra></extra>",
        }

    def ceiling_labels(self) -> list[dict[str, Any]]:
        """The roofs by name and rate, the specification, the ridge."""
        x_low, x_high, y_low, _ = self.window
        ceilings, quiet, words = self.ceilings, self.theme.ink_3, self.theme.ink_2
        ridge, roof = math.log10(ceilings.ridge_achieved), math.log10(ceilings.achieved_flops_per_s / self.scale)
        along = math.log10(x_low) + 0.55 * (ridge - math.log10(x_low))
        height = roof + (along - ridge)
        bandwidth = byte_rate(ceilings.achieved_bandwidth_bytes_per_s)
        peak = math.log10(ceilings.peak_flops_per_s / self.scale)
        right = {"xanchor": "right", "yanchor": "bottom"}
        # where the two roofs lie close, the achieved one is named beneath its line
        under = {"xanchor": "right", "yanchor": "bottom" if peak - roof > _CLOSE else "top"}
        return [
            note(f"memory roof<br>{bandwidth}", along, height, words, **right, xshift=-6, yshift=2, align="right"),
            note(f"specification {number(ceilings.peak_flops_per_s / self.scale)}", math.log10(x_high), peak, quiet, **right),
            note(f"roof {number(10**roof)}", math.log10(x_high), roof, words, **under, name=ROOMY),
            note(f"ridge {number(10**ridge)}", ridge, math.log10(y_low), words, xanchor="left", yanchor="bottom", xshift=4, yshift=2),
        ]

    def point_labels(self) -> list[dict[str, Any]]:
        """Each pass by name and rate: the measured one where there is one, else the predicted."""
        labels = []
        for phase in ("prefill", "decode", "both"):
            known = [point for point in self.chart.of_kind("measured", "bounded", "predicted") if point.phase == phase]
            best = next((point for kind in ("measured", "bounded", "predicted") for point in known if point.kind == kind), None)
            if best is not None:
                labels += self._point_label(best, next((point for point in known if point.kind == "predicted"), None))
        return labels

    def _point_label(self, point: RooflinePoint, predicted: RooflinePoint | None) -> list[dict[str, Any]]:
        """Name and rate, and how that is known beneath: below a prefill point, under the roof; right of a decode point, under the slope."""
        theme = self.theme
        rate = number(point.flops_per_s / self.scale)
        name = point.title if point.phase == "both" else point.phase
        text = f"{name} ≥ {rate}" if point.kind == "bounded" else f"{name} {rate}"
        beneath = ""
        if point.kind == "bounded":
            beneath = label(point.source).replace(" (", "<br>(")
        elif point.kind == "measured" and predicted is not None:
            beneath = f"{percent(point.flops_per_s / predicted.flops_per_s)} of predicted"
        left = point.intensity_flops_per_byte < self.ceilings.ridge_achieved
        place: dict[str, Any] = {"xanchor": "left", "xshift": 12} if left else {"xanchor": "center"}
        ground = theme.wash("decode" if left else "prefill")
        x, y = math.log10(point.intensity_flops_per_byte), math.log10(point.flops_per_s / self.scale)
        down = 2 if left else -8
        labels = [named_point(text, x, y, theme.word(point.phase), ground, **place, yanchor="top", yshift=down)]
        if beneath:
            font = {"color": theme.ink_2, "size": 12, "shadow": halo(ground)}
            labels.append({**note(beneath, x, y, theme.ink_2, **place, yanchor="top", yshift=down - 15), "font": font})
        return labels


def _hover(point: RooflinePoint) -> str:
    """Name, rate at its work per byte, work, time, what sets its pace, and how it is known."""
    rate = flops_rate(point.flops_per_s)
    return lines(
        label(point.title) + (f", {point.phase}" if point.kind == "operator" else ""),
        f"{'at least ' if point.kind == 'bounded' else ''}{rate} at {intensity(point.intensity_flops_per_byte)}",
        f"{flops(point.flops)}, {bytes_(point.bytes)}",
        seconds(point.time_s) + (f", {_BOUND_WORDS[point.bound]}" if point.bound else ""),
        label(point.source),
    )
