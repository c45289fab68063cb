"""Which of an engine's fits goes for a question: the first whose conditions hold, narrow ones first, else the one of the whole engine.

A fit goes for models with or without experts, for a weight format, for devices by the narrowest arithmetic they have (fp4, fp8, 16bit)
or by kind of device; weights or devices that none of these has seen fall back to the fit of the same class of models. What a fit has not
seen, a device or weights, is priced with it and said; its ranges are wider. Nothing is lent from another engine.
"""

import re
from dataclasses import replace

from app.domain.architecture import ModelArchitecture
from app.domain.constants import default
from app.domain.dtypes import NumberFormat
from app.domain.engine import EngineProfile, Variant, bit_class
from app.domain.hardware import HardwareProfile
from app.domain.rates import Formats

# What a device's name says of its kind, first match wins; what is left is an accelerator of a data centre.
_KINDS = (
    ("cpu", re.compile(r"\b(cpu|xeon|epyc)\b")),
    ("consumer", re.compile(r"\b(geforce|radeon rx|arc [abp])")),
    ("integrated", re.compile(r"\b(igpu|8060s|jetson|ryzen|gb10)\b|igpu")),
    ("workstation", re.compile(r"\b(rtx|a40|a10|a10g|l40|l40s|l4|radeon pro|radeon ai)\b")),
)
Range = tuple[float, float]


def narrowest_units(hardware: HardwareProfile) -> str:
    """The narrowest float arithmetic of a device: fp4, fp8 or 16bit. Kernels are written for a generation, and this tells them apart."""
    return next((units for units in ("fp4", "fp8") if hardware.peak(units) is not None), "16bit")


def kind_of_device(hardware: HardwareProfile) -> str:
    """consumer, workstation, integrated, apple, cpu or accelerator."""
    name = hardware.name.lower()
    found = next((kind for kind, pattern in _KINDS if pattern.search(name)), None)
    return "apple" if hardware.vendor.lower() == "apple" else found or "accelerator"


def weight_class(architecture: ModelArchitecture, formats: Formats) -> NumberFormat:
    """The format that a question is classed by: the experts' where there are any."""
    return formats.expert if architecture.expert_layers else formats.weight


def chosen(
    engine: EngineProfile | None, architecture: ModelArchitecture, hardware: HardwareProfile, formats: Formats
) -> EngineProfile | None:
    """The fit of `engine` for this question, as a profile with the engine's name and with ranges for how far it was seen."""
    if engine is None or not (engine.variants or engine.fitted_on):
        return engine
    variant = next((one for one in engine.variants if _holds(one, architecture, hardware, formats)), None)
    profile = engine if variant is None else _named(variant.profile, engine)
    if engine.calibration is not None:  # its ranges are its own: it was fitted on this very device
        return replace(profile, choice=_words(variant), itl_range=engine.itl_range, ttft_range=engine.ttft_range)
    seen = hardware.slug in profile.fitted_on and not (engine.variants and _is_fallback(variant, engine))
    if seen and profile.rows:
        return replace(profile, choice=_words(variant))
    return replace(
        profile,
        choice=f"{_words(variant)}; {hardware.name} with such weights is not among what it was fitted to, so the ranges are wider",
        itl_range=_wider(profile.itl_range, default("unknown_engine_itl_factor")),
        ttft_range=_wider(profile.ttft_range, default("unknown_engine_ttft_factor")),
    )


def held(
    engine: EngineProfile | None, architecture: ModelArchitecture, hardware: HardwareProfile, formats: Formats
) -> EngineProfile | None:
    """The fit that goes for this question, held: a change of the question is then priced with it too, whatever fit would go for that.

    What one lever does must not be mixed with how another fit came out.
    """
    profile = chosen(engine, architecture, hardware, formats)
    return None if profile is None else replace(profile, variants=(), fitted_on=())


def _is_fallback(variant: Variant | None, engine: EngineProfile) -> bool:
    """Whether a fit goes for want of a narrower one: the engine has some for the same class of models with more conditions."""
    if variant is None:
        return True
    same = [one for one in engine.variants if one.experts == variant.experts and variant.weights in ((), one.weights)]
    return any(_conditions(variant) < _conditions(one) for one in same)


def _conditions(variant: Variant) -> frozenset[str]:
    return frozenset(name for name in ("experts", "weights", "units", "device") if getattr(variant, name) not in (None, "", ()))


def _named(figures: EngineProfile, engine: EngineProfile) -> EngineProfile:
    """A variant's figures under the engine's name, with its schedule and what a calibration made of it."""
    return replace(
        figures,
        slug=engine.slug,
        name=engine.name,
        schedule=engine.schedule,
        scalars=engine.scalars,
        remainder=engine.remainder,
        calibration=engine.calibration,
    )


def _holds(one: Variant, architecture: ModelArchitecture, hardware: HardwareProfile, formats: Formats) -> bool:
    form = weight_class(architecture, formats)
    return (
        one.experts in (None, architecture.expert_layers > 0)
        and (not one.weights or form.key in one.weights or bit_class(form.bytes) in one.weights)
        and one.units in ("", narrowest_units(hardware))
        and one.device in ("", kind_of_device(hardware))
    )


def _words(variant: Variant | None) -> str:
    if variant is None:
        return "the fit of the whole engine"
    parts = [] if variant.experts is None else ["models with experts" if variant.experts else "dense models"]
    parts += [f"{' or '.join(variant.weights)} weights"] if variant.weights else []
    parts += [f"devices whose narrowest arithmetic is {variant.units}"] if variant.units else []
    parts += [f"{variant.device} devices"] if variant.device else []
    return f"the fit for {', '.join(parts)} ({variant.profile.rows} measurements)"


def _wider(factors: Range | None, factor: float) -> Range | None:
    return None if factors is None else (factors[0] / factor, factors[1] * factor)
