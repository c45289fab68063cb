"""Every setting, its default and one line of help.

Environment variables carry the prefix PHASELINE_, and a `.env` file may hold the same names. A setting that can be a secret
may be given as PHASELINE_…_FILE instead: the file's text is the value, and a file that cannot be read is an error.
"""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.domain.errors import PhaselineError

MIB = 1024 * 1024
UPLOAD_CEILING_BYTES = 32 * MIB
_SECRET_FIELDS = ("database_url", "secret_key", "worker_token")
_LOOPBACK_NAMES = ("localhost",)


class SettingsError(PhaselineError):
    """The environment holds a setting that cannot be used."""


class Settings(BaseSettings):
    """What an operator may choose. Every field is named in docs/operation.md, or a test fails."""

    model_config = SettingsConfigDict(env_prefix="PHASELINE_", env_file=".env", env_ignore_empty=True, extra="ignore")

    data_dir: Path = Field(default=Path("data"), description="Folder of the database and of temporary files; made when missing.")
    database_url: str | None = Field(
        default=None, description="Address of the database; SQLite in DATA_DIR when unset, postgresql+psycopg://… for several machines."
    )
    database_url_file: Path | None = Field(default=None, description="File that holds DATABASE_URL, for container secrets.")
    secret_key: str | None = Field(
        default=None, description="Key that secrets follow from; secret.key in DATA_DIR, made on first use, when unset."
    )
    secret_key_file: Path | None = Field(default=None, description="File that holds SECRET_KEY, for container secrets.")
    host: str = Field(default="127.0.0.1", description="Address to listen on; one that is not loopback needs OPEN=1 until sign-in exists.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on.")
    root_path: str = Field(default="", description="Path prefix when a proxy serves Phaseline below one, such as /phaseline.")
    max_upload_bytes: int = Field(
        default=UPLOAD_CEILING_BYTES, ge=1, le=UPLOAD_CEILING_BYTES, description="Largest result file accepted; at most 32 MiB yet."
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Host names a browser may use, comma-separated; localhost and literal private addresses always work."
    )
    trusted_proxies: str = Field(default="127.0.0.1", description="Addresses whose X-Forwarded headers are believed, comma-separated.")
    auto_migrate: bool = Field(default=True, description="Bring the database to this version's schema at start.")
    open: bool = Field(default=False, description="1 allows an address that is not loopback although there is no sign-in.")

    lease_s: float = Field(default=30.0, ge=1, le=3600, description="Seconds after which a worker that is not heard of counts as lost.")
    local_worker: bool = Field(default=True, description="0 starts no worker beside the server.")
    share_worker_token: Path | None = Field(
        default=None, description="File in which the server keeps a token for a worker that reads it, such as in another container."
    )
    server: str | None = Field(default=None, description="Server that a worker asks for jobs; http://127.0.0.1:PORT when unset.")
    worker_token: str | None = Field(default=None, description="Token that a worker shows; a worker of the server's machine needs none.")
    worker_token_file: Path | None = Field(default=None, description="File that holds WORKER_TOKEN.")
    worker_name: str | None = Field(default=None, description="Name of a worker; that of its machine when unset.")
    worker_dir: Path | None = Field(default=None, description="Folder of a worker; DATA_DIR/worker when unset.")

    llama_bench: Path | None = Field(
        default=None, description="Path of the llama-bench that the worker on this machine may run; none when unset."
    )
    llama_models: Path | None = Field(default=None, description="Folder of the .gguf files that llama-bench may be run on.")

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("root_path")
    @classmethod
    def _rooted(cls, value: str) -> str:
        trimmed = value.rstrip("/")
        if trimmed and not trimmed.startswith("/"):
            raise ValueError("must start with a slash, such as /phaseline")
        return trimmed

    @model_validator(mode="after")
    def _read_secret_files(self) -> "Settings":
        for name in _SECRET_FIELDS:
            path = getattr(self, f"{name}_file")
            if path is not None:
                setattr(self, name, _secret(path, f"PHASELINE_{name.upper()}_FILE"))
        return self

    @property
    def resolved_database_url(self) -> str:
        """The database's address: the one set, or SQLite inside DATA_DIR."""
        return self.database_url or f"sqlite:///{self.data_dir.resolve() / 'phaseline.db'}"

    @property
    def server_address(self) -> str:
        """The server that a worker asks: the one set, or the one of this machine."""
        return self.server or f"http://127.0.0.1:{self.port}{self.root_path}"

    @property
    def resolved_worker_dir(self) -> Path:
        """The worker's folder: the one set, or one inside DATA_DIR."""
        return self.worker_dir or self.data_dir / "worker"

    @property
    def listens_on_loopback(self) -> bool:
        """True when only this machine can reach HOST."""
        if self.host in _LOOPBACK_NAMES:
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def refuse_open_address(self) -> None:
        """Raise SettingsError when HOST is reachable from elsewhere and nobody said that this is meant."""
        if not self.listens_on_loopback and not self.open:
            raise SettingsError(
                f"HOST {self.host} can be reached from other machines and this version has no sign-in: "
                "set PHASELINE_OPEN=1 to serve there all the same, or PHASELINE_HOST=127.0.0.1."
            )


def _secret(path: Path, setting: str) -> str:
    """The text of a secret's file. Raises ValueError, which pydantic reports, when there is none."""
    try:
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"The setting {setting} cannot be used: {path} cannot be read ({error})") from error
    if not value:
        raise ValueError(f"The setting {setting} cannot be used: {path} is empty")
    return value


def _explain(errors: Sequence[Any]) -> str:
    first = errors[0]
    where, what = "_".join(str(part) for part in first["loc"]), str(first["msg"]).removeprefix("Value error, ")
    return f"The setting PHASELINE_{where.upper()} cannot be used: {what}." if where else f"{what}."


@lru_cache
def load_settings() -> Settings:
    """Settings of this process, read once. Raises SettingsError with a sentence when one cannot be used."""
    try:
        return Settings()
    except ValidationError as error:
        raise SettingsError(_explain(error.errors())) from error
