"""The commands as processes of their own: `python -m app`, exit codes, a server that starts, stores and stops."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.result_files import served_file

ROOT = Path(__file__).resolve().parents[1]


def environment(**settings: str) -> dict[str, str]:
    """The test's environment, with its own data folder and nothing of the user's."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PHASELINE_LOCAL_WORKER": "0", **settings}


def run(*words: str, cwd: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "app", *words]
    return subprocess.run(argv, cwd=cwd, env=environment(**settings), capture_output=True, text=True, timeout=60)


def test_python_m_app_prints_json_and_nothing_else_whatever_the_terminal(tmp_path: Path) -> None:
    ended = run("predict", "--calibration", "textbook", "--json", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["prefill"]["time_s"] == pytest.approx(0.0761905, rel=1e-6)
    assert not (tmp_path / "data").exists()


def test_an_error_that_the_user_can_mend_exits_2(tmp_path: Path) -> None:
    ended = run("predict", "--model", "nope", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("phaseline: No model is called “nope”.")
    assert ended.stderr.count("\n") == 1


def test_a_fault_of_ours_exits_1_with_one_sentence(tmp_path: Path) -> None:
    fails = "import sys, app.cli as c, app.commands.predict as p; p.load = lambda: 1 / 0"
    script = f"{fails}; sys.argv = ['phaseline', 'predict', '--json']; c.main()"
    argv = [sys.executable, "-c", script]
    ended = subprocess.run(argv, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("phaseline: ZeroDivisionError, a fault of ours")
    assert ended.stderr.count("\n") == 1


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server on a free port, and the address it printed."""
    argv = [sys.executable, "-m", "app", "serve", "--port", "0"]
    process = subprocess.Popen(argv, cwd=folder, env=environment(**settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " serves http://127.0.0.1:" in line, line or process.communicate(timeout=10)[1]
        yield process, line.split(" serves ")[1].split()[0].rstrip("/")
    finally:
        process.kill()
        process.communicate(timeout=10)


def get(address: str) -> tuple[int, str]:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.status, answer.read().decode()


def test_a_server_starts_answers_takes_a_file_and_stops(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, address):
        # The address is printed when it answers, not before.
        assert get(f"{address}/readyz")[0] == 200
        path = tmp_path / "r.json"
        path.write_bytes(served_file())
        ended = run("import", str(path), "--server", address, "--label", "from afar", "--json", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        stored = json.loads(ended.stdout)["runs"][0]
        assert (stored["file"], stored["label"]) == ("r.json", "from afar")
        assert json.loads(get(f"{address}/api/v1/runs/{stored['id']}")[1])["label"] == "from afar"
        # Its port is taken, which a second server says in a sentence, without an address that would be another's.
        port = address.rsplit(":", 1)[1]
        second = run("serve", "--port", port, cwd=tmp_path)
        assert (second.returncode, second.stdout) == (2, "")
        assert f"Port {port} of 127.0.0.1 cannot be had" in second.stderr
        assert second.stderr.count("\n") == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) in (0, -signal.SIGTERM)


def test_a_server_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(served_file())
    port = free_port()
    ended = run("import", str(path), "--server", f"http://127.0.0.1:{port}", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "cannot be reached" in ended.stderr
    assert ended.stderr.count("\n") == 1


def workers_of(address: str) -> list[str]:
    return [worker["state"] for worker in json.loads(get(f"{address}/api/v1/workers")[1])["items"]]


def running(pid: int) -> bool:
    """Whether a process of this number runs, an ended one that nobody waited for not counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_starts_a_worker_beside_itself_which_ends_with_it(tmp_path: Path, how: signal.Signals) -> None:
    with serving(tmp_path, PHASELINE_LOCAL_WORKER="1") as (process, address):
        until = time.monotonic() + 60
        while workers_of(address) != ["idle"]:
            assert time.monotonic() < until
            time.sleep(0.1)
        started = {int(pid) for task in Path(f"/proc/{process.pid}/task").glob("*/children") for pid in task.read_text().split()}
        assert started
        process.send_signal(how)
        process.wait(timeout=20)
        until = time.monotonic() + 10
        while any(running(pid) for pid in started):
            assert time.monotonic() < until
            time.sleep(0.1)
