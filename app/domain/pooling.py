"""Repeats of one measurement as one run, and how far they lie apart.

Each statistic of the pooled run is the mean of the repeats', every repeat weighted equally: the spread that matters for "is it real" is
that between runs, not that within one. A figure that one repeat lacks, means otherwise or must withhold is not in the pooled run either.
The spread is the standard deviation between repeats (n - 1) over their mean, known from three repeats on.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum, sqrt

from app.domain.counted_labels import of_repeats
from app.domain.metrics import METRICS
from app.domain.noise import FEWEST_REPEATS
from app.domain.run import Distribution, Flag, MetricValue, Rate, RequestCounts, Run

_MEANT = ("mean", "p50", "p90", "p95", "p99")


def spreads_of(runs: Sequence[Run]) -> dict[tuple[str, str], float]:
    """The relative spread between repeats by (metric, statistic); empty with fewer than three, and without what one of them lacks.

    The order of the repeats does not matter: they are named, not taken from a history.
    """
    found = {}
    if len(runs) >= FEWEST_REPEATS:
        for key, metric in METRICS.items():
            for stat in ("value",) if metric.kind == "rate" else _MEANT:
                spread = _spread([_figure(run, key, stat) for run in runs])
                if spread is not None:
                    found[key, stat] = spread
    return found


def _figure(run: Run, key: str, stat: str) -> float | None:
    rate, found = run.rate(key), run.distribution(key)
    return rate.value if rate else found.stat(stat) if found and stat != "value" else None


def _spread(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) != len(values):
        return None
    mean = fsum(known) / len(known)
    return sqrt(fsum((each - mean) ** 2 for each in known) / (len(known) - 1)) / mean if mean > 0 else None


def pooled(runs: Sequence[Run]) -> Run:
    """Repeats as one run: the first with means for its figures, sums for its counts, and every flag."""
    first = runs[0]
    if len(runs) == 1:
        return first
    metrics: dict[str, MetricValue] = {}
    for key in METRICS:
        found = _pooled_metric([run.metrics.get(key) for run in runs])
        if found is not None:
            metrics[key] = found
    load = replace(
        first.workload,
        prompt_tokens_mean=_mean([run.workload.prompt_tokens_mean for run in runs]),
        output_tokens_mean=_mean([run.workload.output_tokens_mean for run in runs]),
        prompt_tokens_total=_whole_sum([run.workload.prompt_tokens_total for run in runs]),
        output_tokens_total=_whole_sum([run.workload.output_tokens_total for run in runs]),
    )
    counts = (_whole_sum([getattr(run.requests, name) for run in runs]) for name in ("sent", "completed", "failed"))
    return replace(
        first,
        duration_s=_mean([run.duration_s for run in runs]),
        workload=load,
        requests=RequestCounts(*counts),
        metrics=metrics,
        samples=None,
        flags=_flags(runs),
        labels={key: text for key in first.labels if (text := of_repeats(key, [run.labels.get(key) for run in runs])) is not None},
    )


def _pooled_metric(values: Sequence[MetricValue | None]) -> MetricValue | None:
    """The mean of one metric, None where the repeats do not all have it in one meaning."""
    rates = [value for value in values if isinstance(value, Rate)]
    if len(rates) == len(values) and len({(rate.scope, rate.definition) for rate in rates}) == 1:
        return replace(rates[0], value=fsum(rate.value for rate in rates) / len(rates))
    spreads = [value for value in values if isinstance(value, Distribution)]
    if len(spreads) < len(values) or len({each.definition for each in spreads}) > 1:
        return None
    lows, highs = [each.min for each in spreads], [each.max for each in spreads]
    mean, p50, p90, p95, p99 = (_mean([each.stat(stat) for each in spreads]) for stat in _MEANT)
    return replace(
        spreads[0],
        mean=mean,
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        std=None,
        min=None if None in lows else min(low for low in lows if low is not None),
        max=None if None in highs else max(high for high in highs if high is not None),
        n=_whole_sum([each.n for each in spreads]),
    )


def _flags(runs: Sequence[Run]) -> tuple[Flag, ...]:
    """Each kind of flag once, with all that any repeat's withholds."""
    kept: dict[str, Flag] = {}
    for flag in (flag for run in runs for flag in run.flags):
        known = kept.get(flag.flag)
        withholds = flag.withholds if known is None else tuple(dict.fromkeys((*known.withholds, *flag.withholds)))
        kept[flag.flag] = replace(known or flag, withholds=withholds)
    return tuple(kept.values())


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if len(known) == len(values) else None


def _whole_sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
