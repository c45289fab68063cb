"""Prefill and decode of a model built from its numbers with random weights, step by step on the device itself."""

from typing import ClassVar, Literal

from pydantic import Field

from app.jobs.kind import DeviceFacts, Estimate, JobParameters, Seed, TokenCount


class InprocessSweep(JobParameters):
    """Each prompt length and batch is one point: a prefill and the decode steps after it, repeated."""

    title: ClassVar[str] = "Measure a model"

    model: str = Field(
        default="tiny-llama-25m", title="Model", description="Slug of a stored model; its weights are random, so no download happens."
    )
    backend: Literal["auto", "numpy", "torch"] = Field(
        default="auto", title="Backend", description="torch where the worker has it, else numpy in fp32 up to 160 M parameters."
    )
    dtype: Literal["fp32", "bf16", "fp16"] = Field(
        default="fp32", title="Number format", description="Of weights, activations and KV cache."
    )
    prompt_tokens: tuple[TokenCount, ...] = Field(default=(512,), min_length=1, max_length=32, title="Prompt tokens")
    output_tokens: int = Field(
        default=32, ge=2, le=8192, title="Output tokens", description="Decode steps per repeat, the first token included."
    )
    batches: tuple[int, ...] = Field(default=(1,), min_length=1, max_length=32, title="Batch", description="Sequences in one pass.")
    repeats: int = Field(
        default=5, ge=2, le=1000, title="Repeats", description="Measured runs of each point, after one warm-up that is kept apart."
    )
    attention: Literal["sdpa", "eager"] = Field(default="sdpa", title="Attention", description="Implementation, where torch runs.")
    cuda_graphs: bool = Field(default=False, title="CUDA graphs", description="Capture the decode step, where a GPU runs.")
    threads: int = Field(default=1, ge=1, le=512, title="CPU threads", description="Threads on a processor; ignored on a GPU.")
    point_limit_s: float = Field(default=300.0, gt=0, le=86_400, title="Limit of a point", json_schema_extra={"unit": "s"})
    seed: Seed = Field(default=0, title="Seed", description="Of weights and prompts.")

    def estimate(self, device: DeviceFacts) -> Estimate:
        """Points alone bound the time until the model's shape is known; `services` refine it with a prediction."""
        points = len(self.prompt_tokens) * len(self.batches)
        most = points * self.point_limit_s
        sentence = f"{points} points on {device.name}, at most {self.point_limit_s:g} s each"
        return Estimate(most, None, sentence, rough=True, at_most_s=most)
