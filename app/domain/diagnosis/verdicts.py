"""One word for the whole: of a single run its distance to the floor, of a pair the kind of move. None where no word fits."""

from app.domain.diagnosis.changes import Seen
from app.domain.diagnosis.thresholds import AT_ROOFLINE, FITS, GOOD, NOISE, ORDINARY, PROPORTIONAL, QUADRATIC, SHORT_FLOOR_S
from app.domain.diagnosis.vocabulary import Verdict


def decode_verdict(seen: Seen) -> Verdict | None:
    """A decode step by its share of the attainable rate for the bytes really read.

    Below `ordinary` it is overhead-bound when the missing time is a constant of each step: the floor is shorter than what launches cost,
    or the same time is missing at two loads.
    """
    share = seen.get("share_of_floor")
    if share is None:
        return None
    if share >= AT_ROOFLINE:
        return "at_roofline"
    if share >= GOOD:
        return "good"
    if share >= ORDINARY:
        return "ordinary"
    return "overhead_bound" if seen["floor_s"] < SHORT_FLOOR_S else "far_below"


def prefill_verdict(seen: Seen) -> Verdict | None:
    """A prompt pass by its share of the achieved FLOP/s, on the same scale; a curve over the prompt says why it grows.

    A TTFT holds more than the pass, so the share is a bound from below: it can say that the pass is good, not that it is bad.
    """
    if seen.get("quadratic_share", 0.0) > QUADRATIC and seen["fit_error"] < FITS:
        return "quadratic_attention"
    share = seen.get("prefill_share_of_achieved")
    if share is None or (share < ORDINARY and seen.get("prefill_from_ttft")):
        return None
    return "at_roofline" if share >= AT_ROOFLINE else "good" if share >= GOOD else "ordinary" if share >= ORDINARY else "far_below"


def single_verdict(seen: Seen) -> Verdict | None:
    """One word for a single deployment: that of the phase that is known; of both, whether the prompt's arithmetic is what is left."""
    decode, prefill = decode_verdict(seen), prefill_verdict(seen)
    if prefill == "quadratic_attention" or decode is None:
        return prefill
    if decode in ("at_roofline", "good") and prefill in ("at_roofline", "good", "ordinary"):
        return "decode_good_prefill_compute_limited"
    return decode


def pair_verdict(seen: Seen) -> Verdict | None:
    """One word for a difference."""
    noise = seen.get("noise", NOISE)
    if seen.get("output_length_moved") and seen.get("output_rate_change", 0.0) > noise > seen.get("request_rate_change", 0.0):
        return "faster_per_token"
    explained = seen.get("measured_over_predicted")
    if explained is not None and abs(seen["bytes_change"]) > noise and GOOD <= explained <= PROPORTIONAL[1]:
        return "consistent_with_bytes"
    first, step, tail = (seen.get(name, 0.0) for name in ("ttft_change", "itl_change", "itl_tail_change"))
    if first * step < 0 and min(abs(first), abs(step)) > noise:
        if abs(seen.get("total_change", 1.0)) <= noise:
            return "opposite_moves_cancel"
        return "prefill_worse_decode_better" if first > 0 else "trade_off"
    if (first > noise and tail < -noise) or (first < -noise and tail > noise):
        return "trade_off"
    return None
