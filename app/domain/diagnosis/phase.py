"""Which part of a request a diagnosis is about.

Of a pair: the phases that changed by more than the noise. Where one got slower and the other faster it is the slower one that is asked
about; the sentence names both. A decided cause then says where inside the first token the time lies: queue, client or transport.
"""

from collections.abc import Sequence

from app.domain.diagnosis.changes import Seen
from app.domain.diagnosis.judging import Finding
from app.domain.diagnosis.observables import Observed
from app.domain.diagnosis.subject import Subject
from app.domain.diagnosis.thresholds import HARDLY_ANY, HARDLY_MORE, LOAD_ONLY, MOSTLY, NOISE, SAME_KIND
from app.domain.diagnosis.vocabulary import Phase

_INSIDE_FIRST_TOKEN = ("queue", "client", "transport")
_OUTSIDE = ("outside_server_share_of_change", "client_send_share_of_change")


def pair_phase(seen: Observed, findings: Sequence[Finding]) -> Phase:
    """The phase that moved between two deployments."""
    figures = seen.figures
    prefill, decode = figures.get("ttft_change", 0.0), figures.get("itl_change", 0.0)
    noises = figures.get("ttft_change_noise", NOISE), figures.get("itl_change_noise", NOISE)
    moved_first, moved_step = abs(prefill) > noises[0], abs(decode) > noises[1]
    if moved_first and moved_step:
        added = abs(figures.get("ttft_added_s", 0.0)), abs(figures.get("decode_added_s", 0.0))
        moved_first = not _next_to_nothing(abs(prefill) / noises[0], *added)
        moved_step = not _next_to_nothing(abs(decode) / noises[1], *reversed(added))
    if moved_first and moved_step and prefill * decode < 0:
        moved_first, moved_step = prefill > 0, decode > 0
    if not moved_first:
        return "decode" if moved_step else _cold(findings)
    if moved_step:
        return "both"
    return _place_of_first_token(figures, findings)


def _next_to_nothing(in_noises: float, its_s: float, others_s: float) -> bool:
    """Whether a phase hardly moved beside the other: by not much more than the noise, and by a small part of the other's time."""
    return in_noises < HARDLY_MORE and its_s < HARDLY_ANY * others_s


def _cold(findings: Sequence[Finding]) -> Phase:
    """Where only requests that met a cold engine moved, what is compared without them stands still, and yet the first tokens moved."""
    return "prefill" if any(found.rule.id == "R06" for found in findings) else "none"


def _place_of_first_token(figures: Seen, findings: Sequence[Finding]) -> Phase:
    """Where before the first token the time lies: by the server's clocks, by the stream, by requests that met no queue, by the cause."""
    if findings and findings[0].rule.phase == "transport":
        return "transport"
    if findings and findings[0].rule.id == "R06":
        # The engine was cold, whatever the mean of all requests says of clocks.
        return "prefill"
    clocked = _by_clocks(figures)
    if clocked is not None:
        return clocked
    if figures.get("waiting_share_of_change", 0.0) > MOSTLY:
        return "queue"
    named = _within_first_token(findings)
    if "queue_share_of_change" in figures:
        # The server's own clock says that it is not its queue.
        return "prefill" if named in (None, "queue") else named
    if "lone_ttft_change" in figures:
        return _by_lone_requests(figures, findings)
    if figures.get("decoding_change", 0.0) < -SAME_KIND and figures.get("room_left_other", 0.0) > 0:
        # Fewer decode at once, not all that could ever do, and no request finds the server without a queue.
        return "queue"
    return named or "prefill"


def _by_clocks(figures: Seen) -> Phase | None:
    """Where clocks say that the added time lies: in the part that has most of it; None where none says so of the queue or the client."""
    queue = figures.get("queue_share_of_change")
    outside = max((figures[name] for name in _OUTSIDE if name in figures), default=None)
    if queue is not None and outside is not None:
        parts: dict[Phase, float] = {"prefill": 1 - queue - outside, "client": outside, "queue": queue}
        return max(parts, key=lambda part: parts[part])
    if queue is not None and queue > MOSTLY:
        return "queue"
    return "client" if outside is not None and outside > MOSTLY else None


def _by_lone_requests(figures: Seen, findings: Sequence[Finding]) -> Phase:
    """A queue where requests that met none gained little of what all gained; where they gained a part of it, the first cause says.

    A cause that makes every pass of a large batch longer leaves lone requests as they were as well, and says of itself where its time lies.
    """
    added = figures.get("ttft_added_s", 0.0)
    lone = figures["lone_ttft_added_s"] / added if added > 0 else 1.0
    if findings and findings[0].rule.place is not None:
        return findings[0].rule.place
    if lone < LOAD_ONLY:
        return "queue"
    named = findings[0].rule.phase if findings else None
    if lone < MOSTLY:
        return named if named in ("prefill", "client") else "queue"
    place = _within_first_token(findings)
    return "prefill" if place is None or place == "queue" else place


def _within_first_token(findings: Sequence[Finding]) -> Phase | None:
    """The place that the first-ranked cause names, where its own evidence for that place is there."""
    first = next((found for found in findings if found.rule.phase in ("prefill", *_INSIDE_FIRST_TOKEN)), None)
    if first is None or first.rule.phase not in _INSIDE_FIRST_TOKEN or first.signs <= len(first.rule.pattern) < first.of:
        return None
    return first.rule.phase


def single_phase(subject: Subject, seen: Observed, findings: Sequence[Finding]) -> Phase:
    """Where the time of one deployment's requests lies: the first finding's place, else the larger phase of those known."""
    if findings and findings[0].rule.phase != "none":
        return findings[0].rule.phase
    figures, workload = seen.figures, subject.runs[-1].workload
    first, step = figures.get("first_token_s"), figures.get("step_s")
    if first is None or step is None:
        return "prefill" if first is not None else "decode" if step is not None else "none"
    decode = step * max((workload.output_tokens_mean or 2.0) - 1, 1.0)
    return "prefill" if first > decode else "decode"
