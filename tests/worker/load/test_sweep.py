"""A sweep: its points in order, what each keeps, downgrades, a server's own figures, queues and knees; and that no secret stays."""

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from app.domain.addresses import parse_destination
from app.domain.checks import as_shown
from app.domain.run import Run
from app.formats import read_runs
from app.jobs.endpoint_sweep import EndpointSweep
from app.worker.load.link import Link, checked_address
from app.worker.load.probe import ServerRefused
from app.worker.load.recording import Told, on_uvloop, record
from app.worker.load.request import Asking
from benchmarks.mock_server import Behaviour, MockServer
from tests.worker.load.driving import LOOPBACK
from tests.worker.load.serving import served

CANARY = "sk-canary-0123456789"
QUICK = Behaviour(ttft_s=0.01, itl_s=0.002)
SMALL = {"target": "here", "model": "mock", "prompt_tokens": (40,), "output_tokens": (5,), "duration_s": 0.05, "min_requests": 4}


@dataclass(frozen=True)
class Served:
    """A server that is only known by its port."""

    port: int


def swept(
    server: MockServer | Served, folder: Path, authorization: str | None = None, **values: Any
) -> tuple[list[Run], list[Any], dict[str, Any]]:
    """The runs of a sweep's file, the rows it told, and the document."""
    rows: list[Any] = []
    parameters = EndpointSweep(**{**SMALL, "warmup_requests": 1, **values})

    async def measured() -> None:
        destination = parse_destination(f"http://127.0.0.1:{server.port}", LOOPBACK)
        link = Link(destination, await checked_address(destination))
        asking = Asking(destination, parameters.model, parameters.api, authorization=authorization)
        told = Told(lambda points: None, lambda shape, ended, since: None, lambda shape, row: rows.append(row))
        await record(parameters, asking, link, folder / "result.json", told)

    on_uvloop(measured())
    data = (folder / "result.json").read_bytes()
    return [as_shown(run) for run in read_runs("result.json", data).runs], rows, json.loads(data)


def test_each_shape_and_load_is_a_run_that_imports(tmp_path: Path) -> None:
    with served(QUICK) as server:
        runs, rows, document = swept(server, tmp_path, prompt_tokens=(20, 40), output_tokens=(3, 5), concurrency=(1, 2))
    assert (document["kind"], document["method"]) == ("endpoint_sweep", "phaseline-load/1")
    assert [(run.workload.prompt_tokens_mean, run.workload.output_tokens_mean, run.workload.concurrency) for run in runs] == [
        (prompt, output, clients) for prompt in (20, 40) for output in (3, 5) for clients in (1, 2)
    ]
    assert [row["concurrency"] for row in rows] == [1, 2] * 4
    first = runs[0]
    assert (first.load_mode, first.measured_at, first.token_count_source, first.model) == ("closed", "client", "server_usage", "mock")
    ttft = first.distribution("ttft_s")
    assert ttft is not None
    assert ttft.min is not None
    assert ttft.min >= 0.01


def test_the_warm_up_is_kept_apart(tmp_path: Path) -> None:
    with served(QUICK) as server:
        runs, _, document = swept(server, tmp_path, warmup_requests=3)
        sent = len(server.log)
    (point,) = document["runs"]
    assert len(point["details"]["warmup"]["ttft_s"]) == 3
    assert runs[0].requests.sent is not None
    # Two probes come before.
    assert sent == 2 + 3 + runs[0].requests.sent


def test_every_prompt_of_a_sweep_is_unique(tmp_path: Path) -> None:
    with served(QUICK) as server:
        swept(server, tmp_path, concurrency=(1, 2), prompt_tokens=(20, 40))
        heads = [body["prompt"][:60] for body in server.bodies]
    assert len(set(heads)) == len(heads)


def test_an_open_loop_says_what_its_requests_took_from_their_schedule(tmp_path: Path) -> None:
    with served(replace(QUICK, ttft_s=0.05, slots=1)) as server:
        runs, rows, document = swept(server, tmp_path, concurrency=(), rates_per_s=(40.0,), min_requests=12)
    run = runs[0]
    assert (run.load_mode, run.workload.request_rate_per_s, run.workload.concurrency) == ("open", 40.0, None)
    assert run.samples is not None
    assert run.samples.scheduled_s is not None
    details = document["runs"][0]["details"]["from_schedule"]
    assert details["ttft_s"]["p50"] >= rows[0]["ttft_s"] - 1e-9


def test_a_trace_of_arrivals_is_kept(tmp_path: Path) -> None:
    with served(QUICK) as server:
        runs, _, _ = swept(server, tmp_path, concurrency=(), arrivals_s=(3.0, 3.02, 3.1))
    assert runs[0].samples is not None
    assert runs[0].samples.scheduled_s == pytest.approx([0.0, 0.02, 0.1])
    assert runs[0].labels["arrivals"] == "trace"


@pytest.mark.parametrize("refused", [("ignore_eos",), ("ignore_eos", "min_tokens"), ("continuous_usage_stats",)])
def test_what_a_server_refuses_is_left_out_and_recorded(tmp_path: Path, refused: tuple[str, ...]) -> None:
    with served(replace(QUICK, refuse=refused)) as server:
        runs, _, document = swept(server, tmp_path)
        probes = [entry for entry in server.log if entry.status == 422]
    assert runs[0].labels["left_out"] == ", ".join(sorted(refused))
    assert any("refuses" in warning for warning in runs[0].warnings)
    assert len(probes) == len(refused)
    assert document["runs"][0]["details"]["continuous_usage"] is ("continuous_usage_stats" not in refused)


def test_a_server_without_usage_leaves_counts_unknown(tmp_path: Path) -> None:
    with served(replace(QUICK, usage=False)) as server:
        runs, rows, _ = swept(server, tmp_path)
    run = runs[0]
    assert run.token_count_source == "chunks"
    assert run.distribution("itl_s") is None
    assert run.distribution("chunk_gap_s") is not None
    assert rows[0]["tokens_per_s"] is None
    assert any("no usage" in warning for warning in run.warnings)


def test_the_servers_own_queue_and_prefill_stand_in_the_run(tmp_path: Path) -> None:
    with served(replace(QUICK, ttft_s=0.05, slots=1)) as server:
        runs, _, document = swept(server, tmp_path, concurrency=(3,), min_requests=6)
    queue, prefill = runs[0].distribution("queue_s"), runs[0].distribution("prefill_s")
    assert prefill is not None
    assert prefill.mean is not None
    assert prefill.mean >= 0.05
    assert queue is not None
    assert queue.mean is not None
    assert queue.mean > 0.05
    server, ttft, waited = (runs[0].distribution(key) for key in ("server_ttft_s", "ttft_s", "client_queue_s"))
    assert server is not None
    assert ttft is not None
    assert waited is not None
    assert server.mean is not None
    assert ttft.mean is not None
    # Queue and prompt pass, and less than the client saw.
    assert queue.mean + prefill.mean - 1e-6 <= server.mean < ttft.mean
    assert waited.n == runs[0].requests.sent
    assert document["runs"][0]["details"]["server"]["ttft_s"] > 0.1


def test_what_the_server_counted_stands_in_the_labels(tmp_path: Path) -> None:
    with served(QUICK) as server:
        runs, _, _ = swept(server, tmp_path)
    own = (runs[0].workload.prompt_tokens_mean or 0.0) * (runs[0].requests.completed or 0)
    assert float(runs[0].labels["server_prompt_tokens"]) == own > 0


def test_hits_of_the_prefix_cache_are_a_flag(tmp_path: Path) -> None:
    with served(replace(QUICK, cached_share=0.5)) as server:
        runs, _, _ = swept(server, tmp_path)
    assert "prefix_cache_hits" in {flag.flag for flag in runs[0].flags}


def test_a_server_that_takes_requests_in_turn_is_found_out(tmp_path: Path) -> None:
    with served(replace(QUICK, ttft_s=0.03, slots=1)) as server:
        runs, rows, _ = swept(server, tmp_path, concurrency=(1, 4), min_requests=8)
    assert ["server_queue_in_ttft" in row["flags"] for row in rows] == [False, True]
    (flag,) = (flag for flag in runs[1].flags if flag.flag == "server_queue_in_ttft")
    assert 0.5 < flag.figures["served_at_once"] < 2.0
    assert "prefill_tokens_per_s" in flag.withholds


def test_a_server_that_serves_all_at_once_is_not_accused(tmp_path: Path) -> None:
    # Requests long enough that what a busy machine adds is no good part of one.
    with served(replace(QUICK, ttft_s=0.3)) as server:
        _, rows, _ = swept(server, tmp_path, concurrency=(1, 4), min_requests=8)
    assert "server_queue_in_ttft" not in rows[1]["flags"]


def test_a_staircase_ends_at_the_knee(tmp_path: Path) -> None:
    """Two slots: two clients answer twice as much as one, four no more than two."""
    with served(replace(QUICK, ttft_s=0.04, itl_s=0.004, slots=2)) as server:
        runs, rows, _ = swept(server, tmp_path, concurrency=(1,), find_knee=True, min_requests=16)
    clients = [row["concurrency"] for row in rows]
    assert clients[:2] == [1, 2]
    assert clients[-1] in (4, 8)
    knees = [run.workload.concurrency for run in runs if "knee" in run.labels]
    assert knees == [clients[-2]]


def test_a_point_without_an_answer_says_why(tmp_path: Path) -> None:
    """The two probes and the warm-up succeed, then nothing does."""
    with served(QUICK) as server:

        class Failing(list[Any]):
            def append(self, entry: Any) -> None:
                super().append(entry)
                if len(self) == 3:
                    server.behaviour = replace(QUICK, fail_every=1, fail_status=503)

        server.log = Failing()
        runs, rows, document = swept(server, tmp_path)
    assert rows[0]["status"] == "error"
    assert document["runs"][0]["status"] == "error"
    assert runs[0].requests.completed == 0
    assert any("the server answers 503" in warning for warning in runs[0].warnings)


@pytest.mark.parametrize(("status", "hint"), [(401, "key"), (404, "name"), (500, "log")])
def test_a_server_that_cannot_be_measured_says_what_to_do(tmp_path: Path, status: int, hint: str) -> None:
    with served(Behaviour(fail_every=1, fail_status=status)) as server, pytest.raises(ServerRefused, match=f"{status}.*{hint}"):
        swept(server, tmp_path)
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize("behaviour", [QUICK, replace(QUICK, fail_every=3), replace(QUICK, refuse=("ignore_eos",))])
def test_no_key_and_no_answer_is_kept(tmp_path: Path, behaviour: Behaviour, caplog: pytest.LogCaptureFixture) -> None:
    """The mock writes the headers it got into every refusal, as some proxies do."""
    caplog.set_level(logging.DEBUG)
    with served(behaviour) as server:
        _, rows, _ = swept(server, tmp_path, authorization=f"Bearer {CANARY}", min_requests=7)
        assert {entry.headers["authorization"] for entry in server.log} == {f"Bearer {CANARY}"}
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    everything = b"".join(kept) + repr(rows).encode() + caplog.text.encode()
    assert kept
    for secret in (CANARY, "made to fail", " word word"):
        assert secret.encode() not in everything
