"""The answer as events: what each read carried, which of it are tokens, what the server counted. Read after the clock was.

A read may hold a part of an event, one, or several. An event is there with the read that completes it; several that one read completes
share its moment and all but the first count as coalesced. Tokens are content, reasoning and tool deltas; a chunk that only names the
role, or only holds usage, is none. Counts come from the server's usage and are never guessed from text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from app.worker.load.connection import refused_status
from app.worker.load.exchange import Exchange

_THOUGHT = ("reasoning_content", "reasoning")
_SAID = ("content", "refusal")
_STEP = 50
NO_EVENTS = "the answer is no stream of events: the server may not support streaming here"
NOT_JSON = "an event of the stream is no JSON"
IN_STREAM = "the server reports an error within the stream"
NO_TOKENS = "the answer ended without a token"


@dataclass(slots=True)
class Reply:
    """What an answer held, in nanoseconds and counts; `stamps` are those of events with tokens, `counts` their tokens where told.

    `answer` is the first token that is neither role nor thought. `events` counts every event, `coalesced` those that shared a read.
    """

    stamps: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    answer: int | None = None
    events: int = 0
    coalesced: int = 0
    role_only: int = 0
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    finish: str | None = None
    error: str | None = None


def read_reply(exchange: Exchange) -> Reply:
    """What came back of a request that has ended. The pieces of its body are let go."""
    reply = Reply()
    for _ in reading(exchange, reply):
        pass
    return reply


def reading(exchange: Exchange, reply: Reply) -> Iterator[None]:
    """The same in steps of some events each, for a reader that must not keep its loop busy; `reply` is filled in."""
    reply.error = exchange.error or refused_status(exchange.status)
    if reply.error is None:
        yield from _read(exchange, reply)
    exchange.stamps, exchange.pieces = [], []


def _read(exchange: Exchange, reply: Reply) -> Iterator[None]:
    last = 0
    around: tuple[bytes, bytes] | None = None
    for stamp, payload in _payloads(exchange):
        reply.events += 1
        if reply.events % _STEP == 0:
            yield
        if stamp == last:
            reply.coalesced += 1
        last = stamp
        if around is not None and _is_alike(payload, around):
            reply.stamps.append(stamp)
            continue
        try:
            event = from_json(payload)
        except ValueError:
            reply.error = NOT_JSON
            return
        if not isinstance(event, dict):
            continue
        if event.get("error"):
            reply.error = IN_STREAM
            return
        _take(event, stamp, reply)
        if reply.answer == stamp:
            around = _around_text(payload, event)
    if reply.error is None and not reply.stamps:
        reply.error = NO_TOKENS if reply.events else NO_EVENTS


def _payloads(exchange: Exchange) -> Iterator[tuple[int, bytes]]:
    """Each event's data with the moment of the read that completed it; comments and the closing [DONE] are none."""
    rest = b""
    for stamp, piece in zip(exchange.stamps, exchange.pieces, strict=True):
        if not rest and piece.startswith(b"data: {") and piece.endswith(b"}\n\n") and piece.count(b"\n") == 2:
            # What nearly every read is: one event, whole.
            yield stamp, piece[6:-2]
            continue
        data = rest + piece if rest else piece
        if b"\r" in data:
            # A carriage return at the end may be half of a line end.
            held = data.endswith(b"\r")
            data = (data[:-1] if held else data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if held:
                data += b"\r"
        *blocks, rest = data.split(b"\n\n")
        for block in blocks:
            if (payload := _data(block)) is not None:
                yield stamp, payload
    if (payload := _data(rest.strip())) is not None and exchange.stamps:
        yield exchange.stamps[-1], payload


def _around_text(payload: bytes, event: dict[str, Any]) -> tuple[bytes, bytes] | None:
    """What stands before and after the text of an event that carries nothing else of interest; None where that is not certain.

    Another event with the same bytes around a string without escapes is the same JSON with another text: it need not be parsed.
    """
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    if not isinstance(choice, dict):
        return None
    holder, key = (choice["delta"], "content") if isinstance(choice.get("delta"), dict) else (choice, "text")
    text = holder.get(key)
    if event.get("usage") is not None or choice.get("finish_reason") is not None or not isinstance(text, str) or not text:
        return None
    for colon in (b'":"', b'": "'):
        marker = b'"' + key.encode() + colon
        place = payload.find(marker)
        after = payload[place + len(marker) :]
        encoded = text.encode("utf-8", "replace") + b'"'
        if place >= 0 and after.startswith(encoded) and payload.count(b'"' + key.encode() + b'"') == 1:
            return payload[: place + len(marker)], after[len(encoded) - 1 :]
    return None


def _is_alike(payload: bytes, around: tuple[bytes, bytes]) -> bool:
    before, after = around
    if not (payload.startswith(before) and payload.endswith(after)):
        return False
    text = payload[len(before) : -len(after)]
    return bool(text) and b'"' not in text and b"\\" not in text and len(payload) > len(before) + len(after)


def _data(block: bytes) -> bytes | None:
    if block.startswith(b"data: ") and b"\n" not in block:
        payload = block[6:]
    else:
        lines = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
        payload = b"\n".join(lines)
    payload = payload.strip()
    return payload if payload and payload != b"[DONE]" else None


def _take(event: dict[str, Any], stamp: int, reply: Reply) -> None:
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    usage = event.get("usage")
    rise = _take_usage(usage, reply) if isinstance(usage, dict) else None
    if choice is None:
        return
    if isinstance(choice.get("finish_reason"), str):
        reply.finish = choice["finish_reason"]
    token, answer = _carries(choice)
    names_role = isinstance(choice.get("delta"), dict) and bool(choice["delta"].get("role"))
    # Usage that came with every token so far is continuous; a total that only comes with the last chunk is no token of its own.
    continuous = rise is not None and len(reply.counts) == len(reply.stamps)
    if token or (continuous and rise and not names_role):
        reply.stamps.append(stamp)
        if continuous and rise is not None:
            reply.counts.append(rise)
        if answer and reply.answer is None:
            reply.answer = stamp
    elif names_role:
        reply.role_only += 1


def _carries(choice: dict[str, Any]) -> tuple[bool, bool]:
    """Whether a choice carries tokens, and whether these are the answer and not thought."""
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        text = choice.get("text")
        found = isinstance(text, str) and bool(text)
        return found, found
    if any(isinstance(delta.get(key), str) and delta[key] for key in _SAID) or delta.get("tool_calls") or delta.get("function_call"):
        return True, True
    return any(isinstance(delta.get(key), str) and delta[key] for key in _THOUGHT), False


def _take_usage(usage: dict[str, Any], reply: Reply) -> int | None:
    """Keep the server's counts; how many output tokens this event added to them, None where it does not say."""
    before = reply.output_tokens or 0
    rise = None
    if (output := _count(usage.get("completion_tokens"))) is not None:
        rise = max(output - before, 0)
        reply.output_tokens = output
    if (prompt := _count(usage.get("prompt_tokens"))) is not None:
        reply.prompt_tokens = prompt
    details = usage.get("prompt_tokens_details")
    if isinstance(details, dict) and (cached := _count(details.get("cached_tokens"))) is not None:
        reply.cached_tokens = cached
    return rise


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
