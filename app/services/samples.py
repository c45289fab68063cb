"""Sample runs of our own making, so that a newcomer sees a comparison before having a result of their own.

They are made here, from a seed, in the shape `vllm bench serve --save-detailed` and `llama-bench -o json` write: no measurement of
anybody. Each carries the tag `sample` and says so in its notes. The first is the founding text's request (TTFT 95 ms, 143 tokens/s).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

NOTE = "A sample run of our own making: its figures were made up for this example and measure nothing."
TAG = "sample"


@dataclass(frozen=True)
class SampleFile:
    """A result file made here, with what its uploader would have told about it."""

    name: str
    data: bytes
    overrides: Mapping[str, Any]


@dataclass(frozen=True)
class _Served:
    """What a served sample shows; TTFT and ITL are its means in seconds."""

    name: str
    label: str
    ttft_s: float
    itl_s: float
    prompt: int
    output: int
    clients: int
    requests: int
    seed: int
    date: str
    overrides: Mapping[str, Any]
    spread: float = 0.02


_H100 = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "devices": 1, "tp": 1}
_SERVED = (
    _Served(
        "sample-founding.json",
        "founding request",
        0.095,
        1 / 143,
        2000,
        300,
        1,
        100,
        1,
        "20261120-090000",
        {"model": "textbook-8b", "hardware": "textbook-h100", "devices": 1, "tp": 1, "weight_dtype": "bf16"},
    ),
    _Served(
        "sample-bf16.json", "bf16 weights", 0.0782, 0.00752, 1200, 300, 1, 120, 2, "20261121-090000", {**_H100, "weight_dtype": "bf16"}
    ),
    _Served(
        "sample-int4.json", "int4 weights", 0.2040, 0.00512, 1200, 300, 1, 120, 3, "20261122-090000", {**_H100, "weight_dtype": "int4"}
    ),
    _Served(
        "sample-32-clients.json",
        "bf16, 32 clients",
        0.412,
        0.0095,
        2000,
        200,
        32,
        320,
        4,
        "20261123-090000",
        {**_H100, "weight_dtype": "bf16"},
        0.25,
    ),
    _Served(
        "sample-8k-prompt.json",
        "bf16, 8 k prompt",
        0.341,
        0.00741,
        8000,
        200,
        1,
        100,
        5,
        "20261124-090000",
        {**_H100, "weight_dtype": "bf16"},
    ),
)


def sample_files() -> list[SampleFile]:
    """Six result files, the same bytes each time, so that loading them twice stores them once."""
    served = [SampleFile(item.name, _served_bytes(item), {**item.overrides, "label": item.label, **_COMMON}) for item in _SERVED]
    return [*served, _llama_bench_file()]


COMPARISON = ("bf16 weights", "int4 weights")
_COMMON: Mapping[str, Any] = {"tags": [TAG], "notes": NOTE}


def _served_bytes(item: _Served) -> bytes:
    rng = np.random.default_rng(item.seed)
    ttft = _around(rng, item.ttft_s, item.spread, item.requests)
    gaps = _around(rng, item.itl_s, 0.015, item.requests * (item.output - 1)).reshape(item.requests, item.output - 1)
    latencies = ttft + gaps.sum(axis=1)
    duration = float(latencies.sum()) / item.clients
    document = {
        "date": item.date,
        "endpoint_type": "vllm",
        "label": item.label,
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "tokenizer_id": "meta-llama/Llama-3.1-8B-Instruct",
        "num_prompts": item.requests,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": item.clients,
        "duration": duration,
        "completed": item.requests,
        "failed": 0,
        "total_input_tokens": item.prompt * item.requests,
        "total_output_tokens": item.output * item.requests,
        "request_throughput": item.requests / duration,
        "output_throughput": item.output * item.requests / duration,
        "total_token_throughput": (item.prompt + item.output) * item.requests / duration,
        **_statistics("ttft", ttft),
        **_statistics("tpot", gaps.mean(axis=1)),
        **_statistics("itl", gaps.ravel()),
        **_statistics("e2el", latencies),
        "input_lens": [item.prompt] * item.requests,
        "output_lens": [item.output] * item.requests,
        "ttfts": _rounded(ttft),
        "itls": [_rounded(row) for row in gaps],
        "errors": [""] * item.requests,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _around(rng: np.random.Generator, mean: float, spread: float, size: int) -> Any:
    """Positive values with exactly this mean and about this relative spread, on whole nanoseconds before the last correction."""
    values = np.round(rng.lognormal(0.0, spread, size), 6)
    return values * (mean / values.mean())


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 9) for value in values]


def _statistics(name: str, values: Any) -> dict[str, float]:
    milliseconds = np.asarray(values) * 1e3
    return {
        f"mean_{name}_ms": float(milliseconds.mean()),
        f"median_{name}_ms": float(np.median(milliseconds)),
        f"std_{name}_ms": float(milliseconds.std()),
        f"p99_{name}_ms": float(np.percentile(milliseconds, 99)),
    }


def _llama_bench_file() -> SampleFile:
    common = {
        "build_commit": "0000000",
        "build_number": 6000,
        "cpu_info": "sample CPU",
        "gpu_info": "NVIDIA GeForce RTX 4090",
        "backends": "CUDA",
        "model_filename": "llama-3.1-8b-q4_k_m.gguf",
        "model_type": "llama 8B Q4_K - Medium",
        "model_size": 4912898304,
        "model_n_params": 8030261312,
        "n_batch": 2048,
        "n_ubatch": 512,
        "n_threads": 8,
        "type_k": "f16",
        "type_v": "f16",
        "n_gpu_layers": 99,
        "flash_attn": True,
        "n_depth": 0,
        "test_time": "2026-11-25T09:00:00Z",
    }
    rows = [
        _llama_row(common, 512, 0, [101_900_000, 101_100_000, 101_400_000]),
        _llama_row(common, 0, 128, [915_000_000, 911_000_000, 913_000_000]),
    ]
    overrides = {
        "model": "llama-3-1-8b",
        "hardware": "geforce-rtx-4090",
        "devices": 1,
        "tp": 1,
        "weight_dtype": "q4_k_m",
        "label": "Q4_K_M on an RTX 4090",
        **_COMMON,
    }
    return SampleFile("sample-llama-bench.json", json.dumps(rows, indent=1).encode(), overrides)


def _llama_row(common: Mapping[str, Any], prompt: int, generated: int, samples_ns: list[int]) -> dict[str, Any]:
    tokens = prompt or generated
    rates = [tokens / (value / 1e9) for value in samples_ns]
    return {
        **common,
        "n_prompt": prompt,
        "n_gen": generated,
        "avg_ns": round(sum(samples_ns) / len(samples_ns)),
        "stddev_ns": round(float(np.std(samples_ns))),
        "avg_ts": float(np.mean(rates)),
        "stddev_ts": float(np.std(rates)),
        "samples_ns": samples_ns,
        "samples_ts": rates,
    }
