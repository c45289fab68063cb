"""What vLLM's offline benches (latency, throughput) have in common: the engine's settings among a command's arguments."""

from dataclasses import dataclass

from app.formats.record import Record

# What the engine takes as "decide by yourself": no word about the run.
UNSAID = frozenset({"auto", "none", "null", "default", ""})
_LABELS = (
    *("n", "use_beam_search", "enable_prefix_caching", "enable_chunked_prefill", "max_num_batched_tokens", "max_num_seqs"),
    *("max_model_len", "gpu_memory_utilization", "enforce_eager", "disable_detokenize", "num_iters_warmup", "dataset_name"),
    *("async_engine", "backend", "num_prompts"),
)


@dataclass(frozen=True)
class OfflineSettings:
    """Words and sizes of the arguments, None where they do not say."""

    tp: int | None
    pp: int | None
    weight_dtype: str | None
    kv_dtype: str | None
    labels: dict[str, str]


def offline_settings(arguments: Record) -> OfflineSettings:
    """The engine's settings. A quantisation is the weight format; else it is what `--dtype` asked for, unless that left it open."""
    words = {key: arguments.text(key) for key in ("quantization", "dtype", "kv_cache_dtype")}
    said = {key: word for key, word in words.items() if word and word.lower() not in UNSAID}
    return OfflineSettings(
        tp=arguments.count("tensor_parallel_size") or None,
        pp=arguments.count("pipeline_parallel_size") or None,
        weight_dtype=said.get("quantization") or said.get("dtype"),
        kv_dtype=said.get("kv_cache_dtype"),
        labels={key: label for key in _LABELS if (label := arguments.label(key)) not in (None, "")},
    )
