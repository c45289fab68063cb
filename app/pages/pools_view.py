"""The block "prefill and decode apart" of the predict page: both pools, the way between them, rates by devices, how to divide them."""

from dataclasses import dataclass

from app.domain.prediction import Pool
from app.domain.quantity import byte_rate, bytes_, count, number, percent
from app.services.pools import Splits, binding_words, per_device, splits_of
from app.services.predicting import Answer


@dataclass(frozen=True)
class PoolRow:
    """One pool in the table."""

    phase: str
    title: str
    pool: Pool
    keeps_up: str
    busy: str


@dataclass(frozen=True)
class PoolsView:
    """What the block shows, as texts where it can be."""

    headline: str
    binds: str
    rows: tuple[PoolRow, ...]
    gap: tuple[tuple[str, float, str], ...]
    per_device: tuple[tuple[str, str], ...]
    splits: Splits | None
    best: str


def pools_view(found: Answer) -> PoolsView | None:
    """The block of one answer; None where prefill and decode share their devices."""
    prediction = found.prediction
    pools, request = prediction.pools, prediction.request
    if pools is None:
        return None
    splits, rates = splits_of(found), per_device(pools, request.prompt_tokens, request.output_tokens)
    crossing = f"{bytes_(pools.transfer_bytes)} of cache at {byte_rate(pools.transfer_bytes_per_s)} a device"
    words = binding_words(pools)
    return PoolsView(
        headline=f"of {count(pools.devices)} devices {count(pools.prefill.devices)} prefill and {count(pools.decode.devices)} decode",
        binds=words[:1].upper() + words[1:],
        rows=(_row("prefill", "Prefill", pools.prefill), _row("decode", "Decode", pools.decode)),
        gap=(
            ("Admission", pools.admission_s, "a place in the decode pool, and the end of its step"),
            ("Transfer", pools.transfer_s, crossing),
            ("Step", prediction.decode.time_s, "like every later token"),
            ("Together", pools.first_gap_s, "the first gap; the others are one step"),
        ),
        per_device=() if rates is None else tuple((_RATES[name], number(value, 4)) for name, value in rates.items()),
        splits=splits,
        best=_best(splits),
    )


_RATES = {
    "requests_per_s_over_all": "Requests/s over all devices",
    "output_tokens_per_s_over_all": "Output tokens/s over all devices",
    "output_tokens_per_s_over_decode": "Output tokens/s over those that decode",
    "prompt_tokens_per_s_over_prefill": "Prompt tokens/s over those that prefill",
}


def _row(phase: str, title: str, pool: Pool) -> PoolRow:
    rate = "" if pool.requests_per_s is None else f"{pool.requests_per_s:.3g} requests/s"
    return PoolRow(phase, title, pool, rate, "" if pool.busy is None else percent(pool.busy))


def _best(splits: Splits | None) -> str:
    if splits is None:
        return ""
    best = splits.best
    return f"{best.prefill_replicas} : {best.decode_replicas} gives most: {best.requests_per_s_per_device:.3g} requests/s a device."
