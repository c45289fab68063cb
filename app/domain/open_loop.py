"""How many requests of an open loop are in flight: as many as answer them as fast as they come.

With R of them decoding, R/itl(R) tokens a second are made, so R/(itl(R)·(output - 1)) requests are answered; the fewest R at which that is
the rate at which they come is where the server settles (Little's law). It grows with R up to where the running cap or the KV pool hold it,
and never beyond what passes full of prompts take in; a rate above that is not kept up with, and the queue grows for as long as
requests come.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.grid import predict_grid
from app.domain.hardware import HardwareProfile
from app.domain.phases import Question, full_pass_s, price_prompt
from app.domain.prediction import Request
from app.domain.request_rules import check
from app.domain.under_load import chunk_prompts

Floats = npt.NDArray[np.float64]

_MOST = 20_000
_TRIED = 300
_WHOLE = 1e-3  # nearer to the most that is answered than this is at it


@dataclass(frozen=True)
class InFlight:
    """`request` with the requests in flight as its concurrency; `at_most_per_s` is what is answered at most."""

    request: Request
    at_most_per_s: float
    kept_up_with: bool


@dataclass(frozen=True)
class Capacity:
    """What a deployment answers with more and more requests in flight, up to the most: columns of requests, requests a second and seconds.

    `request` is the question that was tried. Times are means while the rate lasts.
    """

    request: Request
    in_flight: Floats
    per_s: Floats
    ttft_s: Floats
    itl_s: Floats

    @property
    def at_most_per_s(self) -> float:
        """Requests a second that are answered at most."""
        return float(self.per_s[-1])

    def at(self, per_s: float) -> tuple[float, float, float]:
        """Requests in flight and mean seconds to the first and between further tokens where so many come a second, at most the most."""
        found = (float(np.interp(per_s, self.per_s, column)) for column in (self.in_flight, self.ttft_s, self.itl_s))
        flight, ttft, itl = found
        return flight, ttft, itl

    def within(self, ttft_s: float | None, itl_s: float | None) -> float | None:
        """The most requests a second at which the means keep these bounds; None where not even one at a time does."""
        most = self.at_most_per_s
        for bound, column in ((ttft_s, self.ttft_s), (itl_s, self.itl_s)):
            if bound is None:
                continue
            beyond = np.flatnonzero(column > bound)
            if beyond.size and not beyond[0]:
                return None
            if beyond.size:
                last = int(beyond[0]) - 1
                share = (bound - column[last]) / (column[last + 1] - column[last])
                most = min(most, float(self.per_s[last] + share * (self.per_s[last + 1] - self.per_s[last])))
        return most


def capacity(architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, engine: EngineProfile | None) -> Capacity:
    """What the deployment of `request` answers of such requests at their own moments. Raises InvalidRequest for what cannot be priced."""
    asked = replace(request, concurrency=1, open_loop=True)
    tried = np.unique(np.geomspace(1, _MOST, _TRIED).round().astype(int))
    grid = predict_grid(architecture, hardware, asked, axes={"concurrency": tried.tolist()}, engine=engine)
    if not grid.priced.all():
        refusal = grid.refused[0]
        raise InvalidRequest(refusal.field, refusal.message)
    answered = grid.columns["aggregate_tokens_per_s"] / max(asked.further_tokens, 1.0)
    answered = np.minimum(answered, _prompts_per_s(architecture, hardware, asked, engine))
    # Beyond the place where nearly the most is answered more in flight only wait.
    end = int(np.argmax(answered >= float(answered.max()) * (1.0 - _WHOLE))) + 1
    rising = np.maximum.accumulate(answered[:end])
    return Capacity(asked, tried[:end].astype(np.float64), rising, grid.columns["ttft_s"][:end], grid.columns["itl_s"][:end])


def at_rate(
    architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, rate_per_s: float, engine: EngineProfile | None
) -> InFlight:
    """`request` as an open loop of `rate_per_s` requests a second; where they are not kept up with, of as many as answer the most.

    Raises InvalidRequest, with the field, for a rate beside clients or a batch, and for what cannot be priced.
    """
    if request.concurrency is not None:
        raise InvalidRequest("request_rate_per_s", "Requests come from clients or at a rate: leave concurrency or request_rate_per_s out.")
    found = capacity(architecture, hardware, request, engine)
    flight, _, _ = found.at(rate_per_s)
    kept_up_with = rate_per_s <= found.at_most_per_s
    return InFlight(replace(found.request, concurrency=max(round(flight), 1)), found.at_most_per_s, kept_up_with)


def _prompts_per_s(architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, engine: EngineProfile | None) -> float:
    """Requests a second whose prompts passes full of them compute."""
    question = Question.of(architecture, hardware, request, check(request, architecture, hardware), engine)
    if question.textbook:
        return 1.0 / float(price_prompt(question).time_s)
    load = question.load
    prompts = chunk_prompts(load, question.schedule, float(_MOST))
    return float(prompts * load.dp * load.pp / full_pass_s(question, prompts, load.dp))
