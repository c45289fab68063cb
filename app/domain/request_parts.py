"""The parts of one request that a difference of two runs is told in, and what a run measured of them.

    first token      = client + transport + front-end + queue + prefill + unexplained
    further tokens   = (output tokens - 1) x (weights + KV cache + arithmetic + communication + others' prefill + overhead + unexplained)

A part is measured where a run says so, in the same statistic as the whole, since only means add up. `client` is the client's own time
within TTFT, until the request was sent whole; where a file does not tell it apart from the network, both stand under `transport`. What a
request waited before its clock began is in neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.domain.observed import Observed, observed
from app.domain.run import Run

Phase = Literal["prefill", "decode"]
Hue = Literal["prefill", "decode", "rest"]


@dataclass(frozen=True)
class Part:
    """One part of a request: its key, the half it stands in, its name, and the colour it takes ("rest": neither phase)."""

    key: str
    phase: Phase
    title: str
    hue: Hue


UNEXPLAINED = "unexplained"
PARTS = (
    Part("client", "prefill", "Client, sending", "rest"),
    Part("transport", "prefill", "Transport and client", "rest"),
    Part("front_end", "prefill", "Front-end", "rest"),
    Part("queue", "prefill", "Queue", "rest"),
    Part("prefill", "prefill", "Prompt pass", "prefill"),
    Part(UNEXPLAINED, "prefill", "First token, not explained", "rest"),
    Part("weight_read", "decode", "Weights read", "decode"),
    Part("kv_read", "decode", "KV cache read", "decode"),
    Part("compute", "decode", "Arithmetic", "decode"),
    Part("communication", "decode", "Communication", "rest"),
    Part("prefill_interference", "decode", "Other requests’ prefill", "rest"),
    Part("overhead", "decode", "Launches and scheduler", "rest"),
    Part(UNEXPLAINED, "decode", "Further tokens, not explained", "rest"),
)
BY_NAME: Mapping[tuple[Phase, str], Part] = {(part.phase, part.key): part for part in PARTS}
MODELLED = tuple(part.key for part in PARTS if part.key not in ("client", "transport", UNEXPLAINED))


def measured_parts(run: Run, first: Observed) -> dict[str, float]:
    """Seconds of the parts of the first token that the run itself has, in the statistic of `first`."""
    found: dict[str, float] = {}
    for key, metric in (("queue", "queue_s"), ("prefill", "prefill_s"), ("client", "client_send_s")):
        seen = observed(run, metric)
        if seen is not None and seen.stat == first.stat:
            found[key] = seen.value_s
    if first.key != "ttft_s":
        # In process there is no client.
        found.pop("client", None)
        return found
    server, client = observed(run, "server_ttft_s"), found.get("client", 0.0)
    if server is not None and server.stat == first.stat and server.value_s + client <= first.value_s:
        found["transport"] = first.value_s - server.value_s - client
    return found


def alike(base: Mapping[str, float], other: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Measured parts of two runs so that a part means one thing: a client that one side alone tells apart stands under transport there."""
    sides = (dict(base), dict(other))
    if ("client" in base) != ("client" in other):
        for side in sides:
            client = side.pop("client", None)
            if client is not None and "transport" in side:
                side["transport"] += client
    return sides
