"""Who may work: the tokens of workers, made and revoked here, and what a call that shows one, or none, may do."""

import hashlib
import os
import secrets
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlmodel import Session

from app.domain.errors import InvalidRequest, NotAllowed, NotFound
from app.domain.text import clean_text
from app.services.context import Context
from app.services.summary import timestamp
from app.store import workers
from app.store.workers import SERVER, USER, StoredToken

PREFIX = "phw_"
_SHOWN = len(PREFIX) + 6
LOCAL = "the worker beside this server"


def sha256_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def make_token(context: Context, name: str, expires_days: int | None, now: datetime) -> tuple[str, StoredToken]:
    """A new token, which is shown this once, and what is kept of it. Raises InvalidRequest for a name that says nothing."""
    cleaned = clean_text(name)
    if not cleaned:
        raise InvalidRequest("name", "A token needs a name that says which worker it is for.")
    expires_at = now + timedelta(days=expires_days) if expires_days is not None else None
    with context.database.write() as session:
        return _add(session, cleaned, USER, expires_at, now)


def local_token(context: Context, now: datetime) -> str:
    """A token for the worker that this server starts beside it; the one made before counts no more."""
    with context.database.write() as session:
        workers.forget_tokens(session, SERVER, (LOCAL,))
        return _add(session, LOCAL, SERVER, None, now)[0]


def shared_token(context: Context, path: Path, now: datetime) -> None:
    """Keep a valid token in a file that a worker in another container reads; an existing one that counts is left as it is."""
    try:
        held = path.read_text(encoding="utf-8").strip()
    except OSError:
        held = ""
    with context.database.read() as session:
        known = workers.token_of(session, sha256_of(held)) if held else None
    if known is not None and known.valid(now):
        return
    with context.database.write() as session:
        workers.forget_tokens(session, SERVER, (str(path),))
        token, _ = _add(session, str(path), SERVER, None, now)
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(token + "\n")
    new.replace(path)


def _add(session: Session, name: str, origin: str, expires_at: datetime | None, now: datetime) -> tuple[str, StoredToken]:
    token = PREFIX + secrets.token_urlsafe(32)
    return token, workers.add_token(session, name, sha256_of(token), token[:_SHOWN], origin, expires_at, now)


def tokens(context: Context) -> list[StoredToken]:
    """All tokens, newest first."""
    with context.database.read() as session:
        return workers.tokens(session)


def revoke(context: Context, token_id: int, now: datetime) -> StoredToken:
    """Make a token count no more; its worker stops at its next call. Raises NotFound."""
    with context.database.write() as session:
        found = workers.revoke(session, token_id, now)
    if found is None:
        raise NotFound(f"There is no worker token {token_id}.")
    return found


def token_json(token: StoredToken, now: datetime) -> dict[str, Any]:
    """A token as JSON-ready data, without itself."""
    return {
        "id": token.id,
        "name": token.name,
        "shown": token.shown,
        "made_by": token.origin,
        "valid": token.valid(now),
        "created_at": timestamp(token.created_at),
        "expires_at": timestamp(token.expires_at),
        "revoked_at": timestamp(token.revoked_at),
        "used_at": timestamp(token.used_at),
    }


def admitted(context: Context, token: str | None, *, from_this_machine: bool, now: datetime) -> int | None:
    """The number of the token that a worker shows, or None for a worker of this machine, which needs none on an open server.

    Raises NotAllowed, with the same words for a token that is unknown and one that counts no more.
    """
    if token is None:
        if from_this_machine and context.settings.listens_on_loopback:
            return None
        raise NotAllowed("A worker of another machine shows a token of its own: make one on /jobs and give it as PHASELINE_WORKER_TOKEN.")
    with context.database.read() as session:
        found = workers.token_of(session, sha256_of(token))
    if found is None or not found.valid(now):
        raise NotAllowed("This worker token does not count (unknown, revoked or expired): make a new one on /jobs.")
    return found.id
