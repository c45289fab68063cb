"""The mock's own figures in the words of vLLM's /metrics, exact from its log."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Protocol

_BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_TOKENS = (1.0, 10.0, 100.0, 1000.0, 10_000.0)


class Entry(Protocol):
    """What of a served request is read."""

    received: int
    started: int
    sends: list[int]
    prompt_tokens: int
    output_tokens: int
    status: int


def exposition(log: Iterable[Entry], cached_share: float) -> str:
    """Histograms and counters of the requests that have ended."""
    ended = [one for one in log if one.status == 200 and one.sends]
    times = {
        "time_to_first_token_seconds": [(one.sends[0] - one.received) / 1e9 for one in ended],
        "request_queue_time_seconds": [(one.started - one.received) / 1e9 for one in ended],
        "request_prefill_time_seconds": [(one.sends[0] - one.started) / 1e9 for one in ended],
        "request_decode_time_seconds": [(one.sends[-1] - one.sends[0]) / 1e9 for one in ended],
        "e2e_request_latency_seconds": [(one.sends[-1] - one.received) / 1e9 for one in ended],
    }
    prompts, outputs = [float(one.prompt_tokens) for one in ended], [float(one.output_tokens) for one in ended]
    lines = [line for name, values in times.items() for line in _histogram(name, values, _BOUNDS)]
    lines += [*_histogram("request_prompt_tokens", prompts, _TOKENS), *_histogram("request_generation_tokens", outputs, _TOKENS)]
    counters = {
        'request_success_total{model_name="mock",finished_reason="length"}': float(len(ended)),
        'prompt_tokens_total{model_name="mock"}': sum(prompts),
        'generation_tokens_total{model_name="mock"}': sum(outputs),
        'prefix_cache_queries_total{model_name="mock"}': sum(prompts),
        'prefix_cache_hits_total{model_name="mock"}': sum(round(tokens * cached_share) for tokens in prompts),
    }
    return "\n".join([*lines, *(f"vllm:{name} {value}" for name, value in counters.items())]) + "\n"


def _histogram(name: str, values: Sequence[float], bounds: Sequence[float]) -> list[str]:
    counts = [0] * (len(bounds) + 1)
    for value in values:
        counts[bisect_left(bounds, value)] += 1
    edges = [*(f"{bound:g}" for bound in bounds), "+Inf"]
    lines = [f'vllm:{name}_bucket{{model_name="mock",le="{edge}"}} {total}' for edge, total in zip(edges, accumulate(counts), strict=True)]
    return [*lines, f'vllm:{name}_sum{{model_name="mock"}} {sum(values)}', f'vllm:{name}_count{{model_name="mock"}} {len(values)}']
