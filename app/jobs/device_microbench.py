"""What a device really achieves: matrix products per shape, and reads, copies and matrix-vector products per buffer."""

from typing import ClassVar, Literal

from pydantic import Field

from app.jobs.kind import DeviceFacts, Estimate, JobParameters, Seed

_CPU_SECONDS = 12.0
_SECONDS_PER_SHAPE = 1.2


class DeviceMicrobench(JobParameters):
    """Rates of a device by number format. Each shape runs for the seconds given, or 100 times where that takes longer."""

    title: ClassVar[str] = "Measure the device"

    dtypes: tuple[Literal["fp32", "tf32", "bf16", "fp16", "fp8"], ...] = Field(
        default=("fp32",),
        min_length=1,
        title="Number formats",
        description="Formats of the matrix products; fp32 is what every device has.",
    )
    model: str | None = Field(default=None, title="Model", description="Slug of a model whose own layer shapes are measured as well.")
    rows: tuple[int, ...] = Field(
        default=(1, 8, 64, 512, 2048), min_length=1, title="Rows", description="Tokens in a pass for the model's layers (M of a product)."
    )
    largest: int = Field(default=2048, ge=256, le=16384, title="Largest square", description="Side of the largest square product.")
    seconds_per_shape: float = Field(default=0.5, gt=0, le=30, title="Seconds per shape", json_schema_extra={"unit": "s"})
    threads: int = Field(default=1, ge=1, le=512, title="CPU threads", description="Threads on a processor; ignored on a GPU.")
    seed: Seed = Field(default=0, title="Seed", description="Of the random numbers that are multiplied; never zeros.")

    def estimate(self, device: DeviceFacts) -> Estimate:
        """Time from the number of shapes; memory of the largest operands and of buffers beyond the caches."""
        squares = max(self.largest.bit_length() - 8, 1)
        shapes = len(self.dtypes) * (squares + (6 * len(self.rows) if self.model else 0)) + 4
        seconds = shapes * max(self.seconds_per_shape, _SECONDS_PER_SHAPE / 2)
        memory = 3 * 4 * self.largest**2 + 1024**3
        backend = "torch" if "torch" in device.backends else "numpy"
        return Estimate(max(seconds, _CPU_SECONDS if device.is_cpu else 0.0), memory, f"{backend} on {device.name}, {shapes} shapes")
