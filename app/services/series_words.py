"""A series in words, for headings and names."""

from app.domain.series import Series


def series_words(series: Series) -> str:
    """A series in one line: model on hardware with engine, its lengths and its load."""
    tokens = f"{_tokens(series.prompt_tokens)} → {_tokens(series.output_tokens)} tokens"
    return ", ".join((f"{series.model} on {series.hardware}", series.engine, tokens, load_words(series)))


def load_words(series: Series) -> str:
    """The load of a series in words."""
    if series.concurrency is not None:
        return f"{series.concurrency:,} client{'' if series.concurrency == 1 else 's'}"
    if series.request_rate_per_s is not None:
        return f"{series.request_rate_per_s:g} requests/s"
    return (series.load_mode or "load not known").replace("_", " ")


def _tokens(mean: float | None) -> str:
    return "?" if mean is None else f"{mean:,.0f}"
