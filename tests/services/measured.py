"""Runs built by hand for the services' tests."""

from typing import Any

from app.catalog import load
from app.domain.run import Distribution, RequestCounts, Run, Workload

CATALOG = load()
H100 = CATALOG.hardware["h100-sxm5-80gb"]
LLAMA = CATALOG.models["llama-3-1-8b"].architecture
TEXTBOOK = CATALOG.models["textbook-8b"].architecture
TEXTBOOK_H100 = CATALOG.hardware["textbook-h100"]


def measured(**changes: Any) -> Run:
    """One client, 2,000 tokens in and 300 out: 95 ms to the first token, then 143 tokens a second (rows 7 to 9 of the founding ideas)."""
    values: dict[str, Any] = {
        "format": "vllm_bench_serve",
        "model": "textbook-8b",
        "hardware": "textbook-h100",
        "weight_dtype": "bf16",
        "load_mode": "single",
        "measured_at": "client",
        "workload": Workload(2000.0, 300.0, 200_000, 30_000, 1),
        "requests": RequestCounts(100, 100, 0),
        "metrics": {
            "ttft_s": Distribution(mean=0.095, p50=0.094, n=100),
            "itl_s": Distribution(mean=1 / 143, p50=0.0069, n=29_900),
            "e2e_s": Distribution(mean=0.095 + 299 / 143, n=100),
        },
        **changes,
    }
    return Run(**values)
