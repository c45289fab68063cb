"""Rates of a usual device of each class, to tell minutes from hours where a device has no profile yet. No figure of a run rests on them."""

from app.domain.hardware import HardwareProfile
from app.jobs import DeviceFacts

# A core of the last ten years in products of matrices (AVX2 at 3 GHz gives 96 GFLOP/s at most), and what one reads from memory.
_CORE_FLOPS_PER_S, _CORE_BYTES_PER_S = 4e10, 8e9
# More cores than this read no faster: they share the memory.
_READING_CORES = 4
# Between a small and a large accelerator of today: five times either way.
_GPU_FLOPS_PER_S = {"fp32": 2e13, "bf16": 1e14, "fp16": 1e14}
_GPU_BYTES_PER_S = 6e11


def rough_profile(device: DeviceFacts, threads: int) -> HardwareProfile:
    """A device of the class of `device`, a processor with so many threads, as if it reached its rates."""
    if device.is_cpu:
        flops = dict.fromkeys(_GPU_FLOPS_PER_S, threads * _CORE_FLOPS_PER_S)
        bandwidth = min(threads, _READING_CORES) * _CORE_BYTES_PER_S
    else:
        flops, bandwidth = dict(_GPU_FLOPS_PER_S), _GPU_BYTES_PER_S
    return HardwareProfile(
        "rough", "a usual device", "", bandwidth, flops, achieved_flops_per_s=flops, achieved_bandwidth_bytes_per_s=bandwidth
    )
