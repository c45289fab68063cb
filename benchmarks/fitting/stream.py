"""Single streams and static batches ready to be fitted: each row measures one phase of one pass on an idle device."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.pass_numbers import mean_decode_numbers, pass_numbers
from benchmarks.asked import Asked
from benchmarks.fitting.parameters import STREAM, Parameters
from benchmarks.fitting.passes import Passes, passes, timed

Floats = npt.NDArray[np.float64]

MICRO_BATCH_TOKENS = 512.0  # pieces that a prompt pass is cut into
_OF_PASSES = ("e_b", "e_kv", "e", "unpack", "layer", "alpha", "send", "attention")


@dataclass(frozen=True)
class StreamRows:
    """n rows of one output: seconds of a decode step, of the prefill, or to the first token (`first_token`)."""

    asked: tuple[Asked, ...]
    one: Passes
    prefill: npt.NDArray[np.bool_]
    first_token: npt.NDArray[np.bool_]
    speed_up: Floats
    measured: Floats
    parameters: Parameters = STREAM

    @classmethod
    def of(cls, asked: Sequence[Asked]) -> "StreamRows":
        """Rows of kind stream."""
        prefill = np.array([row.measurement.tpot_s is None for row in asked])
        first = np.array([row.measurement.ttft_s is not None for row in asked])
        measured = np.array([[row.measurement.tpot_s or row.measurement.first_token_s or np.nan] for row in asked])
        found = [_numbers(row, bool(prompt)) for row, prompt in zip(asked, prefill, strict=True)]
        gain = np.array([pipeline_gain(row) if prompt else 1.0 for row, prompt in zip(asked, prefill, strict=True)])
        return cls(tuple(asked), passes(found), prefill, first, gain, measured)

    def predict(self, values: Floats) -> Floats:
        """Seconds, [n, 1], at values [n, constants]."""
        return self.derivatives(values)[0]

    def derivatives(self, values: Floats) -> tuple[Floats, Floats]:
        """Seconds [n, 1] and their derivatives [n, 1, constants]."""
        named = {name: values[:, place] for place, name in enumerate(self.parameters.names)}
        of_passes = {name: named[name] for name in _OF_PASSES}
        run = timed(self.one, {**of_passes, "fill": np.where(self.prefill, named["fill"], 0.0)}, MICRO_BATCH_TOKENS)
        time = run.time + named["least"]
        least = named["floor"] * self.one.depth
        floored = self.prefill & (least > time)
        total = np.where(floored, least, time) / self.speed_up + np.where(self.first_token, named["front"], 0.0)
        slopes = np.zeros((len(time), len(self.parameters)))
        for name, by in run.by.items():
            if name in self.parameters.names:
                slopes[:, self.parameters.index(name)] = np.where(floored, 0.0, by) / self.speed_up
        slopes[:, self.parameters.index("fill")] *= self.prefill
        slopes[:, self.parameters.index("least")] = np.where(floored, 0.0, 1.0) / self.speed_up
        slopes[:, self.parameters.index("floor")] = np.where(floored, self.one.depth, 0.0) / self.speed_up
        slopes[:, self.parameters.index("front")] = self.first_token
        return total[:, None], slopes[:, None, :]

    def only(self, chosen: npt.NDArray[np.bool_]) -> "StreamRows":
        """The rows where `chosen` holds."""
        kept = tuple(row for row, keep in zip(self.asked, chosen, strict=True) if keep)
        cut = Passes(**{name: getattr(self.one, name)[chosen] for name in Passes.__dataclass_fields__})
        others = (self.prefill[chosen], self.first_token[chosen], self.speed_up[chosen], self.measured[chosen])
        return StreamRows(kept, cut, *others, self.parameters)


def _numbers(asked: Asked, prompt: bool):  # type: ignore[no-untyped-def]
    request = asked.request
    length = request.prompt_tokens
    if prompt:
        new = float(length - request.cached_prefix_tokens)
        return asked, pass_numbers(new, float(request.cached_prefix_tokens), float(request.batch)), True, length
    return asked, mean_decode_numbers(float(length), float(request.output_tokens), float(request.batch)), False, length


def pipeline_gain(asked: Asked) -> float:
    """How much sooner a prompt in m pieces is through s stages than one piece after the other: m·s / (m + s - 1)."""
    request = asked.request
    pieces = max(float(np.ceil((request.prompt_tokens - request.cached_prefix_tokens) * request.batch / MICRO_BATCH_TOKENS)), 1.0)
    return pieces * request.pp / (pieces + request.pp - 1.0)
