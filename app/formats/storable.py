"""The last gate of every importer: words that any store and page can hold, counts of 63 bits, figures that are finite.

Importers keep bad values out where they read them, with a warning; what still comes of sums and quotients of absurd but valid numbers is
absent, like anything else that is not known.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

from app.domain.run import STATS, Distribution, MetricValue, Run
from app.domain.text import clean_text
from app.formats.record import LARGEST_INTEGER


def storable(run: Run) -> Run:
    """The run without what no store could hold."""
    requests, work = run.requests, run.workload
    return replace(
        run,
        labels={clean_text(key): text for key, value in run.labels.items() if (text := clean_text(value))},
        requests=replace(requests, sent=_count(requests.sent), completed=_count(requests.completed), failed=_count(requests.failed)),
        workload=replace(work, prompt_tokens_total=_count(work.prompt_tokens_total), output_tokens_total=_count(work.output_tokens_total)),
        metrics=_finite(run.metrics),
    )


def _count(value: int | None) -> int | None:
    return value if value is None or value <= LARGEST_INTEGER else None


def _finite(metrics: Mapping[str, MetricValue]) -> Mapping[str, MetricValue]:
    """The metrics whose figures are all finite, and of the others what is; the same mapping where nothing is wrong."""
    odd = {key for key, value in metrics.items() if not all(isfinite(figure) for figure in _figures(value).values())}
    if not odd:
        return metrics
    kept = {key: _without_infinities(value) if key in odd else value for key, value in metrics.items()}
    return {key: value for key, value in kept.items() if value is not None}


def _figures(value: MetricValue) -> dict[str, float]:
    if isinstance(value, Distribution):
        return {name: figure for name in STATS if (figure := value.stat(name)) is not None}
    return {"value": value.value}


def _without_infinities(value: MetricValue) -> MetricValue | None:
    finite = {name: figure for name, figure in _figures(value).items() if isfinite(figure)}
    if not finite or not isinstance(value, Distribution):
        return None
    return replace(value, **{name: finite.get(name) for name in STATS})  # type: ignore[arg-type]
