"""A small engine for the kernel's tests: passes whose seconds can be added up by hand, and the kernel run on them in either form."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.domain.simulation import fleet, kernel, state
from app.domain.simulation.deployment import Deployment, Engines
from app.domain.simulation.forms import as_lists, compiled
from app.domain.simulation.state import Costs, Limits, Records, Requests, Slots, Traffic

INF = float("inf")
ALONE = Engines(state.BOTH, 1, 1)


def costs(**changes: Any) -> Costs:
    """A decode pass takes 1 s; one with prompts 2 s and 0.01 s for each of its tokens; attention and logits nothing; a token one byte."""
    tokens, lengths = np.array([1.0, 10.0, 1000.0]), np.array([1.0, 10.0, 50.0, 2000.0])
    none = np.zeros(4)
    plain = Costs(
        tokens,
        np.ones(3),
        2.0 + 0.01 * tokens,
        np.zeros(3),
        0.0,
        0.0,
        lengths,
        none,
        none,
        none,
        lengths.copy(),
        True,
        0.0,
        1.0,
        np.zeros(3),
        1,
    )
    return plain._replace(**changes)


def limits(**changes: Any) -> Limits:
    """No bounds and no front-end."""
    plain = Limits(1000, 1000, INF, INF, 0.0, False, 1, 1.0, 0.0, 0.0, 0.0, 0.0)
    return plain._replace(**changes)


@dataclass
class Outcome:
    """What the kernel recorded."""

    records: Records
    counters: Sequence[int]

    def __getattr__(self, name: str) -> list[float]:
        """A column of the records as a list."""
        return [float(value) for value in getattr(self.records, name)]


@dataclass
class Loop:
    """Requests and rules; `run` gives what happened."""

    prompt: Sequence[int]
    output: Sequence[int]
    costs: Costs = field(default_factory=costs)
    limits: Limits = field(default_factory=limits)
    clients: int = 0
    send: Sequence[float] = ()
    cached: Sequence[int] = ()
    efficiency: float = 1.0

    def run(self, form: str = "plain") -> Outcome:
        n = len(self.prompt)
        whole = np.int64
        requests = Requests(
            np.array(self.prompt, dtype=whole),
            np.array(self.output, dtype=whole),
            np.array(self.cached or [0] * n, dtype=whole),
            np.full(n, self.efficiency),
        )
        sent = np.array(self.send or [0.0] * n)
        records = Records(
            sent, np.zeros(n), np.zeros(n), np.full(n, -1.0), np.zeros(n), np.zeros(state.GAP_BINS), np.zeros(4), np.zeros(state.SUMS)
        )
        slots = Slots(
            *(np.zeros(n + 1, dtype=kind) for kind in (whole, float, float, whole, float, float, whole, whole, whole, float, float, whole))
        )
        counters, clocks = np.zeros(kernel.COUNTERS, dtype=whole), np.zeros(kernel.CLOCKS)
        if form == "compiled":
            compiled("simulate")(self.costs, self.limits, requests, records, slots, counters, clocks, self.clients)
            return Outcome(records, counters.tolist())
        plain, left = as_lists(records), counters.tolist()
        kernel.simulate(as_lists(self.costs), self.limits, as_lists(requests), plain, as_lists(slots), left, clocks.tolist(), self.clients)
        return Outcome(plain, left)


@dataclass
class Several(Loop):
    """The same for engines that stand together: `entry` takes the requests, `decode` answers where it is there; a transfer takes 0.5 s."""

    entry: Engines = ALONE
    decode: Engines | None = None
    stages: int = 1
    piece_tokens: float = INF
    decode_limits: Limits = field(default_factory=limits)
    traffic: Traffic | None = None

    def run(self, form: str = "plain") -> Outcome:
        n = len(self.prompt)
        whole = np.int64
        at = Deployment(self.entry, self.decode, self.stages, self.piece_tokens)
        units = at.fleet(self.costs.lengths, np.full(len(self.costs.lengths), 0.5))
        requests = Requests(
            np.array(self.prompt, dtype=whole),
            np.array(self.output, dtype=whole),
            np.array(self.cached or [0] * n, dtype=whole),
            np.full(n, self.efficiency),
        )
        sent = np.array(self.send or [0.0] * n)
        records = Records(
            sent, np.zeros(n), np.zeros(n), np.full(n, -1.0), np.zeros(n), np.zeros(state.GAP_BINS), np.zeros(4), np.zeros(state.SUMS)
        )
        traffic, slots = at.traffic(units, n), at.slots(n, (self.limits, self.decode_limits))
        counters, clocks = at.counters()
        if form == "compiled":
            compiled("serve")(
                self.costs,
                self.limits,
                self.costs,
                self.decode_limits,
                units,
                requests,
                records,
                traffic,
                slots,
                counters,
                clocks,
                self.clients,
            )
            self.traffic = Traffic(*(column.tolist() for column in traffic))
            return Outcome(records, counters.tolist())
        records, self.traffic = as_lists(records), as_lists(traffic)
        costs_, left = as_lists(self.costs), counters.tolist()
        fleet.serve(
            costs_,
            self.limits,
            costs_,
            self.decode_limits,
            as_lists(units),
            as_lists(requests),
            records,
            self.traffic,
            as_lists(slots),
            left,
            clocks.tolist(),
            self.clients,
        )
        return Outcome(records, left)
