"""Disaggregated pools as JSON, with rates over the devices of a role and over all, and the split of devices that gives most."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from app.domain.errors import InvalidRequest
from app.domain.prediction import Pool, Pools, Prediction
from app.domain.serving import predict
from app.services.predicting import Answer

# Splits of so many replicas are shown at least, for more devices in the same proportion to the clients where the question has fewer.
_FEWEST_REPLICAS = 8
_MOST_SPLITS = 32


@dataclass(frozen=True)
class Split:
    """A division of devices between the pools: replicas of each, the clients, and what it gives."""

    prefill_replicas: int
    decode_replicas: int
    clients: int
    devices: int
    prediction: Prediction

    @property
    def requests_per_s_per_device(self) -> float:
        """Requests a second over the devices of both pools."""
        pools = self.prediction.pools
        return (pools.requests_per_s or 0.0) / pools.devices if pools is not None else 0.0


@dataclass(frozen=True)
class Splits:
    """Divisions of as many devices, fewest prefill replicas first, and the one that gives most."""

    devices: int
    shown: tuple[Split, ...]
    best: Split


def splits_of(found: Answer) -> Splits | None:
    """Every division of the question's devices (or a multiple of them) at as many clients a device; None without clients or pools."""
    asked, pools = found.prediction.request, found.prediction.pools
    if pools is None or asked.concurrency is None:
        return None
    each = pools.prefill.devices // pools.prefill.replicas, pools.decode.devices // pools.decode.replicas
    times = ceil(_FEWEST_REPLICAS / (pools.prefill.replicas + pools.decode.replicas))
    devices, clients = times * pools.devices, times * asked.concurrency
    shown = tuple(_splits(found, each, devices, clients / devices))
    if not shown:
        return None
    return Splits(devices, shown, max(shown, key=lambda one: (one.requests_per_s_per_device, -one.prediction.ttft_s)))


def _splits(found: Answer, each: tuple[int, int], devices: int, clients_a_device: float) -> Iterator[Split]:
    most = devices // each[0]
    for prefill in _spread(1, most):
        decode = (devices - prefill * each[0]) // each[1]
        if decode < 1:
            return
        used = prefill * each[0] + decode * each[1]
        clients = max(round(used * clients_a_device), 1)
        request = replace(found.prediction.request, prefill_replicas=prefill, decode_replicas=decode, concurrency=clients)
        try:
            prediction = predict(found.model.architecture, found.hardware, request, engine=found.engine)
        except InvalidRequest:
            continue
        yield Split(prefill, decode, clients, used, prediction)


def _spread(low: int, high: int) -> Iterator[int]:
    """Whole numbers from low to high, every one of them up to a number that a page can show."""
    step = max(ceil((high - low + 1) / _MOST_SPLITS), 1)
    yield from range(low, high + 1, step)


def pools_json(found: Answer) -> dict[str, Any] | None:
    """The pools of an answer, SI units; None where prefill and decode share their devices."""
    prediction = found.prediction
    pools, request = prediction.pools, prediction.request
    if pools is None:
        return None
    splits = splits_of(found)
    return {
        "prefill": _pool(pools.prefill),
        "decode": _pool(pools.decode),
        "devices": pools.devices,
        "transfer": {
            "bytes": pools.transfer_bytes,
            "bytes_per_s": pools.transfer_bytes_per_s,
            "time_s": pools.transfer_s,
            "requests_per_s": pools.transfer_requests_per_s,
        },
        "admission_s": pools.admission_s,
        "first_gap_s": pools.first_gap_s,
        "requests_per_s": pools.requests_per_s,
        "binds": pools.binds,
        "balanced_ratio": pools.balanced_ratio,
        "per_device": per_device(pools, request.prompt_tokens, request.output_tokens),
        "splits": None if splits is None else [_split(one) for one in splits.shown],
        "best_split": None if splits is None else _split(splits.best),
    }


def per_device(pools: Pools, prompt_tokens: float, output_tokens: float) -> Mapping[str, float] | None:
    """Rates over the devices of each role and over all of them: the same load gives each of these figures; None without clients."""
    rate = pools.requests_per_s
    if rate is None:
        return None
    return {
        "requests_per_s_over_all": rate / pools.devices,
        "output_tokens_per_s_over_all": rate * output_tokens / pools.devices,
        "output_tokens_per_s_over_decode": rate * output_tokens / pools.decode.devices,
        "prompt_tokens_per_s_over_prefill": rate * prompt_tokens / pools.prefill.devices,
    }


def binding_words(pools: Pools) -> str:
    """Which station sets the pace, and at which ratio of replicas none would."""
    sets = {
        "prefill": "the prefill pool sets the pace",
        "decode": "the decode pool sets the pace",
        "transfer": "the way between the pools sets the pace",
        "clients": "neither pool is at its limit: more clients would get more",
    }
    word = "" if pools.binds is None else sets[pools.binds]
    ratio = pools.balanced_ratio
    if ratio is None or not ratio > 0:
        return word
    return f"{word}; both keep up alike at {_ratio(ratio)}"


def _ratio(prefill_for_each_decode: float) -> str:
    """A ratio of replicas with the smaller side as 1."""
    if prefill_for_each_decode >= 1:
        return f"{prefill_for_each_decode:.3g} prefill replicas to 1 that decodes"
    return f"1 prefill replica to {1 / prefill_for_each_decode:.3g} that decode"


def _pool(pool: Pool) -> dict[str, Any]:
    memory = pool.memory
    return {
        "replicas": pool.replicas,
        "devices": pool.devices,
        "requests_per_s": pool.requests_per_s,
        "busy_share": pool.busy,
        "weight_bytes": memory.weight_bytes,
        "kv_bytes": memory.kv_bytes,
        "fits": memory.fits,
        "max_batch": memory.max_batch,
    }


def _split(one: Split) -> dict[str, Any]:
    found, pools = one.prediction, one.prediction.pools
    return {
        "prefill_replicas": one.prefill_replicas,
        "decode_replicas": one.decode_replicas,
        "clients": one.clients,
        "devices": one.devices,
        "ttft_s": found.ttft_s,
        "itl_s": found.itl_s,
        "requests_per_s_per_device": one.requests_per_s_per_device,
        "binds": None if pools is None else pools.binds,
    }
