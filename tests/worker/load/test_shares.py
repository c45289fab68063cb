"""One load from several processes: how it is divided, that its parts are the whole, and what becomes of it when one is lost."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.addresses import parse_destination
from app.worker.load import health, sweep
from app.worker.load.columns import Columns, columns, joined_columns
from app.worker.load.events import Reply
from app.worker.load.exchange import Exchange
from app.worker.load.health import Health, worst_of
from app.worker.load.link import Unreachable, Way
from app.worker.load.offering import Load
from app.worker.load.recording import on_uvloop
from app.worker.load.request import Asking
from app.worker.load.shares import ShareLost, offer_in_shares
from benchmarks.mock_server import Behaviour
from tests.worker.load.driving import LOOPBACK
from tests.worker.load.serving import served
from tests.worker.load.test_sweep import QUICK, swept

DESTINATION = parse_destination("http://127.0.0.1:9", LOOPBACK)
ASKING = Asking(DESTINATION, "mock", "chat")
LOAD = Load(ASKING, words=10, output_tokens=5, timeout_s=20.0, seed=0, stream=1)


def closed(clients: int, requests: int, port: int = 9, duration_s: float = 0.0) -> tuple[Load, Way]:
    destination = parse_destination(f"http://127.0.0.1:{port}", LOOPBACK)
    asking = Asking(destination, "mock", "chat")
    load = Load(asking, 10, 5, 20.0, seed=0, stream=1, clients=clients, requests=requests, duration_s=duration_s)
    return load, Way(destination, "127.0.0.1")


@given(st.integers(1, 300), st.integers(1, 1000), st.integers(1, 64))
def test_clients_and_requests_are_divided_without_loss(clients: int, requests: int, parts: int) -> None:
    found = closed(clients, requests)[0].split(parts)
    shares = [part.clients or 0 for part in found]
    assert len(found) == min(parts, clients)
    assert sum(shares) == clients
    assert max(shares) - min(shares) <= 1
    assert requests <= sum(part.requests for part in found) < requests + len(found)
    assert [part.share for part in found] == list(range(len(found)))


@given(st.lists(st.floats(0, 100), max_size=40).map(sorted), st.integers(1, 8))
def test_arrivals_are_divided_without_loss(arrivals: list[float], parts: int) -> None:
    found = Load(ASKING, 10, 5, 20.0, 0, 1, arrivals_s=tuple(arrivals), ready=9).split(parts)
    assert sorted(moment for part in found for moment in part.arrivals_s) == arrivals
    assert sum(part.ready for part in found) >= 9


@st.composite
def answers(draw: st.DrawFn) -> list[tuple[Exchange, Reply]]:
    """Requests as they come back, sent at moments that differ: some failed, some with thoughts, some with cached tokens."""
    moments = draw(st.lists(st.integers(0, 10**9), min_size=1, max_size=12, unique=True))
    found = []
    for sent in moments:
        exchange = Exchange(b"", scheduled=sent - draw(st.integers(0, 10**6)), sent=sent, resent=draw(st.booleans()))
        gaps = draw(st.lists(st.integers(1, 10**8), min_size=1, max_size=4))
        stamps = (sent + np.cumsum(gaps)).tolist()
        exchange.ended = stamps[-1]
        failed = draw(st.booleans())
        answer = draw(st.sampled_from(stamps))
        cached = draw(st.one_of(st.none(), st.integers(0, 9)))
        reply = Reply(stamps, [], answer, len(stamps) + 1, 1, 0, 12, len(stamps), cached, error="cut off" if failed else None)
        found.append((exchange, reply))
    return found


def assert_alike(one: Columns, other: Columns) -> None:
    for name in ("ok", "prompt_tokens", "output_tokens", "ttft_s", "e2e_s", "start_s", "chunk_gaps_s", "chunk_gap_counts", "chunks"):
        np.testing.assert_array_equal(getattr(one.samples, name), getattr(other.samples, name), err_msg=name)
    for name in ("scheduled_s", "ttft_answer_s", "cached_tokens"):
        mine, theirs = getattr(one.samples, name), getattr(other.samples, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
    assert one.samples.errors == other.samples.errors
    assert (one.ended_s, one.events, one.coalesced, one.resent) == (other.ended_s, other.events, other.coalesced, other.resent)
    np.testing.assert_array_equal(one.dispatch_s, other.dispatch_s)


@given(answers(), st.integers(1, 4), st.booleans())
def test_the_parts_put_together_are_the_whole(pairs: list[tuple[Exchange, Reply]], parts: int, scheduled: bool) -> None:
    divided = [pairs[part::parts] for part in range(parts) if pairs[part::parts]]
    assert_alike(joined_columns([columns(each, 0, scheduled) for each in divided]), columns(pairs, 0, scheduled))


def test_the_health_of_several_is_that_of_the_worst() -> None:
    one = Health(0.5, 1.0, 1e-4, 3e-3, events=100, coalesced_share=0.1, dispatch_p99_s=None)
    other = Health(0.9, 2.0, None, 1e-3, events=300, coalesced_share=0.3, dispatch_p99_s=0.01)
    # 10 and 90 of 400 events shared a read.
    assert worst_of([one, other]) == Health(0.9, 3.0, 1e-4, 3e-3, 400, pytest.approx(0.25), 0.01, processes=2)
    assert worst_of([one]).coalesced_share == pytest.approx(0.1)


def test_a_closed_loop_from_two_processes_is_one_run(tmp_path: Path) -> None:
    with served(QUICK) as server:
        runs, rows, document = swept(server, tmp_path, concurrency=(5,), min_requests=20, processes=2)
        prompts = [body["prompt"] for body in server.bodies]
        # Two probes and five of the warm-up come before.
        measured = server.log[7:]
    (run,), (point,) = runs, document["runs"]
    assert point["details"]["client"]["processes"] == 2
    assert len(set(prompts)) == len(prompts)
    assert run.samples is not None
    assert run.requests.completed == run.samples.size == len(measured) >= 20
    assert rows[0]["failed"] == 0
    start = run.samples.start_s
    assert start is not None
    assert (np.diff(start) >= 0).all()
    assert start[0] >= 0
    assert np.isfinite(run.samples.ttft_s).all()
    # Five clients began together: the shares wait for each other.
    received = sorted(one.received for one in measured)
    assert received[4] < min(one.sends[-1] for one in measured)


def test_an_open_loop_from_two_processes_keeps_its_schedule(tmp_path: Path) -> None:
    moments = tuple(0.01 * index for index in range(9))
    with served(QUICK) as server:
        runs, _, _ = swept(server, tmp_path, concurrency=(), arrivals_s=moments, processes=2)
    assert runs[0].samples is not None
    assert sorted(runs[0].samples.scheduled_s) == pytest.approx(moments)  # type: ignore[arg-type]


@pytest.mark.parametrize(("asked", "cores", "expected"), [(None, 2, 2), (None, 1, 1), (1, 2, 1)])
def test_a_point_is_measured_from_more_processes_where_one_has_no_time_left(
    asked: int | None, cores: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "CPU_SHARE", -1.0)
    monkeypatch.setattr(sweep, "most_processes", lambda: cores)
    with served(QUICK) as server:
        runs, rows, document = swept(server, tmp_path, concurrency=(2, 4), processes=asked)
    assert [point["details"]["client"]["processes"] for point in document["runs"]] == [expected] * 2
    assert len(rows) == 2
    # Still at its limit, and said so.
    assert all("client_limited" in {flag.flag for flag in run.flags} for run in runs)


def test_one_client_is_not_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CPU_SHARE", -1.0)
    monkeypatch.setattr(sweep, "most_processes", lambda: 2)
    with served(QUICK) as server:
        _, _, document = swept(server, tmp_path, concurrency=(1,))
    assert document["runs"][0]["details"]["client"]["processes"] == 1


def test_a_share_that_finds_nobody_says_so_as_one_process_does() -> None:
    load, way = closed(2, 4)
    with pytest.raises(Unreachable, match="No connection to 127"):
        on_uvloop(offer_in_shares(load, way, 2, lambda ended: None))
    assert not multiprocessing.active_children()


def test_a_share_that_is_ended_from_outside_ends_the_load() -> None:
    def end_one(ended: int) -> None:
        for child in multiprocessing.active_children()[:1]:
            child.kill()

    with served(Behaviour(ttft_s=0.01, itl_s=0.002)) as server:
        load, way = closed(2, 4, server.port, duration_s=30.0)
        with pytest.raises(ShareLost, match="was ended before"):
            on_uvloop(asyncio.wait_for(offer_in_shares(load, way, 2, end_one), 30))
    assert not multiprocessing.active_children()


PROGRAM = """
import multiprocessing, sys
from app.worker.load.recording import on_uvloop
from app.worker.load.shares import offer_in_shares
from tests.worker.load.test_shares import closed

def tell(ended):
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)

if __name__ == "__main__":
    load, way = closed(2, 4, int(sys.argv[1]), duration_s=120.0)
    on_uvloop(offer_in_shares(load, way, 2, tell))
"""


def _alive(pids: Sequence[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        found.append(pid)
    return found


def test_shares_end_when_whoever_asked_for_them_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    root = Path(__file__).resolve().parents[3]
    with served(QUICK) as server:
        command = [sys.executable, str(script), str(server.port)]
        with subprocess.Popen(command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            pids = [int(word) for word in parent.stdout.readline().split()]
            assert len(_alive(pids)) == 2
            parent.send_signal(signal.SIGKILL)
        until = time.monotonic() + 20
        while _alive(pids) and time.monotonic() < until:
            time.sleep(0.05)
        assert not _alive(pids)
