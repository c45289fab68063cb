"""Where before the first token the added time lies: by clocks, by passes that decoding requests saw, by requests that met no queue."""

import pytest

from app.domain.diagnosis import diagnose_pair
from app.domain.run import Distribution
from tests.domain.diagnosis.measured import rows


@pytest.mark.parametrize(
    ("queue", "server", "place"),
    [
        (0.060, 0.250, "prefill"),  # of 200 ms: queue 50, prompt pass 100, outside 50
        (0.130, 0.250, "queue"),  # 120, 30, 50
        (0.070, 0.190, "client"),  # 60, 30, 110
        (0.080, 0.210, "client"),  # 70, 40, 90: the largest part, if not most of it
    ],
)
def test_of_parts_that_clocks_tell_the_largest(queue: float, server: float, place: str) -> None:
    base = rows(queue_s=Distribution(mean=0.010), server_ttft_s=Distribution(mean=0.100))
    other = rows(ttft=0.330, queue_s=Distribution(mean=queue), server_ttft_s=Distribution(mean=server))
    assert diagnose_pair(base, other).phase == place


def test_where_the_server_says_that_it_is_not_its_queue_no_cause_makes_it_one() -> None:
    # Fewer decode at once than there are clients, as where a pool has no room; the queue stayed at 4 ms.
    base = rows(queue_s=Distribution(mean=0.004))
    fewer = {"ttft": 0.4, "decoding": 9.0, "most": 12.0}
    found = diagnose_pair(base, rows(queue_s=Distribution(mean=0.004), **fewer))  # type: ignore[arg-type]
    assert found.phase == "prefill"
    assert "queue" not in {each.rule.phase for each in found.findings}
    longer = diagnose_pair(base, rows(queue_s=Distribution(mean=0.25), **fewer))  # type: ignore[arg-type]
    assert longer.phase == "queue"
    assert "kv_capacity" in {each.rule.cause for each in longer.findings}


def _chunked(budget: int, held_s: float, ttft: float) -> object:
    held = Distribution(mean=held_s, p95=held_s, n=400)
    return rows(ttft=ttft, stall_s=held, setup={"chunk_budget_tokens": budget}, lone_ttft_s=Distribution())


@pytest.mark.parametrize(("ttft", "place", "share"), [(1.130, "queue", 0.7), (0.530, "prefill", 0.25)])
def test_what_no_passes_of_its_own_can_be_is_waiting(ttft: float, place: str, share: float) -> None:
    # 1,000 tokens at 250 a pass: four passes and the one that it meets, 60 ms each, are 300 ms at most.
    found = diagnose_pair(_chunked(2000, 0.09, 0.130), _chunked(250, 0.06, ttft))  # type: ignore[arg-type]
    assert found.observables["waiting_share_of_change"] == pytest.approx(share, abs=1e-9)
    assert found.phase == place


def test_drafts_lengthen_the_passes_that_a_prompt_is_in() -> None:
    # Alone as before, in a batch 100 ms more: without drafts that is a queue.
    loaded = {"ttft": 0.23, "fixed": 0.01, "itl": 0.016}
    assert diagnose_pair(rows(), rows(**loaded)).phase == "queue"  # type: ignore[arg-type]
    found = diagnose_pair(rows(setup={"speculative": 0.0}), rows(setup={"speculative": 1.0}, **loaded))  # type: ignore[arg-type]
    assert (found.findings[0].rule.id, found.phase) == ("R18", "prefill")


@pytest.mark.parametrize(("lone", "error"), [(0.0012, 0.0001), (0.02, 0.012)])
def test_a_lone_first_token_that_no_pass_can_be_or_that_is_not_told_from_nothing_is_not_known(lone: float, error: float) -> None:
    # Shorter than any step (12 ms), or less than two standard errors.
    quiet = Distribution(mean=0.0156, min=0.012, n=9000)
    unknown = Distribution(mean=lone, p50=lone, std=error, n=50, definition="a fit")
    base = rows(step_quiet_s=quiet)
    found = diagnose_pair(base, rows(ttft=0.23, step_quiet_s=quiet, lone_ttft_s=unknown))
    assert "lone_ttft_change" not in found.observables
    known = diagnose_pair(base, rows(ttft=0.23, step_quiet_s=quiet))
    assert known.observables["lone_ttft_change"] == 0
    assert known.phase == "queue"


def test_a_stream_that_is_gathered_is_no_pool_without_room() -> None:
    gaps = Distribution(mean=0.018, p50=2e-5, max=0.6, n=10_000)
    found = diagnose_pair(rows(), rows(ttft=1.4, itl=0.004, decoding=3.0, most=6.0, chunk_gap_s=gaps))
    assert found.phase == "transport"
    assert "kv_capacity" not in {each.rule.cause for each in found.findings}


@pytest.mark.parametrize(
    ("first", "phase"),
    [
        (0.1350, "decode"),  # 3.8 % and 5 ms, beside 99 x 8 ms
        (0.1375, "both"),  # 5.8 %: more than half again the noise
    ],
)
def test_what_hardly_moved_beside_the_other_phase_did_not(first: float, phase: str) -> None:
    assert diagnose_pair(rows(), rows(fixed=0.02, itl=0.026, ttft=first)).phase == phase


def test_what_hardly_moved_counts_where_it_is_a_part_of_the_added_time() -> None:
    # 4 % of each phase: 5 ms beside 99 x 0.72 = 71 ms are 7 %; 53 ms beside them are not.
    assert diagnose_pair(rows(), rows(ttft=0.1353, itl=0.01872)).phase == "decode"
    assert diagnose_pair(rows(ttft=1.3), rows(ttft=1.353, itl=0.01872)).phase == "both"


@pytest.mark.parametrize(("at_once", "waits"), [(1.0, False), (8.0, True)])
def test_one_request_at_a_time_waits_for_nobody(at_once: float, waits: bool) -> None:
    # 150 ms more before every first token; how many clients there were is not said, and too few requests met no queue to tell.
    alone = {"decoding": at_once, "most": at_once, "stalls": (0, 0.0), "lone_ttft_s": Distribution()}
    found = diagnose_pair(rows(**alone), rows(ttft=0.28, **alone))  # type: ignore[arg-type]
    assert ("R02" in {each.rule.id for each in found.findings}) is waits
    assert found.phase == ("queue" if waits else "prefill")
