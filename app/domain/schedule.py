"""How an engine schedules a served load: what a pass may carry, what admission sets aside, who runs with whom."""

from dataclasses import dataclass

from app.domain.constants import default


@dataclass(frozen=True)
class Schedule:
    """An engine's scheduling rules; None means the default constant.

    `chunk_tokens`: tokens a pass carries at most; a longer prompt is computed in chunks. `running_cap`: sequences that run at most.
    `kv_reservation` (r): the share of the answer whose cache is set aside at admission; 1 never preempts, below 1 an engine admits more
    and may have to put a sequence back. `prefill_alone`: a pass with prompt tokens carries no decode steps.
    """

    chunk_tokens: int | None = None
    running_cap: int | None = None
    kv_reservation: float | None = None
    prefill_alone: bool | None = None

    @property
    def alone(self) -> bool:
        """Whether passes with prompts carry no decode steps."""
        return bool(self.prefill_alone)

    @property
    def chunk(self) -> int:
        """Tokens of a pass at most."""
        return int(default("prefill_chunk_tokens")) if self.chunk_tokens is None else self.chunk_tokens

    @property
    def cap(self) -> int:
        """Running sequences at most."""
        return int(default("running_cap")) if self.running_cap is None else self.running_cap

    @property
    def reservation(self) -> float:
        """Share of the answer's cache set aside at admission."""
        return default("kv_reservation") if self.kv_reservation is None else self.kv_reservation

    @property
    def mean_reservation(self) -> float:
        """Share of the answer's cache that a running sequence takes on average: half of it grows step by step where none is set aside."""
        return max(self.reservation, 0.5)
