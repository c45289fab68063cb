"""How fast the cost model is: pass predictions and closed-loop simulations per second on one core, a heat-map, the import."""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Literal

import numpy as np

from app.domain.architecture import dense
from app.domain.grid import predict_grid
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request
from app.domain.rates import Formats, resolve
from app.domain.roofline import Placement, price
from app.domain.simulation import ServedLoad, Simulator, can_compile
from app.domain.work import operators, pass_numbers

REPEATS = 5
BLOCK = 20_000  # passes priced in one call; small enough for the caches, large enough to hide the call
MODEL = dense(
    name="eight-billion",
    model_type="llama",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    intermediate=14336,
    vocab=128256,
    norm_parameters_per_layer=8192,
    final_norm_parameters=4096,
)
DEVICE = HardwareProfile(
    slug="server",
    name="Server",
    vendor="Benchmark",
    bandwidth_bytes_per_s=3.35e12,
    peak_flops_per_s={"bf16": 9.89e14},
    memory_bytes=8e10,
    link_bytes_per_s=4.5e11,
)


def predictions_per_s() -> float:
    """Passes priced per second by the full operator model, every pass with its own new tokens, context and batch."""
    random = np.random.default_rng(1)
    new = random.integers(1, 4096, BLOCK).astype(np.float64)
    context = random.integers(0, 32_768, BLOCK).astype(np.float64)
    batch = random.integers(1, 256, BLOCK).astype(np.float64)
    formats = Formats.of(Request())
    element, rates = formats.element_bytes(), resolve(DEVICE, formats, None)

    def block() -> None:
        numbers = pass_numbers(new, context, batch)
        priced = price(MODEL, operators(MODEL, numbers, element), numbers, element, rates, 0.5, Placement(), with_prompt=True)
        if not np.all(np.asarray(priced.floor_s) <= np.asarray(priced.time_s)):
            raise AssertionError("a pass beats its floor")

    return BLOCK / _best(block)


def heatmap_200x200_s() -> float:
    """Seconds for 40,000 whole predictions, 200 prompt lengths by 200 batch sizes."""
    axes = {"prompt_tokens": range(100, 20_100, 100), "batch": range(1, 201)}
    return _best(lambda: predict_grid(MODEL, DEVICE, Request(), axes=axes))


def simulations_per_s() -> float:
    """Closed loops simulated per second: 32 clients, 10 requests each of 2,000 tokens in and 300 out, percentiles of TTFT included.

    Compiled where numba is installed; the compilation itself is not counted.
    """
    load = ServedLoad(2000, 300, clients=32, requests_per_client=10)
    form: Literal["compiled", "plain"] = "compiled" if can_compile() else "plain"
    simulator = Simulator.of(MODEL, DEVICE, Request())
    loops = 200 if form == "compiled" else 1

    def block() -> None:
        for _ in range(loops):
            if not simulator.run(load, form).ttft.n == load.total:
                raise AssertionError("a simulation lost requests")

    block()
    return loops / _best(block)


def import_domain_s() -> float:
    """Seconds that `import app.domain` and its cost model take in a fresh interpreter, beyond starting it."""
    command = "import time; t = time.perf_counter(); import app.domain, app.domain.serving; print(time.perf_counter() - t)"
    return min(
        float(subprocess.run([sys.executable, "-c", command], check=True, capture_output=True, text=True).stdout) for _ in range(REPEATS)
    )


def _best(call: Callable[[], object]) -> float:
    """The shortest of a few runs: what the code costs when nothing else runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
