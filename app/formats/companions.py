"""Files that tools write beside a result and that are no run by themselves: what each is, and which file to send instead.

They are told apart before any importer looks, since some carry the tool's name and version as the result does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.formats.document import Document

_HEADER_LENGTH = 200


@dataclass(frozen=True)
class Companion:
    """A kind of such files: what it holds, the result it belongs to, and how it is told apart.

    `has` are paths of keys that its first object has (of a list its first item counts); `header` begins its first line as a table.
    """

    what: str
    belongs_to: str
    has: tuple[str, ...] = ()
    header: str | None = None

    @property
    def reason(self) -> str:
        """The sentence for the person who sent one."""
        return f"This file holds {self.what}, which belong to a run and are none by themselves: send {self.belongs_to}."


_AIPERF = "profile_export_aiperf.json"
_SERVER = ("summary.endpoints_configured",)
COMPANIONS = (
    Companion("AIPerf's figures by time slice", _AIPERF, ("timeslices.timeslice_index",), "timeslice,metric,unit,stat,value"),
    Companion("AIPerf's figures by time slice", _AIPERF, ("timeslices.start_ns",)),
    Companion("the server's metrics that AIPerf scraped", f"{_AIPERF}, and this file with it in one upload", (*_SERVER, "metrics")),
    Companion("the server's metrics that AIPerf scraped", _AIPERF, header="endpoint,type,metric"),
    Companion("the server's metrics that AIPerf scraped", _AIPERF, ("endpoint_url", "timestamp_ns", "metrics")),
    Companion("what AIPerf scraped of the server or its GPUs", _AIPERF, ("summary.endpoints_configured", "endpoints")),
    Companion("AIPerf's GPU telemetry", _AIPERF, ("telemetry_data", "timestamp_ns")),
    Companion("the prompts that AIPerf sent", _AIPERF, ("data.payloads",)),
)


def companion_of(document: Document) -> Companion | None:
    """What kind of companion a file is, None when it is none."""
    if document.is_json:
        values = document.entries[0].values if document.entries else {}
        return next((each for each in COMPANIONS if each.has and all(_has(values, path) for path in each.has)), None)
    first = document.text.lstrip("\ufeff \t\r\n")[:_HEADER_LENGTH].split("\n", 1)[0].lower().replace('"', "").replace(" ", "")
    return next((each for each in COMPANIONS if each.header and first.startswith(each.header)), None)


def _has(value: object, path: str) -> bool:
    for key in path.split("."):
        if isinstance(value, list):
            value = value[0] if value else None
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True
