"""The server as a worker sees it: outbound HTTP only, and three ways in which a call can fail."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx2

from app.domain.errors import PhaselineError

_TIMEOUT_S = 10.0
_UPLOAD_TIMEOUT_S = 120.0
WAIT_S = 25.0
_SESSION = "phaseline-session"


class Unreachable(PhaselineError):
    """The server does not answer, or not now: try again."""


class Gone(PhaselineError):
    """The attempt or the session is over: drop the work, or register anew."""


class Denied(PhaselineError):
    """The server does not let this worker in, or does not understand it; a person must act."""


class Misunderstood(Denied):
    """The server cannot take what was sent; it can take other things."""


class Server:
    """The calls of a worker. `session` is set by `register`."""

    def __init__(self, address: str, token: str | None = None, transport: httpx2.BaseTransport | None = None) -> None:
        self.address = address.rstrip("/")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        try:
            self._http = httpx2.Client(
                base_url=self.address, headers=headers, timeout=_TIMEOUT_S, transport=transport, trust_env=not is_local(self.address)
            )
        except httpx2.InvalidURL as error:
            raise Denied("The server's address is no URL: write it like http://127.0.0.1:8000.") from error

    def register(self, told: Mapping[str, Any]) -> Mapping[str, Any]:
        """Begin a session; what the server answers: `worker`, `heartbeat_s`, `lease_s`, `taken_back`."""
        answer = self._post("register", told)
        self._http.headers[_SESSION] = str(answer["session"])
        return answer

    def claim(self, free: Sequence[str], holding: Sequence[int], wait_s: float = WAIT_S) -> Mapping[str, Any] | None:
        """A job, or None when there was none for `wait_s` seconds."""
        body = {"free": list(free), "holding": list(holding), "wait_s": wait_s}
        answer = self._post("claim", body, timeout=wait_s + _TIMEOUT_S)
        job: Mapping[str, Any] | None = answer["job"]
        return job

    def report(self, job: int, attempt: int, events: Sequence[Mapping[str, Any]]) -> bool:
        """Tell what happened and renew the lease; whether the job's end is asked for."""
        if events:
            return bool(self._post(f"jobs/{job}/progress", {"attempt": attempt, "events": list(events)})["cancel"])
        return bool(self._post(f"jobs/{job}/heartbeat", {"attempt": attempt})["cancel"])

    def result(self, job: int, attempt: int, name: str, data: bytes) -> Mapping[str, Any]:
        """Bring a result file; `run_ids` and `refused`."""
        return self._call(f"jobs/{job}/result", params={"attempt": attempt, "name": name}, content=data, timeout=_UPLOAD_TIMEOUT_S)

    def finish(self, job: int, attempt: int, outcome: str, reason: str | None) -> None:
        """End the attempt."""
        self._post(f"jobs/{job}/finish", {"attempt": attempt, "outcome": outcome, "reason": reason[:4000] if reason else None})

    def leave(self) -> None:
        """End the session."""
        self._post("leave", {})

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _post(self, path: str, body: Mapping[str, Any], timeout: float = _TIMEOUT_S) -> Mapping[str, Any]:
        return self._call(path, json=dict(body), timeout=timeout)

    def _call(self, path: str, **request: Any) -> Mapping[str, Any]:
        try:
            answer = self._http.post(f"/api/v1/worker/{path}", **request)
        except httpx2.HTTPError as error:
            raise Unreachable(f"The server at {self.address} cannot be reached: {error}.") from error
        if answer.status_code == 204:
            return {}
        body = _json(answer)
        if answer.is_success and isinstance(body, dict):
            return body
        detail = str(body.get("detail")) if isinstance(body, dict) and body.get("detail") else f"it answered {answer.status_code}"
        if answer.status_code in (404, 409):
            raise Gone(detail)
        if answer.status_code >= 500 or answer.status_code == 429:
            raise Unreachable(f"The server at {self.address} cannot serve this now: {detail}")
        raise (Misunderstood if answer.status_code in (413, 422) else Denied)(f"The server at {self.address} refuses: {detail}")


def _json(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def is_local(address: str) -> bool:
    """Whether a URL is of this machine, so that no proxy and no certificate stands between."""
    host = urlsplit(address).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
