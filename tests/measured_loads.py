"""Result files of a device whose rates are the catalog's times known factors: what a calibration must find again."""

import itertools
from dataclasses import replace
from typing import Any

from app.catalog import load
from app.domain.prediction import Request
from app.domain.scalars import Scalars
from app.domain.serving import predict
from tests.result_files import data_of, served

DEVICE, MODEL, ENGINE = "h100-sxm5-80gb", "llama-3-1-8b", "vllm"
TRUTH = {"read": 0.85, "compute": 0.8, "layers": 1.3, "steps": 1.4, "interference": 0.8}
GRID = tuple(itertools.product((1, 4, 16, 64), (500, 4000)))
_OUTPUT = 200


def report(clients: int, prompt: int, **changes: Any) -> bytes:
    """One report of vLLM's bench serve, ten requests a client."""
    catalog = load()
    engine = replace(catalog.engines[ENGINE], scalars=Scalars(**TRUTH))
    request = Request(prompt_tokens=prompt, output_tokens=_OUTPUT, concurrency=clients if clients > 1 else None, engine=ENGINE)
    found = predict(catalog.models[MODEL].architecture, catalog.hardware[DEVICE], request, engine=engine)
    n, first, further, whole = 10 * clients, 1e3 * found.ttft_s, 1e3 * found.itl_s, 1e3 * found.total_s
    seconds = 10 * found.total_s
    times = {}
    for name, value in (("ttft", first), ("tpot", further), ("itl", further), ("e2el", whole)):
        times |= {f"mean_{name}_ms": value, f"median_{name}_ms": value, f"std_{name}_ms": 0.01 * value, f"p99_{name}_ms": 1.02 * value}
    counts = {"num_prompts": n, "completed": n, "total_input_tokens": n * prompt, "total_output_tokens": n * _OUTPUT}
    rates = {"request_throughput": n / seconds, "output_throughput": n * _OUTPUT / seconds}
    rates["total_token_throughput"] = n * (prompt + _OUTPUT) / seconds
    return data_of(served(**{**times, **counts, **rates, "duration": seconds, "max_concurrency": clients, **changes}))
