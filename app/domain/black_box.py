"""What the times of a server say of its inside, when nothing but its answers is seen: a fit over prompt and output lengths.

    first token     t(n) = f + a·n + b·n²          n prompt tokens, nothing else in flight
    further tokens  g(c) = d + k·c                 c mean context: prompt tokens and half of the output

f is what does not depend on the prompt (front-end, network, one decode pass); 1/a the rate of the part linear in the prompt (projections,
MLP); b n² attention, whose share at n is b n² / (a n + b n²). Where the model is known, a decode pass reads its weights and the cache of
its context: bandwidth = (weights + cache per token · c) / g(c), and by the slope alone cache per token / k.

Times cannot be negative, so neither can a term: where the free fit has one below zero, that term is left out. Intervals are the middle
95 % of fits to requests drawn anew from each point. Everything here is inferred: it holds for the forms above and a server without load.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.errors import PhaselineError
from app.domain.run import Floats

DRAWS = 400
LINEAR, QUADRATIC = 2, 3
# Requests of one length spread by something; a point is never worth more than this share of its time.
_LEAST_SHARE = 0.002
# Below this spread of lengths (longest over shortest) a slope is not told apart from noise.
LEAST_SPREAD = 1.5


class NotTold(PhaselineError):
    """The points do not say it; the message names what to measure."""


@dataclass(frozen=True)
class Observed:
    """Requests of one shape, one in flight at a time. `ttft_s` and `itl_s` hold one value a request; `itl_s` may be empty."""

    prompt_tokens: float
    output_tokens: float
    ttft_s: Floats
    itl_s: Floats

    @property
    def context_tokens(self) -> float:
        """Mean context of its decode passes."""
        return self.prompt_tokens + self.output_tokens / 2.0


@dataclass(frozen=True)
class Inferred:
    """A figure that follows from a fit, with the middle 95 % of redrawn fits; `said` states what it is. Never measured."""

    value: float
    low: float
    high: float
    said: str


@dataclass(frozen=True)
class Memory:
    """What a decode pass reads on one device: bytes of its weights, and of the cache for each token of context."""

    weight_bytes: float
    cache_bytes_per_token: float


@dataclass(frozen=True)
class BlackBox:
    """What was inferred, by name; `curve` and `steps` are (tokens, measured median, fitted) of first tokens and decode steps.

    `untold` says what is missing, and what to measure for it.
    """

    figures: Mapping[str, Inferred]
    curve: tuple[tuple[float, float, float], ...]
    steps: tuple[tuple[float, float, float], ...]
    untold: tuple[str, ...]


def infer(points: Sequence[Observed], memory: Memory | None = None, seed: int = 0) -> BlackBox:
    """Fit both curves. Raises NotTold where there are not two prompt lengths that differ enough."""
    prefill = _Curve([one.prompt_tokens for one in points], [one.ttft_s for one in points])
    if prefill.lengths < LINEAR or prefill.spread < LEAST_SPREAD:
        raise NotTold(
            "A server's inside follows from first tokens at two prompt lengths or more, one request at a time, the longest at least half "
            "as long again as the shortest: measure with --concurrency 1 --prompt 200,1000,4000."
        )
    untold = []
    powers = (0, 1, 2) if prefill.lengths >= QUADRATIC else (0, 1)
    if prefill.lengths < QUADRATIC:
        untold.append("Attention's share needs a third prompt length.")
    random = np.random.default_rng(seed)
    first = prefill.fits(powers, random)
    figures = dict(_prefill_figures(first, prefill))
    decoding = [one for one in points if one.itl_s.size]
    steps: tuple[tuple[float, float, float], ...] = ()
    if decoding:
        decode = _Curve([one.context_tokens for one in decoding], [one.itl_s for one in decoding])
        told = decode.lengths >= LINEAR and decode.spread >= LEAST_SPREAD
        if not told:
            untold.append("The growth of a decode step with its context needs contexts that differ more.")
        fitted = decode.fits((0, 1) if told else (0,), random)
        figures |= _decode_figures(fitted, decode, memory)
        steps = decode.beside(fitted[0])
    else:
        untold.append("Decode needs answers of two tokens or more, and the server's count of them.")
    if memory is None:
        untold.append("The bandwidth that decode implies needs the model's shape: name the model of the run.")
    return BlackBox(figures, prefill.beside(first[0]), steps, tuple(untold))


class _Curve:
    """Requests by length: medians, how sure each is, and fits to redrawn requests."""

    def __init__(self, at: Sequence[float], values: Sequence[Floats]) -> None:
        pooled: dict[float, list[Floats]] = {}
        for length, some in zip(at, values, strict=True):
            known = some[np.isfinite(some) & (some > 0)]
            if known.size:
                pooled.setdefault(float(length), []).append(known)
        self.at = np.array(sorted(pooled))
        self.values = [np.concatenate(pooled[length]) for length in self.at.tolist()]
        self.medians = np.array([float(np.median(some)) for some in self.values])
        # A median's standard error is about 1.25 of a mean's.
        errors = np.array([1.25 * float(some.std()) / np.sqrt(some.size) for some in self.values])
        self.errors = np.hypot(errors, _LEAST_SHARE * self.medians)

    @property
    def lengths(self) -> int:
        return int(self.at.size)

    @property
    def spread(self) -> float:
        return float(self.at[-1] / self.at[0]) if self.at.size and self.at[0] > 0 else 0.0

    def fits(self, powers: tuple[int, ...], random: np.random.Generator) -> Floats:
        """Coefficients of n⁰, n¹, n²: the fit to the medians first, then to medians of redrawn requests. Shape (1 + DRAWS, 3)."""
        drawn = np.stack([np.median(random.choice(some, (DRAWS, some.size)), axis=1) for some in self.values], axis=1)
        # Few requests repeat themselves when they are redrawn: what is known of a point's noise is added.
        drawn = drawn + random.normal(0.0, _LEAST_SHARE, drawn.shape) * self.medians
        return np.stack([self._fit(row, powers) for row in (self.medians, *drawn)])

    def _fit(self, values: Floats, powers: tuple[int, ...]) -> Floats:
        """Least squares with weights 1 / error², terms below zero left out one at a time."""
        scale = float(self.at[-1])
        left = list(powers)
        while True:
            design = np.stack([(self.at / scale) ** power for power in left], axis=1) / self.errors[:, None]
            found, *_ = np.linalg.lstsq(design, values / self.errors, rcond=None)
            lowest = int(np.argmin(found))
            if found[lowest] >= 0 or len(left) == 1:
                break
            left.pop(lowest)
        whole = np.zeros(3)
        whole[left] = np.maximum(found, 0.0) / scale ** np.array(left, dtype=np.float64)
        return whole

    def beside(self, fit: Floats) -> tuple[tuple[float, float, float], ...]:
        fitted = np.polynomial.polynomial.polyval(self.at, fit)
        return tuple(zip(self.at.tolist(), self.medians.tolist(), fitted.tolist(), strict=True))


def _prefill_figures(fits: Floats, curve: _Curve) -> Mapping[str, Inferred]:
    longest = float(curve.at[-1])
    figures = {"front_end_s": _inferred(fits, lambda fit: float(fit[0]), "what a first token takes whatever the prompt's length")}
    figures["prefill_s"] = _inferred(
        fits, lambda fit: float(fit[1] * longest + fit[2] * longest**2), f"the prompt pass of {longest:,.0f} tokens, without the front-end"
    )
    if fits[0, 1] > 0:
        said = "prompt tokens a second of the part that is linear in the prompt"
        figures["prefill_tokens_per_s"] = _inferred(fits, lambda fit: _ratio(1.0, fit[1]), said)
    if curve.lengths >= QUADRATIC:
        figures["attention_share"] = _inferred(
            fits,
            lambda fit: _ratio(fit[2] * longest**2, fit[1] * longest + fit[2] * longest**2),
            f"the quadratic part's share of the prompt pass at {longest:,.0f} tokens",
        )
    return figures


def _decode_figures(fits: Floats, curve: _Curve, memory: Memory | None) -> Mapping[str, Inferred]:
    middle = float(np.median(curve.at))

    def step(fit: Floats) -> float:
        return float(fit[0] + fit[1] * middle)

    figures = {"step_s": _inferred(fits, step, f"a decode step with {middle:,.0f} tokens of context")}
    if curve.lengths >= LINEAR and curve.spread >= LEAST_SPREAD:
        figures["step_without_context_s"] = _inferred(fits, lambda fit: float(fit[0]), "a decode step as its context goes to nothing")
        figures["step_per_1000_tokens_s"] = _inferred(
            fits, lambda fit: float(1000.0 * fit[1]), "what 1,000 tokens of context add to a decode step"
        )
    if memory is not None:
        read = memory.weight_bytes + memory.cache_bytes_per_token * middle
        said = "weights and cache read by a decode step, over its time: a lower bound where the step waits for anything else"
        figures["decode_bytes_per_s"] = _inferred(fits, lambda fit: _ratio(read, step(fit)), said)
    return figures


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below > 0 else np.nan


def _inferred(fits: Floats, of: Callable[[Floats], float], said: str) -> Inferred:
    drawn = np.array([of(fit) for fit in fits[1:]])
    drawn = drawn[np.isfinite(drawn)]
    value = of(fits[0])
    low, high = (float(bound) for bound in np.percentile(drawn, (2.5, 97.5))) if drawn.size else (value, value)
    return Inferred(value, min(low, value), max(high, value), said)
