"""The microbenchmark's products and moves by torch: the same code on a processor and on a GPU, where events time each call.

fp8 is the scaled product of two e4m3 operands with one scale each; tf32 is fp32 with the precision that lets tensor cores round.
"""

import time
from typing import Any

from app.domain.device_rates import MoveKind
from app.worker.measure.bench import Call, clocked, gemv_rows
from app.worker.measure.bench_numpy import last_level_cache
from app.worker.measure.torch_seam import torch_device, torch_module

_FP8_FROM, _BF16_FROM = (8, 9), (8, 0)


class TorchBench:
    """torch on one device. `threads` are those of a processor."""

    name = "torch"

    def __init__(self, device_name: str, memory_bytes: int | None, seed: int, index: int, is_cpu: bool, threads: int) -> None:
        self._torch = torch_module()
        self._device = torch_device(index, is_cpu)
        self._is_cpu = is_cpu
        self.version = str(self._torch.__version__)
        self.device_name = device_name
        self.memory_bytes = memory_bytes
        self.cache_bytes = last_level_cache()
        if is_cpu:
            self._torch.set_num_threads(threads)
        else:
            properties = self._torch.cuda.get_device_properties(self._device)
            self.device_name, self.memory_bytes = str(properties.name), int(properties.total_memory)
            self.cache_bytes = int(getattr(properties, "L2_cache_size", 0)) or None
        self._generator = self._torch.Generator(device=self._device)
        self._generator.manual_seed(seed)

    def refusal(self, dtype: str) -> str | None:
        """What the device computes in."""
        if self._is_cpu:
            return None if dtype in ("fp32", "bf16", "fp16") else f"{self.device_name} has no products in {dtype}."
        capability = tuple(self._torch.cuda.get_device_capability(self._device))
        least = {"fp8": _FP8_FROM, "bf16": _BF16_FROM, "tf32": _BF16_FROM}.get(dtype)
        return (
            f"{self.device_name} (compute capability {capability[0]}.{capability[1]}) has no {dtype}."
            if least and capability < least
            else None
        )

    def product(self, dtype: str, m: int, n: int, k: int) -> Call:
        """Into a buffer that is there already, but for fp8, whose product makes its own."""
        torch = self._torch
        torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
        if dtype == "fp8":
            return self._scaled(m, n, k)
        a, b = self._filled(dtype, m, k), self._filled(dtype, k, n)
        out = torch.empty((m, n), dtype=a.dtype, device=self._device)
        return lambda: torch.mm(a, b, out=out)

    def move(self, what: MoveKind, dtype: str, size: int) -> tuple[Call, float]:
        """Reading is a sum; triad is one fused kernel."""
        torch = self._torch
        element = self._dtype(dtype).itemsize
        if what == "gemv":
            rows, columns = gemv_rows(size, element)
            matrix, vector = self._filled(dtype, rows, columns), self._filled(dtype, columns)
            out = torch.empty(rows, dtype=matrix.dtype, device=self._device)
            return (lambda: torch.mv(matrix, vector, out=out)), float(matrix.nbytes)
        source = self._filled(dtype, size // element)
        if what == "read":
            return source.sum, float(source.nbytes)
        target = torch.empty_like(source)
        if what == "copy":
            return (lambda: target.copy_(source)), 2.0 * float(source.nbytes)
        other = self._filled(dtype, size // element)
        return (lambda: torch.add(source, other, alpha=1.5, out=target)), 3.0 * float(source.nbytes)

    def times(self, call: Call, count: int) -> list[float]:
        """By events of the device on a GPU."""
        if self._is_cpu:
            return clocked(call, count)
        cuda = self._torch.cuda
        pairs = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(count)]
        for before, after in pairs:
            before.record()
            call()
            after.record()
        cuda.synchronize(self._device)
        return [float(before.elapsed_time(after)) / 1e3 for before, after in pairs]

    def queued(self, call: Call, count: int) -> float:
        """Issued one behind the other, waited for at the end."""
        self._wait()
        started = time.perf_counter_ns()
        for _ in range(count):
            call()
        self._wait()
        return (time.perf_counter_ns() - started) / 1e9 / count

    def _wait(self) -> None:
        if not self._is_cpu:
            self._torch.cuda.synchronize(self._device)

    def _dtype(self, dtype: str) -> Any:
        names = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp8": "bfloat16"}
        return getattr(self._torch, names[dtype])

    def _filled(self, dtype: str, *shape: int) -> Any:
        values = self._torch.empty(shape, dtype=self._dtype(dtype), device=self._device)
        return values.uniform_(-0.5, 0.5, generator=self._generator)

    def _scaled(self, m: int, n: int, k: int) -> Call:
        torch = self._torch
        narrow = torch.float8_e4m3fn
        a = self._filled("bf16", m, k).to(narrow)
        b = self._filled("bf16", n, k).to(narrow).t()
        one = torch.ones((), dtype=torch.float32, device=self._device)
        return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
