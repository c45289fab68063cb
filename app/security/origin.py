"""Who may call: the Host header must be one we answer to, and a state-changing call must come from our own pages or no browser.

Any method but GET, HEAD and OPTIONS changes state. Such a call is refused when Sec-Fetch-Site is there and is neither same-origin
nor none, and when Origin is there and is neither the host that was asked nor one of the operator's names (a proxy may have replaced
Host). With neither header (curl, the command line) it is allowed.
"""

import re
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOCAL_NAME = "localhost"
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::\d{1,5})?", re.ASCII | re.IGNORECASE)


def host_name(host: str) -> str | None:
    """The name in a Host header, without its port and brackets, in lower case; None when the header is no host."""
    match = _HOST.fullmatch(host)
    return (match[1] or match[2]).lower() if match else None


def host_allowed(host: str, allowed: tuple[str, ...]) -> bool:
    """True for localhost, literal loopback and private addresses, and the names in `allowed` (`*` allows every name)."""
    name = host_name(host)
    if name is None:
        return False
    if "*" in allowed or name == _LOCAL_NAME or name in {entry.lower() for entry in allowed}:
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    return address.is_private or address.is_loopback


def same_origin(method: str, headers: Headers, allowed: tuple[str, ...] = ()) -> bool:
    """True when the call does not change state, or comes from our own pages, or from no browser at all."""
    if method in _SAFE_METHODS:
        return True
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        return False
    return origin is None or _is_ours(origin, headers.get("host", ""), allowed)


def _is_ours(origin: str, host: str, allowed: tuple[str, ...]) -> bool:
    scheme, _, place = origin.lower().partition("://")
    if scheme not in ("http", "https"):
        return False
    return place == host.lower() or host_name(place) in {entry.lower() for entry in allowed}


class OriginGuard:
    """ASGI middleware that answers 400 to an unknown host and 403 to a call from another site."""

    def __init__(self, app: ASGIApp, allowed_hosts: tuple[str, ...] = ()) -> None:
        self.app = app
        self.allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not host_allowed(headers.get("host", ""), self.allowed_hosts):
            await _refuse(400, "This host name is not known here: add it to PHASELINE_ALLOWED_HOSTS.")(scope, receive, send)
        elif not same_origin(scope["method"], headers, self.allowed_hosts):
            await _refuse(403, "This call comes from another site and would change something here: open Phaseline's own page.")(
                scope, receive, send
            )
        else:
            await self.app(scope, receive, send)


def _refuse(status: int, detail: str) -> JSONResponse:
    body = {"type": "about:blank", "title": "Refused", "status": status, "detail": detail}
    return JSONResponse(body, status_code=status, media_type="application/problem+json")
