"""Words in a scrape of vLLM: the configuration of the KV cache, and gauges at both moments, as labels."""

from dataclasses import dataclass

from app.domain.text import clean_text
from app.formats.prometheus_text import Scrape
from app.formats.scrape_difference import Difference
from app.formats.vllm_offline import UNSAID

FINISHED = "vllm:request_success_total"
FLOPS = "vllm:estimated_flops_per_gpu_total"
BYTES = ("vllm:estimated_read_bytes_per_gpu_total", "vllm:estimated_write_bytes_per_gpu_total")
_CACHE = "vllm:cache_config_info"
# Registered by a server that may load adapters, and by no other.
_ADAPTERS = "vllm:lora_requests_info"
_KEPT = (
    *("block_size", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "num_gpu_blocks", "num_cpu_blocks"),
    *("kv_cache_size_tokens", "kv_cache_max_concurrency", "sliding_window", "swap_space_bytes", "kv_offloading_size"),
)
_COUNTS = {"requests_running": ("vllm:num_requests_running",), "requests_waiting": ("vllm:num_requests_waiting",)}
_SHARES = {"kv_cache_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")}


@dataclass(frozen=True)
class ScrapeWords:
    """What the cache's configuration says, None and nothing where it does not."""

    kv_dtype: str | None
    labels: dict[str, str]


def identity(between: Difference) -> ScrapeWords:
    """The configuration of the cache at the later scrape."""
    series = next(iter(between.after.get(_CACHE)), ())
    said = {key: clean_text(value) for key, value in series if key in _KEPT}
    said = {key: value for key, value in said.items() if value and value.lower() not in UNSAID}
    if between.after.get(_ADAPTERS):
        said["enable_lora"] = "true"
    return ScrapeWords(said.get("cache_dtype"), dict(sorted(said.items())))


def gauge_labels(between: Difference) -> dict[str, str]:
    """Gauges before and after: two moments, not the load of the run. Counts are those of all engines, a share is their mean.

    Where there are scrapes between, the largest at any of the moments: of a share that of the fullest engine.
    """
    found = {}
    for key, names in (*_COUNTS.items(), *_SHARES.items()):
        for when, scrape in _moments(between):
            values = between.gauges(scrape, *names)
            if values:
                found[f"{key}_{when}"] = f"{sum(values) / (len(values) if key in _SHARES else 1):.6g}"
        seen = [between.gauges(scrape, *names) for scrape in (between.before, *between.between, between.after)]
        if between.between and all(seen):
            found[f"{key}_max"] = f"{max(max(values) if key in _SHARES else sum(values) for values in seen):.6g}"
    return found


def counted_labels(between: Difference) -> dict[str, str]:
    """Totals of the server between the scrapes that no metric holds."""
    names = {
        "prompt_tokens": "vllm:prompt_tokens_total",
        "generation_tokens": "vllm:generation_tokens_total",
        "preemptions": "vllm:num_preemptions_total",
        **{f"spec_decode_{name}": f"vllm:spec_decode_{name}_total" for name in ("num_drafts", "num_draft_tokens", "num_accepted_tokens")},
        "flops_per_device": FLOPS,
        "bytes_read_per_device": BYTES[0],
        "bytes_written_per_device": BYTES[1],
    }
    found = {}
    for key, name in names.items():
        rise = between.mean_rise(name) if key.endswith("_device") else between.rise(name)
        if rise is not None and (rise or not key.endswith("_device")):
            found[key] = f"{rise:.10g}"
    found |= {f"finished_{reason}": f"{rise:.0f}" for reason, rise in between.rises(FINISHED, "finished_reason").items() if rise > 0}
    return {clean_text(key, 60): value for key, value in found.items()}


def _moments(between: Difference) -> tuple[tuple[str, Scrape], tuple[str, Scrape]]:
    return ("before", between.before), ("after", between.after)
