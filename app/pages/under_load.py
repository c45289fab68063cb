"""The block "under load" of the predict page: the clients of the question simulated pass by pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.charts import page_figure
from app.domain.distribution import Spread
from app.domain.errors import PhaselineError
from app.domain.quantity import count, percent, seconds
from app.domain.run import Distribution
from app.domain.simulation import Target, is_ready
from app.services.capacity import REQUESTS, TRIES, Rates, rates_of
from app.services.predicting import Answer
from app.services.profiles import ProfileBook
from app.services.under_load import Arrivals, UnderLoad, simulate, spread_of_ttft

# A page that was not asked to simulate waits for so much at most, requests times the clients beside each: about 0.2 s, in plain Python or
# where the compiled kernel is at hand. Who asks for it waits for whatever the simulator takes, and for the compiler the first time.
# Engines beside each other are slower and not compiled for that.
_UNASKED_PLAIN, _UNASKED_COMPILED, _UNASKED_FLEET = 40_000, 10_000_000, 8_000
_ASKED = "simulate"
_UNASKED_TOKENS = 1_500_000  # of answers simulated to find a rate
_NEARLY_ALL = 0.99  # of the requests: what a target is mostly about
_APART = 1.5  # times the closed form, from which on the difference has a word
_TARGETS = ("ttft_target_ms", "tpot_target_ms")
_MILLI = 1e-3


@dataclass(frozen=True)
class LoadView:
    """What the block shows. `parts` and `rows` are texts; `refused` says why nothing was simulated, `on_request` that a link would."""

    refused: str | None = None
    on_request: bool = False
    shown: UnderLoad | None = None
    spread: Spread | None = None
    figure: dict[str, Any] | None = None
    parts: tuple[tuple[str, float, str], ...] = ()
    rows: tuple[tuple[str, Distribution], ...] = ()
    goodput: str | None = None
    held_back: str = ""
    first_gap: tuple[tuple[str, float, str], ...] = ()
    targets: Mapping[str, str] | None = None
    keeps_step: str = ""


def load_view(found: Answer, query: Mapping[str, str]) -> LoadView | None:
    """The block of one answer; None where there are no clients, or textbook arithmetic, which has no queue."""
    request = found.prediction.request
    if request.concurrency is None or request.calibration == "textbook":
        return None
    targets = {key: query.get(key, "")[:20] for key in _TARGETS}
    sent = Arrivals().requests if request.open_loop else request.concurrency * request.requests_per_client
    work = request.concurrency * sent
    several = request.prefill_replicas is not None or max(request.dp, request.pp) > 1
    most = _UNASKED_FLEET if several else _UNASKED_COMPILED if is_ready() else _UNASKED_PLAIN
    if work > most and not query.get(_ASKED):
        each = f"{count(request.concurrency)} clients with {count(request.requests_per_client)} requests each"
        longer = f"{f'{count(sent)} requests' if request.open_loop else each} take longer than a page should."
        return LoadView(longer, on_request=True, targets=targets)
    try:
        bounds = [_bound(targets[key]) for key in _TARGETS]
        shown = simulate(found, target=Target(*bounds))
    except PhaselineError as error:
        return LoadView(str(error), targets=targets)
    simulation, spread = shown.simulation, spread_of_ttft(shown)
    measures = (("First token", simulation.ttft), ("Each further token", simulation.tpot), ("Whole request", simulation.e2e))
    return LoadView(
        shown=shown,
        spread=spread,
        figure=page_figure("distribution", spread),
        parts=_parts(shown),
        rows=tuple((title, known) for title, known in measures if known is not None),
        goodput=_goodput(shown),
        held_back=_held_back(shown),
        first_gap=_first_gap(shown),
        targets=targets,
        keeps_step=_keeps_step(found, shown),
    )


def _keeps_step(found: Answer, shown: UnderLoad) -> str:
    """What to make of a simulated first token far above the closed form's: requests that are exactly equal keep step."""
    request, engine, mean = found.prediction.request, found.engine, shown.simulation.ttft.mean
    drawn_apart = engine is not None and engine.serial_front_end_s and not engine.schedule.alone
    if request.open_loop or request.shortest_length < 1.0 or not drawn_apart or mean is None or mean < _APART * found.prediction.ttft_s:
        return ""
    return (
        "Exactly equal requests of a closed loop keep step in the simulation and queue for each other’s prompts; measured ones of such "
        "engines come apart, as the closed form has it. Give a shortest length below 1 where answers differ."
    )


def rates_view(book: ProfileBook, found: Answer, query: Mapping[str, str]) -> Rates | None:
    """What the deployment of a served load answers; None for another load, and where pools of their own are priced for clients."""
    request = found.prediction.request
    if request.concurrency is None or request.calibration == "textbook" or request.prefill_replicas is not None:
        return None
    try:
        target = Target(*(_positive(query.get(key, "")) for key in _TARGETS))
        rates = rates_of(book, found.question, target)
        tokens = REQUESTS * TRIES * request.output_tokens
        quick = is_ready() and max(request.dp, request.pp) == 1 and tokens <= _UNASKED_TOKENS
        return rates_of(book, found.question, target, _NEARLY_ALL) if quick else rates
    except PhaselineError:
        return None


def _positive(text: str) -> float | None:
    bound = _bound(text)
    return bound if bound is not None and bound > 0 else None


def within_words(found: Rates) -> str:
    """Up to which rate the target is kept, on average and by nearly all requests; nothing without one."""
    bounds = [("a first token within", found.target.ttft_s), ("further ones within", found.target.tpot_s)]
    target = ", ".join(f"{words} {seconds(bound)}" for words, bound in bounds if bound is not None)
    if not target:
        return ""
    if found.within_per_s is None:
        return f"Not even one request at a time has {target} on average."
    said = f"Up to {found.within_per_s:.3g} requests/s have {target} on average"
    if found.share is None:
        return f"{said}."
    each = "at no rate" if found.share_per_s is None else f"up to {found.share_per_s:.3g} requests/s"
    return f"{said}; {percent(found.share, 0)} of the requests, simulated, {each}."


def _bound(text: str) -> float | None:
    """Milliseconds as a person types them, in seconds; None for an empty field and for what is no number."""
    try:
        return float(text.replace(",", "")) * _MILLI if text.strip() else None
    except ValueError:
        return None


def _parts(shown: UnderLoad) -> tuple[tuple[str, float, str], ...]:
    found = shown.simulation
    return (
        ("Front-end", found.front_end_s, "client, tokeniser, transport"),
        ("Queue", found.queue_s, "other requests’ prompts, and a place to run"),
        ("Prefill", found.prefill_s, "its own passes, with what shares them"),
    )


def _first_gap(shown: UnderLoad) -> tuple[tuple[str, float, str], ...]:
    """From the first token to the second, where they come from pools of their own."""
    crossing = shown.simulation.crossing
    parts = None if crossing is None else crossing.mean_s()
    if parts is None:
        return ()
    words = {
        "admission_s": ("Admission", "a place in the decode pool, and a free link"),
        "transfer_s": ("Transfer", "the prompt’s cache on its way"),
        "step_s": ("Step", "the end of the step under way, and the one that it joins"),
    }
    return (*((words[name][0], value, words[name][1]) for name, value in parts.items()), ("Together", sum(parts.values()), "the first gap"))


def _goodput(shown: UnderLoad) -> str | None:
    if shown.target == Target():
        return None
    kept = shown.simulation.goodput(shown.target)
    return f"{percent(kept.share)} of the requests keep it: a goodput of {kept.requests_per_s:.3g} requests/s"


def _held_back(shown: UnderLoad) -> str:
    """What kept waiting requests from running, most first."""
    names = {"budget": "the tokens of a pass", "pool": "the KV pool", "cap": "the running cap"}
    found = sorted(shown.simulation.held_back.items(), key=lambda item: -item[1])
    said = [f"{names[name]} for {percent(share)} of the time" for name, share in found if share > 0]
    lost = f"; {count(shown.simulation.preemptions)} preemptions" if shown.simulation.preemptions else ""
    return f"Waiting requests were held back by {', '.join(said)}{lost}." if said else f"No waiting request was held back{lost}."


def bound_words(clients: float, open_loop: bool = False) -> str:
    """From how many clients on a limit counts, or requests in flight."""
    one = "request" if open_loop else "client"
    return f"from {count(round(clients))} {one}s on" if clients >= 1 else f"from the first {one} on"
