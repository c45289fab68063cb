"""What a newcomer presses: prefill and decode of a small model on the first device that is there, with nothing to fill in."""

from collections.abc import Mapping
from typing import Any

from app.domain.errors import Conflict
from app.services.context import Context
from app.services.job_fit import Place, places_of, present
from app.services.jobs import JobView, asked, submit
from app.services.profiles import read_book
from app.store import workers

# Well under a minute on one thread of an ordinary processor that has nothing else to do, the look at an unknown device included.
PHASES: Mapping[str, Any] = {"model": "tiny-llama-25m", "prompt_tokens": [512], "output_tokens": 32, "repeats": 5}


def first_look(context: Context) -> JobView:
    """Ask for it; a sweep measures a device without a profile first, and its result makes one.

    Raises Conflict when no worker is connected.
    """
    place = _place(context)
    if place is None:
        raise Conflict("No worker is connected, so nothing can be measured yet: start one with `phaseline worker`.")
    return submit(context, asked("inprocess_sweep", PHASES, label="first look", wanted_device=place.key))


def _place(context: Context) -> Place | None:
    """The device to look at: an accelerator before a processor."""
    book = read_book(context)
    with context.database.read() as session:
        known = present(workers.every(session), context.clock.now())
    places = [place for worker in known for place in places_of(book, worker)]
    return min(places, key=lambda place: place.facts.is_cpu, default=None)
