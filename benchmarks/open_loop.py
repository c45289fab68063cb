"""How near the closed form of an open loop comes to the step simulator: `python -m benchmarks.open_loop`.

Three engines, models on one to eight devices with and without pipeline stages and attention ranks, requests of equal and of drawn lengths,
from a lone request now and then up to the rate at which the queue still ends. The closed form is told how many requests are in flight, as a
measured run tells it. Printed are medians and worst distances of TTFT and ITL, of the same load priced as a closed loop beside them.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from app.catalog import Catalog, load
from app.domain.prediction import Request
from app.domain.serving import predict
from app.domain.simulation import ServedLoad, Simulation, Simulator

ENGINES = ("vllm", "sglang", "tensorrt-llm")
REQUESTS = 2000
GROWS = 1.2  # the second half waits this many times as long as the first: the rate is above what is answered


@dataclass(frozen=True)
class Deployment:
    """A model on devices, with the lengths of its requests and the rates that are tried, requests per second."""

    model: str
    hardware: str
    request: Request
    rates: tuple[float, ...]


_8B, _70B, _H100 = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct", "h100-sxm5-80gb"
DEPLOYMENTS = (
    Deployment(_8B, _H100, Request(prompt_tokens=1024, output_tokens=256), (0.5, 2, 5, 10, 15, 20)),
    Deployment(_8B, _H100, Request(prompt_tokens=200, output_tokens=200), (2, 10, 30, 50)),
    Deployment(_8B, _H100, Request(prompt_tokens=8000, output_tokens=500), (0.3, 1, 2)),
    Deployment(_70B, _H100, Request(prompt_tokens=2048, output_tokens=256, tp=4), (0.5, 1, 2, 3, 4)),
    Deployment(_70B, _H100, Request(prompt_tokens=2048, output_tokens=256, tp=4, pp=2), (0.5, 2, 4, 6)),
    Deployment(
        "openai/gpt-oss-120b", "b200-sxm-180gb", Request(prompt_tokens=1000, output_tokens=1000, tp=2, weight_dtype="mxfp4"), (1, 4, 8)
    ),
    Deployment(
        "deepseek-ai/DeepSeek-V3", "h200-sxm-141gb", Request(prompt_tokens=1000, output_tokens=500, tp=8, weight_dtype="fp8"), (0.5, 2, 4)
    ),
    Deployment(
        "deepseek-ai/DeepSeek-V3",
        "h200-sxm-141gb",
        Request(prompt_tokens=1000, output_tokens=500, dp=8, ep=8, weight_dtype="fp8"),
        (1, 4, 8),
    ),
)


@dataclass(frozen=True)
class Row:
    """One load: simulated seconds, and relative differences of the closed forms (open and closed loop) from them."""

    load: str
    ttft_s: float
    itl_s: float
    ttft: float
    itl: float
    as_closed_ttft: float
    as_closed_itl: float


def rows(catalog: Catalog) -> Iterator[Row]:
    """All loads at which the server keeps up."""
    for deployment in DEPLOYMENTS:
        for engine in ENGINES:
            for shortest in (1.0, 0.2):
                for rate in deployment.rates:
                    found = row(catalog, deployment, engine, shortest, rate)
                    if found is not None:
                        yield found


def row(catalog: Catalog, deployment: Deployment, engine: str, shortest: float, rate: float) -> Row | None:
    """One load, None where the queue grows for as long as requests come."""
    model, hardware = catalog.find_model(deployment.model), catalog.find_hardware(deployment.hardware)
    assert model is not None, deployment.model
    assert hardware is not None, deployment.hardware
    profile = catalog.find_engine(engine)
    request = replace(deployment.request, engine=engine, shortest_length=shortest)
    sent = ServedLoad(request.prompt_tokens, request.output_tokens, request_rate_per_s=rate, requests=REQUESTS, shortest_length=shortest)
    seen = Simulator.of(model.architecture, hardware, request, engine=profile).run(sent)
    if _grows(seen):
        return None
    first, step = seen.ttft.mean, seen.itl_s
    assert first is not None
    assert step is not None
    asked = replace(request, concurrency=1, open_loop=True)
    flight = max(1, round(rate * step * asked.further_tokens))
    asked = replace(asked, concurrency=flight)
    priced = predict(model.architecture, hardware, asked, engine=profile)
    closed = predict(model.architecture, hardware, replace(asked, open_loop=False), engine=profile)
    name = (
        f"{engine} {model.architecture.name} {request.prompt_tokens}+{request.output_tokens} tp{request.tp} pp{request.pp} dp{request.dp}"
    )
    return Row(
        f"{name} lengths {shortest:g}-1, {rate:g}/s, {flight} in flight",
        first,
        step,
        priced.ttft_s / first - 1.0,
        priced.itl_s / step - 1.0,
        closed.ttft_s / first - 1.0,
        closed.itl_s / step - 1.0,
    )


def _grows(seen: Simulation) -> bool:
    waits = seen.timeline.ttft_s
    half = len(waits) // 2
    return bool(waits[half:].mean() > GROWS * waits[:half].mean())


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--all", action="store_true", help="every load")
    asked = parser.parse_args()
    found = list(rows(load()))
    keys = ("ttft", "itl", "as_closed_ttft", "as_closed_itl")
    values = {key: np.array([getattr(row, key) for row in found]) for key in keys}
    figures: dict[str, float] = {"loads": len(found)}
    for key, each in values.items():
        figures |= {
            f"{key}_median": float(np.median(np.abs(each))),
            f"{key}_bias": float(np.median(each)),
            f"{key}_worst": float(np.abs(each).max()),
        }
    if asked.json:
        print(json.dumps(figures))
        return
    if asked.all:
        for row in sorted(found, key=lambda row: -abs(row.ttft)):
            print(f"{row.load}: TTFT {row.ttft_s * 1e3:.1f} ms {row.ttft:+.1%}, ITL {row.itl_s * 1e3:.2f} ms {row.itl:+.1%}")
    print(f"{len(found)} loads that the server keeps up with, closed form against the simulator")
    for key, words in zip(keys, ("TTFT", "ITL", "TTFT as a closed loop", "ITL as a closed loop"), strict=True):
        print(
            f"{words:22} median {figures[key + '_median']:6.1%}  bias {figures[key + '_bias']:+6.1%}  worst {figures[key + '_worst']:7.1%}"
        )


if __name__ == "__main__":
    main()
