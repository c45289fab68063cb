"""What a run's page shows of our own measurements: telemetry beside the shares of the limit, and the rates of a device."""

from typing import Any

from app.charts import page_figure
from app.charts.telemetry import finding
from app.domain.device_rates import DeviceRates
from app.domain.operating_points import Ceilings, Roofline
from app.domain.quantity import byte_rate, flops_rate, number, percent
from app.domain.telemetry import Telemetry
from app.services import runs
from app.services.context import Context
from app.services.measured import channel_rows, rates_of
from app.services.runs import RunView

DOTTED = "Of a device alone the dotted roof is the best single measurement, which stands where a specification would; the other is medians."


def measured_values(context: Context, view: RunView) -> dict[str, Any]:
    """The values of the page that only such runs have; a device's run has a headline of its own."""
    telemetry, rates = runs.telemetry(context, view), rates_of(context, view)
    found: dict[str, Any] = {"telemetry": None, "device_rates": rates}
    if telemetry is not None:
        found["telemetry"] = page_figure("telemetry", telemetry)
        found |= {"telemetry_finding": finding(telemetry), "channels": channel_rows(telemetry), "busy": busy_beside(view, telemetry)}
    if rates is not None:
        own = view.hardware is not None and view.book.hardware_origin(view.hardware.slug) == "user"
        found |= {"sentence": rates_sentence(rates), "lead": "", "tiles": (), "own_profile": view.hardware if own else None}
        if (ceilings := ceilings_of_rates(rates)) is not None:
            found["roofline"] = page_figure("roofline", Roofline(ceilings, ()))
            found["roofline_notes"] = (DOTTED,)
    return found


def busy_beside(view: RunView, telemetry: Telemetry) -> str:
    """What the driver calls busy, beside what of arithmetic and bandwidth was used; empty where the driver says nothing.

    Busy means that something ran at all, however little of the device it used.
    """
    busy = telemetry.mean("busy")
    if busy is None:
        return ""
    shares = ((view.assessment.mfu, "of the arithmetic in prefill (MFU)"), (view.assessment.mbu, "of the bandwidth in decode (MBU)"))
    used = [f"{percent(share)} {what}" for share, what in shares if share is not None]
    meaning = "which says that something ran, not how much of the device it used"
    return f"The driver reports {percent(busy)} busy, {meaning}" + (f": {' and '.join(used)} were used." if used else ".")


def ceilings_of_rates(rates: DeviceRates) -> Ceilings | None:
    """The measured roofline: the best single measurements above, medians below; None where half of it is missing."""
    best, gemv = rates.best_product(), rates.best_move("gemv") or rates.best_move("read")
    if best is None or gemv is None:
        return None
    highest = max(move.rate.best for move in rates.moves)
    return Ceilings(rates.name, best.dtype, best.rate.best, highest, best.rate.median, gemv.rate.median)


def rates_sentence(rates: DeviceRates) -> str:
    """The ceilings of a device in one sentence."""
    best, gemv = rates.best_product(), rates.best_move("gemv") or rates.best_move("read")
    if best is None or gemv is None:
        return f"{rates.name}: part of the roofline was measured"
    ridge = number(best.rate.median / gemv.rate.median)
    reached = f"{flops_rate(best.rate.median)} in {best.dtype} products and {byte_rate(gemv.rate.median)} while reading weights"
    return f"{rates.name} reaches {reached}: above {ridge} FLOP/byte arithmetic sets the pace"
