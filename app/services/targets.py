"""Registered targets: which servers endpoint jobs may call. Jobs name a target and carry no address; keys stay with the worker."""

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

from sqlalchemy.exc import IntegrityError

from app.domain.addresses import ANY_NETWORK, checked_host, checked_networks, refusal
from app.domain.errors import Conflict, InvalidRequest, NotFound
from app.services.context import Context
from app.services.summary import timestamp
from app.store import targets
from app.store.targets import NewTarget, StoredTarget

_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*", re.ASCII)
_MOST_NETWORKS = 50


def register(context: Context, target: NewTarget) -> StoredTarget:
    """Register a server. Raises InvalidRequest by field, Conflict when the name is taken."""
    checked = NewTarget(
        name=target.name,
        scheme=target.scheme,
        host=_host(target.host),
        port=target.port,
        base_path=_path("base_path", target.base_path),
        metrics_path=_path("metrics_path", target.metrics_path) if target.metrics_path is not None else None,
        networks=_networks(target.networks),
        key_ref=target.key_ref,
    )
    try:
        with context.database.write() as session:
            return targets.add(session, checked, context.clock.now())
    except IntegrityError as error:
        raise Conflict(f"A target called {target.name} is registered already: choose another name, or delete it first.") from error


def _host(host: str) -> str:
    """The host in its one spelling. Raises InvalidRequest for another, and for an address that is never called whatever networks are."""
    bare = host.strip()
    try:
        found = checked_host(bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare)
    except InvalidRequest as error:
        raise InvalidRequest("host", f"host must be a host name or an address, without scheme, port or path. {error}") from error
    if _is_address(found) and (reason := refusal(found, ANY_NETWORK)) is not None:
        raise InvalidRequest("host", f"host cannot be called: {reason}.")
    return found


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _path(field: str, path: str) -> str:
    trimmed = path.rstrip("/")
    parts = trimmed.split("/")
    if not _PATH.fullmatch(trimmed) or "." in parts or ".." in parts:
        raise InvalidRequest(field, f"{field} must be a plain path such as /v1, or empty.")
    return trimmed


def _networks(networks: Sequence[str]) -> tuple[str, ...]:
    if len(networks) > _MOST_NETWORKS:
        raise InvalidRequest("networks", f"At most {_MOST_NETWORKS} networks.")
    try:
        return checked_networks([text.strip() for text in networks])
    except InvalidRequest as error:
        raise InvalidRequest("networks", "networks must be like 10.0.0.0/8 or fd00::/8, with no bits set after the prefix.") from error


def every(context: Context) -> list[StoredTarget]:
    """All of them, by name."""
    with context.database.read() as session:
        return targets.every(session)


def forget(context: Context, target_id: int) -> None:
    """Delete one; jobs that name it end as refused. Raises NotFound."""
    with context.database.write() as session:
        if not targets.remove(session, target_id):
            raise NotFound(f"There is no target {target_id}.")


def target_json(stored: StoredTarget) -> dict[str, Any]:
    """A target as JSON-ready data; `key_ref` is the name of a key and not the key."""
    target = stored.target
    return {
        "id": stored.id,
        "name": target.name,
        "scheme": target.scheme,
        "host": target.host,
        "port": target.port,
        "base_path": target.base_path,
        "metrics_path": target.metrics_path,
        "networks": list(target.networks),
        "key_ref": target.key_ref,
        "created_at": timestamp(stored.created_at),
    }
