"""What a served load adds to TTFT, in closed form: the wait in the queue of a closed loop of clients, and what bounds a load first.

A burst of R prompts, n of them to a full pass of p·n seconds, waits on average

    burst  = max(p, f)·(R - 1)/2 + (t_m + t_m/m)/2 - t_prefill                        f: front-end seconds, one request after another
    steady = n_a·t_decode + t_prefill·ρ/(2·(1 - ρ))                                     ρ = (C - 1)·p/(t_prefill + output·itl), at most 0.9
    queue  = (1 - 1/W)·steady + burst/W + (C - R)/R·output·itl                        W requests a client; C clients, R of them running

beyond the front-end and its own pass; n_a are the decode steps until the scheduler looks for new requests, half a step where it looks
before each. They grow with the requests that run and with the devices, by powers that the profile states: servers are set to look less
often the more they do (SGLang's receive interval), and a front-end that streams many answers, or tells many ranks, hands over later.
A pass takes in the m prompts, n at most, that the front-end hands over during the one before it:
t_m = t_prefill + (m - 1)·(p·n - t_prefill)/(n - 1) = m·f. A budget that never fills changes nothing, as in the simulator.
Attention ranks have a queue each of their share of the clients and one front-end in common.
Requests of equal length stay together: with an engine that runs prefill alone the burst comes back every round; with one that mixes
prompts with decode steps the clients of one pass do (R = n), and a group waits for those before it, log2(R/n)/2 passes and two at most,
which is what the simulator gives. Behind a serial front-end such groups do not last: measured TTFT is the same after answers of 128, 512
and 1,024 tokens, and what equal requests wait is what drawn ones do, also where the simulator still keeps them together.
An engine that sets the whole answer aside leaves one client of a wave of equal requests for the next: measured TTFT grows by 1.0 answers
over the clients at 8, 16 and 32 of them.
Source: the design's engine profiles, section 2, and the built-in measurements; lone clients (C = 1) wait for nothing. What requests of an
open loop wait stands in `open_queue`; those beyond what runs wait for a slot like clients do.
"""

from dataclasses import dataclass

import numpy as np

from app.domain.open_queue import open_queue_s
from app.domain.rates import Rates
from app.domain.request_rules import Load
from app.domain.schedule import Schedule
from app.domain.turn import BUSIEST, Turn
from app.domain.work import Quantity

TYPICAL_RUNNING, TYPICAL_DEVICES = 16.0, 4.0  # the middle of what was measured: here an engine's `admission_steps` hold as they stand
_MOST_GROUPS_WAITED_FOR = 2.0


@dataclass(frozen=True)
class Bound:
    """A limit of a served load and the clients from which on it holds requests back."""

    name: str
    clients: float


def chunk_prompts(load: Load, schedule: Schedule, running: Quantity) -> Quantity:
    """Prompts that a full pass computes: what the chunk budget holds, at least one, at most those that run."""
    new = load.prompt_tokens - load.cached_prefix_tokens
    whole: Quantity = np.clip(np.floor(schedule.chunk / new), 1.0, np.maximum(running, 1.0))
    return whole


def in_waves(load: Load, schedule: Schedule) -> Quantity:
    """1.0 where requests of equal length and prefill alone keep all clients in step, so that nobody decodes beside a prompt."""
    alone = 1.0 if schedule.alone else 0.0
    return alone * np.where(load.in_step, 1.0, 0.0)


def waves_s(load: Load, running: Quantity, turn: Turn) -> Quantity:
    """What clients in step wait for between tokens: the prompts of a burst that are computed after their own, spread over their answer."""
    later = np.maximum(running - turn.chunk_prompts, 0.0) / 2.0 * turn.each_s
    found: Quantity = later / np.maximum(load.output_tokens - 1.0, 1.0)
    return found


def queue_s(load: Load, schedule: Schedule, rates: Rates, running: Quantity, turn: Turn, itl_s: Quantity) -> Quantity:
    """Mean seconds between the front-end and the pass that takes a request's prompt in; 0 for a load that is not served."""
    if load.concurrency is None:
        return 0.0
    clients, running, own = load.concurrency / load.dp, running / load.dp, turn.prefill_s
    each = turn.each_s / load.pp
    answer = load.output_tokens * itl_s
    busy = np.minimum((clients - 1.0) * each / (own + answer), BUSIEST)
    looks = looked_for_after(load, rates, running * load.dp)
    drawn = np.where(np.asarray(clients) > 1, turn.step_s * looks, 0.0) + own * busy / (2.0 * (1.0 - busy))
    ranks = np.minimum(load.dp, np.ceil(running * load.dp))
    burst = _burst(turn, load, ranks, rates.serial_front_end_s, running)
    steady = np.where(load.in_step, burst if schedule.alone else _grouped_s(turn, load, ranks, running, drawn, rates), drawn)
    first = 1.0 / load.requests_per_client
    slot = np.maximum(clients / running - 1.0, 0.0) * answer
    left = left_over_s(load, schedule, load.concurrency, answer)
    at_own_moments = open_queue_s(load, rates.serial_front_end_s, running * load.dp, looks, turn, itl_s)
    closed = np.maximum((1.0 - first) * steady + first * burst, 0.0) + left
    found: Quantity = np.where(np.asarray(load.open_loop) > 0, at_own_moments, closed) + slot
    return found


def looked_for_after(load: Load, rates: Rates, running: Quantity) -> Quantity:
    """Mean decode steps until the scheduler looks for new requests, of `running` on all devices: n_a·(R/16)^p·(G/4)^q.

    The forms and the powers are fitted to the built-in measurements (docs/accuracy.md).
    """
    devices = load.tp * load.pp * load.dp
    grown = (running / TYPICAL_RUNNING) ** rates.admission_running_power
    found: Quantity = rates.admission_steps * grown * (devices / TYPICAL_DEVICES) ** rates.admission_devices_power
    return found


def _grouped_s(turn: Turn, load: Load, ranks: Quantity, running: Quantity, drawn: Quantity, rates: Rates) -> Quantity:
    """Mean wait of equal requests that stay together as the clients of one pass; as if drawn where a serial front-end parts them."""
    group = np.minimum(running, turn.chunk_prompts)
    before = np.minimum(np.log2(np.maximum(running / group, 1.0)) / 2.0, _MOST_GROUPS_WAITED_FOR)
    grouped = np.maximum(drawn, _burst(turn, load, ranks, 0.0, group) + before * turn.chunk_s)
    found: Quantity = np.where(np.asarray(rates.serial_front_end_s) > 0, drawn, grouped)
    return found


def leaves_one_over(schedule: Schedule) -> bool:
    """Whether an engine leaves one client of equal requests waiting: those that set the whole answer aside do, as measured."""
    return not schedule.alone and schedule.reservation >= 1.0


def left_over_s(load: Load, schedule: Schedule, clients: Quantity, answer: Quantity) -> Quantity:
    """Mean seconds that one client of a wave of equal requests adds by waiting for the next wave."""
    if not leaves_one_over(schedule):
        return 0.0
    found: Quantity = np.where(load.in_step & (np.asarray(clients) > 1), answer / clients, 0.0)
    return found


def _burst(turn: Turn, load: Load, ranks: Quantity, front_s: Quantity, together: Quantity) -> Quantity:
    """Mean wait of prompts of one rank that come at once, beyond the pass that one of them would take alone.

    A front-end hands one over every `front_s` seconds.
    """
    most = turn.chunk_prompts * ranks
    further = np.maximum(turn.chunk_s - turn.prefill_s, 0.0) / np.maximum(most - 1.0, 1.0)
    held = _held(turn.prefill_s, further, front_s * load.pp, most)
    last = turn.prefill_s + (held - 1.0) * further
    apart = np.maximum(turn.each_s / load.pp, front_s * load.dp)
    each = last / np.maximum(held / ranks, 1.0) / load.pp
    return apart * (np.maximum(together, 1.0) - 1.0) / 2.0 + (last + each) / 2.0 - turn.prefill_s


def _held(first_s: Quantity, further_s: Quantity, apart_s: Quantity, most: Quantity) -> Quantity:
    """Prompts of a pass that takes in what came during the one before it: as many as come while they are computed, from 1 to `most`."""
    start, slack = np.maximum(first_s - further_s, 0.0), np.maximum(apart_s - further_s, 0.0)
    full = slack * most <= start
    found: Quantity = np.where(full, most, np.maximum(start / np.where(full, 1.0, slack), 1.0))
    return found


def bounds(load: Load, schedule: Schedule, pool: float | None) -> tuple[Bound, ...]:
    """What holds requests back as clients are added, first things first: the pool, the running cap, the tokens of a pass.

    `pool` is the number of sequences that the pool holds on average, None where memory is not known.
    """
    new = float(load.prompt_tokens) - float(load.cached_prefix_tokens)
    rows = float(load.draft_tokens) + 1.0
    # A client brings its rows each step and its prompt once in an answer.
    per_step = rows + new * float(load.accepted) / float(load.output_tokens)
    ranks = float(load.dp)
    found = [Bound("running cap", ranks * schedule.cap), Bound("tokens of a pass", ranks * schedule.chunk / per_step)]
    if pool is not None:
        found.append(Bound("KV pool", pool))
    return tuple(sorted(found, key=lambda bound: bound.clients))
