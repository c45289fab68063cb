"""The times of a run that a diagnosis may use: never a figure that a flag withholds, and the same statistic on both sides of a pair.

first token   TTFT (its mean, that of the requests behind an opening wave where both sides have one, else its median), else the prompt
              pass alone, else prompt tokens / measured prefill rate
step          ITL, else TPOT, else 1 / measured decode rate of one request
"""

from collections.abc import Callable

from app.domain.run import CANONICAL, Rate, Run

OPENING_WAVE = "cold_start_outliers"
_STATS = ("mean", "p50", "p90", "max")


def stat_of(run: Run, key: str, stat: str) -> float | None:
    """One statistic of a metric, None where it is not known, means something else, or is withheld."""
    found = run.distribution(key)
    if found is None or found.definition != CANONICAL or run.withheld & {key, f"{key}.{stat}"}:
        return None
    return found.stat(stat)


def rate_of(run: Run, key: str) -> float | None:
    """A rate that may be used: canonical, above 0 and not withheld."""
    found = run.rate(key)
    if found is None or key in run.withheld or found.value <= 0:
        return None
    return found.value


def pair_of(base: Run, other: Run, *keys: str) -> tuple[float, float] | None:
    """The first statistic of the first metric that both sides have: mean, median, 90th percentile or largest."""
    for key in keys:
        for stat in _STATS:
            a, b = stat_of(base, key, stat), stat_of(other, key, stat)
            if a is not None and b is not None and a > 0:
                return a, b
    return None


def means_of(base: Run, other: Run, key: str) -> tuple[float, float] | None:
    """The means of both sides, None where one is not known or withheld."""
    a, b = stat_of(base, key, "mean"), stat_of(other, key, "mean")
    return (a, b) if a is not None and b is not None else None


def behind_the_wave(base: Run, other: Run) -> tuple[float, float] | None:
    """Mean TTFT of the requests behind the opening wave, where both sides have one that stands apart; a median jumps by more than it."""
    means = []
    for run in (base, other):
        wave = next((flag for flag in run.flags if flag.flag == OPENING_WAVE), None)
        others = {name for flag in run.flags if flag.flag != OPENING_WAVE for name in flag.withholds}
        if wave is None or "mean_rest_s" not in wave.figures or others & {"ttft_s", "ttft_s.mean"}:
            return None
        means.append(wave.figures["mean_rest_s"])
    return (means[0], means[1]) if means[0] > 0 else None


def first_tokens(base: Run, other: Run) -> tuple[float, float] | None:
    """Seconds to the first token on both sides; behind the opening wave, where both have one that makes their means."""
    return (
        behind_the_wave(base, other)
        or pair_of(base, other, "ttft_s")
        or pair_of(base, other, "prefill_s")
        or _from_rates(base, other, _prompt_s)
    )


def steps(base: Run, other: Run) -> tuple[float, float] | None:
    """Seconds of a further token on both sides."""
    return pair_of(base, other, "itl_s", "tpot_s") or _from_rates(base, other, _step_s)


def first_token(run: Run) -> float | None:
    """Seconds to the first token of one run."""
    found = first_tokens(run, run)
    return found[0] if found else None


def step(run: Run) -> float | None:
    """Seconds of a further token of one run."""
    found = steps(run, run)
    return found[0] if found else None


def prefill_rates(base: Run, other: Run) -> tuple[float, float] | None:
    """Prompt tokens a second of the prompt pass itself, where it was measured apart from queue and transport."""
    rates = [_measured_alone(run) for run in (base, other)]
    if rates[0] is not None and rates[1] is not None:
        return rates[0], rates[1]
    passes = pair_of(base, other, "prefill_s")
    prompts = (base.workload.prompt_tokens_mean, other.workload.prompt_tokens_mean)
    if passes is None or not prompts[0] or not prompts[1] or not passes[1]:
        return None
    return prompts[0] / passes[0], prompts[1] / passes[1]


def _measured_alone(run: Run) -> float | None:
    """A prefill rate that did not come out of a TTFT, which holds the queue too."""
    found = run.rate("prefill_tokens_per_s")
    if found is None or found.origin == "derived" or found.definition != CANONICAL:
        return None
    return rate_of(run, "prefill_tokens_per_s")


def _from_rates(base: Run, other: Run, of: Callable[[Run], float | None]) -> tuple[float, float] | None:
    a, b = of(base), of(other)
    return (a, b) if a is not None and b is not None else None


def _prompt_s(run: Run) -> float | None:
    rate, prompt = _measured_alone(run), run.workload.prompt_tokens_mean
    return prompt / rate if rate and prompt else None


def _step_s(run: Run) -> float | None:
    found = run.rate("decode_tokens_per_s")
    if not isinstance(found, Rate) or found.scope != "request":
        return None
    rate = rate_of(run, "decode_tokens_per_s")
    return 1 / rate if rate else None
