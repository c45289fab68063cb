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
from app.domain.simulation import kernel, state
from app.domain.simulation.forms import as_lists, can_compile, compiled
from app.domain.simulation.load import Sending, ServedLoad, sending
from app.domain.simulation.results import Simulation, Timeline
from app.domain.simulation.state import Costs, Limits, Records, Requests, Slots
from app.domain.simulation.tables import costs_of, limits_of, prompt_efficiency

Form = Literal["plain", "compiled", "best"]

# Requests times the sequences that run beside each: what the loop's work grows with. Below the first plain Python is done sooner than
# numba is imported; the others take about a quarter of a minute on one core.
_WORTH_COMPILING = 60_000
_MOST_PLAIN, _MOST_COMPILED = 2_000_000, 200_000_000
# Sequences that run together under an open load, as far as the amount of work goes.
_OPEN = 64


@dataclass(frozen=True)
class Simulator:
    """Prices ready for simulations; make it with `of`, then call `run` for each load."""

    question: Question
    schedule: Schedule
    costs: Costs
    _limits: dict[int, Limits] = field(default_factory=dict, repr=False, compare=False)
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

        Raises InvalidRequest for what a prediction refuses too, and for a pipeline, whose stages the simulator does not follow.
        """
        single = replace(request, batch=1, concurrency=None)
        if request.pp > 1:
            raise InvalidRequest("pp", f"pp is {request.pp}: the simulator follows one stage; take pp = 1, or the closed form.")
        if request.prefill_replicas is not None:
            raise InvalidRequest(
                "prefill_replicas", "The simulator follows one engine: leave prefill_replicas out, or take the closed form."
            )
        load = check(single, architecture, hardware)
        question = Question.of(architecture, hardware, single, load, engine)
        rules = schedule or question.schedule
        return cls(question, rules, costs_of(question, rules))

    def limits(self, load: ServedLoad) -> Limits:
        """The rules and the pool for a load; the activations of its sequences stand beside the pool."""
        cap = self.schedule.cap * int(self.question.load.dp)
        sequences = min(load.clients or cap, cap)
        found = self._limits.get(sequences)
        if found is None:
            found = self._limits[sequences] = limits_of(self.question, self.schedule, float(sequences))
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
        limits = self.limits(load)
        requests = Requests(sent.prompt, sent.output, sent.cached, self._efficiency(load, sent))
        records = _empty_records(sent)
        slots = _empty_slots(load.total, min(limits.running_cap, load.total) + 1)
        counters, clocks = np.zeros(kernel.COUNTERS, dtype=np.int64), np.zeros(kernel.CLOCKS)
        if _is_compiled(form, load, limits.running_cap):
            compiled("simulate")(self.costs, limits, requests, records, slots, counters, clocks, load.clients or 0)
            return _result(load, sent, records, limits)
        plain = as_lists(records)
        kernel.simulate(
            as_lists(self.costs), limits, as_lists(requests), plain, as_lists(slots), counters.tolist(), clocks.tolist(), load.clients or 0
        )
        return _result(load, sent, Records(*(np.asarray(column) for column in plain)), limits)


def _is_compiled(form: Form, load: ServedLoad, cap: int) -> bool:
    """Whether the compiled form runs this load. Raises InvalidRequest for more than a server should wait for."""
    work = load.total * min(load.clients or _OPEN, cap)
    if form == "plain" or not can_compile():
        if form == "compiled":
            raise ModuleNotFoundError("The compiled form needs numba: install phaseline[speed].")
        if form == "best" and work > _MOST_PLAIN:
            raise InvalidRequest(
                "requests", f"{load.total:,} requests take plain Python too long; send fewer, or install numba (phaseline[speed])."
            )
        return False
    if work > _MOST_COMPILED:
        raise InvalidRequest("requests", f"{load.total:,} requests with so many beside each take too long; send fewer.")
    return form == "compiled" or work >= _WORTH_COMPILING


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
    )


def _result(load: ServedLoad, sent: Sending, records: Records, limits: Limits) -> Simulation:
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
        pool_peak=float(sums[state.POOL_PEAK]) / limits.pool_bytes if known else None,
    )
