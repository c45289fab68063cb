"""The metric registry: one row per quantity, from which columns, glossary, API and the colour of a delta follow.

Definitions are those every importer maps to, whatever a tool calls the number. `other_names` says which tools
use another name for it, so that a reader of their output finds it on the glossary page.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher", "neither"]
MetricPhase = Literal["prefill", "decode", "queue", "request", "load"]
Kind = Literal["distribution", "rate"]


@dataclass(frozen=True)
class Metric:
    """One quantity: its key (with its SI unit), what it means and which way is better."""

    key: str
    title: str
    unit: str
    kind: Kind
    better: Better
    phase: MetricPhase
    definition: str
    other_names: tuple[str, ...] = ()


_ROWS = (
    Metric(
        "ttft_s",
        "TTFT",
        "s",
        "distribution",
        "lower",
        "prefill",
        "Time from sending the request to receiving its first output token of any kind, reasoning included. "
        "The server's queue is inside, the client's wait for a free slot is not.",
        ("vLLM, SGLang: ttft", "AIPerf: time_to_first_token", "llmperf: ttft_s"),
    ),
    Metric(
        "prefill_s",
        "Prefill",
        "s",
        "distribution",
        "lower",
        "prefill",
        "Server or in-process time of the prompt pass alone: no queue, no network, no front-end. "
        "Only this is compared with the compute roof; TTFT bounds it from above.",
        ("llama-bench: pp test", "SGLang one_batch: prefill_latency", "llama-server: prompt_ms"),
    ),
    Metric(
        "queue_s",
        "Queue",
        "s",
        "distribution",
        "lower",
        "queue",
        "Time a request waited inside the server before its prompt pass began.",
        ("vLLM: request_queue_time_seconds",),
    ),
    Metric(
        "itl_s",
        "ITL",
        "s",
        "distribution",
        "lower",
        "decode",
        "Inter-token latency, token-weighted: the sum of all decode times divided by the sum of (output tokens − 1) over the "
        "requests that succeeded, so that total = TTFT + (output tokens − 1) × ITL holds on means.",
        ("llama-bench: 1 / tg rate",),
    ),
    Metric(
        "tpot_s",
        "TPOT",
        "s",
        "distribution",
        "lower",
        "decode",
        "Time per output token of one request: (end to end - TTFT) / (output tokens − 1), every request weighted equally; "
        "undefined below two tokens.",
        ("vLLM, SGLang: tpot", "GenAI-Perf, AIPerf: inter_token_latency"),
    ),
    Metric(
        "chunk_gap_s",
        "Chunk gap",
        "s",
        "distribution",
        "lower",
        "decode",
        "Observed time between two chunks of a stream. One chunk may carry several tokens, so it is not an inter-token latency until "
        "tokens per chunk are known.",
        ("vLLM: itl", "SGLang with OpenAI backends: itl", "AIPerf: inter_chunk_latency"),
    ),
    Metric(
        "e2e_s",
        "Whole request",
        "s",
        "distribution",
        "lower",
        "request",
        "Time from sending the request to its last content token.",
        ("vLLM: e2el", "SGLang: e2e_latency", "AIPerf: request_latency"),
    ),
    Metric(
        "prefill_tokens_per_s",
        "Prefill rate",
        "tokens/s",
        "rate",
        "higher",
        "prefill",
        "Prompt tokens divided by the time of the prompt pass; from TTFT it includes queue and front-end and says so.",
        ("llama-bench: pp t/s",),
    ),
    Metric(
        "decode_tokens_per_s",
        "Decode rate",
        "tokens/s",
        "rate",
        "higher",
        "decode",
        "What one request sees: 1 / ITL. Not the server's sum.",
        ("llama-bench: tg t/s", "InferenceMAX: interactivity"),
    ),
    Metric(
        "output_tokens_per_s",
        "Output throughput",
        "tokens/s",
        "rate",
        "higher",
        "load",
        "Output tokens of all successful requests divided by the duration of the run: the server's sum, not one request's rate.",
        ("vLLM, SGLang: output_throughput",),
    ),
    Metric(
        "total_tokens_per_s",
        "Total throughput",
        "tokens/s",
        "rate",
        "higher",
        "load",
        "Prompt and output tokens of all successful requests divided by the duration of the run.",
        ("vLLM: total_token_throughput",),
    ),
    Metric(
        "requests_per_s",
        "Requests",
        "requests/s",
        "rate",
        "higher",
        "load",
        "Successful requests divided by the duration of the run.",
        ("vLLM, SGLang: request_throughput",),
    ),
)

METRICS: Mapping[str, Metric] = {metric.key: metric for metric in _ROWS}
