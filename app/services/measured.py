"""What only our own measurements have: the telemetry of a run, and the rates of a device, which may go into a hardware profile."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.charts import figure
from app.domain.device_profile import calibrated_by, profile_of
from app.domain.device_rates import DeviceRates
from app.domain.errors import InvalidRequest, NotFound
from app.domain.hardware import HardwareProfile
from app.domain.telemetry import CHANNELS, Telemetry
from app.domain.text import clean_text
from app.formats.phaseline import DEVICE_KIND
from app.formats.phaseline_device import rates_in
from app.formats.phaseline_document import FORMAT
from app.services import profiles, runs
from app.services.context import Context
from app.services.profile_json import slug_of
from app.services.runs import RunView
from app.services.summary import number


@dataclass(frozen=True)
class ChannelRow:
    """One channel over a run: mean, least and most in the unit it is shown in, and how many samples."""

    title: str
    unit: str
    mean: float
    least: float
    most: float
    samples: int


@dataclass(frozen=True)
class KeptRates:
    """A profile that now holds measured rates, and what was left out of it."""

    profile: HardwareProfile
    left_out: tuple[str, ...]
    is_new: bool


def channel_rows(telemetry: Telemetry) -> list[ChannelRow]:
    """Every channel that was seen, in the order of the registry."""
    rows = []
    for key, channel in CHANNELS.items():
        known = telemetry.known(key) / channel.scale
        if known.size:
            ends = (float(known.mean()), float(known.min()), float(known.max()))
            rows.append(ChannelRow(channel.title, channel.unit, *ends, int(known.size)))
    return rows


def telemetry_json(context: Context, run_id: int) -> dict[str, Any]:
    """The series of a run. Raises NotFound when nobody watched the device."""
    found = _telemetry(context, run_id)
    channels = {key: [number(float(value)) for value in values] for key, values in found.channels.items()}
    return {
        "t_s": [number(float(value)) for value in found.t_s],
        "channels": channels,
        "throttled_share": found.throttled_share,
        "throttle_reasons": list(found.throttle_words),
        "energy_j": number(found.energy_j),
    }


def telemetry_figure(context: Context, run_id: int) -> dict[str, Any]:
    """The strips as a plotly figure. Raises NotFound."""
    return figure("telemetry", _telemetry(context, run_id))


def _telemetry(context: Context, run_id: int) -> Telemetry:
    found = runs.telemetry(context, runs.view(context, run_id))
    if found is None:
        raise NotFound(f"Run {run_id} has no telemetry: only measurements made here have it.")
    return found


def rates_of(context: Context, view: RunView) -> DeviceRates | None:
    """The rates that a run of a microbenchmark found, from its document; None for any other run."""
    if view.stored.run.format != FORMAT or view.stored.run.labels.get("kind") != DEVICE_KIND:
        return None
    name, data = runs.original(context, view.id)
    return rates_in(name, data, view.stored.seq_in_file)


def rates_json(context: Context, run_id: int) -> dict[str, Any]:
    """Ceilings and every shape of a device. Raises NotFound for a run that measured none."""
    found = _rates(context, runs.view(context, run_id))
    ceilings = [
        {
            "dtype": dtype,
            "best_flops_per_s": best.rate.median,
            "in_model_flops_per_s": found.in_model(dtype),
            "ridge_flops_per_byte": found.ridge(dtype),
        }
        for dtype in found.dtypes
        if (best := found.best_product(dtype)) is not None
    ]
    return {**asdict(found), "ceilings": ceilings}


def keep_rates(context: Context, run_id: int, values: Mapping[str, Any]) -> KeptRates:
    """Put the rates of a run into a hardware profile: `update` names one of the user's own, `clone_of` any that is copied under `name`;
    with `name` alone, or nothing, a profile is made of the measurements.

    Raises NotFound, UnknownName, ReadOnlyProfile, SlugTaken or InvalidRequest.
    """
    view = runs.view(context, run_id)
    rates, source = _rates(context, view), f"run {run_id}, a microbenchmark of {view.stored.run.hardware or 'the device'}"
    update, base, name = (clean_text(str(values.get(key) or "")) for key in ("update", "clone_of", "name"))
    book = profiles.read_book(context)
    if update:
        found = calibrated_by(rates, profiles.find_hardware(book, update), source)
        profiles.replace_hardware(context, update, found.profile)
        return KeptRates(found.profile, found.left_out, is_new=False)
    if base:
        cloned = book.hardware(base)
        found = calibrated_by(rates, replace(cloned, name=name or f"{cloned.name}, measured", aliases=()), source)
        return KeptRates(profiles.store_hardware(context, found.profile), found.left_out, is_new=True)
    made = profile_of(rates, slug_of(name or rates.name), name or rates.name, "", source)
    if made is None:
        raise InvalidRequest("run", "This measurement has no product or no bandwidth, so that no profile can be made of it.")
    return KeptRates(profiles.store_hardware(context, made), (), is_new=True)


def profile_of_new_device(context: Context, run_ids: Sequence[int]) -> HardwareProfile | None:
    """A profile made of the first of these runs that measured a device which no profile answers to; None where there is no such run.

    A profile that is there is never touched: a person updates or clones it.
    """
    for run_id in run_ids:
        view = runs.view(context, run_id)
        if view.hardware is None and (rates := rates_of(context, view)) is not None:
            source = f"run {run_id}, a microbenchmark of {rates.name}"
            made = profile_of(rates, slug_of(rates.name), rates.name, "", source)
            if made is None:
                return None
            kept = profiles.store_hardware(context, made)
            # Runs of the same document were measured on it, and are set beside it at once.
            runs.correct_all(context, run_ids, {}, context.clock.now())
            return kept
    return None


def _rates(context: Context, view: RunView) -> DeviceRates:
    found = rates_of(context, view)
    if found is None:
        raise NotFound(f"Run {view.id} measured no device: its rates come from a device_microbench.")
    return found
