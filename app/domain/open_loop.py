"""How many requests of an open loop are in flight: as many as answer them as fast as they come.

With R of them decoding, R/itl(R) tokens a second are made, so R/(itl(R)·(output - 1)) requests are answered; the fewest R at which that is
the rate at which they come is where the server settles (Little's law). It grows with R up to where the running cap or the KV pool hold it,
and never beyond what passes full of prompts take in; a rate above that is not kept up with, and the queue grows for as long as
requests come.
"""

from dataclasses import dataclass, replace

import numpy as np

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.grid import predict_grid
from app.domain.hardware import HardwareProfile
from app.domain.phases import Question, full_pass_s, price_prompt
from app.domain.prediction import Request
from app.domain.request_rules import check
from app.domain.under_load import chunk_prompts

_MOST = 20_000
_TRIED = 300
_WHOLE = 1e-3  # nearer to the most that is answered than this is at it


@dataclass(frozen=True)
class InFlight:
    """`request` with the requests in flight as its concurrency; `at_most_per_s` is what is answered at most."""

    request: Request
    at_most_per_s: float
    kept_up_with: bool


def at_rate(
    architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, rate_per_s: float, engine: EngineProfile | None
) -> InFlight:
    """`request` as an open loop of `rate_per_s` requests a second; where they are not kept up with, of as many as answer the most.

    Raises InvalidRequest, with the field, for a rate beside clients or a batch, and for what cannot be priced.
    """
    if request.concurrency is not None:
        raise InvalidRequest("request_rate_per_s", "Requests come from clients or at a rate: leave concurrency or request_rate_per_s out.")
    asked = replace(request, concurrency=1, open_loop=True)
    tried = np.unique(np.geomspace(1, _MOST, _TRIED).round().astype(int))
    grid = predict_grid(architecture, hardware, asked, axes={"concurrency": tried.tolist()}, engine=engine)
    if not grid.priced.all():
        refusal = grid.refused[0]
        raise InvalidRequest(refusal.field, refusal.message)
    answered = grid.columns["aggregate_tokens_per_s"] / max(asked.further_tokens, 1.0)
    answered = np.minimum(answered, _prompts_per_s(architecture, hardware, asked, engine))
    most = float(answered.max())
    if rate_per_s > most:
        return InFlight(replace(asked, concurrency=int(tried[np.argmax(answered >= most * (1.0 - _WHOLE))])), most, False)
    after = int(np.argmax(answered >= rate_per_s))
    if not after:
        return InFlight(asked, most, True)
    share = (rate_per_s - answered[after - 1]) / (answered[after] - answered[after - 1])
    return InFlight(replace(asked, concurrency=round(tried[after - 1] + share * (tried[after] - tried[after - 1]))), most, True)


def _prompts_per_s(architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, engine: EngineProfile | None) -> float:
    """Requests a second whose prompts passes full of them compute."""
    question = Question.of(architecture, hardware, request, check(request, architecture, hardware), engine)
    if question.textbook:
        return 1.0 / float(price_prompt(question).time_s)
    load = question.load
    prompts = chunk_prompts(load, question.schedule, float(_MOST))
    return float(prompts * load.dp * load.pp / full_pass_s(question, prompts, load.dp))
