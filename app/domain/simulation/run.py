"""A simulator for one model, device, engine and precision: its tables are made once, then it runs loads."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.phases import Question
from app.domain.prediction import Request
from app.domain.request_rules import check
from app.domain.run import Floats
from app.domain.schedule import Schedule
from app.domain.simulation import fleet, kernel, state
from app.domain.simulation.deployment import Deployment
from app.domain.simulation.forms import as_lists, can_compile, compiled
from app.domain.simulation.load import Sending, ServedLoad, sending
from app.domain.simulation.results import Crossing, Simulation, Timeline
from app.domain.simulation.state import Costs, Limits, Records, Requests, Slots, Traffic
from app.domain.simulation.tables import cost_of_crossing, costs_of, limits_of, prompt_efficiency
from app.domain.under_load import leaves_one_over

Form = Literal["plain", "compiled", "best"]

# Requests times the sequences that run beside each: what the loop's work grows with. Below the first plain Python is done sooner than
# numba is imported; the others take about a quarter of a minute on one core.
_WORTH_COMPILING = 60_000
_MOST_PLAIN, _MOST_COMPILED = 2_000_000, 200_000_000
# Engines beside each other: about five times slower, and compiled once in a version for half a minute.
_FLEET_PLAIN = 400_000
# Sequences that run together under an open load, as far as the amount of work goes.
_OPEN = 64


@dataclass(frozen=True)
class Simulator:
    """Prices ready for simulations; make it with `of`, then call `run` for each load."""

    question: Question
    schedule: Schedule
    costs: Costs
    deployment: Deployment
    entry: Question
    entry_costs: Costs
    _limits: dict[tuple[int, bool], Limits] = field(default_factory=dict, repr=False, compare=False)
    _efficiencies: dict[int, float] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        architecture: ModelArchitecture,
        hardware: HardwareProfile,
        request: Request,
        *,
        engine: EngineProfile | None = None,
        schedule: Schedule | None = None,
    ) -> "Simulator":
        """Tables for `request`'s formats, placement and speculation; its own lengths, batch and clients play no part.

        `schedule` replaces that of the engine.

        Raises InvalidRequest for what a prediction refuses too.
        """
        single = replace(request, batch=1, concurrency=None, open_loop=False)
        load = check(single, architecture, hardware)
        question = Question.of(architecture, hardware, single, load, engine)
        rules, deployment = schedule or question.schedule, Deployment.of(question)
        entry = question if deployment.decode is None else question.in_prefill()
        costs = costs_of(question, rules)
        return cls(question, rules, costs, deployment, entry, costs if entry is question else costs_of(entry, rules))

    def limits(self, load: ServedLoad) -> Limits:
        """The rules and the pool of the engine that takes requests; the activations of its sequences stand beside the pool."""
        part = self.deployment.entry
        return self._limits_of(self.entry, load, part.replicas, part.ranks, 0.0 if self.deployment.decode else None)

    def _decode_limits(self, load: ServedLoad) -> Limits:
        part = self.deployment.decode or self.deployment.entry
        return self._limits_of(self.question, load, part.replicas, part.ranks, None)

    def _limits_of(self, question: Question, load: ServedLoad, replicas: int, ranks: int, reserve: float | None) -> Limits:
        """`reserve` 0: no answer is ever beside the prompt."""
        cap = self.schedule.cap * ranks
        sequences = min(-(-(load.clients or cap) // replicas), cap)
        key = (sequences, reserve is None)
        found = self._limits.get(key)
        if found is None:
            found = limits_of(question, self.schedule, float(sequences))
            if reserve is not None:
                found = found._replace(reserve=reserve, alone=True, rows=1, accepted=1.0, look_steps=0.0, look_power=0.0)
            self._limits[key] = found
        return found

    def _efficiency(self, load: ServedLoad, sent: Sending) -> Floats:
        """e_c of prompt attention of every request; loads of equal prompts share theirs."""
        if load.shortest_length < 1.0:
            return prompt_efficiency(self.question, sent.prompt)
        found = self._efficiencies.get(load.prompt_tokens)
        if found is None:
            found = self._efficiencies[load.prompt_tokens] = float(prompt_efficiency(self.question, sent.prompt[:1])[0])
        return np.full(load.total, found)

    def run(self, load: ServedLoad, form: Form = "best") -> Simulation:
        """Simulate one load. `form` is for tests: both give the same numbers."""
        sent = sending(load)
        limits, one_over = self.limits(load), self._leaves_one_over(load)
        if one_over:
            limits = limits._replace(running_cap=one_over)
        requests = Requests(sent.prompt, sent.output, sent.cached, self._efficiency(load, sent))
        records = _empty_records(sent)
        quick = _is_compiled(form, load, limits.running_cap * self.deployment.rows, not self.deployment.alone)
        if not self.deployment.alone:
            return self._run_fleet(load, sent, requests, records, limits, quick)
        slots = _empty_slots(load.total, min(limits.running_cap, load.total) + 1)
        counters, clocks = np.zeros(kernel.COUNTERS, dtype=np.int64), np.zeros(kernel.CLOCKS)
        if quick:
            compiled("simulate")(self.costs, limits, requests, records, slots, counters, clocks, load.clients or 0)
        else:
            plain = as_lists(records)
            kernel.simulate(
                as_lists(self.costs),
                limits,
                as_lists(requests),
                plain,
                as_lists(slots),
                counters.tolist(),
                clocks.tolist(),
                load.clients or 0,
            )
            records = Records(*(np.asarray(column) for column in plain))
        if one_over:  # no cap that anybody has set
            records.blocked_s[state.FREE] += records.blocked_s[state.BY_CAP]
            records.blocked_s[state.BY_CAP] = 0.0
        return _result(load, sent, records, limits)

    def _leaves_one_over(self, load: ServedLoad) -> int:
        """The clients that run where one always waits, 0 where nobody needs to: equal requests, and an engine that does so."""
        clients = load.clients or 0
        if load.shortest_length < 1.0 or not self.deployment.alone or not leaves_one_over(self.schedule):
            return 0
        # Two of them would take turns, which nobody has measured (8 to 128 were).
        return clients - 1 if 2 < clients <= self.schedule.cap else 0

    def _run_fleet(self, load: ServedLoad, sent: Sending, requests: Requests, records: Records, limits: Limits, quick: bool) -> Simulation:
        """The same for several engines, ranks or stages."""
        at, decode_limits = self.deployment, self._decode_limits(load)
        lengths = self.costs.lengths
        units = at.fleet(lengths, np.zeros_like(lengths) if at.decode is None else cost_of_crossing(self.question, lengths))
        traffic, slots = at.traffic(units, load.total), at.slots(load.total, (limits, decode_limits))
        counters, clocks = at.counters()
        clients = load.clients or 0
        if quick:
            compiled("serve")(
                self.entry_costs, limits, self.costs, decode_limits, units, requests, records, traffic, slots, counters, clocks, clients
            )
        else:
            records, traffic = as_lists(records), as_lists(traffic)
            fleet.serve(
                as_lists(self.entry_costs),
                limits,
                as_lists(self.costs),
                decode_limits,
                as_lists(units),
                as_lists(requests),
                records,
                traffic,
                as_lists(slots),
                counters.tolist(),
                clocks.tolist(),
                clients,
            )
            records = Records(*(np.asarray(column) for column in records))
            traffic = Traffic(*(np.asarray(column) for column in traffic))
        if int(traffic.marks[state.DONE_SO_FAR]) < load.total:
            raise ArithmeticError("a simulation stood still")
        crossed = None
        if at.decode is not None:
            duration = float((records.finish.max() - records.send.min()) * at.stages)
            shares = traffic.busy_s[[state.PREFILL, state.DECODE]] / (duration * np.array([at.entry.replicas, at.decode.replicas]))
            busy = {"prefill": float(shares[0]), "decode": float(shares[1])}
            crossed = Crossing(records.first, traffic.left_at, traffic.landed_at, traffic.second_at, busy)
        return _result(load, sent, records, limits, at, crossed)


def _is_compiled(form: Form, load: ServedLoad, cap: int, several: bool) -> bool:
    """Whether the compiled form runs this load. Raises InvalidRequest for more than a server should wait for."""
    worth, most_plain = (_FLEET_PLAIN, _FLEET_PLAIN) if several else (_WORTH_COMPILING, _MOST_PLAIN)
    work = load.total * min(load.clients or _OPEN, cap)
    if form == "plain" or not can_compile():
        if form == "compiled":
            raise ModuleNotFoundError("The compiled form needs numba: install phaseline[speed].")
        if form == "best" and work > most_plain:
            raise InvalidRequest(
                "requests", f"{load.total:,} requests take plain Python too long; send fewer, or install numba (phaseline[speed])."
            )
        return False
    if work > _MOST_COMPILED:
        raise InvalidRequest("requests", f"{load.total:,} requests with so many beside each take too long; send fewer.")
    return form == "compiled" or work >= worth


def _empty_records(sent: Sending) -> Records:
    total = sent.prompt.size
    return Records(
        send=sent.sent_s.copy(),
        arrive=np.zeros(total),
        start=np.zeros(total),
        first=np.full(total, -1.0),
        finish=np.zeros(total),
        gaps=np.zeros(state.GAP_BINS),
        blocked_s=np.zeros(len(state.LIMITS)),
        sums=np.zeros(state.SUMS),
    )


def _empty_slots(requests: int, slots: int) -> Slots:
    def whole(size: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.zeros(size, dtype=np.int64)

    return Slots(
        request=whole(slots),
        context=np.zeros(slots),
        left=np.zeros(slots),
        prompt_left=whole(slots),
        taken=np.zeros(slots),
        last=np.zeros(slots),
        chunk=whole(slots),
        stack=whole(slots),
        kept=whole(requests),
        kept_left=np.zeros(requests),
        kept_last=np.zeros(requests),
        order=whole(requests),
    )


def _result(
    load: ServedLoad,
    sent: Sending,
    records: Records,
    limits: Limits,
    deployment: Deployment | None = None,
    crossed: Crossing | None = None,
) -> Simulation:
    timeline = Timeline(records.send, records.arrive, records.start, records.first, records.finish, sent.output)
    duration = float(timeline.finished_s.max() - timeline.sent_s.min())
    sums, blocked = records.sums, records.blocked_s
    known = np.isfinite(limits.pool_bytes) and limits.pool_bytes > 0
    return Simulation(
        load=load,
        timeline=timeline,
        gap_counts=records.gaps,
        gap_s=float(sums[state.GAP_S]),
        gap_n=float(sums[state.GAP_N]),
        running=float(sums[state.RUNNING_S]) / duration,
        busy=float(sums[state.BUSY_S]) / duration,
        prompt_share=float(sums[state.PROMPT_S]) / duration,
        held_back={name: float(seconds) / duration for name, seconds in zip(state.LIMITS[1:], blocked[1:], strict=True)},
        preemptions=int(sums[state.PREEMPTIONS]),
        passes=int(sums[state.PASSES]),
        pool_peak=float(sums[state.POOL_PEAK]) / (limits.pool_bytes if deployment is None else 1.0) if known else None,
        crossing=crossed,
    )
