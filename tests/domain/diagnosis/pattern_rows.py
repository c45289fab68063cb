"""How a row of the table of patterns is made: runs by hand that show a rule's pattern, and the same with one sign of it gone."""

from dataclasses import dataclass
from typing import Any

from app.domain.diagnosis import Setup, Subject
from app.domain.run import Distribution, Flag
from tests.domain.diagnosis.measured import one, rows, run

Sides = tuple[Subject, ...]


@dataclass(frozen=True)
class Row:
    """A rule's number and title, sides that show its pattern (one: a single deployment), and sides that lack one sign of it."""

    id: str
    title: str
    shows: Sides
    lacks: Sides


def means(
    id: str, title: str, base: dict[str, Any], other: dict[str, Any], gone: dict[str, Any], before: dict[str, Any] | None = None
) -> Row:
    """A pair of runs known by means; `gone` (and `before` in the base) is what is otherwise where the sign is not there."""
    return Row(id, title, (one(**base), one(**other)), (one(**{**base, **(before or {})}), one(**{**other, **gone})))


def single(id: str, title: str, shows: dict[str, Any], gone: dict[str, Any]) -> Row:
    """One run known by means."""
    return Row(id, title, (one(**shows),), (one(**{**shows, **gone}),))


def rowed(
    id: str,
    title: str,
    other: dict[str, Any],
    gone: dict[str, Any],
    base: dict[str, Any] | None = None,
    before: dict[str, Any] | None = None,
) -> Row:
    """A pair of runs whose rows are known."""
    given = base or {}
    return Row(id, title, (rows(**given), rows(**other)), (rows(**{**given, **(before or {})}), rows(**{**other, **gone})))


def flag(id: str, title: str, name: str) -> Row:
    """A rule that rests on a data flag."""
    return single(id, title, {"ttft": 0.4, "itl": 0.02, "flags": (name,)}, {"flags": ()})


def bursts(alone: float, base_last: float, other_last: float) -> Sides:
    """A lone prompt of 400 tokens, and a burst of ten of them whose last first token comes at these moments, before and after."""
    return tuple(
        Subject((run(clients=1, prompt=400, ttft=alone, itl=0.02), run(clients=10, prompt=400, itl=0.02, ttft_max=last)))
        for last in (base_last, other_last)
    )


def prompts(*points: tuple[float, float], key: str = "ttft") -> Sides:
    """One deployment at several prompt lengths, with the mean of `key` at each."""
    return (Subject(tuple(run(prompt=tokens, **{key: value}) for tokens, value in points)),)


def devices(*points: tuple[int, float], **setup: float) -> Sides:
    """One deployment at several degrees of parallelism, with its step."""
    return (Subject(tuple(run(tp=tp, itl=value) for tp, value in points), Setup(**setup)),)


def wave(mean_all: float) -> tuple[Flag, ...]:
    """An opening wave that makes the mean TTFT `mean_all` s where that of the rest is 0.12 s."""
    return (Flag("cold_start_outliers", "", ("ttft_s.mean",), {"mean_all_s": mean_all, "mean_rest_s": 0.12}),)


def jump(ratio: float) -> tuple[Flag, ...]:
    """A step that jumps by this ratio between ten and eleven sequences."""
    return (Flag("bimodal_itl", "", (), {"step_from_batch": 10.0, "step_to_batch": 11.0, "step_ratio": ratio}),)


def repeats(slow_first_s: float, slow_step_s: float) -> Sides:
    """Eight repeats of 20 s, and a ninth of 26 s whose mean first token and step are given."""
    alike = [run(ttft=0.3, itl=0.012, rate=900, duration=20.0) for _ in range(8)]
    return (Subject((*alike, run(ttft=slow_first_s, itl=slow_step_s, rate=690, duration=26.0))),)


CONSTANT = {"prefill": (0.16, 5e-5), "ttft": 0.26}
"""130 ms more before every first token of `rows`, whatever its prompt."""
BYTES = {"step_weight_bytes": 1e10, "bandwidth_bytes_per_s": 1e12}
"""A floor of 10 ms."""
PLATEAU = {"parameters": 7e9, "peak_flops_per_s": 6e14}
GATHERED = Distribution(mean=0.018, p50=1e-5, max=0.7, n=10_000)
