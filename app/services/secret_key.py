"""The key of this installation, which secrets follow from: from the settings, or a file beside the data that is made on first use.

It is outside the database on purpose: a copy of the database, a backup or an export holds no secret, and nothing has to be encrypted.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
from base64 import urlsafe_b64encode
from pathlib import Path

from app.domain.errors import PhaselineError
from app.settings import Settings

_FILE = "secret.key"
_SHORTEST = 32
_PREFIX = "phs_"


class KeyUnusable(PhaselineError):
    """The file of the key cannot be read or made."""


def secret_key(settings: Settings) -> bytes:
    """The key. Raises KeyUnusable with what to do."""
    if settings.secret_key is not None:
        return _long_enough(settings.secret_key, "SECRET_KEY")
    path = settings.data_dir / _FILE
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _make(path)
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyUnusable(
            f"The key file {_FILE} in DATA_DIR cannot be used ({error}): make DATA_DIR writable, or set SECRET_KEY."
        ) from error
    return _long_enough(key, f"The key file {_FILE} in DATA_DIR")


def _make(path: Path) -> None:
    """Write a new key beside `path` and give it that name, unless somebody was faster: nobody ever reads half of a key."""
    number, name = tempfile.mkstemp(prefix=_FILE, dir=path.parent)
    with os.fdopen(number, "w") as file:
        file.write(secrets.token_hex(_SHORTEST))
    try:
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)


def _long_enough(key: str, what: str) -> bytes:
    if len(key) < _SHORTEST:
        raise KeyUnusable(f"{what} is shorter than {_SHORTEST} characters: give a longer one, such as of `openssl rand -hex 32`.")
    return key.encode()


def derived_secret(key: bytes, purpose: str, salt: str) -> str:
    """A secret of 256 bits for one purpose and salt: HMAC-SHA256 of both under the key. It is the same whenever it is asked for."""
    made = hmac.new(key, f"{purpose}\0{salt}".encode(), hashlib.sha256).digest()
    return _PREFIX + urlsafe_b64encode(made).decode().rstrip("=")


def key_mark(key: bytes) -> str:
    """A few letters by which a key is known again, and from which nothing follows."""
    return hmac.new(key, b"mark", hashlib.sha256).hexdigest()[:12]
