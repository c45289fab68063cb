"""Numbers as people read them: three significant digits, the unit after a no-break space, a true minus sign.

Every function takes SI (seconds, bytes, FLOP, fractions) and returns text; pages, the command line and charts share them, so a
quantity reads the same everywhere. `None`, NaN and infinity read "not known": an unknown number is never 0 and never a dash.
"""

import math
from datetime import UTC, datetime

NBSP = "\u00a0"
MINUS = "\u2212"
NOT_KNOWN = "not known"

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SECONDS_IN = {unit: scale for scale, unit in _SECONDS}
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SCOPES = {"request": " per request", "aggregate": " aggregate", "device": " per device"}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def number(value: float | None, digits: int = 3) -> str:
    """`value` with `digits` significant digits and commas between thousands, no unit: 6704 -> "6,700"."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    rounded, exponent = _rounded(value, digits)
    if rounded == 0:
        return "0"
    return _minus(f"{rounded:,.{max(digits - 1 - exponent, 0)}f}")


def in_unit(seconds_: float | None, unit: str) -> str:
    """Seconds as a bare number in `unit` ("s", "ms", "µs", "ns"), for columns that name their unit once."""
    return NOT_KNOWN if seconds_ is None else number(seconds_ / _SECONDS_IN[unit])


def seconds(value: float | None) -> str:
    """A time: 0.0762 -> "76.2 ms", 1.5 -> "1.50 s", 3.81e-5 -> "38.1 µs"."""
    return _scaled(value, _SECONDS)


def fixed_seconds(value: float | None, unit: str = "ms", decimals: int = 1) -> str:
    """A time for a column that adds up: one unit and one number of decimals for all its cells."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    return _minus(f"{value / _SECONDS_IN[unit]:,.{decimals}f}") + NBSP + unit


def duration(value: float | None) -> str:
    """A length of time for people: "10 min 48 s", "2 h 5 min", below ten seconds as `seconds`."""
    if value is None or not math.isfinite(value) or abs(value) < 9.5:
        return seconds(value)
    whole = round(value)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours:,}{NBSP}h {minutes}{NBSP}min"
    return f"{minutes}{NBSP}min {rest}{NBSP}s" if minutes else f"{rest}{NBSP}s"


def bytes_(value: float | None) -> str:
    """A size in powers of ten: 1.6e10 -> "16.0 GB"."""
    return _scaled(value, tuple((scale, prefix + "B") for scale, prefix in _PREFIXES))


def gib(value: float | None) -> str:
    """An amount of allocated memory in GiB (2^30 bytes)."""
    return NOT_KNOWN if value is None else _with_unit(number(value / 2**30), "GiB")


def byte_rate(value: float | None) -> str:
    """Bytes per second: 3.35e12 -> "3.35 TB/s"."""
    return _scaled(value, tuple((scale, prefix + "B/s") for scale, prefix in _PREFIXES))


def flops(value: float | None) -> str:
    """A count of floating-point operations: 3.2e13 -> "32.0 TFLOP"."""
    return _scaled(value, tuple((scale, prefix + "FLOP") for scale, prefix in _PREFIXES))


def flops_rate(value: float | None) -> str:
    """Floating-point operations per second: 4.2e14 -> "420 TFLOP/s"."""
    return _scaled(value, tuple((scale, prefix + "FLOP/s") for scale, prefix in _PREFIXES))


def clock(value: float | None) -> str:
    """A clock in MHz, as data sheets and drivers give it: 1.395e9 -> "1,395 MHz"."""
    return NOT_KNOWN if value is None else _with_unit(number(value / 1e6, 4), "MHz")


def intensity(value: float | None) -> str:
    """Arithmetic per byte moved: 125.4 -> "125 FLOP/byte"."""
    return _with_unit(number(value), "FLOP/byte")


def tokens_rate(value: float | None, scope: str | None = None) -> str:
    """Tokens per second, with its scope where given: "143 tokens/s per request", "6,700 tokens/s aggregate"."""
    text = _with_unit(number(value), "tokens/s")
    return text if text == NOT_KNOWN else text + _SCOPES.get(scope or "", "")


def count(value: float | None) -> str:
    """A number of things: 2000 -> "2,000"; a mean below 100 keeps one decimal, 45.67 -> "45.7" and 298.7 -> "299"."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    text = f"{value:,.1f}" if abs(value) < 99.95 else f"{value:,.0f}"
    return _minus(text.removesuffix(".0"))


def percent(fraction: float | None, decimals: int = 1) -> str:
    """A fraction as a percentage: 0.949 -> "94.9 %"; no decimals from 100 up, two significant digits below 0.1 %."""
    if fraction is None or not math.isfinite(fraction):
        return NOT_KNOWN
    return _with_unit(_percentage(fraction, decimals), "%")


def change_percent(fraction: float | None) -> str:
    """A relative change, always with its sign: -0.223 -> "−22.3 %", 2.1 -> "+210 %", 0 -> "±0.0 %"."""
    if fraction is None or not math.isfinite(fraction):
        return NOT_KNOWN
    return _sign(fraction) + percent(abs(fraction))


def change_points(fraction: float | None) -> str:
    """A difference of two percentages in points: -0.362 -> "−36.2 pt"."""
    if fraction is None or not math.isfinite(fraction):
        return NOT_KNOWN
    return _with_unit(_sign(fraction) + _percentage(abs(fraction), 1), "pt")


def change_seconds(value: float | None) -> str:
    """A difference of two times, always with its sign: 0.127 -> "+127 ms"."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    return _sign(value) + seconds(abs(value))


def factor(value: float | None) -> str:
    """A ratio: 3.12 -> "3.1×", 125.4 -> "125×", 0.318 -> "0.32×"."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    return number(value, 2 if abs(value) < 99.5 else 3) + "×"


def in_metric_unit(value: float | None, unit: str) -> str:
    """A value in the unit of a metric's registry row: "s", "FLOP/s", "tokens/s", "requests/s" or any other word after the number."""
    scaled = {"s": seconds, "FLOP/s": flops_rate, "bytes/s": byte_rate, "FLOP/byte": intensity, "Hz": clock}
    return scaled[unit](value) if unit in scaled else _with_unit(number(value), unit)


def moment(value: datetime | None) -> str:
    """A point in time in UTC: "28 Nov 2026, 14:02 UTC"."""
    if value is None:
        return NOT_KNOWN
    there = value.astimezone(UTC)
    return f"{there.day}{NBSP}{_MONTHS[there.month - 1]}{NBSP}{there.year}, {there:%H:%M}{NBSP}UTC"


# Templates get each of these as a filter of that name.
FILTERS = (
    "number",
    "in_unit",
    "seconds",
    "fixed_seconds",
    "duration",
    "bytes_",
    "gib",
    "byte_rate",
    "flops",
    "flops_rate",
    "clock",
    "intensity",
    "tokens_rate",
    "count",
    "percent",
    "change_percent",
    "change_points",
    "change_seconds",
    "factor",
    "in_metric_unit",
    "moment",
)


def _rounded(value: float, digits: int) -> tuple[float, int]:
    """`value` at `digits` significant digits and its decimal exponent after rounding (9.996 -> 10.0, 1)."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return float(f"{mantissa}e{exponent}"), int(exponent)


def _scaled(value: float | None, units: tuple[tuple[float, str], ...]) -> str:
    """Three significant digits in the largest unit that leaves at least 1 before the point, rounding first."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    rounded, _ = _rounded(value, 3)
    if rounded == 0:
        return f"0{NBSP}{next(unit for scale, unit in units if scale == 1.0)}"
    # The tolerance keeps 1.00e-3 s in ms although 1e-3 / 1e-3 may fall one bit short of 1.
    scale, unit = next((pair for pair in units if abs(rounded) >= pair[0] * (1 - 1e-9)), units[-1])
    return number(value / scale) + NBSP + unit


def _percentage(fraction: float, decimals: int) -> str:
    """The number before the percent sign, no sign rules."""
    value = fraction * 100
    if round(abs(value), decimals) >= 100:
        return _minus(f"{value:,.0f}")
    if value and abs(value) < 0.1 and decimals:
        return number(value, 2)
    return _minus(f"{value:.{decimals}f}")


def _sign(value: float) -> str:
    """The sign that a change carries."""
    if value == 0:
        return "±"
    return "+" if value > 0 else MINUS


def _minus(text: str) -> str:
    return text.replace("-", MINUS)


def _with_unit(text: str, unit: str) -> str:
    return text if text == NOT_KNOWN else text + NBSP + unit
