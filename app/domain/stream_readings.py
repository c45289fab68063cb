"""What the rows of a served run say about its passes: the step by the number of running sequences, the prompt pass without a queue, stalls.

    decoding(t)         requests whose first token has come and whose last has not
    step(n)             lower quartile of the gaps at which n decode, none in which another request's first token came
    step(n) = a + b n   least squares over the n that were seen, weighted by the gaps behind each      a: fixed, b: a sequence
    lone                a request that was sent while no other waited for its first token: its TTFT holds no queue
    ttft(p) = a + b p   least squares over lone requests that differ in prompt length                  a: fixed, b: a token
    stall               a gap of twice the step at its n or more
    passed over         a stall in which the others that decode got several tokens each: no pass held them up, the sequence was put out

All sequences of a batch share one pass, so that a gap between two tokens is the pass between them, and what ran beside it is known from
the other rows. Needs the moments of sending; None or left out where the rows do not say. Source: the design's page on diagnosis, G4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.domain.run import Distribution, Floats, RequestSamples

FIT = "least-squares fit over the run's own rows"
STALL = 2.0
# What a curve needs: gaps behind each number of sequences, numbers of sequences, and how far apart the outermost are.
_GAPS_BEHIND, _POINTS, _APART = 12, 3, 2.0
_LONE, _PROMPTS_APART = 12, 1.3
# Numbers of sequences on either side that say how high a jump is.
_AROUND = 4
# Requests ahead that still count as few, hardly any of them, and how many requests must have had hardly any.
_FEW, _HARDLY, _SOME = 12, 2, 4
# Rows whose gaps are looked at; more say nothing new.
_MOST_ROWS = 4_000
_UPPER_TRIM = 0.9
# Passes that the others had in a gap which is no pass: two may be seen where clients note the ends of passes at moments that differ.
_PASSES = 3.0
# Tokens that come in bursts leave next to nothing between most of them, and say nothing of passes.
_BURSTS = 0.25
# A jump leaves at most this share of what a line alone leaves over.
_EXPLAINED = 0.25


@dataclass(frozen=True, eq=False)
class Passes:
    """Every gap that was looked at: its length and end, who decoded meanwhile; `quiet`: no other one's first token fell in."""

    gap_s: Floats
    until_s: Floats
    decoding: npt.NDArray[np.int64]
    quiet: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StepCurve:
    """The step at each number of decoding sequences that was seen often enough, by rising number."""

    decoding: Floats
    step_s: Floats
    gaps: Floats

    @property
    def is_wide(self) -> bool:
        """Whether the numbers are far enough apart for a line to mean something."""
        return self.decoding.size >= _POINTS and self.decoding[-1] >= _APART * self.decoding[0]

    def at(self, decoding: npt.NDArray[np.int64]) -> Floats:
        """The step at any number, between those seen on straight lines."""
        found: Floats = np.interp(decoding, self.decoding, self.step_s)
        return found


def stream_readings(samples: RequestSamples) -> dict[str, Distribution]:
    """The distributions that follow, by metric key."""
    known = _known(samples)
    if known is None:
        return {}
    found = {**_lone(samples, known), **_decoding_over_time(samples, known)}
    passes = passes_of(samples)
    curve = None if passes is None else step_curve(passes)
    if passes is None or curve is None:
        return found
    if curve.is_wide:
        fixed, each = _line(curve.decoding, curve.step_s, curve.gaps)
        found |= {"step_fixed_s": fixed, "step_per_sequence_s": each}
    stalls = passes.gap_s[passes.gap_s >= STALL * curve.at(passes.decoding)]
    if stalls.size:
        # Counted for all rows, where only some were looked at.
        counted = round(stalls.size / passes.gap_s.size * samples.chunk_gaps_s.size)
        found["stall_s"] = replace(_distribution(stalls), n=counted)
        passed = _passed_over(samples, passes, curve)
        if passed.size:
            found["passed_over_s"] = replace(_distribution(passed), n=round(passed.size / passes.gap_s.size * samples.chunk_gaps_s.size))
    return {**found, "step_quiet_s": _quiet(curve)}


def _known(samples: RequestSamples) -> npt.NDArray[np.bool_] | None:
    """The rows with all their moments; None where sending is not known, or of too few."""
    if samples.start_s is None:
        return None
    known: npt.NDArray[np.bool_] = samples.ok & np.isfinite(samples.start_s + samples.ttft_s + samples.e2e_s)
    return known if int(known.sum()) >= 2 else None


def passes_of(samples: RequestSamples) -> Passes | None:
    """The gaps of up to a few thousand rows with what ran beside each; None where gaps or moments are not known."""
    known = _known(samples)
    counts = samples.chunk_gap_counts
    if known is None or samples.start_s is None or counts.size != samples.size or samples.chunk_gaps_s.size != int(counts.sum()):
        return None
    firsts, ends = np.sort((samples.start_s + samples.ttft_s)[known]), np.sort((samples.start_s + samples.e2e_s)[known])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    rows = np.flatnonzero(known & (counts > 0))
    rows = rows[:: max(1, -(-rows.size // _MOST_ROWS))]
    if not rows.size:
        return None
    gaps = np.concatenate([samples.chunk_gaps_s[offsets[row] : offsets[row + 1]] for row in rows])
    began = np.repeat((samples.start_s + samples.ttft_s)[rows], counts[rows])
    within = np.cumsum(gaps)
    before = np.repeat(within[np.cumsum(counts[rows]) - 1] - np.add.reduceat(gaps, np.cumsum(counts[rows]) - counts[rows]), counts[rows])
    until = began + within - before
    sound = np.isfinite(gaps) & (gaps > 0)
    gaps, until = gaps[sound], until[sound]
    middle = until - gaps / 2
    decoding = np.searchsorted(firsts, middle, side="right") - np.searchsorted(ends, middle, side="right")
    # A little beyond the gap itself, since two clients note the end of one pass at moments that differ.
    slack = gaps / 4
    arrived = np.searchsorted(firsts, until + slack, side="right") - np.searchsorted(firsts, until - gaps + slack, side="right")
    return Passes(gaps, until, np.maximum(decoding, 1), arrived == 0)


def step_curve(passes: Passes) -> StepCurve | None:
    """The step over the number of decoding sequences; None where no number was seen often enough."""
    gaps, decoding = passes.gap_s[passes.quiet], passes.decoding[passes.quiet]
    order = np.argsort(decoding, kind="stable")
    gaps, decoding = gaps[order], decoding[order]
    numbers, first, count = np.unique(decoding, return_index=True, return_counts=True)
    enough = count >= _GAPS_BEHIND
    if not enough.any():
        return None
    steps = np.asarray([np.percentile(gaps[at : at + many], 25) for at, many in zip(first[enough], count[enough], strict=True)])
    return StepCurve(numbers[enough].astype(np.float64), steps, count[enough].astype(np.float64))


def _passed_over(samples: RequestSamples, passes: Passes, curve: StepCurve) -> Floats:
    """The stalls in which each of the others that decode got several tokens."""
    none = np.empty(0)
    if samples.start_s is None or float(np.median(passes.gap_s)) < _BURSTS * float(passes.gap_s.mean()):
        return none
    firsts = (samples.start_s + samples.ttft_s)[np.isfinite(samples.start_s + samples.ttft_s)]
    tokens = np.sort(np.concatenate([passes.until_s, firsts]))
    slack = passes.gap_s / 4
    within = np.searchsorted(tokens, passes.until_s - slack) - np.searchsorted(tokens, passes.until_s - passes.gap_s + slack)
    # Half of the gap was counted, of as many rows as were looked at.
    each = 2.0 * within / np.maximum(passes.decoding - 1, 1) * (samples.chunk_gaps_s.size / passes.gap_s.size)
    found: Floats = passes.gap_s[(passes.gap_s >= STALL * curve.at(passes.decoding)) & (passes.decoding > 1) & (each >= _PASSES)]
    return found


def _quiet(curve: StepCurve) -> Distribution:
    """The step at the number of sequences that most gaps had, beside the whole of them."""
    mean = float(np.average(curve.step_s, weights=curve.gaps))
    return Distribution(
        mean=mean, min=float(curve.step_s.min()), max=float(curve.step_s.max()), n=round(curve.gaps.sum()), origin="samples"
    )


def _line(x: Floats, y: Floats, weights: Floats) -> tuple[Distribution, Distribution]:
    """Intercept and slope with their standard errors."""
    total = float(weights.sum())
    middle, height = float((weights * x).sum() / total), float((weights * y).sum() / total)
    spread = float((weights * (x - middle) ** 2).sum())
    slope = float((weights * (x - middle) * (y - height)).sum()) / spread
    off = y - height - slope * (x - middle)
    variance = float((weights * off**2).sum()) / total / max(x.size - 2, 1) * total
    error = (variance / spread) ** 0.5
    n = round(total)
    return (
        Distribution(
            mean=height - slope * middle, std=(variance / total + (error * middle) ** 2) ** 0.5, n=n, origin="samples", definition=FIT
        ),
        Distribution(mean=slope, std=error, n=n, origin="samples", definition=FIT),
    )


def _lone(samples: RequestSamples, known: npt.NDArray[np.bool_]) -> dict[str, Distribution]:
    """TTFT of the requests that found nobody waiting, and its line over the prompt; where too few did, from those behind a few others."""
    start = np.zeros(0) if samples.start_s is None else samples.start_s[known]
    ttft, prompt = samples.ttft_s[known], samples.prompt_tokens[known]
    order = np.sort(start)
    ahead = np.searchsorted(order, start, side="left") - np.searchsorted(np.sort(start + ttft), start, side="right")
    together = np.searchsorted(order, start, side="right") - np.searchsorted(order, start, side="left")
    sole = np.isfinite(prompt) & (together == 1)
    lone = sole & (ahead <= 0)
    if int(lone.sum()) < _LONE:
        return _behind_a_few(prompt, ttft, ahead, sole)
    found = {"lone_ttft_s": _distribution(ttft[lone])}
    x, y = prompt[lone], ttft[lone]
    kept = y <= np.quantile(y / np.maximum(x, 1.0), _UPPER_TRIM) * np.maximum(x, 1.0)
    if int(kept.sum()) >= _LONE and _apart(x[kept]):
        fixed, each = _line(x[kept], y[kept], np.ones(int(kept.sum())))
        found |= {"prefill_fixed_s": fixed, "prefill_per_token_s": each}
    return found


def _apart(prompt: Floats) -> bool:
    return float(np.percentile(prompt, 90)) >= _PROMPTS_APART * float(np.percentile(prompt, 10))


def _behind_a_few(prompt: Floats, ttft: Floats, ahead: npt.NDArray[np.int64], sole: npt.NDArray[np.bool_]) -> dict[str, Distribution]:
    """The same from ttft = a + b p + c w with w the requests ahead, where they are few and some request had hardly any before it."""
    few = sole & (ahead <= _FEW)
    if int(few.sum()) < 2 * _LONE or int((sole & (ahead <= _HARDLY)).sum()) < _SOME or not _apart(prompt[few]):
        return {}
    x, w, y = prompt[few], np.maximum(ahead[few], 0).astype(np.float64), ttft[few]
    columns = np.stack([np.ones_like(x), x, w], axis=1)
    for _ in range(2):
        # Once more without the rows that are furthest above the fit: a hiccup is not a queue.
        solution = np.linalg.lstsq(columns, y, rcond=None)[0]
        off = y - columns @ solution
        kept = off <= np.quantile(off, _UPPER_TRIM)
        columns, y = columns[kept], y[kept]
    solution, left, rank, _ = np.linalg.lstsq(columns, y, rcond=None)
    if rank < columns.shape[1] or not left.size:
        return {}
    errors = np.sqrt(np.diag(np.linalg.inv(columns.T @ columns)) * float(left[0]) / max(y.size - columns.shape[1], 1))
    at = float(x.mean())
    parts = [Distribution(mean=float(solution[i]), std=float(errors[i]), n=y.size, origin="samples", definition=FIT) for i in (0, 1)]
    lone = float(solution[0] + solution[1] * at)
    whole = Distribution(
        mean=lone, p50=lone, std=float((errors[0] ** 2 + (errors[1] * at) ** 2) ** 0.5), n=y.size, origin="samples", definition=FIT
    )
    return {"lone_ttft_s": whole, "prefill_fixed_s": parts[0], "prefill_per_token_s": parts[1]}


def _decoding_over_time(samples: RequestSamples, known: npt.NDArray[np.bool_]) -> dict[str, Distribution]:
    """How many requests were between first and last token, weighted by time, while any was."""
    if samples.start_s is None:
        return {}
    firsts, ends = (samples.start_s + samples.ttft_s)[known], (samples.start_s + samples.e2e_s)[known]
    moments = np.concatenate([firsts, ends])
    order = np.argsort(moments, kind="stable")
    number = np.cumsum(np.concatenate([np.ones(firsts.size), -np.ones(ends.size)])[order])[:-1]
    lasting = np.diff(moments[order])
    busy = (number > 0) & (lasting > 0)
    if not busy.any():
        return {}
    number, lasting = number[busy], lasting[busy]
    rank = np.argsort(number, kind="stable")
    share = np.cumsum(lasting[rank]) / lasting.sum()
    p50, p90 = (float(number[rank][min(int(np.searchsorted(share, at)), rank.size - 1)]) for at in (0.5, 0.9))
    mean = float((number * lasting).sum() / lasting.sum())
    return {"decoding_requests": Distribution(mean=mean, p50=p50, p90=p90, max=float(number.max()), origin="samples")}


def _distribution(values: Floats) -> Distribution:
    found = Distribution.from_samples(values)
    if found is None:
        raise ArithmeticError("no finite value among those that were kept")
    return found


def jump(curve: StepCurve) -> Mapping[str, float]:
    """Where the step jumps between two neighbouring numbers of sequences and stays up: last number below, first above, their ratio.

    Empty unless a line with such a step explains most of what a line alone leaves over.
    """
    if not curve.is_wide or curve.decoding.size < 2 * _AROUND:
        return {}
    x, y, w = curve.decoding, curve.step_s, curve.gaps**0.5
    plain = _left_over(np.stack([np.ones_like(x), x]), y, w)
    best, at = plain, -1
    for cut in range(2, x.size - 2):
        left = _left_over(np.stack([np.ones_like(x), x, (np.arange(x.size) >= cut).astype(np.float64)]), y, w)
        if left < best:
            best, at = left, cut
    if at < 0 or plain <= 0 or best > _EXPLAINED * plain:
        return {}
    low, high = float(np.median(y[max(at - _AROUND, 0) : at])), float(np.median(y[at : at + _AROUND]))
    return {"step_from_batch": float(x[at - 1]), "step_to_batch": float(x[at]), "step_ratio": high / low}


def _left_over(columns: Floats, y: Floats, weights: Floats) -> float:
    """Weighted sum of squares that a least-squares fit leaves over."""
    solution = np.linalg.lstsq((columns * weights).T, y * weights, rcond=None)[0]
    return float((((y - solution @ columns) * weights) ** 2).sum())
