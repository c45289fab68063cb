"""Settings from the environment, from a .env file and from secret files; and what is said about those that cannot be used."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import Settings, SettingsError, load_settings


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Settings are read once a process; here once a test, in a folder without a .env file."""
    for name in [name for name in os.environ if name.startswith("PHASELINE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    load_settings.cache_clear()
    yield
    load_settings.cache_clear()


def test_defaults_need_no_environment() -> None:
    settings = load_settings()
    assert (settings.host, settings.port, settings.root_path, settings.open) == ("127.0.0.1", 8000, "", False)
    assert (settings.max_upload_bytes, settings.auto_migrate, settings.allowed_hosts) == (32 * 2**20, True, ())
    assert settings.data_dir == Path("data")


def test_every_setting_has_its_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "DATA_DIR": "elsewhere", "DATABASE_URL": "postgresql+psycopg://u@h/d", "HOST": "::1", "PORT": "9000", "ROOT_PATH": "/phaseline/",
        "MAX_UPLOAD_BYTES": "1000", "ALLOWED_HOSTS": "a.example, b.example,,", "TRUSTED_PROXIES": "10.0.0.1", "AUTO_MIGRATE": "0",
        "OPEN": "1", "LEASE_S": "12", "LOCAL_WORKER": "0", "SHARE_WORKER_TOKEN": "/run/token", "SERVER": "https://h.example",
        "SECRET_KEY": "k" * 32, "WORKER_TOKEN": "phw_x", "WORKER_NAME": "gpu-1", "WORKER_DIR": "here",
        "LLAMA_BENCH": "/opt/llama-bench", "LLAMA_MODELS": "/srv/models",
    }  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(f"PHASELINE_{name}", value)
    settings = load_settings()
    assert settings.data_dir == Path("elsewhere")
    assert settings.resolved_database_url == "postgresql+psycopg://u@h/d"
    assert (settings.host, settings.port, settings.root_path, settings.max_upload_bytes) == ("::1", 9000, "/phaseline", 1000)
    assert (settings.allowed_hosts, settings.trusted_proxies) == (("a.example", "b.example"), "10.0.0.1")
    assert (settings.auto_migrate, settings.open) == (False, True)
    assert (settings.lease_s, settings.local_worker, settings.share_worker_token) == (12, False, Path("/run/token"))
    assert (settings.server_address, settings.worker_token, settings.worker_name) == ("https://h.example", "phw_x", "gpu-1")
    assert settings.secret_key == "k" * 32
    assert settings.resolved_worker_dir == Path("here")
    assert (settings.llama_bench, settings.llama_models) == (Path("/opt/llama-bench"), Path("/srv/models"))
    assert {name.lower() for name in given} | {"database_url_file", "secret_key_file", "worker_token_file"} == set(Settings.model_fields)


def test_names_are_read_in_any_case_and_empty_ones_are_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose hands on a variable that is not set as an empty one."""
    monkeypatch.setenv("phaseline_port", "9001")
    for name in ("DATABASE_URL", "DATABASE_URL_FILE", "ROOT_PATH", "MAX_UPLOAD_BYTES", "AUTO_MIGRATE", "ALLOWED_HOSTS"):
        monkeypatch.setenv(f"PHASELINE_{name}", "")
    settings = load_settings()
    assert settings.port == 9001
    assert settings.database_url is None
    assert settings.max_upload_bytes == 32 * 2**20
    assert settings.auto_migrate is True


def test_a_dotenv_file_holds_the_same_names_and_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PHASELINE_PORT=9002\nPHASELINE_HOST=localhost\nOTHER=1\n")
    monkeypatch.setenv("PHASELINE_HOST", "127.0.0.2")
    settings = load_settings()
    assert (settings.port, settings.host) == (9002, "127.0.0.2")


def test_sqlite_lies_in_the_data_folder(tmp_path: Path) -> None:
    assert load_settings().resolved_database_url == f"sqlite:///{tmp_path / 'data' / 'phaseline.db'}"


def test_a_secret_file_wins_over_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("postgresql+psycopg://u:p@h/d\n")
    monkeypatch.setenv("PHASELINE_DATABASE_URL", "sqlite:///x.db")
    monkeypatch.setenv("PHASELINE_DATABASE_URL_FILE", str(secret))
    assert load_settings().resolved_database_url == "postgresql+psycopg://u:p@h/d"


def test_a_secret_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    monkeypatch.setenv("PHASELINE_DATABASE_URL_FILE", str(secret))
    for content, words in ((None, "No such file"), (b"\xff\xfe", "cannot be read"), (b" \n", "is empty")):
        if content is not None:
            secret.write_bytes(content)
        with pytest.raises(SettingsError, match=r"^The setting PHASELINE_DATABASE_URL_FILE cannot be used: .*\.$") as caught:
            load_settings()
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PORT", "eighty", "valid integer"),
        ("PORT", "65536", "65535"),
        ("PORT", "-1", "greater than or equal to 0"),
        ("MAX_UPLOAD_BYTES", "0", "greater than or equal to 1"),
        ("MAX_UPLOAD_BYTES", str(32 * 2**20 + 1), "33554432"),
        ("ROOT_PATH", "phaseline", "must start with a slash"),
        ("AUTO_MIGRATE", "perhaps", "boolean"),
        ("OPEN", "2", "boolean"),
    ],
)
def test_a_value_that_cannot_be_used_is_one_sentence_that_names_the_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(f"PHASELINE_{name}", value)
    with pytest.raises(SettingsError, match=rf"^The setting PHASELINE_{name} cannot be used: .*\.$") as caught:
        load_settings()
    assert words in str(caught.value)
    assert "Value error" not in str(caught.value)


@pytest.mark.parametrize(("host", "loopback"), [
    ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True),
    ("0.0.0.0", False), ("::", False), ("192.168.1.5", False), ("phaseline.example", False), ("localhost.evil.test", False),
])  # fmt: skip
def test_an_address_that_others_reach_needs_open(host: str, loopback: bool) -> None:
    settings = Settings(_env_file=None, host=host)
    assert settings.listens_on_loopback == loopback
    if loopback:
        settings.refuse_open_address()
    else:
        with pytest.raises(SettingsError, match="PHASELINE_OPEN=1"):
            settings.refuse_open_address()
    Settings(_env_file=None, host=host, open=True).refuse_open_address()


def test_a_password_in_the_database_url_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHASELINE_DATABASE_URL", "mysql://user:hunter2@h/d")
    from app.services.context import make_context
    from app.store.database import DatabaseUnusable

    with pytest.raises(DatabaseUnusable) as caught:
        make_context(load_settings())
    assert "hunter2" not in str(caught.value)


def test_the_data_folder_is_made_when_it_is_missing(tmp_path: Path) -> None:
    from app.services.context import make_context

    context = make_context(Settings(_env_file=None, data_dir=tmp_path / "a" / "b"))
    context.database.close()
    assert stat.S_ISDIR((tmp_path / "a" / "b").stat().st_mode)
