"""What the performance model makes of the way from one run's operating point to another's, factor by factor.

Each factor that differs is swapped alone and with every set of the others; its share is the average (`shapley`). A few factors can be
priced so. Where more differ, or a mixture of the two points is something no device runs, factors are taken together and that is said.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from app.domain.errors import PhaselineError
from app.domain.point import Factor, FactorKind, Point, differing, swapped
from app.domain.point_prices import Parts, part_prices
from app.domain.request_parts import MODELLED
from app.domain.shapley import Floats, shapley

MOST_FACTORS = 5
Price = Callable[[Sequence[Point]], Sequence[Parts]]


@dataclass(frozen=True)
class Pricing:
    """Both points, None where a run cannot be priced, with the reasons in sentences that begin with the side's name."""

    base: Point | None
    other: Point | None
    why: tuple[str, ...] = ()
    price: Price = part_prices

    def timed_as(self, base_key: str, other_key: str) -> "Pricing":
        """The same for runs whose first token is this metric: of a prompt pass alone nothing stands before it."""
        return replace(self, base=_timed(self.base, base_key), other=_timed(self.other, other_key))


def _timed(point: Point | None, metric: str) -> Point | None:
    alone = point is not None and point.place == "served" and metric == "prefill_s"
    return replace(point, place="in_process") if point is not None and alone else point


@dataclass(frozen=True)
class Group:
    """Factors that are swapped together: mostly one."""

    members: tuple[Factor, ...]

    @property
    def key(self) -> str:
        """The factor's key, or the kind of several."""
        return self.members[0].key if len(self.members) == 1 else self.kind

    @property
    def kind(self) -> FactorKind:
        """workload or configuration; several are of one kind."""
        return self.members[0].kind

    @property
    def title(self) -> str:
        """The names of what is swapped."""
        *names, last = [factor.title for factor in self.members]
        return f"{', '.join(names)} and {last}" if names else last


@dataclass(frozen=True)
class PointChange:
    """The model's parts at both ends, and each group's share of their difference: `shares` has a row a group, a column a part.

    Where `priced` is False nothing of it is known, and `notes` say why.
    """

    ends: tuple[Point, Point] | None
    base: Mapping[str, float] = field(default_factory=dict)
    other: Mapping[str, float] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    shares: Floats = field(default_factory=lambda: np.zeros((0, len(MODELLED))))
    notes: tuple[str, ...] = ()

    @property
    def priced(self) -> bool:
        """Whether the model has a price for both ends and for what lies between."""
        return self.ends is not None

    def by_factor(self, part: str) -> dict[str, float]:
        """Seconds of a part's change by the key of what differs."""
        column = MODELLED.index(part)
        return {group.key: float(self.shares[row, column]) for row, group in enumerate(self.groups)}

    def sums(self, by: Mapping[str, float]) -> tuple[float, float]:
        """The workload's and the configuration's seconds of a part."""
        kinds = {group.key: group.kind for group in self.groups}
        return (
            sum(value for key, value in by.items() if kinds[key] == "workload"),
            sum(value for key, value in by.items() if kinds[key] == "configuration"),
        )

    def key_of(self, factor: str) -> str | None:
        """The key of the group that this factor is in, None where it does not differ."""
        return next((group.key for group in self.groups if factor in {member.key for member in group.members}), None)

    def words(self, group: Group) -> tuple[str, str]:
        """What a group is on both sides."""
        if self.ends is None:
            return "", ""
        a, b = (", ".join(factor.words(point) for factor in group.members) for point in self.ends)
        return a, b


def change_of(pricing: Pricing) -> PointChange:
    """Every factor's share of what the model makes of the change."""
    base, other = pricing.base, pricing.other
    if base is None or other is None:
        return PointChange(None, notes=pricing.why)
    found = differing(base, other)
    why = ""
    for groups in _groupings(found):
        try:
            values = _corners(base, other, groups, pricing.price)
        except PhaselineError as error:
            why = str(error)
            continue
        shares = shapley(len(groups), values.__getitem__)
        first, last = (dict(zip(MODELLED, map(float, values[end]), strict=True)) for end in (0, -1))
        return PointChange((base, other), first, last, groups, shares, _grouped_words(found, groups, why))
    return PointChange(None, notes=(f"The model cannot price what lies between the two runs: {why}",))


def _groupings(found: Sequence[Factor]) -> Iterator[tuple[Group, ...]]:
    """Ways to take the factors, finest first: each alone, then settings together, then workload and settings as two."""
    workload = [factor for factor in found if factor.kind == "workload"]
    configuration = [factor for factor in found if factor.kind == "configuration"]
    together = [Group(tuple(configuration))] if configuration else []
    if len(found) <= MOST_FACTORS:
        yield tuple(Group((factor,)) for factor in found)
    if len(configuration) > 1:
        yield (*(Group((factor,)) for factor in workload), *together)
    if len(workload) > 1:
        yield (Group(tuple(workload)), *together)


def _corners(base: Point, other: Point, groups: Sequence[Group], price: Price) -> list[Floats]:
    """The parts with every set of groups swapped, in the order of the set's bits."""
    points = []
    for subset in range(2 ** len(groups)):
        chosen = [factor for place, group in enumerate(groups) if subset >> place & 1 for factor in group.members]
        points.append(swapped(base, other, chosen))
    return [np.array([parts[key] for key in MODELLED]) for parts in price(points)]


def _grouped_words(found: Sequence[Factor], groups: Sequence[Group], why: str) -> tuple[str, ...]:
    several = [group.title for group in groups if len(group.members) > 1]
    if not several:
        return ()
    reason = f"a mixture of the two runs cannot be priced ({why})" if why else f"{len(found)} things differ at once"
    return (f"Taken together, since {reason}: {'; '.join(several)}.",)
