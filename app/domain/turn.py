"""The passes that a served load is made of, and how busy they may keep what runs them."""

from dataclasses import dataclass

from app.domain.work import Quantity

BUSIEST = 0.9  # most of its time that anything is taken to be busy: nearer to 1 a queue has no mean that a benchmark would last to see


@dataclass(frozen=True)
class Turn:
    """The passes of a served load in seconds: one prompt alone, a full pass and the prompts it computes, a decode step."""

    prefill_s: Quantity
    chunk_s: Quantity
    chunk_prompts: Quantity
    step_s: Quantity

    @property
    def each_s(self) -> Quantity:
        """Seconds of a full pass for each of its prompts (p)."""
        return self.chunk_s / self.chunk_prompts
