"""What vLLM's client knows beyond the phases: its own queue, the server's clock, and the requests that met their objectives.

Since 0.30 the client keeps the time each request waited for one of `--max-concurrency` slots. Where requests were due at a rate, that wait
belongs to who waited for the answer; without a rate all are due at once and the wait says nothing.
"""

from app.domain.derive import statistics
from app.domain.run import Distribution, MetricValue, Rate
from app.formats.load import Load
from app.formats.record import Record
from app.formats.request_arrays import ArrayReading
from app.formats.serving import Naming, reported

# From 2024-10 to 2025-06 the key had a colon in its name.
GOODPUT_KEYS = ("request_goodput", "request_goodput:")
_STEMS = {"client_queue_s": "client_queue_time", "e2e_from_schedule_s": "e2el_including_client_queue"}


def waits(record: Record, naming: Naming, load: Load, arrays: ArrayReading) -> dict[str, MetricValue]:
    """Client queue, whole requests from their schedule and TTFT by the server's clock: from the arrays where those are there."""
    found: dict[str, Distribution | None] = {}
    if load.request_rate_per_s is not None and load.concurrency is not None:
        found = {key: reported(record, stem, naming) for key, stem in _STEMS.items()}
        if arrays.samples is not None and arrays.client_queue_s is not None:
            found["client_queue_s"] = statistics(arrays.client_queue_s)
            found["e2e_from_schedule_s"] = statistics(arrays.client_queue_s + arrays.samples.e2e_s)
    if arrays.server_ttft_s is not None:
        found["server_ttft_s"] = statistics(arrays.server_ttft_s)
    return {key: value for key, value in found.items() if value is not None}


def goodput(record: Record) -> dict[str, MetricValue]:
    """Requests a second that met all objectives, where any were set (null says that none were)."""
    value = next((value for key in GOODPUT_KEYS if (value := record.number(key)) is not None), None)
    return {} if value is None else {"goodput_requests_per_s": Rate(value, "aggregate", "reported")}
