"""Served rows ready to be fitted: their passes, and the closed form of ITL and TTFT over them, put together as `app.domain.phases` does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.domain.pass_numbers import mean_decode_numbers, pass_numbers
from app.domain.phases import Question, price_request
from app.domain.rates import Rates
from app.domain.request_rules import Load, check
from app.domain.schedule import Schedule
from app.domain.turn import Turn
from app.domain.under_load import chunk_prompts, in_waves, queue_s, waves_s
from benchmarks.asked import Asked
from benchmarks.fitting.parameters import SERVED, Parameters
from benchmarks.fitting.passes import NEUTRAL, Passes, Timed, passes, rates_of, timed

Floats = npt.NDArray[np.float64]

_STEP = 1e-5  # relative step of the derivatives that are taken by difference; they are smooth there
_OF_PASSES = ("e_b", "e_bx", "e_kv", "e", "e_x", "layer", "expert_layer", "alpha", "traffic")
_BESIDE_PASSES = ("step", "sequence", "interference", "floor", "expert_floor", "front", "serial", "admission", "by_running", "by_devices")


@dataclass(frozen=True)
class ServedRows:
    """n served rows. Outputs are ITL and TTFT, in this order. `schedule` [n] is the place of each row's own among `schedules`."""

    asked: tuple[Asked, ...]
    decode: Passes
    prefill: Passes
    chunk: Passes
    load: Mapping[str, Floats]
    running: Floats
    schedules: tuple[Schedule, ...]
    schedule: npt.NDArray[np.int64]
    rates: Rates
    measured: Floats
    parameters: Parameters = SERVED

    @classmethod
    def of(cls, asked: Sequence[Asked]) -> "ServedRows":
        """Rows of a served load (not disaggregated). `asked` must not be empty."""
        decode, prefill, chunk, running, loads = [], [], [], [], []
        for one in asked:
            load, now = _running(one)
            length = one.request.prompt_tokens
            prompt = float(load.prompt_tokens)
            together = float(chunk_prompts(load, _schedule(one), now / float(load.dp)))
            decode.append(
                (one, mean_decode_numbers(prompt, float(load.output_tokens), float(np.ceil(now / float(load.pp)))), False, length)
            )
            prefill.append((one, pass_numbers(prompt, 0.0, 1.0), True, prompt))
            chunk.append((one, pass_numbers(prompt, 0.0, min(float(load.dp), float(np.ceil(now))) * together), True, prompt))
            running.append(now)
            loads.append(load)
        measured = np.array([[_or_nan(one.measurement.tpot_s), _or_nan(one.measurement.ttft_s)] for one in asked])
        # One engine does both phases: what separate pools would have is None in all rows.
        numbers = {
            name: np.array([getattr(load, name) for load in loads], dtype=np.float64)
            for name in vars(loads[0])
            if getattr(loads[0], name) is not None
        }
        schedules = tuple(dict.fromkeys(_schedule(one) for one in asked))
        schedule = np.array([schedules.index(_schedule(one)) for one in asked])
        ran = (passes(decode), passes(prefill), passes(chunk))
        return cls(tuple(asked), *ran, numbers, np.array(running), schedules, schedule, rates_of(asked[0]), measured)

    def predict(self, values: Floats) -> Floats:
        """ITL and TTFT in seconds, [n, 2], at values [n, constants]."""
        named = self._named(values)
        return self._closed(named, *(self._timed(one, named) for one in (self.decode, self.prefill, self.chunk)))

    def derivatives(self, values: Floats) -> tuple[Floats, Floats]:
        """The prediction [n, 2] and its derivatives by the constants [n, 2, constants]."""
        named = self._named(values)
        ran = [self._timed(one, named) for one in (self.decode, self.prefill, self.chunk)]
        base = self._closed(named, *ran)
        slopes = np.zeros((*base.shape, len(self.parameters)))
        for place, one in enumerate(ran):
            slope = self._slope(named, ran, place, base)
            for name, by in one.by.items():
                if name in self.parameters.names:
                    slopes[:, :, self.parameters.index(name)] += slope * by[:, None]
        slope = self._slope(named, ran, None, base)
        for name, by in ran[0].weights_by.items():
            slopes[:, :, self.parameters.index(name)] += slope * by[:, None]
        for name in _BESIDE_PASSES:
            moved = {**named, name: named[name] * (1.0 + _STEP)}
            slopes[:, :, self.parameters.index(name)] += (self._closed(moved, *ran) - base) / (named[name] * _STEP)[:, None]
        return base, slopes

    def only(self, chosen: npt.NDArray[np.bool_]) -> "ServedRows":
        """The rows where `chosen` holds."""

        def cut(one: Passes) -> Passes:
            return Passes(**{name: getattr(one, name)[chosen] for name in Passes.__dataclass_fields__})

        return replace(
            self,
            asked=tuple(row for row, keep in zip(self.asked, chosen, strict=True) if keep),
            decode=cut(self.decode),
            prefill=cut(self.prefill),
            chunk=cut(self.chunk),
            load={name: value[chosen] for name, value in self.load.items()},
            running=self.running[chosen],
            schedule=self.schedule[chosen],
            measured=self.measured[chosen],
        )

    def _slope(self, named: dict[str, Floats], ran: list[Timed], place: int | None, base: Floats) -> Floats:
        """Derivative of the outputs by the time of one pass, or (None) by that of the weight read."""
        changed = list(ran)
        at = 0 if place is None else place
        old = ran[at]
        step = (old.weights if place is None else old.time) * _STEP
        changed[at] = replace(old, weights=old.weights + step) if place is None else replace(old, time=old.time + step)
        return (self._closed(named, *changed) - base) / step[:, None]

    def _named(self, values: Floats) -> dict[str, Floats]:
        return {name: values[:, place] for place, name in enumerate(self.parameters.names)}

    def _timed(self, one: Passes, named: dict[str, Floats]) -> Timed:
        return timed(one, {name: named[name] for name in _OF_PASSES})

    def _closed(self, named: dict[str, Floats], decode: Timed, prefill: Timed, chunk: Timed) -> Floats:
        """ITL and TTFT from the times of the passes, group by group of equal schedules."""
        outputs = np.zeros((len(self.running), 2))
        for place, schedule in enumerate(self.schedules):
            mine = self.schedule == place
            if mine.any():
                outputs[mine] = self._of_schedule(mine, schedule, named, decode, prefill, chunk)
        return outputs

    def _of_schedule(
        self, mine: npt.NDArray[np.bool_], schedule: Schedule, named: dict[str, Floats], decode: Timed, prefill: Timed, chunk: Timed
    ) -> Floats:
        load = Load(**{name: value[mine] for name, value in self.load.items()})
        value = {name: named[name][mine] for name in _BESIDE_PASSES}
        least = value["floor"] * self.decode.depth[mine] + value["expert_floor"] * self.decode.expert_layers[mine]

        def whole(run: Timed, one: Passes) -> Floats:
            found: Floats = run.time[mine] + value["step"] + value["sequence"] * one.sequences[mine]
            return found

        first = np.maximum(whole(prefill, self.prefill), least)
        running = self.running[mine]
        prompts = np.asarray(chunk_prompts(load, schedule, running / load.dp))
        turn = Turn(first, np.maximum(whole(chunk, self.chunk), least), prompts, whole(decode, self.decode))
        step = value["step"] + value["sequence"] * self.prefill.sequences[mine]
        added = np.maximum(first - step - decode.weights[mine], 0.0)
        beside = value["interference"] * np.maximum(running / load.dp - 1.0, 0.0) / load.output_tokens * added / load.pp
        itl = turn.step_s + np.where(in_waves(load, schedule) > 0, waves_s(load, running / load.dp, turn), beside)
        rates = replace(
            self.rates,
            serial_front_end_s=value["serial"],
            admission_steps=value["admission"],
            admission_running_power=value["by_running"],
            admission_devices_power=value["by_devices"],
        )
        queue = queue_s(load, schedule, rates, running, turn, itl)
        return np.stack([itl, value["front"] + value["serial"] + queue + first], axis=1)


def _schedule(one: Asked) -> Schedule:
    return Schedule() if one.profile is None else one.profile.schedule


def _running(one: Asked) -> tuple[Load, float]:
    """The load at its mean lengths, and the clients that decode at once."""
    neutral = replace(NEUTRAL, schedule=_schedule(one))
    question = Question.of(one.architecture, one.hardware, one.request, check(one.request, one.architecture, one.hardware), neutral)
    return question.load, float(price_request(question).running)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
