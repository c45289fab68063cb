"""Answers about a server seen from outside: inferred figures with their intervals, and what the server itself says."""

from app.api.shapes import Shape


class InferredShape(Shape):
    """A figure that follows from a fit: `range` are the middle 95 % of redrawn fits, `label` is always `inferred`."""

    value: float | None
    range: list[float | None]
    label: str
    said: str


class ServerShape(Shape):
    """Means of the server's own figures during one run."""

    run: int
    prompt_tokens: float
    queue_s: float | None
    prefill_s: float | None


class BlackBoxShape(Shape):
    """What runs with one request in flight tell of the server's inside; `reason` says why nothing follows."""

    runs: list[int]
    reason: str | None
    figures: dict[str, InferredShape]
    first_token: list[dict[str, float | None]]
    decode_step: list[dict[str, float | None]]
    untold: list[str]
    assumptions: list[str]
    server: list[ServerShape]
