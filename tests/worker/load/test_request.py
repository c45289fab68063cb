"""Bodies: what they ask for, what is left out after a refusal, prompts that are unique, keys that go into one header only."""

import json
from typing import Any

import numpy as np
import pytest

from app.domain.addresses import parse_destination
from app.domain.errors import InvalidRequest
from app.worker.load.arrivals import poisson, trace
from app.worker.load.prompts import Prompts, TokensPerWord, tokens_per_word
from app.worker.load.request import OPTIONAL, Asking, refused_parameters, scrape_request

HERE = parse_destination("http://gpu.example:8000", ())


def parts(data: bytes) -> tuple[str, dict[str, str], Any]:
    """Request line, headers, body; the body is as long as its header says."""
    head, _, body = data.partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    named = dict(header.split(": ", 1) for header in headers)
    assert int(named["Content-Length"]) == len(body)
    return line, named, json.loads(body)


def test_a_body_asks_for_its_length_and_for_usage() -> None:
    line, headers, body = parts(Asking(HERE, 'a "quoted" model', "chat", authorization="Bearer k").template(30).filled(b"two words"))
    assert line == "POST /v1/chat/completions HTTP/1.1"
    assert (headers["Host"], headers["Authorization"]) == ("gpu.example:8000", "Bearer k")
    assert body == {
        "model": 'a "quoted" model',
        "stream": True,
        "max_tokens": 30,
        "messages": [{"role": "user", "content": "two words"}],
        "ignore_eos": True,
        "min_tokens": 30,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def test_what_was_refused_is_left_out() -> None:
    asking = Asking(HERE, "m").giving_up(frozenset({"ignore_eos", "continuous_usage_stats"}))
    line, headers, body = parts(asking.template(3).filled(b"word"))
    assert line == "POST /v1/completions HTTP/1.1"
    assert "Authorization" not in headers
    assert body == {
        "model": "m",
        "stream": True,
        "max_tokens": 3,
        "prompt": "word",
        "min_tokens": 3,
        "stream_options": {"include_usage": True},
    }
    assert parts(asking.giving_up(frozenset({"stream_options"})).template(3).filled(b"w"))[2].keys() == {
        "model", "stream", "max_tokens", "prompt", "min_tokens",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (422, b"Unexpected fields: {'ignore_eos', 'min_tokens'}", {"ignore_eos", "min_tokens"}),
        (400, b'{"error": "bad request"}', set(OPTIONAL)),
        (400, b"stream_options is not supported", {"stream_options"}),
        (500, b"ignore_eos", set()),
        (401, b"", set()),
        (200, b"", set()),
    ],
)
def test_a_refusal_names_what_to_leave_out(status: int, body: bytes, expected: set[str]) -> None:
    assert refused_parameters(status, body, frozenset()) == expected


def test_nothing_is_given_up_twice() -> None:
    assert refused_parameters(400, b"", frozenset(OPTIONAL)) == frozenset()


@pytest.mark.parametrize(
    ("path", "api"),
    [("", "/v1/completions"), ("/", "/v1/completions"), ("/v1/", "/v1/completions"), ("/team/openai", "/team/openai/completions")],
)
def test_the_api_is_found_below_the_path_of_the_destination(path: str, api: str) -> None:
    asking = Asking(parse_destination(f"http://gpu.example:8000{path}"), "m", authorization="Bearer k")
    assert asking.path == api
    assert scrape_request(asking, "/metrics").startswith(b"GET /metrics HTTP/1.1\r\nHost: gpu.example:8000\r\n")
    assert b"Authorization: Bearer k\r\n" in scrape_request(asking, "/metrics")


@pytest.mark.parametrize("key", ["a\r\nX-Other: b", "a\nb", "schlüssel", "a\x00"])
def test_a_key_that_no_header_holds_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Asking(HERE, "m", authorization=f"Bearer {key}").template(3)
    assert key not in str(refused.value)


def test_a_key_is_in_no_representation() -> None:
    assert "sk-canary" not in repr(Asking(HERE, "m", authorization="Bearer sk-canary"))


def test_prompts_are_unique_from_their_first_words_and_reproducible() -> None:
    one, other = Prompts(7, 0), Prompts(7, 1)
    made = [source.next(64) for source in (one, other) for _ in range(200)]
    assert len({prompt[:40] for prompt in made}) == len(made)
    assert all(len(prompt.split()) == 64 for prompt in made)
    assert Prompts(7, 0).next(64) == made[0]
    assert json.loads(b'"' + made[0] + b'"') == made[0].decode()


def test_tokens_of_words_follow_from_two_probes() -> None:
    found = tokens_per_word((16, 29), (144, 189))
    assert found == TokensPerWord(9.0, 1.25)
    assert found is not None
    assert found.words(509) == 400
    assert found.words(1) == 1
    assert tokens_per_word((16, 20), (144, 20)) is None


def test_poisson_arrivals_have_their_rate_and_exponential_gaps() -> None:
    times = np.array(poisson(200.0, 50.0, 1, seed=3, stream=1))
    gaps = np.diff(times)
    assert times[-1] <= 50.0
    assert times.size == pytest.approx(10_000, rel=0.05)
    assert float(gaps.std() / gaps.mean()) == pytest.approx(1.0, abs=0.05)
    assert poisson(200.0, 50.0, 1, seed=3, stream=1) == tuple(times.tolist())
    assert len(poisson(2.0, 1.0, 40, seed=3, stream=1)) == 40
    with pytest.raises(InvalidRequest, match="shorten"):
        poisson(100_000.0, 86_400.0, 1, 0, 0)


def test_a_trace_starts_at_zero_and_never_runs_backwards() -> None:
    assert trace([5.0, 5.5, 7.0]) == (0.0, 0.5, 2.0)
    with pytest.raises(InvalidRequest):
        trace([1.0, 0.5])
