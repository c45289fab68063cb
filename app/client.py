"""A small typed client of /api/v1 for the command line: one server, one token, errors as the server's own sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from app.domain.errors import ImportRefused, PhaselineError

_TIMEOUT_S = 120.0


class ServerError(PhaselineError):
    """The server cannot be reached, or refused; the message is what it said."""


@dataclass(frozen=True)
class Uploaded:
    """What the server made of a file: run summaries, and what it wants to be known."""

    runs: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...]


class Client:
    """Calls one Phaseline server. `token` is sent as a bearer token when given."""

    def __init__(self, server: str, token: str | None = None, transport: httpx2.BaseTransport | None = None) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        try:
            self._http = httpx2.Client(base_url=server.rstrip("/"), headers=headers, timeout=_TIMEOUT_S, transport=transport)
        except httpx2.InvalidURL as error:
            raise ServerError("The server's address is no URL: write it like http://127.0.0.1:8000.") from error

    def upload(self, name: str, data: bytes, fields: Mapping[str, str]) -> Uploaded:
        """Store one result file. Raises ImportRefused when the file gave no run, ServerError for anything else that went wrong."""
        answer = self._call("POST", "/api/v1/runs", params={"name": name, **fields}, content=data)
        try:
            return Uploaded(tuple(answer["runs"]), tuple(answer["warnings"]))
        except (KeyError, TypeError) as error:
            raise ServerError(f"The server at {self._http.base_url} answered something else than runs: is it Phaseline?") from error

    def _call(self, method: str, path: str, **request: Any) -> Any:
        try:
            answer = self._http.request(method, path, **request)
            body = answer.json()
        except httpx2.HTTPError as error:
            raise ServerError(f"The server at {self._http.base_url} cannot be reached: {error}.") from error
        except ValueError as error:
            raise ServerError(f"The server at {self._http.base_url} answered something that is not JSON: is it Phaseline?") from error
        if answer.is_success:
            return body
        detail = str(body.get("detail", f"the server answered {answer.status_code}")) if isinstance(body, dict) else str(answer.status_code)
        raise ImportRefused(detail) if isinstance(body, dict) and "refused" in body else ServerError(detail)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()
