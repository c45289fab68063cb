"""The load client against a server with known times: what is counted, in which order, and what becomes of failures."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from app.domain.addresses import parse_destination
from app.worker.load.connection import CLOSED_EARLY
from app.worker.load.events import NO_EVENTS
from app.worker.load.link import Link, Unreachable
from app.worker.load.loops import ClosedLoop, OpenLoop
from benchmarks.mock_server import Behaviour
from tests.worker.load.certificates import certified
from tests.worker.load.driving import LOOPBACK, QUICK, closed, offered, run


@pytest.mark.parametrize("on_uvloop", [True, False])
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_closed_loop_counts_what_the_server_sent(api: str, on_uvloop: bool) -> None:
    found = run(offered(QUICK, closed(3, 9), api=api), on_uvloop)  # type: ignore[arg-type]
    assert [reply.error for reply in found.replies] == [None] * 9
    assert found.server.connections == 3
    for reply in found.replies:
        assert (len(reply.stamps), reply.counts, reply.output_tokens, reply.finish) == (5, [1] * 5, 5, "length")
        assert reply.prompt_tokens == (14 if api == "chat" else 10)
        assert reply.role_only == (1 if api == "chat" else 0)


def test_no_stamp_is_before_the_server_sent_it_and_none_is_long_after() -> None:
    found = run(offered(QUICK, closed(1, 4), output_tokens=8))
    for (exchange, reply), served in zip(found.pairs, found.server.log, strict=True):
        assert exchange.sent <= served.received
        sent, seen = np.array(served.sends), np.array(reply.stamps)
        assert (sent <= seen).all()
        # One loop runs both here, so that only what would be a wrong event shows.
        assert float(np.median(seen - sent)) < 0.5e9


def test_a_closed_loop_keeps_its_number_of_clients_and_never_more() -> None:
    found = run(offered(Behaviour(ttft_s=0.02, itl_s=0.002), closed(4, 16)))
    edges = sorted([(exchange.sent, 1) for exchange, _ in found.pairs] + [(exchange.ended, -1) for exchange, _ in found.pairs])
    assert max(np.cumsum([step for _, step in edges])) == 4


def test_a_closed_loop_goes_on_until_its_duration() -> None:
    found = run(offered(Behaviour(ttft_s=0.002, itl_s=0.001), closed(2, 1, duration_s=0.3), output_tokens=2))
    assert len(found.pairs) > 2
    # None falls due after the end; how much later the last one leaves is the machine's matter.
    last = max(exchange.scheduled for exchange, _ in found.pairs)
    assert last - found.loop.started <= 0.3e9


def test_clients_start_spread_over_a_ramp() -> None:
    found = run(offered(Behaviour(ttft_s=0.5), lambda link, supply: ClosedLoop(link, supply, 4, 0.0, 4, 20, ramp_s=0.2), output_tokens=1))
    starts = sorted((exchange.sent - found.loop.started) / 1e9 for exchange, _ in found.pairs)
    # Never early; how late is the machine's matter.
    assert all(start > due - 0.005 for start, due in zip(starts, (0.0, 0.05, 0.1, 0.15), strict=True))


def test_an_open_loop_keeps_its_schedule_whatever_the_server_does() -> None:
    due = tuple(index * 0.02 for index in range(15))
    slow = Behaviour(ttft_s=0.3, itl_s=0.001, slots=1)
    found = run(offered(slow, lambda link, supply: OpenLoop(link, supply, due, 2, 20), output_tokens=1))
    assert sorted((exchange.scheduled - found.loop.started) / 1e9 for exchange, _ in found.pairs) == pytest.approx(due, abs=1e-6)
    assert all(exchange.sent >= exchange.scheduled for exchange, _ in found.pairs)
    # The server takes 0.3 s each, one after another: the last of 15 waits for the others, and its time from the schedule shows that.
    assert (max(reply.stamps[0] for reply in found.replies) - found.loop.started) / 1e9 > 14 * 0.3


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_of_any_kind(line_end: str) -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.001, line_end=line_end), closed(1, 2)))
    assert [(reply.error, len(reply.stamps)) for reply in found.replies] == [(None, 5)] * 2


def test_a_body_with_a_length_arrives_at_once_and_counts_as_coalesced() -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.001, content_length=True), closed(1, 1)))
    (reply,) = found.replies
    assert (reply.error, len(reply.stamps), reply.events - reply.coalesced) == (None, 5, 1)


def test_events_of_one_write_share_their_stamp() -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.02, events_per_write=3), closed(1, 1), output_tokens=6))
    (reply,) = found.replies
    assert len(reply.stamps) == 6
    assert len(set(reply.stamps)) == 2
    assert reply.coalesced >= 4


def test_several_tokens_an_event_are_told_by_continuous_usage() -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.001, tokens_per_event=3), closed(1, 1), output_tokens=8))
    (reply,) = found.replies
    assert (reply.counts, reply.output_tokens) == ([3, 3, 2], 8)


def test_thoughts_and_tools_are_tokens_and_the_answer_begins_after_the_thoughts() -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.004, reasoning_tokens=3, tool_tokens=1), closed(1, 1)))
    (reply,) = found.replies
    assert len(reply.stamps) == 5
    assert reply.answer == reply.stamps[3]


def test_without_usage_no_count_is_made_up() -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.001, usage=False), closed(1, 1)))
    (reply,) = found.replies
    assert (len(reply.stamps), reply.counts, reply.output_tokens, reply.prompt_tokens) == (5, [], None, None)


def test_cached_prompt_tokens_are_kept() -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.001, cached_share=0.5), closed(1, 1), api="completions"))
    assert found.replies[0].cached_tokens == 5


def test_failures_are_failures_in_our_own_words() -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.001, fail_every=3), closed(1, 6)))
    assert [reply.error for reply in found.replies] == [None, None, "the server answers 500"] * 2


def test_a_cut_stream_is_a_failure_and_the_next_request_goes_on_a_new_connection() -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.001, cut_every=2), closed(1, 4)))
    assert [reply.error for reply in found.replies] == [None, CLOSED_EARLY] * 2
    assert found.server.connections == 2


def test_a_server_that_closes_after_each_answer_is_measured_as_well() -> None:
    found = run(offered(Behaviour(ttft_s=0.005, itl_s=0.001, close_after=True), closed(2, 6)))
    assert [reply.error for reply in found.replies] == [None] * 6
    assert found.server.connections == 6


def test_a_point_ends_early_where_nothing_succeeds() -> None:
    found = run(offered(Behaviour(fail_every=1, fail_status=503), closed(2, 10_000)))
    assert found.loop.given_up
    assert len(found.pairs) < 100


def test_a_request_ends_with_its_time_limit() -> None:
    found = run(offered(Behaviour(ttft_s=5.0), closed(1, 1, timeout_s=0.2)))
    (reply,) = found.replies
    assert reply.error == "no end within 0.2 s"


def test_an_answer_that_is_no_stream_is_named() -> None:
    found = run(offered(Behaviour(fail_every=1, fail_status=200), closed(1, 1)))
    assert found.replies[0].error in (NO_EVENTS, "the server reports an error within the stream")


def test_nothing_listens() -> None:
    link = Link(parse_destination("http://127.0.0.1:9", LOOPBACK), "127.0.0.1")
    with pytest.raises(Unreachable, match="No connection to"):
        asyncio.run(link.open(lambda connection, exchange: None))  # type: ignore[arg-type]


@pytest.mark.parametrize("on_uvloop", [True, False])
def test_tls_with_a_trusted_certificate(tmp_path: Path, on_uvloop: bool) -> None:
    server, authority = certified(tmp_path)
    found = run(offered(QUICK, closed(2, 4), secured=server, authority=authority), on_uvloop)
    assert [(reply.error, len(reply.stamps)) for reply in found.replies] == [(None, 5)] * 4


def test_tls_refuses_a_certificate_that_nobody_vouches_for(tmp_path: Path) -> None:
    server, _ = certified(tmp_path)
    with pytest.raises(Unreachable, match="not trusted"):
        run(offered(QUICK, closed(1, 1), secured=server))
