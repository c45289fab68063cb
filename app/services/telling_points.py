"""The points at which a device is worth measuring first for a calibration, of the loads that people serve."""

from functools import cache
from itertools import product

from app.domain.points_to_measure import points_to_measure
from app.domain.prediction import Request
from app.domain.request_rules import Load

CLIENTS, PROMPTS, OUTPUT = (1, 4, 16, 64), (256, 2048, 8192), 256
# As many as a calibration needs.
POINTS = 8


@cache
def telling_points() -> tuple[Request, ...]:
    """Points of CLIENTS x PROMPTS with answers of OUTPUT tokens, the most telling first; the same for every device and model."""
    asked = [Request(concurrency=clients, prompt_tokens=prompt, output_tokens=OUTPUT) for clients, prompt in product(CLIENTS, PROMPTS)]
    chosen = points_to_measure(["one model"] * len(asked), [Load.of(one) for one in asked], POINTS)
    return tuple(asked[place] for place in chosen)
