"""The settings of a deployment that a run's file carries, under whatever names its tool gives them."""

from collections.abc import Mapping
from math import inf

from app.domain.diagnosis import Setup
from app.domain.dtypes import number_format
from app.domain.errors import PhaselineError
from app.domain.run import Run

# Labels that tools write, by the fact they state; the first that is there counts.
NUMBERS: Mapping[str, tuple[str, ...]] = {
    "chunk_budget_tokens": ("max_num_batched_tokens", "chunked_prefill_size", "max_num_tokens"),
    "running_cap": ("max_num_seqs", "max_running_requests", "max_batch_size", "n_seq_max"),
    "graph_limit": ("cuda_graph_max_bs", "max_cudagraph_capture_size", "cuda_graph_max_batch_size"),
    "pool_tokens": ("kv_cache_size_tokens", "max_total_num_tokens", "max_total_tokens"),
    "served_prompt_tokens": ("server_prompt_tokens",),
    "preemptions": ("preemptions", "num_preemptions"),
}
SHARES: Mapping[str, tuple[str, ...]] = {"pool_used_share": ("kv_cache_usage_max",)}
SWITCHES: Mapping[str, tuple[str, ...]] = {
    "eager": ("enforce_eager", "disable_cuda_graph"),
    "adapters": ("enable_lora", "lora_paths", "lora_modules"),
    "speculative": (
        *("speculative_algorithm", "speculative_method", "num_speculative_tokens", "speculative_num_steps"),
        *("spec_decoding", "spec_decode_num_drafts", "speculative_types", "speculative_mode", "draft_n"),
    ),
    "disaggregated": ("disaggregation_mode", "kv_transfer_config", "disagg"),
    "constrained": ("structured_output", "guided_decoding", "grammar"),
}
# llama.cpp computes a prompt in pieces of its physical batch, which the logical one bounds.
_PHYSICAL_BATCH, _LOGICAL_BATCH = ("n_ubatch",), ("n_batch",)
# SGLang's word for prompts that are never split.
_NEVER_SPLIT = ("chunked_prefill_size", "-1")
_LAYERS_ON_DEVICE, _LAYERS_IN_ALL = ("n_gpu_layers",), ("n_layers",)
# Settings of llama.cpp that move single tensors, whatever the number of layers says.
_TENSORS_MOVED = ("n_cpu_moe", "tensor_buft_overrides")
_UNSPLIT = ("enable_chunked_prefill",)
_OFFLOADED_GIB = ("cpu_offload_gb",)
_GIB = 2**30
_FALSE = frozenset({"false", "0", "no", "off", "none", "null", ""})


def told_by(run: Run) -> Setup:
    """What the labels and the metrics of a run say of its deployment."""
    found: dict[str, float | None] = {name: _number(run, labels) for name, labels in NUMBERS.items()}
    found |= {name: _share(run, labels) for name, labels in SHARES.items()}
    found |= {name: _switch(run, labels) for name, labels in SWITCHES.items()}
    if _switch(run, _UNSPLIT) == 0.0 or run.labels.get(_NEVER_SPLIT[0]) == _NEVER_SPLIT[1]:
        found["chunk_budget_tokens"] = inf
    elif found["chunk_budget_tokens"] is None and (physical := _number(run, _PHYSICAL_BATCH)) is not None:
        found["chunk_budget_tokens"] = min(physical, _number(run, _LOGICAL_BATCH) or physical)
    return Setup(
        **found,
        bytes_per_parameter=width(run.weight_dtype),
        kv_element_bytes=width(run.kv_dtype),
        cached_share=_cached_share(run),
        devices=None if run.tp is None else float(run.tp * (run.pp or 1)),
        fast_share=layers_on_device(run, _number(run, _LAYERS_IN_ALL)),
    )


def layers_on_device(run: Run, layers: float | None) -> float | None:
    """The part of `layers` (the output's counted as one) that is in the device's memory by llama.cpp's setting; None where it does not say.

    None too where single tensors were moved, since their part does not follow from layers.
    """
    given = _number(run, _LAYERS_ON_DEVICE)
    if given is None or not layers or _switch(run, _TENSORS_MOVED):
        return None
    return min(given / layers, 1.0)


def offloaded_bytes(run: Run) -> float | None:
    """Bytes of weights that lie in the host's memory, by the engine's own setting."""
    found = _real(run, _OFFLOADED_GIB)
    return None if found is None else found * _GIB


def _cached_share(run: Run) -> float | None:
    """The part of prompt tokens that the server found in its cache, as its usage counts them."""
    cached, prompt = run.distribution("cached_prompt_tokens"), run.workload.prompt_tokens_mean
    if cached is None or cached.mean is None or not prompt:
        return None
    # Servers that time single requests count what was cached as the context before the prompt pass.
    share = cached.mean / (prompt + run.workload.context_depth_tokens)
    return share if share <= 1.0 else None


def width(dtype: str | None) -> float | None:
    """Bytes of an element, None where the format is not known."""
    if dtype is None:
        return None
    try:
        return number_format(dtype).payload_bytes
    except PhaselineError:
        return None


def _number(run: Run, names: tuple[str, ...]) -> float | None:
    for name in names:
        text = run.labels.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 16:
            return float(text)
    return None


def _real(run: Run, names: tuple[str, ...]) -> float | None:
    for name in names:
        text = run.labels.get(name, "")
        if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 16:
            return float(text)
    return None


def _share(run: Run, names: tuple[str, ...]) -> float | None:
    value = _real(run, names)
    return value if value is not None and value <= 1.0 else None


def _switch(run: Run, names: tuple[str, ...]) -> float | None:
    """1 where a label says anything but no, 0 where it says no; None where there is no such label."""
    words = [run.labels[name].strip().lower() for name in names if name in run.labels]
    return float(any(word not in _FALSE for word in words)) if words else None
