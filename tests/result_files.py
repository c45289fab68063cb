"""Small result files built on the spot, with figures that add up by hand."""

import json
from typing import Any


def served(**changes: Any) -> dict[str, Any]:
    """A sound vLLM report of one client: 20 requests of 100 prompt and 51 output tokens, one after another.

    Each takes 550 ms = 50 ms to the first token + 50 steps x 10 ms, so 20 of them take 11 s.
    """
    return {
        "endpoint_type": "vllm",
        "model_id": "meta-llama/Llama-3.1-8B",
        "tokenizer_id": "meta-llama/Llama-3.1-8B",
        "num_prompts": 20,
        "request_rate": "inf",
        "max_concurrency": 1,
        "duration": 11.0,
        "completed": 20,
        "failed": 0,
        "total_input_tokens": 2000,
        "total_output_tokens": 1020,
        "request_throughput": 20 / 11,
        "output_throughput": 1020 / 11,
        "total_token_throughput": 3020 / 11,
        "mean_ttft_ms": 50.0,
        "median_ttft_ms": 49.0,
        "std_ttft_ms": 5.0,
        "p99_ttft_ms": 70.0,
        "mean_tpot_ms": 10.0,
        "median_tpot_ms": 10.0,
        "std_tpot_ms": 0.5,
        "p99_tpot_ms": 12.0,
        "mean_itl_ms": 10.0,
        "median_itl_ms": 9.0,
        "std_itl_ms": 3.0,
        "p99_itl_ms": 30.0,
        "mean_e2el_ms": 550.0,
        "median_e2el_ms": 549.0,
        "std_e2el_ms": 6.0,
        "p99_e2el_ms": 570.0,
        **changes,
    }


def in_detail(report: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A report with per-request arrays: four requests of 3, 5, 2 and 1 output tokens in 2 s, and one that failed.

    First tokens 100, 200, 300 and 400 ms; gaps 2 x 10, 4 x 20 and 1 x 30 ms.
    """
    aggregates = {key: value for key, value in report.items() if not key.endswith("_ms")}
    return {
        **aggregates,
        "num_prompts": 5,
        "duration": 2.0,
        "completed": 4,
        "failed": 1,
        "total_input_tokens": 110,
        "total_output_tokens": 11,
        "request_throughput": 2.0,
        "output_throughput": 5.5,
        "total_token_throughput": 60.5,
        "mean_ttft_ms": 250.0,
        "mean_tpot_ms": 20.0,
        "mean_itl_ms": 130 / 7,
        "mean_e2el_ms": 282.5,
        "input_lens": [10, 20, 30, 40, 50],
        "output_lens": [3, 5, 2, 0, 1],
        "ttfts": [0.1, 0.2, 0.3, 0.0, 0.4],
        "itls": [[0.01, 0.01], [0.02, 0.02, 0.02, 0.02], [0.03], [], []],
        "errors": ["", "", "", "Traceback: timeout", ""],
        **changes,
    }


def served_in_detail(**changes: Any) -> dict[str, Any]:
    """The same tool's report in detail, without a limit of clients."""
    return in_detail(served(), **{"max_concurrency": None, **changes})


def data_of(report: Any) -> bytes:
    """The report as the bytes of a JSON file."""
    return json.dumps(report).encode()


def served_file(number: int = 0, **changes: Any) -> bytes:
    """The bytes of a sound report; each number gives other bytes with the same figures."""
    return data_of(served(tokenizer_id=f"tokenizer-{number}", **changes))
