"""What a running server delivers: streamed requests of known shapes, closed or open loop, stamped at the socket."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from app.jobs.kind import Concurrency, DeviceFacts, Estimate, JobParameters, Seed, TokenCount

Rate = Annotated[float, Field(gt=0, le=100_000)]
Moment = Annotated[float, Field(ge=0, le=1e9)]
Words = Annotated[str | None, Field(min_length=1, max_length=200)]


class EndpointSweep(JobParameters):
    """Each concurrency, or each rate, with each prompt and output length is one point, which becomes one run."""

    title: ClassVar[str] = "Measure a server"
    needs_device: ClassVar[bool] = False

    target: str = Field(title="Target", description="Name of a registered target: jobs carry no addresses.")
    model: str = Field(title="Model", description="Model name as the server knows it.")
    api: Literal["chat", "completions"] = Field(default="completions", title="API")
    prompt_tokens: tuple[TokenCount, ...] = Field(default=(512,), min_length=1, max_length=32, title="Prompt tokens")
    output_tokens: tuple[TokenCount, ...] = Field(default=(128,), min_length=1, max_length=32, title="Output tokens")
    concurrency: tuple[Concurrency, ...] = Field(
        default=(1,), max_length=64, title="Concurrency", description="Closed loop: requests in flight."
    )
    rates_per_s: tuple[Rate, ...] = Field(
        default=(), max_length=64, title="Rates", description="Open loop with Poisson arrivals, requests per second."
    )
    arrivals_s: tuple[Moment, ...] = Field(
        default=(), max_length=100_000, title="Trace", description="Open loop at these moments, seconds in ascending order."
    )
    ramp_s: float = Field(
        default=0.0,
        ge=0,
        le=3600,
        title="Ramp",
        description="Clients of a closed loop start spread over it.",
        json_schema_extra={"unit": "s"},
    )
    duration_s: float = Field(default=20.0, gt=0, le=86_400, title="Duration of a point", json_schema_extra={"unit": "s"})
    min_requests: int = Field(default=20, ge=1, le=1_000_000, title="Least requests", description="A point lasts until it has both.")
    warmup_requests: int = Field(default=2, ge=0, le=10_000, title="Warm-up requests", description="Per stream, sent first and kept apart.")
    find_knee: bool = Field(
        default=False, title="Find the knee", description="Staircase that doubles the load until throughput stops growing."
    )
    timeout_s: float = Field(default=600.0, gt=0, le=86_400, title="Limit of a request", json_schema_extra={"unit": "s"})
    hardware: Words = Field(default=None, title="Hardware", description="Of the server, by name or slug: for a prediction.")
    devices: int | None = Field(default=None, ge=1, le=4096, title="Devices", description="How many the model runs on.")
    engine: Words = Field(default=None, title="Engine", description="Of the server, as vllm.")
    weight_dtype: Words = Field(default=None, title="Weights", description="Their number format, where it is not the model's own.")
    processes: int | None = Field(
        default=None,
        ge=1,
        le=64,
        title="Processes of the client",
        description="Empty: one, and twice as many for a point where one has no time left, as long as there are cores.",
    )
    seed: Seed = Field(default=0, title="Seed", description="Of prompts and arrivals.")

    @model_validator(mode="after")
    def _one_loop(self) -> "EndpointSweep":
        if sum(map(bool, (self.concurrency, self.rates_per_s, self.arrivals_s))) != 1:
            raise ValueError("give one of concurrency (closed loop), rates_per_s and arrivals_s (open loop, concurrency empty)")
        return self

    def estimate(self, device: DeviceFacts) -> Estimate:
        """Points times their duration; the server's own memory is not this machine's."""
        points = len(self.prompt_tokens) * len(self.output_tokens) * max(len(self.concurrency), len(self.rates_per_s), 1)
        return Estimate(
            points * self.duration_s, None, f"{points} points of about {self.duration_s:g} s or {self.min_requests} requests each"
        )
