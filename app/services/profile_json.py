"""Hardware and model profiles to and from plain JSON-ready data, with checks whose messages name the field."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from app.catalog import ModelEntry
from app.domain.architecture import ModelArchitecture
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile, Provenance
from app.domain.text import clean_text

RATE_FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")
_HARDWARE_NUMBERS = (
    "memory_bytes",
    "driver_memory_bytes",
    "bandwidth_bytes_per_s",
    "achieved_bandwidth_bytes_per_s",
    "link_bytes_per_s",
    "network_bytes_per_s",
    "tdp_w",
)
_HARDWARE_RATES = ("peak_flops_per_s", "achieved_flops_per_s")
# Figures that a fit gives, by their least and largest value; those of the second table by number format.
_FITTED = {"bandwidth_efficiency": (0.01, 1.0), "launch_s": (0.0, 0.01)}
_FITTED_BY_FORMAT = {"compute_efficiency": (0.01, 1.0), "bandwidth_efficiency_by_dtype": (0.01, 1.0), "launch_s_by_dtype": (0.0, 0.01)}
_HARDWARE_TEXTS = ("name", "vendor", "link_name", "notes")
_BY_USER = Provenance("user", "entered by hand")
# Wider than any device, narrow enough that no time or rate that follows leaves the range of a double.
_SMALLEST, _LARGEST = 1.0, 1e21


def slug_of(name: str) -> str:
    """A name in lower case, runs of other characters as one hyphen."""
    return "-".join(part for part in "".join(c if c.isascii() and c.isalnum() else " " for c in name.lower()).split())[:100]


def hardware_json(profile: HardwareProfile, origin: str) -> dict[str, Any]:
    """Every figure in SI units, each with its source and label where one is known; `origin` is catalog or user."""
    data = asdict(profile)
    data["provenance"] = {key: {"label": item.label, "source": item.source} for key, item in profile.provenance.items()}
    data["aliases"] = list(profile.aliases)
    return {**data, "origin": origin}


def architecture_json(architecture: ModelArchitecture) -> dict[str, Any]:
    """The shapes of a model and what follows from them."""
    data = asdict(architecture)
    for group, kept in zip(architecture.groups, data["groups"], strict=True):
        # What a layer does not have is left out; nothing else is null here.
        for part in ("attention", "latent", "recurrent", "mlp", "experts"):
            if getattr(group, part) is None:
                del kept[part]
    data["groups"] = list(data["groups"])
    data["notes"] = list(architecture.notes)
    data["layers"] = architecture.layers
    data["parameters"] = architecture.parameters
    data["active_parameters"] = architecture.active_parameters
    data["kv_bytes_per_token"] = architecture.kv_bytes_per_token(2.0)
    data["state_bytes"] = architecture.state_bytes
    return data


def model_json(entry: ModelEntry, origin: str) -> dict[str, Any]:
    """A model with its spellings, shapes and where they come from; `origin` is catalog or user."""
    return {
        "slug": entry.slug,
        "name": entry.name,
        "origin": origin,
        "aliases": list(entry.aliases),
        "label": entry.label,
        "source": entry.source,
        "architecture": architecture_json(entry.architecture),
    }


def hardware_from(draft: Mapping[str, Any], base: HardwareProfile | None = None) -> HardwareProfile:
    """A profile from `draft` (SI units, keys of HardwareProfile), on top of `base` when it is a change or a clone.

    Figures that the draft sets carry the label `user`. Raises InvalidRequest naming the field that cannot be used.
    """
    known = {item.name for item in fields(HardwareProfile)}
    for key in draft:
        if key not in known:
            raise InvalidRequest(key, f"“{key}” is no figure of a device; known are {', '.join(sorted(known))}.")
    values: dict[str, Any] = {key: _number(draft[key], key) for key in _HARDWARE_NUMBERS if key in draft}
    values |= {key: _by_format(draft[key], key) for key in _HARDWARE_RATES if key in draft}
    values |= {key: _number(draft[key], key, *limits) for key, limits in _FITTED.items() if key in draft}
    values |= {key: _by_format(draft[key], key, *limits) for key, limits in _FITTED_BY_FORMAT.items() if key in draft}
    values |= {key: clean_text(str(draft[key] or "")) for key in _HARDWARE_TEXTS if key in draft}
    if "memory_bytes" in values and values["memory_bytes"] != (base.memory_bytes if base else None):
        values.setdefault("driver_memory_bytes", None)  # what a user says of the memory is what counts
    if "link_name" in values:
        values["link_name"] = values["link_name"] or None
    for key in ("released_year", "devices_per_node"):
        if key in draft:
            whole = _number(draft[key], key)
            values[key] = None if whole is None else int(whole)
    if "aliases" in draft:
        values["aliases"] = tuple(clean_text(str(alias)) for alias in draft["aliases"] or ())
    profile = replace(base or _empty_hardware(values), **values)
    return _checked(replace(profile, provenance=_provenance(base, profile)))


def _provenance(before: HardwareProfile | None, after: HardwareProfile) -> dict[str, Provenance]:
    """Where each figure comes from: what a user set or changed is the user's, and a figure that is gone has no source."""
    sources = dict(before.provenance) if before else {}
    old, new = _figures(before) if before else {}, _figures(after)
    for key in {*old, *new}:
        if old.get(key) != new.get(key):
            sources.pop(key, None)
            if key in new:
                sources[key] = _BY_USER
    return sources


def _figures(profile: HardwareProfile) -> dict[str, float]:
    """Every figure that a user may set, rates by number format, under the key that its source has."""
    single = {
        key: value for key in (*_HARDWARE_NUMBERS, "released_year", "devices_per_node") if (value := getattr(profile, key)) is not None
    }
    return single | {f"{key}.{dtype}": rate for key in _HARDWARE_RATES for dtype, rate in getattr(profile, key).items()}


def _empty_hardware(values: Mapping[str, Any]) -> HardwareProfile:
    name = values.get("name") or ""
    bandwidth = values.get("bandwidth_bytes_per_s")
    if bandwidth is None:
        raise InvalidRequest("bandwidth_bytes_per_s", "A device needs its memory bandwidth: decode is priced from it.")
    return HardwareProfile(slug_of(name), name, values.get("vendor") or "", bandwidth, values.get("peak_flops_per_s") or {})


def _checked(profile: HardwareProfile) -> HardwareProfile:
    if not profile.name:
        raise InvalidRequest("name", "A device needs a name.")
    if not slug_of(profile.name):
        raise InvalidRequest("name", "The name needs at least one letter or digit.")
    if not profile.bandwidth_bytes_per_s:
        raise InvalidRequest("bandwidth_bytes_per_s", "The memory bandwidth must be above 0.")
    if not profile.peak_flops_per_s:
        raise InvalidRequest("peak_flops_per_s", "A device needs the specified rate of at least one number format, such as bf16.")
    reached = profile.achieved_bandwidth_bytes_per_s
    if reached is not None and reached > profile.bandwidth_bytes_per_s:
        raise InvalidRequest("achieved_bandwidth_bytes_per_s", "The achieved bandwidth is above the specified one, which nothing can beat.")
    for dtype, achieved in profile.achieved_flops_per_s.items():
        peak = profile.peak_flops_per_s.get(dtype)
        if peak is not None and achieved > peak:
            raise InvalidRequest("achieved_flops_per_s", f"The achieved {dtype} rate is above the specified peak, which nothing can beat.")
    return profile


def _number(value: Any, key: str, least: float = _SMALLEST, largest: float = _LARGEST) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest(key, f"“{key}” must be a number.")
    if not least <= value <= largest:
        raise InvalidRequest(key, f"“{key}” must be a figure from {least:g} to {largest:g} in its SI unit.")
    return float(value)


def _by_format(value: Any, key: str, least: float = _SMALLEST, largest: float = _LARGEST) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise InvalidRequest(key, f'“{key}” maps number formats to figures, such as {{"bf16": 9.89e14}}.')
    if unknown := [dtype for dtype in value if dtype not in RATE_FORMATS]:
        name = clean_text(str(unknown[0]), 40)
        raise InvalidRequest(key, f"“{key}” has the unknown number format “{name}”; known are {', '.join(RATE_FORMATS)}.")
    numbers = {dtype: _number(rate, f"{key}.{dtype}", least, largest) for dtype, rate in value.items()}
    return {dtype: number for dtype, number in numbers.items() if number is not None}
