"""Events of an answer: which are tokens, whose moment they have, and that it does not matter how the bytes were cut."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.worker.load.events import IN_STREAM, NO_EVENTS, NO_TOKENS, NOT_JSON, Reply, read_reply
from app.worker.load.exchange import Exchange


def reply(*reads: bytes, status: int = 200, error: str | None = None) -> Reply:
    """What these reads, stamped 1, 2, 3 …, are as an answer."""
    return read_reply(Exchange(b"", status=status, stamps=list(range(1, len(reads) + 1)), pieces=list(reads), error=error))


def event(choice: dict[str, Any] | None, usage: dict[str, Any] | None = None) -> bytes:
    whole: dict[str, Any] = {"choices": [] if choice is None else [choice]}
    if usage is not None:
        whole["usage"] = usage
    return b"data: " + json.dumps(whole).encode() + b"\n\n"


def delta(**values: Any) -> dict[str, Any]:
    return {"index": 0, "delta": values, "finish_reason": None}


DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("choice", "tokens", "answers"),
    [
        (delta(role="assistant", content=""), 0, 0),
        (delta(role="assistant"), 0, 0),
        (delta(role="assistant", content="Hi"), 1, 1),
        (delta(content="a"), 1, 1),
        (delta(content=""), 0, 0),
        (delta(content=None), 0, 0),
        (delta(reasoning_content="hm"), 1, 0),
        (delta(reasoning="hm"), 1, 0),
        (delta(reasoning_content="", content=None), 0, 0),
        (delta(tool_calls=[{"function": {"arguments": "{"}}]), 1, 1),
        (delta(tool_calls=[]), 0, 0),
        (delta(refusal="no"), 1, 1),
        ({"index": 0, "text": "a"}, 1, 1),
        ({"index": 0, "text": ""}, 0, 0),
        ({"index": 0, "text": "", "finish_reason": "stop"}, 0, 0),
        ({"index": 0, "delta": {}, "finish_reason": "length"}, 0, 0),
    ],
)
def test_what_is_a_token(choice: dict[str, Any], tokens: int, answers: int) -> None:
    found = reply(event(choice), event(delta(content="last")), DONE)
    assert found.stamps == ([1, 2] if tokens else [2])
    assert found.answer == (1 if answers else 2)


def test_usage_at_the_end_is_a_count_and_no_token() -> None:
    """Both ways in which servers send it: with no choice, and on the chunk that says why the answer ended."""
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
    apart = reply(event(delta(content="a")), event(delta(content="b")), event(None, usage), DONE)
    together = reply(event(delta(content="a")), event(delta(content="b")), event({**delta(), "finish_reason": "stop"}, usage), DONE)
    for found in (apart, together):
        assert (found.stamps, found.counts, found.prompt_tokens, found.output_tokens, found.cached_tokens) == ([1, 2], [], 7, 2, 3)


def test_text_and_the_final_usage_in_one_read() -> None:
    found = reply(event(delta(content="a")) + event(None, {"prompt_tokens": 7, "completion_tokens": 1}) + DONE)
    assert (found.error, found.stamps, found.output_tokens, found.coalesced) == (None, [1], 1, 1)


def test_continuous_usage_tells_tokens_that_have_no_text_yet() -> None:
    def so_far(made: int) -> dict[str, int]:
        return {"prompt_tokens": 5, "completion_tokens": made}

    found = reply(
        event(delta(role="assistant", content=""), so_far(0)),
        event(delta(content="a"), so_far(1)),
        event(delta(content=""), so_far(2)),
        event(delta(content="bcd"), so_far(5)),
        event(None, so_far(5)),
    )
    assert (found.stamps, found.counts, found.output_tokens) == ([2, 3, 4], [1, 1, 3], 5)


def test_events_of_one_read_share_its_moment_and_an_event_has_that_of_its_last_byte() -> None:
    first, second, third = (event(delta(content=word)) for word in "abc")
    found = reply(first + second + third[:9], third[9:] + DONE)
    assert (found.stamps, found.events, found.coalesced) == ([1, 1, 2], 3, 1)


def test_comments_and_other_fields_are_no_events() -> None:
    found = reply(b": keep-alive\n\n", b"event: message\nid: 4\n" + event(delta(content="a")), b"retry: 10\n\n" + DONE)
    assert (found.error, found.stamps, found.events) == (None, [2], 1)


def test_data_over_several_lines_is_one_event() -> None:
    found = reply(b'data: {"choices": [{"index": 0,\ndata:"text": "a"}]}\n\n')
    assert (found.error, found.stamps) == (None, [1])


def test_a_last_event_without_its_empty_line_counts() -> None:
    assert reply(event(delta(content="a")).rstrip()).stamps == [1]


@pytest.mark.parametrize(
    ("reads", "status", "error"),
    [
        ((b'{"choices": [{"message": {"content": "whole"}}]}',), 200, NO_EVENTS),
        ((b"",), 200, NO_EVENTS),
        ((b"<html>",), 502, "the server answers 502"),
        ((event(delta(role="assistant")), DONE), 200, NO_TOKENS),
        ((b"data: {half\n\n",), 200, NOT_JSON),
        ((event(delta(content="a")), b'data: {"error": {"message": "secret"}}\n\n'), 200, IN_STREAM),
        ((b"",), 204, "the server answers 204"),
    ],
)
def test_failures_in_our_own_words(reads: tuple[bytes, ...], status: int, error: str) -> None:
    assert reply(*reads, status=status).error == error


@given(st.data(), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_cuts_between_reads_change_no_event(data: st.DataObject, line_end: bytes) -> None:
    whole = b"".join([event(delta(role="assistant")), *(event(delta(content=word)) for word in ("ä", "b", "c\\n")), DONE])
    whole = whole.replace(b"\n", line_end)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=12)))
    found = reply(*(whole[start:end] for start, end in pairwise([0, *cuts, len(whole)])))
    assert (found.error, len(found.stamps), found.events, found.role_only) == (None, 3, 4, 1)
    assert found.stamps == sorted(found.stamps)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_a_fault(noise: bytes) -> None:
    assert isinstance(reply(b"data: " + noise + b"\n\n", noise), Reply)


KEYS = st.sampled_from(["choices", "delta", "usage", "content", "completion_tokens", "prompt_tokens_details", "index"])
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)


@given(st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)))
def test_any_json_is_read_without_a_fault(value: Any) -> None:
    assert isinstance(reply(b"data: " + json.dumps({"choices": value, "usage": value}).encode() + b"\n\n"), Reply)


TEXTS = st.text(max_size=4) | st.sampled_from(['"', "\\", '"}', '"}}]}', "\\u0022", "", "a", 'x","content":"y'])
USUAL = {"id": "c", "object": "chunk", "created": 1}


@given(st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=12), st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
def test_reading_alike_events_without_parsing_changes_nothing(
    texts: list[tuple[str, bool]], separators: tuple[str, str], chat: bool
) -> None:
    """Events that are alike around their text are not parsed; each is counted as it would be alone."""
    reads = []
    for text, ends in texts:
        said: dict[str, Any] = {"delta": {"content": text}} if chat else {"text": text}
        whole = {**USUAL, "choices": [{"index": 0, **said, "finish_reason": "stop" if ends else None}]}
        reads.append(b"data: " + json.dumps(whole, separators=separators, ensure_ascii=False).encode("utf-8", "replace") + b"\n\n")
    found = reply(*reads)
    assert found.stamps == [place for place, (text, _) in enumerate(texts, 1) if text]
    assert found.events == len(texts)
