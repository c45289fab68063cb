"""Disaggregated serving in closed form: prefill on replicas of its own, decode on others, the cache sent from one to the other.

A prefill replica computes the prompt and gives the first token; the prompt's cache crosses once a decode replica has room for it; the
second token comes a step later. No prompt falls between two tokens. P and D replicas, C clients of a closed loop, and the seconds

    p      of a prefill replica for each prompt, its passes full      h(R)  (output - 1)/accepted · t_decode of R sequences
    x      of a transfer: start + the most bytes a device moves/rate  Z     front-end + t_prefill + x + half a step

While every station keeps up, N sequences decode such that N + X·Z = C at X = N/h(N/D) requests a second. Stations keep up with

    prefill P/p      transfer min(P·dp of prefill, D·dp)/x      decode D·R/h(R), R = what the KV pool and the cap hold of C/D

and the slowest sets X. Who is then left over, C - X·Z - N, waits: before prefill where that is slowest, else for a place in the decode
pool; such prompts keep theirs in the prefill pool, and where that is full the rest waits before it. The queue has the burst at the start
too, and without any excess ρ^(sqrt(2·(P + 1)) - 1)/(P·(1 - ρ))·p/2 at ρ = X·p/P (Sakasegawa's formula) and, where lengths are equal,
half of what prompts of one pass wait for each other, since most of them come back together. P/D = p·R/h(R) keeps both pools equally busy.
Source: the design's performance model, section 4 (pools apart, KV transfer between, no interference); the stations are ours.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.domain.memory import Footprint, cache_bytes, footprint
from app.domain.phases import Handover, PricedRequest, Question, full_pass_s, price_prompt, price_request, price_step
from app.domain.request_rules import Load
from app.domain.roofline import bus_bytes_per_s
from app.domain.turn import BUSIEST
from app.domain.work import Quantity, decode_steps

Floats = npt.NDArray[np.float64]

# Points at which decode is priced between an empty and a full replica; between them lie straight lines.
_POINTS = 33
# Prompts of equal requests that were computed in one pass come back together, but for those that the way and the steps set apart: the
# simulator finds about half of their wait for each other.
_STILL_TOGETHER = 0.5
# A share of the clients that is rounding, not a client.
_NOBODY = 1e-9


def price(question: Question) -> PricedRequest:
    """The prices of a request or a grid of them: on one engine, or on pools where the load names prefill replicas."""
    if question.load.prefill_replicas is None:
        return price_request(question)
    return _one_batch(question) if question.load.concurrency is None else _served(question)


@dataclass(frozen=True)
class Transfer:
    """The cache of one prompt on its way: bytes of it in all, bytes a second of a device, seconds alone on the link."""

    bytes: Quantity
    bytes_per_s: Quantity
    start_s: Quantity
    device_bytes: Quantity

    @property
    def seconds(self) -> Quantity:
        """From the first byte to the last, once both sides are free."""
        return self.start_s + self.device_bytes / self.bytes_per_s

    @classmethod
    def of(cls, question: Question) -> "Transfer":
        """Every device of the sending rank sends its share; one that takes keeps what its rank keeps (latent vectors: all of them)."""
        load, element = question.load, question.formats.element_bytes()
        ahead = load.in_prefill()
        whole = cache_bytes(question.architecture, element, 1.0, load.prompt_tokens)
        taken = cache_bytes(question.architecture, element, load.tp, load.prompt_tokens) / load.pp
        rate = load.transfer_bytes_per_s
        if rate is None:
            devices = (_replicas(load) * ahead.tp * ahead.dp + load.decode_replicas * load.tp * load.dp) * load.pp
            rate = bus_bytes_per_s(question.rates, devices)
        return cls(whole, rate, question.rates.send_s, np.maximum(whole / (ahead.tp * load.pp), taken))


def _one_batch(question: Question) -> PricedRequest:
    """A batch on one replica of each pool, with nobody else there: its caches cross one after another."""
    load, ahead = question.load, question.in_prefill()
    way = Transfer.of(question)
    crossing = way.start_s + load.batch * way.device_bytes / way.bytes_per_s
    return PricedRequest(
        prefill=price_prompt(ahead),
        decode=price_step(question, load.batch),
        front_end_s=question.rates.front_end_s + question.rates.serial_front_end_s,
        queue_s=0.0,
        interference_s=0.0,
        accepted=load.accepted,
        running=load.batch,
        footprint=_space(question, load),
        output_tokens=load.output_tokens,
        handover=Handover(load.batch * way.bytes, way.bytes_per_s, crossing, 0.0, 0.0, _prefill_space(ahead)),
    )


def _served(question: Question) -> PricedRequest:
    """The clients of a closed loop, spread over the stations."""
    load, ahead, rates = question.load, question.in_prefill(), question.rates
    clients, replicas = _clients(load), _replicas(load)
    each_has = clients / load.decode_replicas
    space = _space(question, replace(load, concurrency=np.ceil(each_has)))
    most = _most_sequences(question, space, each_has)
    decoding, way, prompts = _Decoding.of(question, most), Transfer.of(question), _Prompts.of(ahead)
    at_most = {
        "prefill": replicas / prompts.each_s,
        "transfer": np.minimum(replicas * ahead.load.dp, load.decode_replicas * load.dp) / way.seconds,
        "decode": decoding.per_s[-1],
    }
    front_end = rates.front_end_s + rates.serial_front_end_s
    fixed = front_end + prompts.alone_s + way.seconds + decoding.step_s[-1] / 2.0
    slowest = np.minimum(at_most["prefill"], at_most["transfer"])
    pace = np.minimum(decoding.pace(clients, fixed), slowest)
    decodes = decoding.sequences_at(pace)
    over = clients - decodes - pace * fixed
    left = np.where(over > _NOBODY * clients, over, 0.0)
    # A pace that prefill sets leaves nobody behind it.
    before = np.where(at_most["prefill"] <= np.minimum(at_most["transfer"], pace), left, 0.0)
    kept = _prefill_space(ahead).served_sequences
    after = left - before if kept is None else np.minimum(left - before, replicas * kept)
    before = left - after
    together = np.clip(decodes / load.decode_replicas, 1.0, most)
    decode = price_step(question, together)
    company = np.where(np.asarray(together) > 1.0, decode.time_s / 2.0, 0.0)
    return PricedRequest(
        prefill=price_prompt(ahead),
        decode=decode,
        front_end_s=front_end,
        queue_s=prompts.queue_s(load, pace, before / pace),
        interference_s=0.0,
        accepted=load.accepted,
        running=np.maximum(decodes + after + pace * (way.seconds + company), np.minimum(1.0, clients)),
        footprint=space,
        output_tokens=load.output_tokens,
        step_sequences=together,
        handover=Handover(
            transfer_bytes=way.bytes,
            transfer_bytes_per_s=way.bytes_per_s,
            transfer_s=way.seconds,
            admission_s=after / pace + company,
            left=left,
            prefill_footprint=_prefill_space(ahead),
            requests_per_s=pace,
            at_most_per_s=at_most,
            balanced_ratio=prompts.each_s * decoding.per_s[-1] / load.decode_replicas,
        ),
    )


@dataclass(frozen=True)
class _Prompts:
    """The passes of one prefill replica in seconds: a prompt alone, a full pass and the prompts of a rank in it; `each_s` is p.

    `front_end_s` is the front-end's time for one request after another.
    """

    alone_s: Quantity
    full_s: Quantity
    full_prompts: Quantity
    each_s: Quantity
    front_end_s: Quantity
    ranks: Quantity

    @classmethod
    def of(cls, ahead: Question) -> "_Prompts":
        load = ahead.load
        prompts = np.maximum(np.floor(ahead.schedule.chunk / (load.prompt_tokens - load.cached_prefix_tokens)), 1.0)
        full = full_pass_s(ahead, prompts, load.dp)
        serial = ahead.rates.serial_front_end_s
        each = np.maximum(full / (prompts * load.dp * load.pp), serial)
        return cls(price_prompt(ahead).time_s, full, prompts, each, serial, load.dp)

    def queue_s(self, load: Load, pace: Quantity, excess_s: Quantity) -> Quantity:
        """Mean wait before prefill over all requests; `excess_s` is that of clients whom no station has room for."""
        clients, replicas = _clients(load), _replicas(load)
        busy = np.minimum(pace * (1.0 - 1.0 / clients) * self.each_s / replicas, BUSIEST)
        drawn = self.each_s / 2.0 * busy ** (np.sqrt(2.0 * (replicas + 1.0)) - 1.0) / (replicas * (1.0 - busy))
        own = clients / replicas
        together = self.burst_s(np.minimum(own, self.full_prompts * self.ranks))
        steady = np.maximum(drawn + np.where(load.in_step, together * _STILL_TOGETHER, 0.0), excess_s)
        first = 1.0 / load.requests_per_client
        found: Quantity = (1.0 - first) * steady + first * self.burst_s(own)
        return found

    def burst_s(self, prompts: Quantity) -> Quantity:
        """Mean wait of so many prompts that come to a replica at once, beyond the pass that one of them would take alone."""
        further = np.maximum(self.full_s - self.alone_s, 0.0) / np.maximum(self.full_prompts - 1.0, 1.0)
        of_one_pass = np.maximum((np.minimum(prompts / self.ranks, self.full_prompts) - 1.0) * further, 0.0)
        of_several = self.each_s * prompts / 2.0 + self.full_s / 2.0 - self.alone_s
        several = np.asarray(prompts) > self.full_prompts * self.ranks
        apart = self.front_end_s * np.maximum(prompts - 1.0, 0.0) / 2.0
        found: Quantity = np.maximum(np.where(several, np.maximum(of_one_pass, of_several), of_one_pass), apart)
        return found


@dataclass(frozen=True)
class _Decoding:
    """A decode pool from empty to as full as these clients make it, along the first axis: its sequences, requests a second and step."""

    sequences: Floats
    per_s: Floats
    step_s: Floats

    @classmethod
    def of(cls, question: Question, most: Quantity) -> "_Decoding":
        """`most` sequences on one replica."""
        load = question.load
        axes = max(np.ndim(value) for value in (*vars(load).values(), most) if value is not None)
        each = most * (np.arange(_POINTS) / (_POINTS - 1.0)).reshape(-1, *(1,) * axes) ** 2
        step = price_step(question, np.maximum(each, 1.0)).time_s
        per_s = np.asarray(load.decode_replicas) * each * load.accepted / (decode_steps(load.output_tokens) * step)
        # Where a further sequence costs more than it brings an engine loses nothing by the ones it has.
        per_s = np.maximum.accumulate(per_s, axis=0)
        return cls(np.broadcast_to(load.decode_replicas * each, per_s.shape), per_s, np.broadcast_to(step, per_s.shape))

    def pace(self, clients: Quantity, fixed_s: Quantity) -> Quantity:
        """Requests a second at which those that decode and those elsewhere for `fixed_s` are all the clients; at most what it holds."""
        return _crossed(self.sequences + self.per_s * fixed_s, self.per_s, clients)

    def sequences_at(self, per_s: Quantity) -> Quantity:
        """Sequences that decode at a pace."""
        return _crossed(self.per_s, self.sequences, per_s)


def _crossed(along: Floats, values: Floats, at: Quantity) -> Quantity:
    """`values` where `along`, which rises along the first axis, comes to `at`; the last ones beyond it."""
    cells = np.broadcast_shapes(along.shape[1:], values.shape[1:], np.shape(at))
    along, values = (np.broadcast_to(of, (_POINTS, *cells)) for of in (along, values))
    high = np.clip((along < at).sum(axis=0), 1, len(along) - 1)[None]
    (x0, x1), (y0, y1) = ([np.take_along_axis(of, place, 0)[0] for place in (high - 1, high)] for of in (along, values))
    share = np.clip((at - x0) / np.where(x1 > x0, x1 - x0, 1.0), 0.0, 1.0)
    found: Quantity = y0 + share * (y1 - y0)
    return found


def _clients(load: Load) -> Quantity:
    return 1.0 if load.concurrency is None else load.concurrency


def _replicas(load: Load) -> Quantity:
    return 1.0 if load.prefill_replicas is None else load.prefill_replicas


def _most_sequences(question: Question, space: Footprint, each_has: Quantity) -> Quantity:
    """Sequences that a decode replica holds at most of the clients that are there for it, at least one."""
    most = np.minimum(np.maximum(each_has, 1.0), float(question.schedule.cap) * question.load.dp)
    if space.pool_sequences is None or space.served_sequences is None:
        return most
    # Where not even one fits the times are what they would be if it did, as on one engine.
    pool: Quantity = np.where(space.pool_sequences >= 1.0, np.maximum(space.served_sequences, 1.0), most)
    return np.minimum(most, pool)


def _space(question: Question, load: Load) -> Footprint:
    """What a decode replica keeps."""
    element, reservation = question.formats.element_bytes(), question.schedule.mean_reservation
    return footprint(question.architecture, question.hardware, element, load, reservation)


def _prefill_space(ahead: Question) -> Footprint:
    """What a prefill replica keeps of the prompts of a pass: their caches without an answer."""
    return footprint(ahead.architecture, ahead.hardware, ahead.formats.element_bytes(), replace(ahead.load, output_tokens=0.0), 0.0)
