"""One request and what came back of it: moments in nanoseconds of `perf_counter_ns`, pieces of the body as they were read."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Exchange:
    """A request on its way. `data` is the whole of it, head and body; `scheduled` is when it was due, `sent` when it was written.

    `stamps` and `pieces` are the reads of the answer's body. `error` says in our own words why it failed; nothing of the answer is in it.
    """

    data: bytes
    scheduled: int = 0
    sent: int = 0
    ended: int = 0
    status: int = 0
    stamps: list[int] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    error: str | None = None
    resent: bool = False

    @property
    def body(self) -> bytes:
        """The body of the answer in one piece."""
        return b"".join(self.pieces)
