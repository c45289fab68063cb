"""How engines stand together: which units and rows of sequences a simulated load meets, and the kernel's memory for them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.domain.phases import Question
from app.domain.simulation import kernel
from app.domain.simulation.load import Floats, Wholes
from app.domain.simulation.state import BOTH, DECODE, PREFILL, Fleet, Limits, Slots, Traffic


@dataclass(frozen=True)
class Engines:
    """`replicas` engines of one role, each of `ranks` attention ranks."""

    role: int
    replicas: int
    ranks: int


@dataclass(frozen=True)
class Deployment:
    """The engines that take requests, and those that answer them where these are others; pipeline stages of each engine."""

    entry: Engines
    decode: Engines | None
    stages: int
    piece_tokens: float

    @classmethod
    def of(cls, question: Question) -> "Deployment":
        """One engine, or the pools that a question names."""
        load, pieces = question.load, float(np.min(question.rates.micro_batch_tokens))
        stages = int(load.pp)
        if load.prefill_replicas is None:
            return cls(Engines(BOTH, 1, int(load.dp)), None, stages, pieces)
        entry = Engines(PREFILL, int(load.prefill_replicas), int(load.in_prefill().dp))
        return cls(entry, Engines(DECODE, int(load.decode_replicas), int(load.dp)), stages, pieces)

    @property
    def alone(self) -> bool:
        """Whether it is a single engine of a single rank and stage, which needs no fleet."""
        return self.decode is None and self.entry.ranks == 1 and self.stages == 1

    @property
    def parts(self) -> tuple[Engines, ...]:
        """Entry engines and the others."""
        return (self.entry,) if self.decode is None else (self.entry, self.decode)

    @property
    def rows(self) -> int:
        """Rows of sequences of all units."""
        return sum(part.replicas * part.ranks * self.stages for part in self.parts)

    def fleet(self, lengths: Floats, crossing_s: Floats) -> Fleet:
        """The units in the order in which they are looked at: prefill before decode, engine by engine."""
        engines: list[int] = []
        firsts: list[int] = []
        sizes: list[int] = []
        roles: list[int] = []
        row_unit: list[int] = []
        row_link: list[int] = []
        engine = link = 0
        for part in self.parts:
            for _ in range(part.replicas):
                for _ in range(self.stages):
                    firsts.append(len(row_unit))
                    row_unit += [len(engines)] * part.ranks
                    row_link += range(link, link + part.ranks)
                    engines.append(engine)
                    sizes.append(part.ranks)
                    roles.append(part.role)
                engine, link = engine + 1, link + part.ranks
        entries = self.entry.replicas * self.entry.ranks * self.stages
        return Fleet(
            unit_engine=_wholes(engines),
            unit_first=_wholes(firsts),
            unit_rows=_wholes(sizes),
            unit_role=_wholes(roles),
            row_unit=_wholes(row_unit),
            row_link=_wholes(row_link),
            entries=entries,
            stages=self.stages,
            piece_tokens=self.piece_tokens,
            lengths=lengths,
            crossing_s=crossing_s,
        )

    def traffic(self, fleet: Fleet, total: int) -> Traffic:
        """Memory for so many requests."""
        rows, units = self.rows, len(fleet.unit_engine)
        engines = int(fleet.unit_engine[-1]) + 1
        return Traffic(
            wakes=np.full(units, -1.0),
            stage_free=np.zeros((engines, self.stages)),
            front_end=np.zeros(engines),
            link_free=np.zeros(int(fleet.row_link[-1]) + 1),
            inside=_no_wholes(rows),
            landed_head=_no_wholes(rows),
            landed_sent=_no_wholes(rows),
            held=np.zeros((fleet.entries, total if self.decode else 1), dtype=np.int64),
            waiting=_no_wholes(total),
            marks=_no_wholes(5),
            row=_no_wholes(total),
            held_bytes=np.zeros(total),
            left_at=np.zeros(total),
            landed_at=np.full(total, np.inf),
            second_at=np.full(total, -1.0),
            busy_s=np.zeros(3),
        )

    def slots(self, total: int, limits: tuple[Limits, ...]) -> Slots:
        """Room for the sequences of every row."""
        rows = self.rows
        most = min(max(limit.running_cap for limit in limits), total) + 1

        def of(size: int, kind: Any) -> Any:
            return np.zeros((rows, size), dtype=kind)

        return Slots(
            request=of(most, np.int64),
            context=of(most, np.float64),
            left=of(most, np.float64),
            prompt_left=of(most, np.int64),
            taken=of(most, np.float64),
            last=of(most, np.float64),
            chunk=of(most, np.int64),
            stack=of(most, np.int64),
            kept=_no_wholes(total),
            kept_left=np.zeros(total),
            kept_last=np.zeros(total),
            order=of(total, np.int64),
        )

    def counters(self) -> tuple[Any, Any]:
        """Counters and clocks of every row."""
        return np.zeros((self.rows, kernel.COUNTERS), dtype=np.int64), np.zeros((self.rows, kernel.CLOCKS))


def _wholes(values: list[int]) -> Wholes:
    return np.array(values, dtype=np.int64)


def _no_wholes(size: int) -> Wholes:
    return np.zeros(size, dtype=np.int64)
