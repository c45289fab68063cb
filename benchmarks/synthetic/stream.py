"""The passes of the step simulator, one after another, each disturbed by noise and watched: which request got a token when.

The simulator itself keeps only the first and the last moment of a request and a histogram of gaps. Its functions are called here in its
own order, on plain lists, so that every pass can be made longer or shorter and every delivery noted.
"""

from dataclasses import dataclass

import numpy as np

from app.domain.run import Floats
from app.domain.simulation import kernel
from app.domain.simulation.state import GAP_BINS, LIMITS, PASSES, POOL_PEAK, PREEMPTIONS, SUMS, Costs, Limits, Records, Requests, Slots


@dataclass(frozen=True)
class Noise:
    """How unlike one another passes and runs are: standard deviations of logarithms; a share of passes has a hiccup of some length.

    `run` scales all of a run, `phase` the passes with prompts apart from the others.
    """

    step: float = 0.03
    run: float = 0.006
    phase: float = 0.004
    hiccup_share: float = 0.001
    hiccup_s: float = 0.01
    clock_s: float = 1e-4


QUIET = Noise(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Stream:
    """What happened: per request the moments it was sent, reached the engine and was admitted, and those of its deliveries.

    `preemptions` counts sequences that were put back, `pool_peak` is the fullest the pool was (a share), `busy_s` the time of passes.
    """

    sent_s: Floats
    arrived_s: Floats
    admitted_s: Floats
    deliveries_s: tuple[Floats, ...]
    preemptions: int
    pool_peak: float


def watched(
    costs: Costs, limits: Limits, requests: Requests, sent_s: Floats, clients: int, noise: Noise, random: np.random.Generator
) -> Stream:
    """Run every request to its end and note each delivery. `clients` above 0: a closed loop of so many; 0: sent at `sent_s`."""
    loop = _Loop(costs, limits, requests, sent_s, clients, noise, random)
    total = len(requests.prompt)
    for index in range(min(clients, total) if clients else total):
        kernel.send(limits, loop.records, loop.slots, loop.n, loop.t, loop.records.send[index])
    while loop.n[kernel.DONE] < total:
        loop.one_pass()
    return loop.stream()


class _Loop:
    """The simulator's own state as plain lists, and the deliveries so far."""

    def __init__(
        self, costs: Costs, limits: Limits, requests: Requests, sent_s: Floats, clients: int, noise: Noise, random: np.random.Generator
    ) -> None:
        total = len(requests.prompt)
        room = min(limits.running_cap, total) + 1
        self.costs, self.limits, self.requests = costs, limits, requests
        self.closed, self.noise, self.random = clients > 0, noise, random
        self.records = Records(
            sent_s.tolist(),
            [0.0] * total,
            [0.0] * total,
            [-1.0] * total,
            [0.0] * total,
            [0.0] * GAP_BINS,
            [0.0] * len(LIMITS),
            [0.0] * SUMS,
        )
        self.slots = Slots(
            request=[0] * room,
            context=[0.0] * room,
            left=[0.0] * room,
            prompt_left=[0] * room,
            taken=[0.0] * room,
            last=[0.0] * room,
            chunk=[0] * room,
            stack=[0] * total,
            kept=[0] * total,
            kept_left=[0.0] * total,
            kept_last=[0.0] * total,
            order=[0] * total,
        )
        self.n, self.t = [0] * kernel.COUNTERS, [0.0] * kernel.CLOCKS
        self.deliveries: list[list[float]] = [[] for _ in range(total)]
        whole = float(np.exp(random.normal(0.0, noise.run)))
        self.slower = (whole * float(np.exp(random.normal(0.0, noise.phase))), whole * float(np.exp(random.normal(0.0, noise.phase))))

    def one_pass(self) -> None:
        """The next pass, or the next few decode steps in which nothing else happens."""
        n, t, slots, records = self.n, self.t, self.slots, self.records
        if n[kernel.RUNNING] == 0 and n[kernel.STACKED] == 0 and records.arrive[n[kernel.HEAD]] > t[kernel.NOW]:
            t[kernel.NOW] = records.arrive[n[kernel.HEAD]]
        kernel.make_room(self.costs, self.limits, records, slots, n, t)
        new = kernel.plan(self.costs, self.limits, self.requests, records, slots, n, t)
        began, before = t[kernel.NOW], records.sums[PASSES]
        decoding = [] if new and self.limits.alone else self._decoding()
        waiting = [slot for slot in range(n[kernel.RUNNING]) if slots.prompt_left[slot] > 0]
        if new > 0:
            kernel.prompt_pass(self.costs, self.limits, self.requests, records, slots, n, t, new)
        else:
            kernel.decode_steps(self.costs, self.limits, records, slots, n, t)
        ends = began + np.cumsum(self._durations(t[kernel.NOW] - began, round(records.sums[PASSES] - before), new > 0))
        t[kernel.NOW] = float(ends[-1])
        for index in decoding:
            self.deliveries[index].extend(ends.tolist())
        for slot in waiting:
            if slots.prompt_left[slot] == 0:
                self.deliveries[slots.request[slot]].append(t[kernel.NOW])
        records.sums[POOL_PEAK] = max(records.sums[POOL_PEAK], t[kernel.USED])
        kernel.release(self.limits, records, slots, n, t, self.closed)

    def _decoding(self) -> list[int]:
        return [self.slots.request[slot] for slot in range(self.n[kernel.RUNNING]) if self.slots.prompt_left[slot] == 0]

    def _durations(self, took: float, steps: int, with_prompt: bool) -> Floats:
        noise = self.noise
        each = np.full(steps, took / steps * self.slower[0 if with_prompt else 1])
        each *= np.exp(self.random.normal(0.0, noise.step, steps))
        found: Floats = each + noise.hiccup_s * (self.random.random(steps) < noise.hiccup_share)
        return found

    def stream(self) -> Stream:
        """What was noted."""
        records = self.records
        return Stream(
            sent_s=np.asarray(records.send),
            arrived_s=np.asarray(records.arrive),
            admitted_s=np.asarray(records.start),
            deliveries_s=tuple(np.asarray(times) for times in self.deliveries),
            preemptions=int(records.sums[PREEMPTIONS]),
            pool_peak=float(records.sums[POOL_PEAK] / self.limits.pool_bytes) if np.isfinite(self.limits.pool_bytes) else float("nan"),
        )
