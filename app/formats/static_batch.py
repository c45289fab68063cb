"""A static batch: sequences of one length that start together and decode in step, as the one-batch tools of several engines run them.

The prompt pass and a decode step belong to the whole batch: the pass reads `size` prompts at once, a step gives each sequence one token,
so that the time of a step is the ITL of every sequence.
"""

from dataclasses import dataclass

from app.domain.derive import aggregate_rates
from app.domain.errors import ImportRefused
from app.domain.run import LoadMode, MetricValue, Rate, Scope, Workload
from app.formats.record import LARGEST_INTEGER, Record

# Prompts are made of a known number of tokens, and no sequence ends early.
EXACT_COUNT = "exact"


@dataclass(frozen=True)
class StaticBatch:
    """How many sequences, and the prompt and output tokens of each."""

    size: int
    prompt_tokens: int
    output_tokens: int

    @property
    def load_mode(self) -> LoadMode:
        """A batch of one is a single request."""
        return "single" if self.size == 1 else "static_batch"

    @property
    def scope(self) -> Scope:
        """Whose a rate over the whole batch is."""
        return "request" if self.size == 1 else "aggregate"

    def workload(self) -> Workload:
        """What was asked; totals beyond 63 bits are left unknown, since no store holds them."""
        prompt, output = self.size * self.prompt_tokens, self.size * self.output_tokens
        return Workload(
            prompt_tokens_mean=float(self.prompt_tokens) or None,
            output_tokens_mean=float(self.output_tokens) or None,
            prompt_tokens_total=prompt if prompt <= LARGEST_INTEGER else None,
            output_tokens_total=output if output <= LARGEST_INTEGER else None,
            concurrency=self.size,
        )

    def prefill_rate(self, prefill_s: float) -> Rate:
        """Prompt tokens of the whole batch per second of its prompt pass."""
        return Rate(self.size * self.prompt_tokens / prefill_s, self.scope, "derived")

    def step_s(self, decode_s: float) -> float | None:
        """Mean time of a decode step; the first token comes with the prompt pass, so there are `output_tokens` - 1 steps."""
        steps = self.output_tokens - 1
        return decode_s / steps if steps > 0 and decode_s > 0 else None

    def rates(self, duration_s: float | None) -> dict[str, MetricValue]:
        """Output and total tokens per second over prompt pass and decoding together."""
        asked = self.workload()
        found = aggregate_rates(duration_s, self.size, asked.prompt_tokens_total, asked.output_tokens_total)
        return {key: Rate(value, "aggregate", "derived") for key, value in found.items() if key != "requests_per_s"}


def read_batch(record: Record, size: str, prompt: str, output: str) -> StaticBatch:
    """The batch under the tool's three keys. Raises ImportRefused when one is missing or there is no sequence in it."""
    found = {key: record.count(key) for key in (size, prompt, output)}
    missing = [key for key, value in found.items() if value is None]
    if missing:
        raise ImportRefused(f"{record.path(missing[0])} is missing: without it the figures of the batch mean nothing.")
    batch = StaticBatch(found[size] or 0, found[prompt] or 0, found[output] or 0)
    if not batch.size:
        raise ImportRefused(f"{record.path(size)} is 0: a batch without a sequence has no figures.")
    return batch
