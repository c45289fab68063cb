"""Words in a scrape of vLLM: the configuration of the KV cache, and gauges at both moments, as labels."""

from dataclasses import dataclass

from app.domain.text import clean_text
from app.formats.prometheus_text import Scrape
from app.formats.scrape_difference import Difference
from app.formats.vllm_offline import UNSAID

_CACHE = "vllm:cache_config_info"
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
    return ScrapeWords(said.get("cache_dtype"), dict(sorted(said.items())))


def gauge_labels(between: Difference) -> dict[str, str]:
    """Gauges before and after: two moments, not the load of the run. Counts are those of all engines, a share is their mean."""
    found = {}
    for key, names in (*_COUNTS.items(), *_SHARES.items()):
        for when, scrape in _moments(between):
            values = between.gauges(scrape, *names)
            if values:
                found[f"{key}_{when}"] = f"{sum(values) / (len(values) if key in _SHARES else 1):.6g}"
    return found


def _moments(between: Difference) -> tuple[tuple[str, Scrape], tuple[str, Scrape]]:
    return ("before", between.before), ("after", between.after)
