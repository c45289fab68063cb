"""What a run measured of one request: the mean where it may be used, else the median, never a figure that a flag withholds.

The mean comes first because only means add up: total = TTFT + (output tokens - 1) x ITL holds on means.
"""

from dataclasses import dataclass
from typing import Literal

from app.domain.prediction import Prediction
from app.domain.run import CANONICAL, Run

Stat = Literal["mean", "p50"]


@dataclass(frozen=True)
class Observed:
    """One measured time in seconds: which metric and statistic it is, and the number of samples behind it (None: not known)."""

    key: str
    stat: Stat
    value_s: float
    n: int | None

    @property
    def words(self) -> str:
        """How the figure is quoted: "mean of 200", "median"."""
        name = "mean" if self.stat == "mean" else "median"
        return name if self.n is None else f"{name} of {self.n:,}"


@dataclass(frozen=True)
class RequestTimes:
    """One request in two halves: seconds to the first token, seconds for each further one, and how many follow (output tokens - 1).

    None is "not known". `predicted` says that nobody measured it.
    """

    first_token_s: float | None
    step_s: float | None
    steps: float | None
    predicted: bool = False

    @property
    def decode_s(self) -> float | None:
        """Seconds of all further tokens together."""
        return None if self.step_s is None or self.steps is None else self.step_s * self.steps

    @property
    def total_s(self) -> float | None:
        """Seconds of the whole request, None where a half is not known."""
        decode_s = self.decode_s
        return None if self.first_token_s is None or decode_s is None else self.first_token_s + decode_s

    @property
    def prefill_share(self) -> float | None:
        """The part of the request before the first token, a fraction."""
        total_s = self.total_s
        return self.first_token_s / total_s if self.first_token_s is not None and total_s else None


def observed(run: Run, *keys: str) -> Observed | None:
    """The mean of the first metric in `keys` that has a usable one, else the first usable median, else None."""
    withheld = run.withheld
    stats: tuple[Stat, ...] = ("mean", "p50")
    for stat in stats:
        for key in keys:
            found = run.distribution(key)
            if found is None or found.definition != CANONICAL or withheld & {key, f"{key}.{stat}"}:
                continue
            value = found.stat(stat)
            if value is not None:
                return Observed(key, stat, value, found.n)
    return None


def observed_first_token(run: Run) -> Observed | None:
    """The time to the first token: TTFT, or the prompt pass alone where the tool measures in process and has no TTFT."""
    return observed(run, "ttft_s") or observed(run, "prefill_s")


def observed_step(run: Run) -> Observed | None:
    """The time of one further token: ITL, or TPOT where a file has only that."""
    return observed(run, "itl_s", "tpot_s")


def measured_times(run: Run) -> RequestTimes:
    """One mean request of a run, for its phase line."""
    first, step, output = observed_first_token(run), observed_step(run), run.workload.output_tokens_mean
    return RequestTimes(
        first_token_s=first.value_s if first else None,
        step_s=step.value_s if step else None,
        steps=None if output is None else max(output - 1.0, 0.0),
    )


def predicted_times(prediction: Prediction) -> RequestTimes:
    """The same of a prediction, at the mean length of the answers asked for."""
    return RequestTimes(prediction.ttft_s, prediction.itl_s, prediction.request.further_tokens, predicted=True)
