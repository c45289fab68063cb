"""How fast the cost model is: pass predictions per second on one core, a 200 x 200 heat-map, and the import of the domain."""

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from app.domain.architecture import ModelArchitecture
from app.domain.grid import predict_grid
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request
from app.domain.rates import Formats, resolve
from app.domain.roofline import Placement, price
from app.domain.work import operators, pass_numbers

REPEATS = 5
BLOCK = 20_000  # passes priced in one call; small enough for the caches, large enough to hide the call
MODEL = ModelArchitecture(
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
