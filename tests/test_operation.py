"""Makefile, locks, image and compose file: what can be checked without building anything."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("help", "serve", "test", "lint", "soak", "bench", "screenshots", "lock", "vendor", "clean")
LOCKS = ("requirements.lock", "requirements-dev.lock")
PROGRAMS = (".ci/run", "scripts/environment", "scripts/install_test_packages", "scripts/lock", "tests/container/probe")
PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)==(\S+)((?: ; [^\\]+?)?) \\$((?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?$)+)", re.MULTILINE)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def pins(lock: str) -> dict[tuple[str, str], str]:
    """Package and marker to version."""
    return {(match[1], match[3]): match[2] for match in PIN.finditer(read(lock))}


def service_of(name: str, file: str = "compose.yaml") -> dict[str, Any]:
    service: dict[str, Any] = yaml.safe_load(read(file))["services"][name]
    return service


def make(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    argv = ["make", "--no-print-directory", *arguments]
    return subprocess.run(argv, cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("target", TARGETS)
def test_target_exists(target: str) -> None:
    ended = make("--dry-run", target)
    assert ended.returncode == 0, ended.stderr


def test_make_alone_lists_the_targets() -> None:
    listed = make().stdout
    assert [target for target in TARGETS if f"make {target} " not in listed] == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_can_be_run(program: str) -> None:
    assert os.access(ROOT / program, os.X_OK)


def test_tests_do_not_see_the_settings_of_the_person_who_runs_them() -> None:
    prefix = re.search(r"^WITHOUT_SETTINGS = (.*)$", read("Makefile"), re.MULTILINE)
    assert prefix
    line = prefix.group(1).replace("$$", "$") + " env"
    settings = {"PHASELINE_DATA_DIR": "somewhere", "PHASELINE_PORT": "1", "PHASELINE_TESTS_NO_SKIP": "1"}
    ended = subprocess.run(["sh", "-c", line], env={**os.environ, **settings}, capture_output=True, text=True, timeout=60)
    seen = dict(line.split("=", 1) for line in ended.stdout.splitlines() if line.startswith("PHASELINE_"))
    assert seen.pop("PHASELINE_TESTS_NO_SKIP") == "1"
    assert [name for name in seen if not name.startswith("PHASELINE_TESTS_")] == []


def test_an_environment_says_what_is_missing_without_a_python(tmp_path: Path) -> None:
    argv = [str(ROOT / "scripts/environment"), str(tmp_path / "venv"), "requirements.lock"]
    ended = subprocess.run(argv, env={**os.environ, "PYTHON": "no-such-python"}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.startswith("Phaseline needs Python 3.11 or newer and PYTHON=no-such-python is not one")
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_has_a_hash(lock: str) -> None:
    named = re.findall(r"^([a-z0-9][a-z0-9.-]*)==", read(lock), re.MULTILINE)
    assert len(named) > 30
    assert sorted(name for name, _ in pins(lock)) == sorted(named)
    others = [line for line in read(lock).splitlines() if not re.match(r"[a-z0-9][a-z0-9.-]*==|    --hash=sha256:|    #", line)]
    assert others == [], "a lock holds pins, hashes and comments, and no option, host or path"


def test_what_is_tested_is_what_is_served() -> None:
    served, tested = (pins(lock) for lock in LOCKS)
    assert {package: version for package, version in served.items() if tested.get(package) != version} == {}


@pytest.mark.parametrize("package", ["torch", "pandas", "pyarrow", "playwright"])
def test_what_is_served_stays_small(package: str) -> None:
    assert package not in {name for name, _ in pins("requirements.lock")}


def test_the_image_has_one_base() -> None:
    bases = re.findall(r"^FROM (\S+)", read("Dockerfile"), re.MULTILINE)
    assert set(bases) == {"python:3.12-slim"}
    assert "--mount" not in read("Dockerfile"), "needs BuildKit"


def test_the_image_runs_as_a_number_that_is_not_root() -> None:
    assert re.findall(r"^USER (.*)$", read("Dockerfile"), re.MULTILINE) == ["10001:10001"]


def test_the_image_gets_what_runs_and_nothing_else() -> None:
    lines = read(".dockerignore").splitlines()
    assert "*" in lines
    let_in = {line[1:] for line in lines if line.startswith("!")}
    assert {"app", "migrations", "static", "templates", "pyproject.toml", "requirements.lock"} <= let_in
    assert not let_in & {"data", "tests", ".env", ".git", ".venv"}


def test_an_open_server_is_published_on_this_machine_only() -> None:
    """PHASELINE_OPEN=1 and the loopback port belong together."""
    service = service_of("web")
    assert service["environment"]["PHASELINE_OPEN"] == "1"
    assert service["ports"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "PHASELINE_OPEN" not in re.sub(r"#.*", "", read("Dockerfile")), "the image alone must refuse to serve others"


@pytest.mark.parametrize(("name", "volumes"), [("web", ["data:/data", "token:/token"]), ("worker", ["token:/token:ro", "worker:/worker"])])
def test_the_services_are_confined(name: str, volumes: list[str]) -> None:
    service = service_of(name)
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["init"] is True
    assert service["restart"] == "unless-stopped"
    assert "healthcheck" in service
    assert service["image"] == "phaseline:local"
    # The worker has no way to the database but the server's calls.
    assert service["volumes"] == volumes
    assert "HEALTHCHECK" in read("Dockerfile")


def test_the_worker_listens_nowhere_and_shows_the_token_that_the_server_keeps_for_it() -> None:
    web, worker = service_of("web"), service_of("worker")
    assert "ports" not in worker
    assert worker["environment"]["PHASELINE_WORKER_TOKEN_FILE"] == web["environment"]["PHASELINE_SHARE_WORKER_TOKEN"]
    assert worker["environment"]["PHASELINE_SERVER"] == "http://web:8000"
    assert web["environment"]["PHASELINE_ALLOWED_HOSTS"].startswith("web,")
    assert re.search(r"PHASELINE_LOCAL_WORKER=0", read("Dockerfile")), "one container, one process"


def test_a_gpu_is_reserved_for_the_worker_alone() -> None:
    overlay = yaml.safe_load(read("compose.gpu.yaml"))["services"]
    assert list(overlay) == ["worker"]
    (device,) = overlay["worker"]["deploy"]["resources"]["reservations"]["devices"]
    # compose refuses an entry without capabilities, and takes either count or device_ids.
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
