"""Two values of one quantity as named observables: both, the difference and the relative change."""

from collections.abc import Mapping

Seen = Mapping[str, float]


def moved(name: str, pair: tuple[float, float] | None) -> dict[str, float]:
    """Both values, the difference and the relative change of a time."""
    if pair is None or pair[0] <= 0:
        return {}
    a, b = pair
    return {f"{name}_base_s": a, f"{name}_other_s": b, f"{name}_added_s": b - a, f"{name}_change": b / a - 1}


def changed(name: str, a: float | None, b: float | None) -> dict[str, float]:
    """The relative change of a quantity, nothing where a side is not known or the base is 0."""
    return {f"{name}_change": b / a - 1} if a and b is not None else {}
