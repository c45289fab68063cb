"""What a body asks for, and what is left out for a server that refuses it.

Every body asks for exactly its output length (`ignore_eos`, `min_tokens`) and for usage, with each chunk where that is accepted. A
server that answers 400 or 422 is asked once more without what its refusal names (or without all of it), and what was left out is recorded.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from app import __version__
from app.domain.addresses import Destination
from app.domain.errors import InvalidRequest

Api = Literal["chat", "completions"]
# In the order in which they are given up where a refusal names none of them.
OPTIONAL = ("ignore_eos", "min_tokens", "continuous_usage_stats", "stream_options")
_PATHS: Mapping[Api, str] = {"chat": "/chat/completions", "completions": "/completions"}
_PLACE = "\x00"


@dataclass(frozen=True)
class Asking:
    """How a server is asked. `authorization` is the whole value of that header, which goes there and nowhere else.

    `metrics` is the path of the server's own figures, None where they are not to be read; `without` are optional parameters it refused.
    """

    destination: Destination
    model: str
    api: Api = "completions"
    authorization: str | None = None
    metrics: str | None = "/metrics"
    without: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Without the key."""
        return f"Asking({self.destination!r}, {self.model!r}, {self.api!r}, without={sorted(self.without)})"

    @property
    def path(self) -> str:
        """Path of the API: below the destination's own path, which is /v1 where it has none."""
        return f"{self.destination.path or '/v1'}{_PATHS[self.api]}"

    def giving_up(self, refused: frozenset[str]) -> "Asking":
        """The same without these parameters."""
        lost = refused | ({"continuous_usage_stats"} if "stream_options" in refused else set())
        return replace(self, without=self.without | lost)

    def template(self, output_tokens: int) -> "Template":
        """Head and body with a place for the prompt. Raises InvalidRequest for a key that no header can hold."""
        values: dict[str, Any] = {"model": self.model, "stream": True, "max_tokens": output_tokens}
        if self.api == "chat":
            values["messages"] = [{"role": "user", "content": _PLACE}]
        else:
            values["prompt"] = _PLACE
        if "ignore_eos" not in self.without:
            values["ignore_eos"] = True
        if "min_tokens" not in self.without:
            values["min_tokens"] = output_tokens
        if "stream_options" not in self.without:
            continuous = {} if "continuous_usage_stats" in self.without else {"continuous_usage_stats": True}
            values["stream_options"] = {"include_usage": True, **continuous}
        # The last one: nothing a person wrote stands behind the prompt.
        before, after = json.dumps(values).rsplit(json.dumps(_PLACE)[1:-1], 1)
        return Template(head(self, "POST", self.path), before.encode(), after.encode())


@dataclass(frozen=True)
class Template:
    """A request around its prompt."""

    head: bytes
    before: bytes
    after: bytes

    def filled(self, prompt: bytes) -> bytes:
        """The whole request with a prompt of plain words, which JSON holds as they are."""
        length = len(self.before) + len(prompt) + len(self.after)
        return b"%sContent-Length: %d\r\n\r\n%s%s%s" % (self.head, length, self.before, prompt, self.after)


def head(asking: Asking, method: str, path: str) -> bytes:
    """Request line and headers without those that end them. Raises InvalidRequest for a key or path that no header can hold."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {asking.destination.authority}", f"User-Agent: phaseline/{__version__}"]
    if method == "POST":
        lines += ["Accept: text/event-stream", "Content-Type: application/json"]
    if asking.authorization is not None:
        lines.append(f"Authorization: {asking.authorization}")
    text = "".join(f"{line}\r\n" for line in lines)
    if any(not line.isascii() or not line.isprintable() for line in lines):
        raise InvalidRequest("key", "The key or the path of the target holds characters that an HTTP header cannot hold.")
    return text.encode("ascii")


def scrape_request(asking: Asking, path: str) -> bytes:
    """A request for the metrics that the server keeps beside its API."""
    return head(asking, "GET", path) + b"\r\n"


def refused_parameters(status: int, body: bytes, without: frozenset[str]) -> frozenset[str]:
    """Optional parameters to leave out after a refusal: those it names, else all that are left; none where the status is another."""
    if status not in (400, 422):
        return frozenset()
    left = [name for name in OPTIONAL if name not in without]
    named = {name for name in left if name.encode() in body}
    return frozenset(named or left)
