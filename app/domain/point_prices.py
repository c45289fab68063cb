"""Many points priced at once, by the parts of a request: those that differ in token counts and load alone are one array.

The same functions as for one prediction, without its sentences, ranges and single steps, which a difference does not need.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from app.domain.errors import InvalidRequest
from app.domain.phases import PricedRequest, Question
from app.domain.point import Point, price_point
from app.domain.pools import price
from app.domain.prediction import Prediction
from app.domain.request_rules import Load, check_device, check_mode, rules
from app.domain.roofline import seconds_by_part
from app.domain.work import Quantity, decode_steps

# Fields of a request that may be an array; concurrency only where every point has one.
_NUMBERS = (
    "prompt_tokens",
    "output_tokens",
    "cached_prefix_tokens",
    "batch",
    "concurrency",
    "requests_per_client",
    "shortest_length",
)
Parts = Mapping[str, float]
Floats = npt.NDArray[np.float64]


def part_prices(points: Sequence[Point]) -> list[Parts]:
    """Seconds of a whole request by part (keys MODELLED of `request_parts`), for each point.

    Raises InvalidRequest, with the field, where one has no price.
    """
    found: dict[int, Parts] = {}
    for members in _alike(points):
        group = [points[index] for index in members]
        priced = _together(group) if len(group) > 1 and _is_plain(group[0]) else [modelled_parts(one, price_point(one)) for one in group]
        found |= dict(zip(members, priced, strict=True))
    return [found[index] for index in range(len(points))]


def modelled_parts(point: Point, prediction: Prediction) -> Parts:
    """The parts of one prediction made at `point`."""
    served, decode, steps = point.place == "served", prediction.decode, point.steps
    handover = 0.0 if prediction.pools is None else prediction.pools.handover_s / float(decode_steps(prediction.request.output_tokens))
    # A step of a pass may bring several tokens; the parts are those of one token.
    each = (prediction.itl_s - prediction.interference_s - handover) / decode.time_s * steps
    return {
        "front_end": prediction.front_end_s if served else 0.0,
        "queue": prediction.queue_s if served else 0.0,
        "prefill": prediction.prefill.time_s,
        "weight_read": each * decode.part_s("weights"),
        "kv_read": each * decode.part_s("kv"),
        "compute": each * (decode.part_s("compute") + decode.part_s("attention")),
        "communication": each * decode.part_s("communication") + steps * handover,
        "prefill_interference": steps * prediction.interference_s,
        "overhead": each * decode.part_s("overhead"),
    }


def _is_plain(point: Point) -> bool:
    """Whether arrays price it: a server's answer on one kind of device; the other ways are priced one at a time."""
    return point.place == "served" and point.request.prefill_replicas is None


def _alike(points: Sequence[Point]) -> list[list[int]]:
    """Indices of points that agree in all but numbers."""
    groups: list[tuple[Point, list[int]]] = []
    for index, point in enumerate(points):
        plain = replace(point.request, **{name: getattr(_NEUTRAL, name) for name in _NUMBERS if name != "concurrency"})
        key = replace(point, steps=0.0, request=replace(plain, concurrency=None if plain.concurrency is None else 1))
        members = next((members for known, members in groups if known == key), None)
        if members is None:
            groups.append((key, [index]))
        else:
            members.append(index)
    return [members for _, members in groups]


class _Neutral:
    prompt_tokens = output_tokens = batch = requests_per_client = 1
    cached_prefix_tokens = 0
    shortest_length = 1.0


_NEUTRAL = _Neutral()


def _together(group: Sequence[Point]) -> list[Parts]:
    """The points of one kind as arrays of their numbers."""
    first = group[0]
    load = Load.of(first.request)
    for name in _NUMBERS:
        if getattr(first.request, name) is not None:
            load = replace(load, **{name: np.array([float(getattr(point.request, name)) for point in group])})
    check_mode(first.request)
    check_device(first.hardware)
    for rule in rules(first.architecture, first.hardware, first.request.calibration):
        if np.any(rule.broken(load)):
            raise InvalidRequest(rule.field, f"{rule.field} {rule.sentence}")
    question = Question.of(first.architecture, first.hardware, first.request, load, first.engine)
    priced = _columns(price(question), np.array([point.steps for point in group]))
    return [{key: float(values[index]) for key, values in priced.items()} for index in range(len(group))]


def _columns(priced: PricedRequest, steps: Floats) -> dict[str, Floats]:
    by_part = seconds_by_part(priced.decode)
    each = steps / priced.accepted
    columns: dict[str, Quantity] = {
        "front_end": priced.front_end_s,
        "queue": priced.queue_s,
        "prefill": sum(term.time_s for term in priced.prefill.terms),
        "weight_read": each * by_part["weights"],
        "kv_read": each * by_part["kv"],
        "compute": each * (by_part["compute"] + by_part["attention"]),
        "communication": each * by_part["communication"],
        "prefill_interference": steps * priced.interference_s,
        "overhead": each * by_part["overhead"],
    }
    return {key: np.broadcast_to(np.asarray(values, dtype=np.float64), np.shape(steps)) for key, values in columns.items()}
