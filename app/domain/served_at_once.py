"""How many requests a server works on at once, from two levels of a closed loop: what is beyond that waits, and its wait is in TTFT.

    work alone              S   mean end-to-end time at the lighter level, where nothing waits
    work of one under load  S'  S with its decode stretched as measured: first token alone + (n - 1) · ITL under load
    served at once          requests per second · S'        (Little's law for the part that is served)
    wait                    mean TTFT under load - mean TTFT alone

A server that shares one batch among its clients stretches ITL and keeps TTFT near a prefill; one that takes requests in turn keeps ITL
and makes TTFT grow by whole requests. Only the second is a queue.
"""

from dataclasses import dataclass

import numpy as np

from app.domain.derive import token_weighted_itl
from app.domain.run import Flag, RequestSamples
from app.domain.text import duration

# Below this share of the clients being served the rest of them waits; the wait must be a good part of a whole request.
_SERVED_SHARE = 0.75
_WAIT_SHARE = 0.3


@dataclass(frozen=True)
class Level:
    """A closed loop of `clients` that lasted `seconds`, with the samples of its requests."""

    clients: int
    samples: RequestSamples
    seconds: float


def waits_for_each_other(light: Level, loaded: Level) -> Flag | None:
    """The flag that requests wait in the server for each other at `loaded`, as `light` shows; None where that does not follow."""
    if loaded.clients <= light.clients or loaded.seconds <= 0:
        return None
    alone_ttft, alone_e2e = _mean(light.samples, "ttft_s"), _mean(light.samples, "e2e_s")
    ttft, e2e = _mean(loaded.samples, "ttft_s"), _mean(loaded.samples, "e2e_s")
    if alone_ttft is None or alone_e2e is None or ttft is None or e2e is None:
        return None
    done = int(loaded.samples.ok.sum())
    work = alone_ttft + max(e2e - ttft, 0.0)
    wait = ttft - alone_ttft
    at_once = done / loaded.seconds * work
    if at_once > _SERVED_SHARE * loaded.clients or wait < _WAIT_SHARE * alone_e2e:
        return None
    before, after = token_weighted_itl(light.samples), token_weighted_itl(loaded.samples)
    stretched = "" if before is None or after is None else f", while ITL goes from {_words(before.mean)} to {_words(after.mean)}"
    text = (
        f"With {loaded.clients} clients a first token takes {duration(ttft)} on average and {duration(alone_ttft)} with {light.clients}"
        f"{stretched}: about {at_once:.1f} requests are served at once and the others wait, {duration(wait)} each."
    )
    figures = {"queue_mean_s": wait, "served_at_once": at_once, "ttft_alone_s": alone_ttft, "ttft_loaded_s": ttft}
    return Flag("server_queue_in_ttft", text, ("prefill_tokens_per_s",), figures)


def _words(seconds: float | None) -> str:
    return "?" if seconds is None else duration(seconds)


def _mean(samples: RequestSamples, column: str) -> float | None:
    values = getattr(samples, column)[samples.ok]
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else None
