"""The finding of a page in one plain sentence, from numbers alone."""

from app.domain.comparison import Comparison, decode_time_s, first_token_time_s
from app.domain.diagnosis import Diagnosis
from app.domain.quantity import factor, percent, seconds
from app.domain.run import Run
from app.services.assessment import Assessment

_FACTOR_FROM = 2.0
_VERDICTS = {
    "at_roofline": "at the roofline",
    "good": "good",
    "ordinary": "ordinary",
    "overhead_bound": "overhead-bound",
    "far_below": "far below the roofline",
}
_PLACES = {
    "queue": "Requests wait longer before their prompt is read",
    "client": "The added time lies on the client's side of the server",
    "transport": "The added time lies between server and client",
}


def run_sentence(run: Run, assessment: Assessment) -> str:
    """The headline of a run: distance to the limit where it is known, else the two phases' times, else why there are none."""
    if run.requests.completed == 0:
        sent = run.requests.sent or run.requests.failed
        return f"No request was completed{f' of {sent:,}' if sent else ''}: there is nothing to measure here"
    shares = []
    if assessment.mbu is not None:
        shares.append(f"Decode runs at {percent(assessment.mbu)} of the bandwidth floor")
    if assessment.mfu is not None:
        more = " or more" if assessment.mfu_from_ttft else ""
        shares.append(f"prefill at {percent(assessment.mfu)}{more} of the peak")
    if shares:
        text = "; ".join(shares)
        return text[0].upper() + text[1:]
    first, step = first_token_time_s(run), decode_time_s(run)
    if first is not None and step is not None:
        return f"{seconds(first)} to the first token, then {seconds(step)} for each further one"
    if first is not None:
        return f"{seconds(first)} to the first token; the file has no time per output token"
    if step is not None:
        return f"{seconds(step)} for each output token; the file has no time to the first"
    return "This file has rates but no latencies of its phases"


def comparison_sentence(comparison: Comparison, found: Diagnosis | None = None) -> str:
    """What moved between two runs, phase by phase; or why they may not be compared. `found` knows phases that only rates give."""
    if not comparison.comparable.ok:
        return f"Not comparable: {comparison.comparable.reasons[0][0].lower()}{comparison.comparable.reasons[0][1:]}"
    base, other = comparison.base.run, comparison.other.run
    prefill = _change(first_token_time_s(base), first_token_time_s(other))
    decode = _change(decode_time_s(base), decode_time_s(other))
    if prefill is None and decode is None:
        return "Neither run has the latencies of its phases, so nothing can be said about them."
    moved = comparison.phase
    if found is not None and prefill is not None and moved != "both" and _inside_or_outside(found):
        return f"The first token got {speed(prefill)}, at the server or before it: the files do not tell; {_decode_still(decode)}."
    if found is not None and found.phase in _PLACES:
        return f"{_PLACES[found.phase]}, {_both_parts(prefill, decode)}."
    if moved == "none":
        return f"Nothing moved beyond the noise: {_both_parts(prefill, decode)}."
    sentence = _moved_sentence(comparison, prefill, decode)
    if comparison.break_even_output_tokens is not None and moved == "both":
        sentence += f"; break-even at {comparison.break_even_output_tokens:,} output tokens"
    return sentence + "."


def because(found: Diagnosis) -> tuple[str, ...]:
    """The reason in one sentence: what would decide where causes are not told apart, else the first cause; or nothing."""
    if found.undetermined:
        first = found.undetermined[0]
        causes = " and ".join(cause.replace("_", " ") for cause in first.between)
        return (f"Undetermined between {causes}: {first.ask} would tell.",)
    if not found.findings:
        return ()
    first_found = found.findings[0]
    sums = f" ({first_found.sums[0]})" if first_found.sums else ""
    likely = "" if first_found.decided else "Most likely: "
    return (f"{likely}{first_found.rule.title}{sums}.",)


def verdict_words(found: Diagnosis) -> tuple[str, ...]:
    """The verdict on each phase that has one, with the share it rests on."""
    seen = found.observables
    parts = []
    if found.decode_verdict is not None:
        word = _VERDICTS[found.decode_verdict]
        parts.append(f"Decode is {word}: {percent(seen['share_of_floor'])} of what its bytes allow at the achieved rate.")
    if found.prefill_verdict is not None and "prefill_share_of_achieved" in seen:
        word = _VERDICTS[found.prefill_verdict]
        more = " or more" if seen.get("prefill_from_ttft") else ""
        parts.append(f"Prefill is {word}: {percent(seen['prefill_share_of_achieved'])}{more} of the achieved FLOP/s.")
    return tuple(parts)


def diagnosis_sentence(found: Diagnosis) -> str:
    """The finding of one run: its verdicts, then the reason."""
    return " ".join((*verdict_words(found), *because(found))) or "No rule of the decision table applies to what this run says."


def _moved_sentence(comparison: Comparison, prefill: float | None, decode: float | None) -> str:
    if comparison.phase == "queue":
        return "The queue moved: TTFT changed with the time spent waiting, the prompt pass did not"
    if comparison.phase == "both" and prefill is not None and decode is not None:
        return f"Prefill got {speed(prefill)}, decode {speed(decode)}"
    if comparison.phase == "prefill" and prefill is not None:
        return f"Prefill got {speed(prefill)}; {_decode_still(decode)}"
    if decode is not None:
        still = "prefill did not move" if prefill is not None else "prefill is not known"
        return f"Decode got {speed(decode)} per token; {still}"
    return "One phase moved"


def _decode_still(decode: float | None) -> str:
    return "decode did not move" if decode is not None else "decode is not known"


def _inside_or_outside(found: Diagnosis) -> bool:
    """Whether a cause outside the server and one inside it are not told apart."""
    between = {name for each in found.undetermined for name in each.between}
    places = {each.rule.phase for each in found.findings if (each.rule.cause or each.rule.title) in between}
    return found.phase in ("prefill", "client") and {"client", "prefill"} <= places


def _both_parts(prefill: float | None, decode: float | None) -> str:
    parts = [f"{name} {_signed(ratio)}" for name, ratio in (("prefill", prefill), ("decode", decode)) if ratio is not None]
    return ", ".join(parts)


def _signed(ratio: float) -> str:
    change = ratio - 1
    return f"{'+' if change >= 0 else '−'}{percent(abs(change))}"


def _change(base: float | None, other: float | None) -> float | None:
    return other / base if base and other is not None else None


def speed(ratio: float) -> str:
    """A time ratio in words: 1.18 is "18 % slower", 3.1 "3.1× slower" (3.1 times the time), 0.71 "29 % faster" (less time)."""
    if ratio >= _FACTOR_FROM:
        return f"{factor(ratio)} slower"
    return f"{percent(ratio - 1)} slower" if ratio >= 1 else f"{percent(1 - ratio)} faster"
