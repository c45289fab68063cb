"""What is served, how, and under which load: everything a known change can touch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from app.catalog import ModelEntry
from app.domain.engine import EngineProfile
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request
from app.domain.schedule import Schedule
from app.domain.simulation import ServedLoad, Simulator
from app.domain.simulation.forms import as_lists
from app.domain.simulation.load import Sending, sending
from app.domain.simulation.state import Costs, Requests
from app.domain.simulation.tables import prompt_efficiency
from benchmarks.synthetic.stream import Noise, Stream, watched

ChangedCosts = Callable[[Costs], Costs]


@dataclass(frozen=True)
class Client:
    """What stands between the server's tokens and the client's clock.

    `delay_s` lies outside the server, between the client's clock and its door: it holds up every request, and in a closed loop the next one
    with it; `front_end_s` lies in the server, before the engine; `gathered` deliveries reach the client together; the first `cold` requests
    take `cold_s` more.
    """

    delay_s: float = 0.0
    front_end_s: float = 0.0
    gathered: int = 1
    cold: int = 0
    cold_s: float = 0.0


@dataclass(frozen=True)
class Deployment:
    """One side of a pair. `costs` is a change to the simulator's tables; `pool_share` scales the
    memory for caches; `strangers` are another tenant's requests, which share the server and whose tokens the client does not see.

    `settings` are what the engine says about its own configuration where it says it, and differ from its defaults; `version` is that of the
    engine's software; `clocks` are the device's in Hz.
    """

    model: ModelEntry
    hardware: HardwareProfile
    engine: EngineProfile
    request: Request
    schedule: Schedule
    load: ServedLoad
    costs: ChangedCosts = lambda costs: costs
    pool_tokens: float | None = None
    strangers: "ServedLoad | None" = None
    client: Client = field(default_factory=Client)
    settings: Mapping[str, str] = field(default_factory=dict)
    version: str = "1.4.0"
    clocks: tuple[float, float] = (1.98e9, 2.619e9)

    def with_request(self, **changes: object) -> "Deployment":
        """The deployment with a request that differs in `changes`."""
        return replace(self, request=replace(self.request, **changes))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Served:
    """A deployment's stream: what was sent, which requests are the client's own, what became of them, and how large the pool was."""

    sent: Sending
    own: npt.NDArray[np.bool_]
    stream: Stream
    pool_tokens: float


def serve(deployment: Deployment, noise: Noise, random: np.random.Generator) -> Served:
    """Run the deployment's load through the simulator, disturbed by `noise`."""
    simulator = Simulator.of(
        deployment.model.architecture,
        deployment.hardware,
        deployment.request,
        engine=deployment.engine,
        schedule=deployment.schedule,
    )
    load = deployment.load
    sent, own = _with_strangers(sending(load), deployment)
    # How soon a scheduler knows of requests is a setting; these servers have its default, as their profiles mostly have not.
    limits = simulator.limits(load)._replace(look_steps=0.0, look_power=0.0)
    if deployment.pool_tokens is not None:
        pool = deployment.pool_tokens * simulator.costs.kv_each_bytes
        limits = limits._replace(pool_bytes=pool, admit_bytes=pool * (limits.admit_bytes / limits.pool_bytes))
    limits = limits._replace(parallel_s=limits.parallel_s + deployment.client.front_end_s + deployment.client.delay_s)
    efficiency = prompt_efficiency(simulator.question, sent.prompt)
    stream = watched(
        _lists(deployment.costs(simulator.costs)),
        limits,
        Requests(sent.prompt.tolist(), sent.output.tolist(), sent.cached.tolist(), efficiency.tolist()),
        sent.sent_s,
        load.clients or 0,
        noise,
        random,
    )
    return Served(sent, own, stream, limits.pool_bytes / simulator.costs.kv_each_bytes)


def _with_strangers(sent: Sending, deployment: Deployment) -> tuple[Sending, npt.NDArray[np.bool_]]:
    """The client's requests and those of another tenant in the order of sending, and which are the client's own."""
    own = np.ones(sent.prompt.size, dtype=np.bool_)
    if deployment.strangers is None:
        return sent, own
    others = sending(deployment.strangers)
    both = Sending(*(np.concatenate([getattr(sent, name), getattr(others, name)]) for name in ("sent_s", "prompt", "output", "cached")))
    own = np.concatenate([own, np.zeros(others.prompt.size, dtype=np.bool_)])
    order = np.argsort(both.sent_s, kind="stable")
    return Sending(both.sent_s[order], both.prompt[order], both.output[order], both.cached[order]), own[order]


def _lists(costs: Costs) -> Costs:
    return as_lists(costs)


def pool_tokens(deployment: Deployment) -> float:
    """Tokens whose caches the deployment has room for."""
    simulator = Simulator.of(
        deployment.model.architecture, deployment.hardware, deployment.request, engine=deployment.engine, schedule=deployment.schedule
    )
    return simulator.limits(deployment.load).pool_bytes / simulator.costs.kv_each_bytes


def capacity_per_s(deployment: Deployment) -> float:
    """Requests a second that a closed loop of 64 clients gets answered: nearly what the deployment does at most."""
    load = replace(deployment.load, clients=64, request_rate_per_s=None, requests_per_client=3)
    simulator = Simulator.of(
        deployment.model.architecture, deployment.hardware, deployment.request, engine=deployment.engine, schedule=deployment.schedule
    )
    return simulator.run(load, "plain").requests_per_s
