"""From the catalog's TOML files to domain objects: units become SI, and every figure gets its label and source.

Nothing is guessed: an unknown key, an unknown label or a figure without a source is a fault of the file, named by entry.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from inspect import Parameter, signature
from typing import Any, get_args

from app.catalog.names import CatalogFault
from app.domain.architecture import ModelArchitecture, dense
from app.domain.dtypes import FORMATS as NUMBER_FORMATS
from app.domain.engine import BitClass, EngineProfile, Variant
from app.domain.hardware import LABELS, HardwareProfile, Provenance
from app.domain.layers import Attention, Experts, Latent, LayerGroup, Mlp, Reach, Recurrent
from app.domain.schedule import Schedule

GIGA, TERA, MEBI, MICROSECONDS_PER_SECOND = 1e9, 1e12, 2.0**20, 1e6
FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")
Entry = Mapping[str, Any]

_DEVICE_REQUIRED = ("slug", "name", "vendor", "bandwidth_gb_per_s", "tflops")
_DEVICE_OPTIONAL = (
    *("memory_gb", "driver_memory_mib", "link", "link_gb_per_s", "devices_per_node", "network_gb_per_s", "tdp_w", "released_year"),
    *("notes", "fit", "achieved"),
)
_ORIGIN_KEYS = ("label", "source", "aliases", "except")
_MODEL_FACTS = ("published_size", "exact_parameters")
_FLAT = signature(dense).parameters
_FLAT_REQUIRED = tuple(name for name, item in _FLAT.items() if item.default is Parameter.empty)
_GROUPED = [field for field in fields(ModelArchitecture) if field.name != "groups"]
_PARTS: Mapping[str, Any] = {"attention": Attention, "latent": Latent, "recurrent": Recurrent, "mlp": Mlp, "experts": Experts}
# What a [[device.except]] calls a figure -> the profile's field; number formats are those of `tflops`.
_FIGURES = {
    "memory": "memory_bytes",
    "driver_memory": "driver_memory_bytes",
    "bandwidth": "bandwidth_bytes_per_s",
    "link": "link_bytes_per_s",
    "devices_per_node": "devices_per_node",
    "network": "network_bytes_per_s",
    "tdp_w": "tdp_w",
    "released_year": "released_year",
} | {number_format: f"peak_flops_per_s.{number_format}" for number_format in FORMATS}

# What an [[engine]] states in microseconds -> the profile's field in seconds; an [[engine.except]] names it without the unit.
_ENGINE_TIMES = {
    f"{name}_us": f"{name}_s"
    for name in (
        *("launch", "quantised_launch", "per_layer", "per_expert_layer", "recurrent_layer", "step", "per_sequence", "sequence_layer"),
        *("front_end", "serial_front_end", "all_reduce_alpha", "send", "prefill_floor_per_layer", "prefill_floor_per_expert_layer"),
    )
}
_ENGINE_BY_CLASS = (
    *("weight_bandwidth_efficiency", "compute_efficiency", "expert_bandwidth_efficiency", "expert_compute_efficiency"),
    "alu_operations_per_weight",
)
_ENGINE_PLAIN = (
    *("kv_bandwidth_efficiency", "attention_limit", "expert_traffic", "fill_tokens", "micro_batch_tokens", "interference"),
    *("admission_steps", "admission_running_power", "admission_devices_power"),
)
_ENGINE_RANGES = ("itl_range", "ttft_range")
_ENGINE_TEXTS = ("slug", "name", "version_notes", "notes", "cuda_graphs")
_ENGINE_FIGURES = (*_ENGINE_TIMES, *_ENGINE_BY_CLASS, *_ENGINE_PLAIN, *_ENGINE_RANGES, "rows", "fitted_on")
_CONDITIONS = ("experts", "weights", "units", "device")
_SCHEDULE = tuple(Schedule.__dataclass_fields__)
_BIT_CLASSES = frozenset(get_args(BitClass))
_WEIGHT_CLASSES = _BIT_CLASSES | {key for key, form in NUMBER_FORMATS.items() if form.weights}


@dataclass(frozen=True)
class ModelEntry:
    """A model of the catalog: its shapes, the spellings that mean them, and where they come from.

    `exact_parameters` counts the text part's unique weights, by `exact_parameters_source`; None where nobody counted.
    """

    slug: str
    name: str
    architecture: ModelArchitecture
    aliases: tuple[str, ...]
    label: str
    source: str
    published_size: str | None = None
    exact_parameters: int | None = None
    exact_parameters_source: str | None = None


def provenance_of(entry: Entry, where: str, otherwise: Provenance | None = None) -> Provenance:
    """The entry's own label and source, each falling back on `otherwise`; an unknown label or empty source is a fault."""
    label = entry.get("label", otherwise.label if otherwise else None)
    source = entry.get("source", otherwise.source if otherwise else None)
    if label not in LABELS:
        raise CatalogFault(f"{where}: label {label!r} is none of {', '.join(LABELS)}")
    if not isinstance(source, str) or not source.strip():
        raise CatalogFault(f"{where}: a figure without a source; name the document or run it comes from")
    return Provenance(label, source)


def check_keys(entry: Entry, required: Iterable[str], optional: Iterable[str], where: str) -> None:
    """A key nobody reads is a misspelt fact, a required one that is absent a fact forgotten; both are faults of the file."""
    if missing := sorted(set(required) - set(entry)):
        raise CatalogFault(f"{where}: {', '.join(missing)} missing; every entry must state it")
    if unknown := sorted(set(entry) - {*required, *optional}):
        raise CatalogFault(f"{where}: unknown key {', '.join(unknown)}; the keys are {', '.join(sorted({*required, *optional}))}")


def read_device(entry: Entry) -> HardwareProfile:
    """One [[device]] in SI units, with the provenance of each figure under the name of its field."""
    where = f"hardware.toml, {entry.get('slug')}"
    check_keys(entry, _DEVICE_REQUIRED, (*_DEVICE_OPTIONAL, *_ORIGIN_KEYS), where)
    fits = {fit["format"]: fit for fit in entry.get("fit", ())}
    achieved = {rate["format"]: rate for rate in entry.get("achieved", ())}
    launch = {number_format: fit["launch_us"] / MICROSECONDS_PER_SECOND for number_format, fit in fits.items()}
    reached = achieved.get("bf16", {}).get("bandwidth_gb_per_s")
    return HardwareProfile(
        slug=entry["slug"],
        name=entry["name"],
        vendor=entry["vendor"],
        bandwidth_bytes_per_s=_si(entry["bandwidth_gb_per_s"], GIGA),
        peak_flops_per_s={number_format: _si(rate, TERA) for number_format, rate in entry["tflops"].items()},
        memory_bytes=_si_or_none(entry.get("memory_gb"), GIGA),
        driver_memory_bytes=_si_or_none(entry.get("driver_memory_mib"), MEBI),
        achieved_flops_per_s={number_format: _si(rate["tflops"], TERA) for number_format, rate in achieved.items()},
        achieved_bandwidth_bytes_per_s=_si_or_none(reached, GIGA),
        compute_efficiency={number_format: fit["compute_efficiency"] for number_format, fit in fits.items()},
        bandwidth_efficiency=fits.get("bf16", {}).get("bandwidth_efficiency"),
        launch_s=launch.get("bf16"),
        bandwidth_efficiency_by_dtype={number_format: fit["bandwidth_efficiency"] for number_format, fit in fits.items()},
        launch_s_by_dtype=launch,
        link_name=entry.get("link"),
        link_bytes_per_s=_si_or_none(entry.get("link_gb_per_s"), GIGA),
        devices_per_node=entry.get("devices_per_node"),
        network_bytes_per_s=_si_or_none(entry.get("network_gb_per_s"), GIGA),
        tdp_w=entry.get("tdp_w"),
        released_year=entry.get("released_year"),
        aliases=tuple(entry.get("aliases", ())),
        notes=entry.get("notes", ""),
        provenance=_specified(entry, where) | _measured(entry, where),
    )


def read_model(entry: Entry, exact_parameters_source: str) -> ModelEntry:
    """One [[model]]: a dense one by the arguments of `architecture.dense`, any other by [[model.group]] tables of its layers."""
    where = f"models.toml, {entry.get('slug')}"
    architecture = _grouped(entry, where) if "group" in entry else _flat(entry, where)
    origin = provenance_of(entry, where)
    exact = entry.get("exact_parameters")
    return ModelEntry(
        slug=entry["slug"],
        name=entry["name"],
        architecture=architecture,
        aliases=tuple(entry.get("aliases", ())),
        label=origin.label,
        source=origin.source,
        published_size=entry.get("published_size"),
        exact_parameters=exact,
        exact_parameters_source=exact_parameters_source if exact is not None else None,
    )


def _flat(entry: Entry, where: str) -> ModelArchitecture:
    """A dense model: its keys are the arguments of `dense`."""
    check_keys(entry, ("slug", *_FLAT_REQUIRED), (*_MODEL_FACTS, *_FLAT, *_ORIGIN_KEYS), where)
    return dense(**{name: _tupled(entry[name]) for name in _FLAT if name in entry})


def _grouped(entry: Entry, where: str) -> ModelArchitecture:
    """Any model: its keys are the fields of ModelArchitecture, its layers stand in `group` tables."""
    required = [field.name for field in _GROUPED if field.default is MISSING]
    names = [field.name for field in _GROUPED]
    check_keys(entry, ("slug", "group", *required), (*_MODEL_FACTS, *names, *_ORIGIN_KEYS), where)
    groups = tuple(_group(group, f"{where}, group {place}") for place, group in enumerate(entry["group"], 1))
    return ModelArchitecture(groups=groups, **{name: _tupled(entry[name]) for name in names if name in entry})


def _group(entry: Entry, where: str) -> LayerGroup:
    values = dict(entry)
    for name, kind in _PARTS.items():
        if name in values:
            values[name] = _part(kind, values[name], f"{where}, {name}")
    return _part(LayerGroup, values, where)  # type: ignore[no-any-return]


def _part(kind: Any, entry: Entry, where: str) -> Any:
    """A dataclass of `layers` from a table of its fields; how far attention sees is a table in it."""
    known = fields(kind)
    required = [field.name for field in known if field.default is MISSING]
    check_keys(entry, required, [field.name for field in known if field.default is not MISSING], where)
    values = dict(entry)
    if isinstance(values.get("reach"), Mapping):
        values["reach"] = _part(Reach, values["reach"], f"{where}, reach")
    return kind(**values)


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def read_engine(entry: Entry) -> EngineProfile:
    """One [[engine]] in SI units, with the provenance of each figure under the name of its field."""
    where = f"engines.toml, {entry.get('slug')}"
    check_keys(entry, ("slug", "name"), (*_ENGINE_TEXTS, *_ENGINE_FIGURES, "schedule", "variant", *_ORIGIN_KEYS), where)
    figures: dict[str, Any] = {name: entry[name] for name in _ENGINE_TEXTS if name in entry} | _engine_figures(entry)
    origins = _engine_origins(entry, where)
    if "schedule" in entry:
        rules = entry["schedule"]
        figures["schedule"] = _schedule(rules, where)
        origins |= dict.fromkeys([f"schedule.{name}" for name in _SCHEDULE if name in rules], provenance_of(rules, where))
    variants = tuple(_variant(one, figures, f"{where}, variant {place}") for place, one in enumerate(entry.get("variant", ()), 1))
    return EngineProfile(**figures, variants=variants, aliases=tuple(entry.get("aliases", ())), provenance=origins)


def _engine_figures(entry: Entry) -> dict[str, Any]:
    """The figures of an engine or a variant of it, times in seconds."""
    figures: dict[str, Any] = {name: entry[name] for name in (*_ENGINE_BY_CLASS, *_ENGINE_PLAIN, "rows") if name in entry}
    figures |= {field: entry[key] / MICROSECONDS_PER_SECOND for key, field in _ENGINE_TIMES.items() if key in entry}
    figures |= {name: (entry[name][0], entry[name][1]) for name in _ENGINE_RANGES if name in entry}
    return figures | {"fitted_on": tuple(entry["fitted_on"])} if "fitted_on" in entry else figures


def _variant(entry: Entry, engine: Mapping[str, Any], where: str) -> Variant:
    """One [[engine.variant]]: conditions and figures; a figure that it does not state is the engine's."""
    check_keys(entry, ("label", "source"), (*_CONDITIONS, *_ENGINE_FIGURES, "notes", "except"), where)
    own = {**engine, **_engine_figures(entry), "notes": entry.get("notes", "")}
    profile = EngineProfile(**own, provenance=_engine_origins(entry, where))
    conditions = {name: entry[name] for name in _CONDITIONS if name in entry}
    if unknown := sorted(set(conditions.get("weights", ())) - _WEIGHT_CLASSES):
        raise CatalogFault(f"{where}: weights {', '.join(unknown)} are no number format or weight-bit class")
    return Variant(profile, **{**conditions, "weights": tuple(conditions.get("weights", ()))})


def _schedule(entry: Entry, where: str) -> Schedule:
    """An [engine.schedule]: its rules, with a label and source of their own."""
    check_keys(entry, (), (*_SCHEDULE, "label", "source"), where)
    return Schedule(**{name: entry[name] for name in _SCHEDULE if name in entry})


def differing_shapes(one: ModelArchitecture, other: ModelArchitecture) -> tuple[str, ...]:
    """The fields in which two models differ and that change what a pass costs; a longer context or another name does not."""
    neutral = {"name", "model_type", "max_positions", "native_dtype", "notes"}
    return tuple(
        field.name
        for field in fields(ModelArchitecture)
        if field.name not in neutral and getattr(one, field.name) != getattr(other, field.name)
    )


def _si(value: float, unit: float) -> float:
    """A figure in SI units; bytes and operations are whole, so the dust of the multiplication is rounded away."""
    return float(round(value * unit))


def _si_or_none(value: float | None, unit: float) -> float | None:
    return None if value is None else _si(value, unit)


def _specified(entry: Entry, where: str) -> dict[str, Provenance]:
    """Label and source of each specified figure: the device's own, or those of the [[device.except]] that names it."""
    given = {"bandwidth", *entry["tflops"]}
    keys = {"memory": "memory_gb", "driver_memory": "driver_memory_mib", "link": "link_gb_per_s", "network": "network_gb_per_s"}
    given |= {name for name, key in keys.items() if key in entry}
    given |= {name for name in ("devices_per_node", "tdp_w", "released_year") if name in entry}
    if unknown := sorted(given - set(_FIGURES)):
        raise CatalogFault(f"{where}: {', '.join(unknown)} is no number format; the formats are {', '.join(FORMATS)}")
    return {_FIGURES[name]: origin for name, origin in _origins(entry, given, where).items()}


def _origins(entry: Entry, figures: set[str], where: str) -> dict[str, Provenance]:
    """The entry's own label and source for each figure, replaced where an exception names it."""
    default = provenance_of(entry, where)
    origins = dict.fromkeys(sorted(figures), default)
    for exception in entry.get("except", ()):
        check_keys(exception, ("figures", "source"), ("label",), where)
        if absent := sorted(set(exception["figures"]) - figures):
            raise CatalogFault(f"{where}: an exception for {', '.join(absent)}, which the entry does not state")
        origins |= dict.fromkeys(exception["figures"], provenance_of(exception, where, default))
    return origins


def _measured(entry: Entry, where: str) -> dict[str, Provenance]:
    """Label and source of the figures that are no specification: fitted efficiencies and achieved rates."""
    origins: dict[str, Provenance] = {}
    for fit in entry.get("fit", ()):
        origin = provenance_of(fit, where)
        number_format = fit["format"]
        for name in ("compute_efficiency", "bandwidth_efficiency_by_dtype", "launch_s_by_dtype"):
            origins[f"{name}.{number_format}"] = origin
        if number_format == "bf16":
            origins |= {"bandwidth_efficiency": origin, "launch_s": origin}
    for rate in entry.get("achieved", ()):
        origin = provenance_of(rate, where)
        origins[f"achieved_flops_per_s.{rate['format']}"] = origin
        if "bandwidth_gb_per_s" in rate:
            origins["achieved_bandwidth_bytes_per_s"] = origin
    return origins


def _engine_origins(entry: Entry, where: str) -> dict[str, Provenance]:
    """Label and source of each figure of an engine: its own, or those of the [[engine.except]] that names it."""
    stated = {key.removesuffix("_us"): [field] for key, field in _ENGINE_TIMES.items() if key in entry}
    stated |= {name: [name] for name in (*_ENGINE_PLAIN, *_ENGINE_RANGES) if name in entry}
    for name in _ENGINE_BY_CLASS:
        classes = entry.get(name, {})
        if unknown := sorted(set(classes) - _WEIGHT_CLASSES):
            listed = ", ".join(sorted(_BIT_CLASSES))
            raise CatalogFault(f"{where}: {name} by {', '.join(unknown)}; give a number format or a weight-bit class, which are {listed}")
        stated |= {name: [f"{name}.{bits}" for bits in classes]} if classes else {}
    origins = _origins(entry, set(stated), where)
    return {field: origins[name] for name, field_names in stated.items() for field in field_names}
