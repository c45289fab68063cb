"""Engine profiles as the catalog holds them: written by the fit, each figure with where it comes from.

Texts about an engine stand in `ENGINES`; everything else is computed. A figure that a bound of the fit holds is no physical value, and
its entry says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.profile_choice import kind_of_device, narrowest_units
from benchmarks.asked import Asked
from benchmarks.fitting.bands import Bands

Floats = npt.NDArray[np.float64]
DATE = "2026-11-30"


@dataclass(frozen=True)
class Engine:
    """What is known of an engine beside its figures."""

    slug: str
    name: str
    aliases: tuple[str, ...]
    version_notes: str = ""
    notes: str = ""
    schedule: Mapping[str, Any] | None = None
    cuda_graphs: bool = True


_ALONE = {
    "prefill_alone": True,
    "source": "SGLang's server arguments: a pass mixes prompts with decode steps only under --enable-mixed-chunk, off by default",
}
_RESERVED = {
    "kv_reservation": 1.0,
    "source": "TensorRT-LLM's capacity scheduler policy GUARANTEED_NO_EVICT, the default: "
    "a started request is never paused for lack of cache",
}
SERVED_ENGINES = (
    Engine("vllm", "vLLM", ("vLLM",), "releases of 2025 and 2026"),
    Engine("sglang", "SGLang", ("SGLang", "sgl"), "releases of 2025 and 2026", schedule=_ALONE),
    Engine("tensorrt-llm", "TensorRT-LLM", ("TensorRT-LLM", "trtllm", "trt-llm", "trt"), "releases of 2025 and 2026", schedule=_RESERVED),
)
STREAM_ENGINES = (
    Engine("llama-cpp", "llama.cpp", ("llama.cpp", "llama-bench", "llama-server"), "2024 to 2026"),
    Engine("gpt-fast", "gpt-fast", ("gpt-fast (PyTorch)",), "2023 and 2024, compiled PyTorch"),
    Engine(
        "transformers",
        "Transformers (eager)",
        ("transformers", "transformers (optimum-benchmark)", "Hugging Face Transformers"),
        "2023 to 2025, eager PyTorch",
        cuda_graphs=False,
    ),
    Engine("exllamav2", "ExLlamaV2", ("ExLlamaV2", "exllama v2"), "2024"),
    Engine("mlc-llm", "MLC-LLM", ("MLC-LLM", "mlc"), "2023 and 2024"),
    Engine("autoawq", "AutoAWQ", ("AutoAWQ",), "2023 and 2024"),
    Engine("openvino", "OpenVINO", ("OpenVINO", "OpenVINO GenAI"), "2024, integrated GPUs of Intel"),
    Engine("transformers-neuronx", "transformers-neuronx", ("transformers-neuronx", "neuronx"), "2024, AWS Inferentia2 and Trainium1"),
)

# Constant of a fit -> key of the catalog and factor to its unit; those of a mapping hold for any format.
_MAPPINGS = {
    "e_b": ("weight_bandwidth_efficiency",),
    "e_bx": ("expert_bandwidth_efficiency",),
    "e": ("compute_efficiency",),
    "e_x": ("expert_compute_efficiency",),
    "unpack": ("alu_operations_per_weight",),
}
_TIMES = {
    "layer": "per_layer_us",
    "expert_layer": "per_expert_layer_us",
    "alpha": "all_reduce_alpha_us",
    "send": "send_us",
    "step": "step_us",
    "least": "step_us",
    "sequence": "sequence_layer_us",
    "floor": "prefill_floor_per_layer_us",
    "expert_floor": "prefill_floor_per_expert_layer_us",
    "front": "front_end_us",
    "serial": "serial_front_end_us",
}
_PLAIN = {
    "e_kv": "kv_bandwidth_efficiency",
    "attention": "attention_limit",
    "interference": "interference",
    "traffic": "expert_traffic",
    "fill": "fill_tokens",
    "admission": "admission_steps",
    "by_running": "admission_running_power",
    "by_devices": "admission_devices_power",
}
_HELD = {"launch_us": 2.0, "quantised_launch_us": 2.0}


def figures(names: Sequence[str], values: Floats, stream: bool) -> dict[str, Any]:
    """The catalog's keys and figures of one set of constants, rounded to three digits."""
    found: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        for key in _MAPPINGS.get(name, ()):
            found[key] = {"any": _three(value)}
        if name in _TIMES:
            found[_TIMES[name]] = _three(value * 1e6)
        if name in _PLAIN:
            found[_PLAIN[name]] = _three(value)
    if stream:
        found["expert_bandwidth_efficiency"] = found["weight_bandwidth_efficiency"]
        found["expert_compute_efficiency"] = found["compute_efficiency"]
        found |= {"per_expert_layer_us": 0.0, "sequence_layer_us": 0.0, "serial_front_end_us": 0.0, "expert_traffic": 0.0}
        found["micro_batch_tokens"] = 512
    return found | {"per_sequence_us": 0.0} | _HELD


@dataclass(frozen=True)
class Group:
    """Rows that one entry stands for: their places in a fit, and the conditions under which the entry goes."""

    places: npt.NDArray[np.int64]
    conditions: Mapping[str, Any]


def entry(bands: Bands, places: npt.NDArray[np.int64], values: Floats, stream: bool) -> dict[str, Any]:
    """Figures, bands, devices and the source of one entry from the rows at `places`."""
    fit = bands.fit
    names = fit.rows.parameters.names
    found = figures(names, values, stream)
    outputs = ((0, False), (0, True)) if stream else ((0, None), (1, None))
    keys, words = ("itl_range", "ttft_range"), []
    predicted = fit.predicted()
    for key, (output, prefill) in zip(keys, outputs, strict=True):
        ratios = bands.ratios(places, output, prefill)
        found[key] = list(bands.around(places, output, prefill))
        mine = places if prefill is None else places[fit.rows.prefill[places] == prefill]
        error = np.abs(predicted[mine, output] / fit.rows.measured[mine, output] - 1.0)
        error = error[np.isfinite(error)]
        if len(error):
            name = ("decode" if not prefill else "prefill") if stream else ("TPOT", "TTFT")[output]
            left = np.abs(1.0 / ratios - 1.0)
            words.append(
                f"{name} n = {len(error)}, {100 * np.median(error):.1f} / {100 * error.mean():.1f} %, model left out "
                f"{100 * np.median(left):.1f} / {100 * left.mean():.1f} %"
            )
    asked = [fit.rows.asked[place] for place in places]
    found["rows"] = len(places)
    found["fitted_on"] = sorted({one.hardware.slug for one in asked})
    kind = "single streams" if stream else "closed-loop load"
    found["label"] = "fitted"
    found["source"] = f"fit to published measurements of {kind}, {DATE}; error median / mean: {'; '.join(words) or 'no row of its own'}"
    held = [
        item.name
        for item, value in zip(fit.rows.parameters.items, values, strict=True)
        if value <= item.low * 1.001 or value >= item.high * 0.999
    ]
    if held:
        found["notes"] = f"Held by a bound of the fit, so no physical value: {', '.join(held)}."
    return found


def groups(asked: Sequence[Asked], engine: str, stream: bool) -> list[Group]:
    """Groups of an engine's rows, narrow ones first and each kind by its rows: what goes for a question is the first that holds.

    Experts or not with the generation and weight format of a served row, with the weight bits, kind and generation of the device of a
    stream; then what is left for weights or devices that no group has: the class of models (a stream's kind of device and weight bits too).
    """
    narrow = _stream_conditions if stream else _served_conditions
    kinds: list[Callable[[Asked], dict[str, Any]]] = (
        [narrow, _kind_conditions, _bits_conditions, _class_conditions] if stream else [narrow, _class_conditions]
    )
    found: list[Group] = []
    for kind in kinds:
        by_key: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for place, one in enumerate(asked):
            if one.engine == engine:
                conditions = kind(one)
                by_key.setdefault(repr(conditions), (conditions, []))[1].append(place)
        mine = [Group(np.array(places), conditions) for conditions, places in by_key.values()]
        found += sorted(mine, key=lambda group: -len(group.places))
    return [group for group in found if not _one_generation(group, found)]


def _one_generation(group: Group, found: Sequence[Group]) -> bool:
    """Whether a group of one generation holds all rows of its kind of device: the group of the kind says it all then."""
    kind = {key: value for key, value in group.conditions.items() if key != "units"}
    alike = (other for other in found if other.conditions == kind and "device" in kind and kind != group.conditions)
    return any(len(other.places) == len(group.places) for other in alike)


def _served_conditions(one: Asked) -> dict[str, Any]:
    return {"experts": one.experts, "units": narrowest_units(one.hardware), "weights": [one.weights]}


def _stream_conditions(one: Asked) -> dict[str, Any]:
    return {**_kind_conditions(one), "units": narrowest_units(one.hardware)}


def _kind_conditions(one: Asked) -> dict[str, Any]:
    return {"experts": one.experts, "weights": [one.bits], "device": kind_of_device(one.hardware)}


def _bits_conditions(one: Asked) -> dict[str, Any]:
    return {"experts": one.experts, "weights": [one.bits]}


def _class_conditions(one: Asked) -> dict[str, Any]:
    return {"experts": one.experts}


def engine_entry(engine: Engine, bands: Bands, stream: bool) -> dict[str, Any]:
    """An engine's whole entry: figures of all its rows, then of each group."""
    fit = bands.fit
    asked = fit.rows.asked
    whole = np.array([place for place, one in enumerate(asked) if one.engine == engine.slug], dtype=np.int64)
    if not len(whole):
        raise ValueError(f"no row of {engine.name}; give tables that hold some")
    logarithms = fit.solution.logarithms(asked)

    def values(places: npt.NDArray[np.int64]) -> Floats:
        # Rows of a narrow group have the same constants; a wide one has the middle of its rows'.
        found: Floats = fit.rows.parameters.bounded(logarithms[places].mean(axis=0))
        return found

    found = groups(asked, engine.slug, stream)
    variants = [{**group.conditions, **entry(bands, group.places, values(group.places), stream)} for group in found]
    schedule = {"schedule": {**engine.schedule, "label": "literature"}} if engine.schedule else {}
    texts = {"aliases": list(engine.aliases), **({} if engine.cuda_graphs else {"cuda_graphs": False})}
    return {
        "slug": engine.slug,
        "name": engine.name,
        "version_notes": engine.version_notes,
        **entry(bands, whole, values(whole), stream),
        **texts,
        **schedule,
        "except": [_HELD_EXCEPTION],
        "variant": [{**one, "except": [_HELD_EXCEPTION]} for one in variants],
    }


_HELD_EXCEPTION = {"figures": ["launch", "quantised_launch"], "label": "assumed", "source": "held at this value in the fit"}


def _three(value: float) -> float:
    return float(f"{value:.3g}")


HEADER = """# Engines: what each adds to a pass, or keeps of a device's rates.
# Written by `python -m benchmarks.fit`; see docs/accuracy.md and NOTICE.
#   weight_bandwidth_efficiency   e_b while reading weights, expert_… e_bx; by number format or weight-bit class (16bit, 8bit, 4bit), or any
#   kv_bandwidth_efficiency       e_kv while reading the KV cache and recurrent states
#   attention_limit               most that e_c of attention to a long prompt reaches
#   compute_efficiency            factor on the general e_c of a format (experts: expert_compute_efficiency)
#   alu_operations_per_weight     plain operations that unpacking and multiplying a weight costs, at the fp32 rate
#   launch_us, quantised_…        t0 of a matrix product        per_layer_us, per_expert_…   fixed time of a layer
#   step_us                       scheduler, per step           per_sequence_us, sequence_layer_us   per running sequence, and in each layer
#   front_end_us, serial_…        per request, in TTFT          all_reduce_alpha_us   a round of a collective
#   prefill_floor_per_layer_us    least time of a layer in a pass with prompt tokens (such passes are not graph-captured), and
#   …_per_expert_layer_us         what one with experts adds to it
#   admission_steps               decode steps that a request waits, on average, until the scheduler looks for new ones, at 16 running
#                                 requests on 4 devices      admission_running_power, …_devices_power   the powers with which it grows
#   interference                  factor on the prefill interference of continuous batching
#   expert_traffic                bytes per token, chosen expert and hidden element      fill_tokens   tokens lost until units are filled
#   itl_range, ttft_range         measured / predicted: the 90 % band of the class on rows of models left out of the fit
#   rows, fitted_on               measurements behind an entry, and the devices they are from
#   label, source                 of every figure of the entry that no [[engine.except]] names; the labels are app.domain.hardware.LABELS
#   [engine.schedule]             what a pass may carry (chunk_tokens, running_cap), the share of an answer's cache that admission sets
#                                 aside (kv_reservation), and whether prompts run without decode steps (prefill_alone)
#   [[engine.variant]]            the same for a part of the questions: models with or without experts, weights of a format or class,
#                                 devices by their narrowest arithmetic (units) or kind (device); the first whose conditions hold goes. The
#                                 last ones, with fewer conditions, stand in for weights and devices that no other has seen
# A figure that is absent is taken from the device or the defaults.
"""


def as_toml(entries: Sequence[Mapping[str, Any]]) -> str:
    """The catalog file."""
    lines = [HEADER]
    for one in entries:
        lines += ["[[engine]]", *_table(one), ""]
        if "schedule" in one:
            lines += ["[engine.schedule]", *_table(one["schedule"]), ""]
        for exception in one.get("except", ()):
            lines += ["[[engine.except]]", *_table(exception), ""]
        for variant in one.get("variant", ()):
            lines += ["[[engine.variant]]", *_table(variant)]
            for exception in variant.get("except", ()):
                lines += ["[[engine.variant.except]]", *_table(exception)]
            lines += [""]
    return "\n".join(lines).rstrip() + "\n"


def _table(one: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in one.items() if key not in ("schedule", "except", "variant")]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)
