"""What a request of an open loop waits for between the front-end and its prompt's pass, in closed form.

Requests come at their own moments (Poisson), λ a second, and join the next pass once the scheduler knows of them. A pass takes in the
prompts that came during the one before, so the longer it is the more come in it:

    λ     = R/((output - 1)·itl)                            R requests decode; Little's law
    E[I]  = itl·accepted,  V[I] = a₁²·λ·E[I]/(1 - ρ²)       I: a pass; a₁, a: seconds that a first and a further prompt add; ρ = λ·a
    I*    = E[I] + V[I]/E[I]                                the pass that a request comes in
    queue = (1 - e^-R)·((n_a - ½)·t_decode + I*/2·(1 + ρ) + max(t_decode + a₁ - t_prefill, 0)) + λ·f²/(2·(1 - λ·f))

which is the steps until the scheduler knows of the request (n_a, half a step at least), half a pass, the prompts that came in it before,
the decode rows beside its own, and the wait at a front-end that takes f seconds for one request after another; 1 - e^-R is the chance that
anything runs, on the request's own rank for the steps. Equal lengths do not matter: requests that come at their own moments do not stay
together. ρ and λ·f are held at BUSIEST.
Source: gated service of Poisson arrivals, the residual of a renewal interval (Cox, Renewal Theory, 1962) and M/D/1 for the front-end;
`python -m benchmarks.open_loop` sets it against the step simulator.
"""

import numpy as np

from app.domain.request_rules import Load
from app.domain.turn import BUSIEST, Turn
from app.domain.work import Quantity, decode_steps


def open_queue_s(load: Load, serial_s: Quantity, running: Quantity, looks: Quantity, turn: Turn, itl_s: Quantity) -> Quantity:
    """Mean seconds of the wait. `serial_s` is f, `looks` n_a; `running` sequences decode on all ranks and stages together."""
    each, first = _added(load, running, turn)
    rate = running / (decode_steps(load.output_tokens) * itl_s)
    between = itl_s * load.accepted / load.pp
    busy = np.minimum(rate * each / load.pp, BUSIEST)
    met = between + (first / load.pp) ** 2 * rate / (1.0 - busy**2)
    here = met / 2.0 * (1.0 + busy * load.pp) + np.maximum(turn.step_s + first - turn.prefill_s, 0.0)
    known = -np.expm1(-running / load.dp) * np.maximum(looks - 0.5, 0.0) * turn.step_s
    taken = np.minimum(rate * serial_s, BUSIEST)
    found: Quantity = known - np.expm1(-running) * here + taken * serial_s / (2.0 * (1.0 - taken))
    return found


def _added(load: Load, running: Quantity, turn: Turn) -> tuple[Quantity, Quantity]:
    """Seconds that a further prompt and a first one add to a pass through all stages (a, a₁)."""
    prompts = turn.chunk_prompts * np.minimum(load.dp, np.ceil(running))
    alone = np.maximum(turn.prefill_s - turn.step_s, 0.0)
    further = np.maximum(turn.chunk_s - turn.prefill_s, 0.0) / np.maximum(prompts - 1.0, 1.0)
    each = np.where(prompts > 1.0, further, alone)
    return each, np.maximum(alone, each)
