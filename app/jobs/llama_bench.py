"""llama-bench of the worker's own machine, from its list of allowed binaries and models; the result is its own JSON."""

from typing import ClassVar

from pydantic import Field

from app.jobs.kind import DeviceFacts, Estimate, JobParameters, TokenCount

_SECONDS_PER_TEST = 20.0


class LlamaBench(JobParameters):
    """Prompt and generation tests by llama-bench, one run each."""

    title: ClassVar[str] = "Run llama-bench"

    gguf: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.gguf$", title="Model file", description="A file name in the worker's model folder."
    )
    prompt_tokens: tuple[TokenCount, ...] = Field(default=(512,), max_length=16, title="Prompt tokens (-p)")
    output_tokens: tuple[TokenCount, ...] = Field(default=(128,), max_length=16, title="Generated tokens (-n)")
    depths: tuple[int, ...] = Field(
        default=(0,), min_length=1, max_length=16, title="Depths (-d)", description="Tokens already in the cache."
    )
    repeats: int = Field(default=5, ge=1, le=100, title="Repeats (-r)")
    threads: int = Field(default=1, ge=1, le=512, title="Threads (-t)")
    gpu_layers: int = Field(default=99, ge=0, le=1000, title="Layers on the GPU (-ngl)")
    limit_s: float = Field(default=1800.0, gt=0, le=86_400, title="Limit", json_schema_extra={"unit": "s"})

    def estimate(self, device: DeviceFacts) -> Estimate:
        """Tests times a usual time each; llama-bench itself refuses a model that does not fit."""
        tests = (len(self.prompt_tokens) + len(self.output_tokens)) * len(self.depths)
        sentence = f"llama-bench on {device.name}, {tests} tests of {self.repeats} repeats, {_SECONDS_PER_TEST:g} s each as a rule of thumb"
        return Estimate(min(tests * _SECONDS_PER_TEST, self.limit_s), None, sentence, rough=True, at_most_s=self.limit_s)
