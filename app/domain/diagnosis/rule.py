"""What a rule is: an observable pattern, what separates its cause from others with the same pattern, and what to do about it.

A rule is data. Its `pattern` signs are the observed change: all must hold. Its `separating` signs are evidence that may be missing: one
that does not hold rules the cause out, one that is not known is asked for. Words of signs and sums name observables in braces; each is
written with the unit of its name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.domain.diagnosis.changes import Seen
from app.domain.diagnosis.thresholds import FACT_WEIGHT, NOISE
from app.domain.diagnosis.vocabulary import Cause, Lever, Phase
from app.domain.text import duration, percent

Kind = Literal["rose", "fell", "still", "no rise", "above", "below", "within", "flag", "no flag"]
FLAG = "flag."


@dataclass(frozen=True)
class Sign:
    """One observation: `observable` rose, fell, stayed or did not rise (against the noise), lies above, below or
    within bounds, or is a flag.

    `weight` is what it counts when causes are ranked: a fact that somebody states (a setting, a clock, a counter) more than a time.
    """

    observable: str
    kind: Kind
    words: str
    low: float = 0.0
    high: float = 0.0
    weight: int = 1
    rules_out: bool = True

    def holds(self, seen: Seen) -> bool | None:
        """Whether the sign is there; None where its observable is not known."""
        if self.kind in ("flag", "no flag"):
            return (f"{FLAG}{self.observable}" in seen) == (self.kind == "flag")
        value = seen.get(self.observable)
        if value is None:
            return None
        noise = seen.get(f"{self.observable}_noise", seen.get("noise", NOISE))
        return {
            "rose": value > noise,
            "fell": value < -noise,
            "still": abs(value) <= noise,
            "no rise": value <= noise,
            "above": value > self.low,
            "below": value < self.high,
            "within": self.low <= value <= self.high,
        }[self.kind]


@dataclass(frozen=True)
class Advice:
    """One advice of a rule: the lever, and the size somebody saw elsewhere with the source; never a promise for this run."""

    lever: Lever
    seen: str = ""


@dataclass(frozen=True)
class Rule:
    """One line of the decision table for one cause. `cause` is None where the vocabulary has no word for it and only advice follows.

    `place` is where before the first token the added time of a cause of both phases lies, where it is the same place each time.
    """

    id: str
    cause: Cause | None
    title: str
    phase: Phase
    pattern: tuple[Sign, ...]
    separating: tuple[Sign, ...] = ()
    levers: tuple[Advice, ...] = ()
    sums: tuple[str, ...] = ()
    refuted_by: str = ""
    source: str = ""
    place: Phase | None = None


def rose(observable: str, words: str) -> Sign:
    """The observable grew by more than the noise."""
    return Sign(observable, "rose", words)


def fell(observable: str, words: str) -> Sign:
    """The observable shrank by more than the noise."""
    return Sign(observable, "fell", words)


def still(observable: str, words: str) -> Sign:
    """The observable moved by no more than the noise."""
    return Sign(observable, "still", words)


def no_rise(observable: str, words: str) -> Sign:
    """The observable did not grow by more than the noise."""
    return Sign(observable, "no rise", words)


def above(observable: str, bound: float, words: str) -> Sign:
    """The observable is more than `bound`."""
    return Sign(observable, "above", words, low=bound)


def below(observable: str, bound: float, words: str) -> Sign:
    """The observable is less than `bound`."""
    return Sign(observable, "below", words, high=bound)


def within(observable: str, low: float, high: float, words: str) -> Sign:
    """The observable lies between two bounds, both included."""
    return Sign(observable, "within", words, low=low, high=high)


def flagged(flag: str, words: str) -> Sign:
    """A data flag is there."""
    return Sign(flag, "flag", words)


def not_flagged(flag: str, words: str) -> Sign:
    """A data flag is not there: it may rule a cause out, and speaks for none."""
    return Sign(flag, "no flag", words, weight=0)


def fact(sign: Sign) -> Sign:
    """The sign as one that rests on a stated fact: a setting that was changed, a clock that fell, a counter that rose."""
    return replace(sign, weight=FACT_WEIGHT)


def silent(sign: Sign) -> Sign:
    """The sign as one that rules a cause out where it does not hold, and where it does speaks for it no more than for others."""
    return replace(sign, weight=0)


def doubted(sign: Sign) -> Sign:
    """The sign as one without which a cause is less likely than any other offered, and not ruled out."""
    return replace(sign, rules_out=False)


def told(template: str, seen: Seen) -> str | None:
    """The template with its observables filled in, None where one is not known."""
    names = re.findall(r"\{(\w+)\}", template)
    if any(name not in seen for name in names):
        return None
    return re.sub(r"\{(\w+)\}", lambda found: quantity(found[1], seen[found[1]]), template)


def quantity(name: str, value: float) -> str:
    """A value with the unit that its name says; a change keeps its sign."""
    bare = name.removesuffix("_base").removesuffix("_other")
    if bare.endswith(("_change", "_share", "_error")) or "share_of" in bare:
        sign = "+" if bare.endswith("_change") and value > 0 else ""
        return f"{sign}{percent(value)}".replace("-", "−")
    if "flops_per_s" in bare:
        return f"{value / 1e12:,.4g} TFLOP/s"
    if bare.endswith("bytes_per_s"):
        return f"{value / 1e9:,.4g} GB/s"
    if bare.endswith("_per_s"):
        return f"{value:,.4g} tokens/s"
    if "bytes" in bare and not bare.endswith(("_ratio", "_parameter")):
        return f"{value / 1e9:,.4g} GB"
    if bare.endswith("_s") or name.endswith(("_base_s", "_other_s")) or "_s_per_" in bare:
        sign = "+" if bare.endswith("_added_s") and value > 0 else ""
        return f"{sign}{duration(value)}".replace("-", "−")
    return f"{value:,.4g}".replace("-", "−")


def words_of(signs: Sequence[Sign], seen: Seen) -> tuple[str, ...]:
    """The sentences of the signs, each with its figures where they are known."""
    return tuple(text for sign in signs if (text := told(sign.words, seen)) is not None)
