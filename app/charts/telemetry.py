"""What a device did while a run lasted: a narrow strip a channel over one axis of time; stretches in which it was slowed are shaded."""

from typing import Any

import numpy as np

from app.charts.layout import Figure, figure, linear_axis, note, typed_array
from app.charts.theme import Theme
from app.domain.quantity import number
from app.domain.telemetry import CHANNELS, THROTTLES, Channel, Floats, Telemetry

# Drawn from top to bottom; the rest stands in the table.
STRIPS = ("sm_clock_hz", "memory_clock_hz", "power_w", "temperature_c", "busy", "cpu_busy_cores", "cpu_clock_hz", "cpu_steal_cores")
_MOST_STRIPS = 5
_GAP = 0.09
_STRIP_HEIGHT = 78


def drawn(telemetry: Telemetry) -> tuple[str, ...]:
    """The channels that get a strip: those that were seen, five at most."""
    return tuple(key for key in STRIPS if telemetry.known(key).size)[:_MOST_STRIPS]


def telemetry_chart(telemetry: Telemetry, theme: Theme) -> Figure:
    """The figure; seconds from the start of the run to the right."""
    keys = drawn(telemetry)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"height": 60 + _STRIP_HEIGHT * max(len(keys), 1), "shapes": _shaded(telemetry, theme)}
    words = []
    share = (1 + _GAP) / max(len(keys), 1)
    for index, key in enumerate(keys):
        channel, values = CHANNELS[key], telemetry.channels[key] / CHANNELS[key].scale
        top = 1 - index * share
        axis = "" if index == 0 else str(index + 1)
        layout[f"yaxis{axis}"] = {**_axis(values), "domain": [max(top - share + _GAP, 0.0), top]}
        data.append(_strip(channel, telemetry.t_s, values, f"y{axis}", theme))
        words.append(note(_title(channel), 0, top, theme.ink_2, xref="paper", yref="paper", xanchor="left", yanchor="bottom", yshift=1))
    last = str(len(keys)) if len(keys) > 1 else ""
    end = float(telemetry.t_s[-1]) if telemetry.t_s.size else 1.0
    layout["xaxis"] = {**linear_axis(0, end or 1.0), "anchor": f"y{last}"}
    words.append(
        note("seconds from the start of the run", 0, 0, theme.ink_3, xref="paper", yref="paper", xanchor="left", yanchor="top", yshift=-22)
    )
    return figure(data, theme, layout, words)


def _title(channel: Channel) -> str:
    return f"{channel.title}, {channel.unit}" if channel.unit else channel.title


def _axis(values: Floats) -> dict[str, Any]:
    """From 0 where the values come near it, else around them, with two or three ticks."""
    known = values[np.isfinite(values)]
    low, high = float(known.min()), float(known.max())
    room = 0.15 * (high - low) or 0.05 * abs(high) or 1.0
    return {**linear_axis(0.0 if 0 <= low < 0.5 * high else low - room, high + room), "nticks": 3}


def _strip(channel: Channel, times: Floats, values: Floats, axis: str, theme: Theme) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": channel.title,
        "x": typed_array(times),
        "y": typed_array(values),
        "yaxis": axis,
        "line": {"color": theme.ink_2, "width": 1.5},
        "connectgaps": False,
        "hovertemplate": f"{channel.title} %{{y:.4~g}} {channel.unit}<br>at %{{x:.3~g}} s<extra></extra>",
    }


def _shaded(telemetry: Telemetry, theme: Theme) -> list[dict[str, Any]]:
    """A ground behind each stretch in which the device was slowed."""
    reasons = telemetry.channels.get("throttle_reasons")
    if reasons is None:
        return []
    slowed = (np.nan_to_num(reasons).astype(np.int64) & sum(THROTTLES)) != 0
    edges = np.flatnonzero(np.diff(np.concatenate(([False], slowed, [False])).astype(np.int8)))
    shared = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "line": {"width": 0}}
    last = telemetry.t_s.size - 1
    stretches = [(float(telemetry.t_s[a]), float(telemetry.t_s[min(b, last)])) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return [{**shared, "x0": start, "x1": end, "fillcolor": theme.track} for start, end in stretches]


def finding(telemetry: Telemetry) -> str:
    """What the strips show, in one sentence."""
    parts = [
        f"{CHANNELS[key].title.lower()} {number(mean / CHANNELS[key].scale)} {CHANNELS[key].unit}".strip()
        for key in drawn(telemetry)[:3]
        if (mean := telemetry.mean(key)) is not None
    ]
    slowed = telemetry.throttled_share
    words = f"; slowed by {', '.join(telemetry.throttle_words)}" if slowed else ""
    return f"On average {', '.join(parts)}{words}." if parts else "The device reported nothing that is drawn."
