"""A published measurement: one deployment under one load, and the times somebody measured on it.

`served` is a closed loop of clients on one engine, `disaggregated` the same on separate prefill and decode pools, `stream` a single
request or a static batch. Layouts are of one replica: `devices` hold the model, attention is split over `tp` ranks and repeated on
`dp`, experts lie on `ep` groups. Times are means in seconds, None where the source has none.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["served", "disaggregated", "stream"]
Phase = Literal["prefill", "decode"]

# Words a source's notes may carry that change how a row is read.
SPECULATIVE = "speculative"
REJECTED = "rejected"
AGGREGATE = "aggregate"


@dataclass(frozen=True)
class Layout:
    """How one replica is spread over devices."""

    devices: int = 1
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1


@dataclass(frozen=True)
class Measurement:
    """One row. Names of engine, model and device are the source's own; `sequences` is clients (served) or the batch (stream).

    `prompt_tokens` are processed in prefill; in decode `context_tokens` are in the cache before the first step, and `output_tokens`
    are generated. A disaggregated row's `layout` is one decode worker's and its `sequences` that worker's share of the clients, or all of
    them where its source does not say how many workers there were (`prefill_workers`, `decode_workers`).
    """

    id: str
    kind: Kind
    source: str
    engine: str
    engine_version: str
    model: str
    hardware: str
    layout: Layout
    weight_dtype: str
    expert_dtype: str
    kv_dtype: str
    sequences: float
    prompt_tokens: int | None
    output_tokens: int | None
    context_tokens: int | None = None
    ttft_s: float | None = None
    prefill_s: float | None = None
    tpot_s: float | None = None
    prefill_layout: Layout | None = None
    prefill_workers: int | None = None
    decode_workers: int | None = None
    flags: tuple[str, ...] = ()

    @property
    def first_token_s(self) -> float | None:
        """The measured prefill-side time: TTFT, or the prefill alone where the source gives that."""
        return self.prefill_s if self.ttft_s is None else self.ttft_s

    @property
    def operating_point(self) -> tuple[object, ...]:
        """Equal for one measurement under several labels: device, engine, lengths, load and both times."""
        return (self.kind, self.hardware, self.engine, self.prompt_tokens, self.output_tokens, self.sequences, self.ttft_s, self.tpot_s)


def deployment(tp: int, dp: int | None, moe_tp: int, moe_ep: int) -> Layout:
    """The layout behind the labels of a served row; `dp` is None where the source does not state attention data parallelism.

    Where it is stated some labels are squares: moe_tp = moe_ep = g with tp·dp = g² is a deployment on g devices (its times equal those
    of the plain label to six digits), and so is dp = tp with their product as moe_ep. A square splits experts and attention g ways.
    Where it is not stated it follows from the experts' devices: moe_tp·moe_ep = tp·dp.
    """
    if dp is not None and moe_tp == moe_ep > 1 and tp * dp == moe_ep**2:
        return Layout(moe_ep, 1 if dp > 1 else moe_ep, 1, moe_ep if dp > 1 else 1, moe_ep)
    ranks = max(moe_tp * moe_ep // tp, 1) if dp is None else dp
    if dp is not None and tp == dp > 1 and moe_ep == tp * dp:
        return Layout(tp, 1, 1, tp, tp)
    return Layout(tp * ranks, tp, 1, ranks, moe_ep)
