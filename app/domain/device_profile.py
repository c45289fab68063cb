"""From measured rates to a hardware profile: a new one, or one whose achieved rates are replaced by the measured ones.

    e_c = best product / peak       e_b = matrix-vector product / bandwidth       t0 = launch of a small product

A device that has no specification here (a processor) gets its best single measurements in place of one, and says so. A rate above the
specification is left out: then device and profile are not the same, or it ran at another clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.domain.device_rates import DeviceRates
from app.domain.hardware import HardwareProfile, Provenance

MEASURED = "measured"


@dataclass(frozen=True)
class Calibrated:
    """A profile with measured rates, and a sentence for each figure that was left out."""

    profile: HardwareProfile
    left_out: tuple[str, ...] = ()


def calibrated_by(rates: DeviceRates, base: HardwareProfile, source: str) -> Calibrated:
    """`base` with the achieved rates that `rates` found; `source` says which measurement that was."""
    figures, left_out = _figures(rates, base)
    return Calibrated(_with(base, figures, source), left_out)


def profile_of(rates: DeviceRates, slug: str, name: str, vendor: str, source: str) -> HardwareProfile | None:
    """A profile made of measurements alone; None where arithmetic or memory was not measured."""
    best = {dtype: product.rate.best for dtype in rates.dtypes if (product := rates.best_product(dtype)) is not None}
    move = max(rates.moves, key=lambda one: one.rate.best, default=None)
    if not best or move is None:
        return None
    words = "The highest single measurement stands where a specification would."
    base = HardwareProfile(slug, name, vendor, move.rate.best, best, memory_bytes=rates.memory_bytes, notes=words)
    keys = ["bandwidth_bytes_per_s", *(f"peak_flops_per_s.{dtype}" for dtype in best)]
    keys += [] if rates.memory_bytes is None else ["memory_bytes"]
    base = replace(base, provenance={key: Provenance(MEASURED, source) for key in keys})
    return _with(base, _figures(rates, base)[0], source)


def _figures(rates: DeviceRates, base: HardwareProfile) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the rates say of the fields of a profile, and what cannot be."""
    achieved: dict[str, float] = {}
    shares: dict[str, float] = {}
    left_out = []
    for dtype in rates.dtypes:
        best, peak = rates.best_product(dtype), base.peak(dtype)
        if best is None or peak is None:
            left_out.append(f"The profile has no specified {dtype} rate, so that the measured one has nothing to be a share of.")
        elif best.rate.median > peak:
            left_out.append(f"The measured {dtype} rate is above the specified one and left out: is this the device?")
        else:
            shares[dtype] = best.rate.median / peak
            achieved[dtype] = rates.in_model(dtype) or best.rate.median
    figures: dict[str, Any] = {"compute_efficiency": shares, "achieved_flops_per_s": achieved, "launch_s_by_dtype": dict(rates.launch_s)}
    gemv = rates.best_move("gemv")
    if gemv is not None and gemv.rate.median > base.bandwidth_bytes_per_s:
        left_out.append("The measured bandwidth is above the specified one and left out: is this the device?")
    elif gemv is not None:
        figures |= {
            "achieved_bandwidth_bytes_per_s": gemv.rate.median,
            "bandwidth_efficiency": gemv.rate.median / base.bandwidth_bytes_per_s,
        }
    if rates.launch_s:
        figures["launch_s"] = min(rates.launch_s.values())
    return figures, tuple(left_out)


def _with(base: HardwareProfile, figures: Mapping[str, Any], source: str) -> HardwareProfile:
    """The profile with these figures in place of its own, format by format, each with its source."""
    changes: dict[str, Any] = {}
    sources = dict(base.provenance)
    for key, value in figures.items():
        if isinstance(value, Mapping):
            changes[key] = {**getattr(base, key), **value}
            sources |= {f"{key}.{dtype}": Provenance(MEASURED, source) for dtype in value}
        else:
            changes[key] = value
            sources[key] = Provenance(MEASURED, source)
    return replace(base, **changes, provenance=sources)
