"""What a newcomer presses: the device's ceilings, and prefill and decode of a small model on it, one after the other."""

from collections.abc import Mapping
from typing import Any

from app.domain.errors import Conflict
from app.services.context import Context
from app.services.job_fit import Place, places_of, present
from app.services.jobs import JobView, asked, submit
from app.services.profiles import read_book
from app.store import workers

SMALL_MODEL = "tiny-llama-25m"
# Short on purpose: together well under a minute on one thread of an ordinary processor that has nothing else to do.
CEILINGS: Mapping[str, Any] = {"dtypes": ["fp32"], "model": SMALL_MODEL, "rows": [1, 64, 512], "largest": 1024, "seconds_per_shape": 0.2}
PHASES: Mapping[str, Any] = {"model": SMALL_MODEL, "prompt_tokens": [512], "output_tokens": 32, "repeats": 5}


def first_look(context: Context) -> list[JobView]:
    """Ask for both on the first device that is there; for the phases alone where a profile answers to it already.

    Raises Conflict when no worker is connected.
    """
    place = _place(context)
    if place is None:
        raise Conflict("No worker is connected, so nothing can be measured yet: start one with `phaseline worker`.")
    kinds = [("inprocess_sweep", PHASES, "first look: prefill and decode")]
    if place.facts.hardware is None:
        kinds.insert(0, ("device_microbench", CEILINGS, "first look: the device"))
    return [submit(context, asked(kind, values, label=label, wanted_device=place.key)) for kind, values, label in kinds]


def _place(context: Context) -> Place | None:
    """The device to look at: an accelerator before a processor."""
    book = read_book(context)
    with context.database.read() as session:
        known = present(workers.every(session), context.clock.now())
    places = [place for worker in known for place in places_of(book, worker)]
    return min(places, key=lambda place: place.facts.is_cpu, default=None)
