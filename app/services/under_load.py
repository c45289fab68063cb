"""A prediction's load simulated pass by pass: the clients of the request, or arrivals at a rate or from a trace."""

from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.distribution import Spread
from app.domain.errors import InvalidRequest
from app.domain.prediction import Prediction
from app.domain.run import Distribution
from app.domain.simulation import ServedLoad, Simulation, Simulator, Target
from app.services.predicting import Answer

_STATS = ("mean", "p50", "p90", "p99", "max")


@dataclass(frozen=True)
class Arrivals:
    """How an open load comes: at a rate (drawn from the seed) or at the moments of a trace, in seconds. With neither, clients send."""

    request_rate_per_s: float | None = None
    requests: int = 300
    sent_s: tuple[float, ...] | None = None
    cached_share: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class UnderLoad:
    """A simulated load and the target its requests are held to (every bound may be absent)."""

    simulation: Simulation
    target: Target = field(default_factory=Target)


def simulate(found: Answer, arrivals: Arrivals | None = None, target: Target | None = None) -> UnderLoad:
    """The load of an answered question. Raises InvalidRequest, with the field, for a load that cannot be sent or would take too long."""
    request, how = found.prediction.request, arrivals or Arrivals()
    if how.request_rate_per_s is None and how.sent_s is None:
        how = replace(how, request_rate_per_s=_own_rate(found))
    open_loop = how.request_rate_per_s is not None or how.sent_s is not None
    if request.concurrency is None and not open_loop:
        raise InvalidRequest("simulate", "A simulation needs a load: give concurrency (clients), or arrivals with a rate or a trace.")
    if request.concurrency is not None and open_loop and not request.open_loop:
        raise InvalidRequest("arrivals", "Requests come from clients or at their own moments, not both: leave concurrency or arrivals out.")
    simulator = Simulator.of(found.model.architecture, found.hardware, request, engine=found.engine)
    load = ServedLoad(
        prompt_tokens=request.prompt_tokens,
        output_tokens=request.output_tokens,
        clients=None if open_loop else request.concurrency,
        requests_per_client=request.requests_per_client,
        request_rate_per_s=how.request_rate_per_s,
        requests=how.requests,
        sent_s=how.sent_s,
        shortest_length=request.shortest_length,
        cached_prefix_tokens=request.cached_prefix_tokens,
        cached_share=how.cached_share,
        seed=how.seed,
    )
    return UnderLoad(simulator.run(load), target or Target())


def _own_rate(found: Answer) -> float | None:
    """Requests a second of an open loop: as asked, or those whose answers keep so many in flight. None for clients."""
    prediction = found.prediction
    if found.question.request_rate_per_s is not None or not prediction.request.open_loop:
        return found.question.request_rate_per_s
    return prediction.aggregate_tokens_per_s / max(prediction.request.further_tokens, 1.0)


def under_load_json(shown: UnderLoad) -> dict[str, Any]:
    """A simulated load as JSON-ready data, SI units: TTFT with its parts, TPOT, gaps, rates, what held requests back, goodput."""
    found, target = shown.simulation, shown.target
    goodput = found.goodput(target)
    bounds = {"ttft_s": target.ttft_s, "tpot_s": target.tpot_s, "e2e_s": target.e2e_s}
    return {
        "method": "simulated",
        "requests": found.load.total,
        "seed": found.load.seed,
        "duration_s": found.duration_s,
        "ttft_s": _statistics(found.ttft),
        "front_end_s": found.front_end_s,
        "queue_s": found.queue_s,
        "prefill_s": found.prefill_s,
        "tpot_s": _statistics(found.tpot),
        "itl_s": {"mean": found.itl_s},
        "chunk_gap_s": _statistics(found.gap),
        "e2e_s": _statistics(found.e2e),
        "requests_per_s": found.requests_per_s,
        "output_tokens_per_s": found.output_tokens_per_s,
        "running": found.running,
        "in_system": found.in_system,
        "busy_share": found.busy,
        "prompt_share": found.prompt_share,
        "held_back": dict(found.held_back),
        "preemptions": found.preemptions,
        "passes": found.passes,
        "pool_peak": found.pool_peak,
        "first_gap_s": None if found.crossing is None else _statistics(found.crossing.first_gap),
        "pool_busy_share": None if found.crossing is None else dict(found.crossing.busy),
        "first_gap_parts": None if found.crossing is None else found.crossing.mean_s(),
        "goodput": None
        if all(bound is None for bound in bounds.values())
        else {"target": bounds, "share": goodput.share, "requests_per_s": goodput.requests_per_s},
    }


def served_json(prediction: Prediction, shown: UnderLoad | None) -> dict[str, Any] | None:
    """`served` of a prediction's answer: what bounds its clients, TTFT in its parts by the closed form or, where asked for, simulated."""
    limits = prediction.served
    if limits is None and shown is None:
        return None
    closed: dict[str, Any] = {"clients": None, "in_flight": None, "bounds": []}
    if limits is not None:
        open_loop = prediction.request.open_loop
        closed = {
            "clients": None if open_loop else limits.clients,
            "in_flight": limits.clients if open_loop else None,
            "running": limits.running,
            "bounds": [{"name": name, "clients": clients} for name, clients in limits.bounds],
            "method": "closed_form",
            "ttft_s": {"mean": prediction.ttft_s},
            "front_end_s": prediction.front_end_s,
            "queue_s": prediction.queue_s,
            "prefill_s": prediction.prefill.time_s,
            "tpot_s": {"mean": prediction.itl_s},
        }
    return closed if shown is None else {**closed, **under_load_json(shown)}


def spread_of_ttft(shown: UnderLoad) -> Spread:
    """TTFT of all simulated requests, to draw."""
    found = shown.simulation
    known = Distribution(**{**vars(found.ttft), "origin": "derived"})
    values = found.timeline.ttft_s.copy()
    values.sort()
    return Spread("ttft_s", "Time to first token, simulated", "prefill", "requests", known, values)


def _statistics(found: Distribution | None) -> dict[str, float | None] | None:
    return None if found is None else {name: found.stat(name) for name in _STATS}
