"""The parts of a difference as JSON-ready data, and in plain words: what moved, and what the model gives to each thing that differs."""

from typing import Any

from app.domain.attribution import ROUNDING_S, Attribution, AttributionPart, FactorShare
from app.domain.quantity import change_seconds

# A part that carries less of all movement than this is left to the table.
_WORTH_SAYING = 0.1
_MOST_NAMED = 3


def attribution_json(found: Attribution | None) -> dict[str, Any] | None:
    """The attribution of the contract; None where the change cannot be split."""
    if found is None:
        return None
    return {
        "total_s": found.total_s,
        "base_total_s": found.base_total_s,
        "other_total_s": found.other_total_s,
        "halves": [
            {
                "phase": half.phase,
                "base_s": half.base_s,
                "other_s": half.other_s,
                "delta_s": half.delta_s,
                "workload_s": half.workload_s,
                "efficiency_s": half.efficiency_s,
                "unpriced_s": half.unpriced_s,
            }
            for half in found.halves
        ],
        "parts": [_part_json(part) for part in found.parts],
        "factors": [_factor_json(share) for share in found.factors],
        "unpriced_s": found.unpriced_s,
        "remainder_s": found.remainder_s,
        "split_by": found.split_by,
        "before_sending_s": None if found.before_sending_s is None else list(found.before_sending_s),
        "notes": list(found.notes),
        "sentences": list(attribution_sentences(found)),
    }


def _part_json(part: AttributionPart) -> dict[str, Any]:
    return {
        "phase": part.phase,
        "part": part.part,
        "title": part.title,
        "kind": part.kind,
        "base_s": part.base_s,
        "other_s": part.other_s,
        "delta_s": part.delta_s,
        "workload_s": part.workload_s,
        "efficiency_s": part.efficiency_s,
        "unpriced_s": part.unpriced_s,
        "factors": dict(part.factors),
        "why": part.why or None,
    }


def _factor_json(share: FactorShare) -> dict[str, Any]:
    return {
        "key": share.key,
        "title": share.title,
        "kind": share.kind,
        "base": share.base,
        "other": share.other,
        "prefill_s": share.prefill_s,
        "decode_s": share.decode_s,
        "total_s": share.total_s,
    }


def attribution_sentences(found: Attribution) -> tuple[str, ...]:
    """Where the change lies, what the model makes of what differs, and what nobody can say."""
    halves = ", ".join(f"{title} {change_seconds(half.delta_s)}" for title, half in zip(_HALVES, found.halves, strict=True))
    rest = f", in neither {change_seconds(found.remainder_s)}" if found.shown_remainder_s else ""
    said = [f"A mean request changed by {change_seconds(found.total_s)}: {halves}{rest}."]
    if named := _largest(found):
        said.append(f"Largest parts: {', '.join(f'{_name(part)} {change_seconds(part.delta_s)}' for part in named)}.")
    said += _by_the_model(found) if found.split_by == "model" else _per_token(found)
    if found.before_sending_s is not None:
        a, b = found.before_sending_s
        said.append(f"Before sending, the client held a request back by {change_seconds(b - a)} more; that is in neither total.")
    return (*said, *found.notes)


_HALVES = ("first token", "further tokens")


def _largest(found: Attribution) -> list[AttributionPart]:
    moved = [part for part in found.parts if part.delta_s is not None and abs(part.delta_s) >= ROUNDING_S]
    every = sum(abs(part.delta_s or 0.0) for part in moved)
    worth = [part for part in moved if abs(part.delta_s or 0.0) >= _WORTH_SAYING * every]
    return sorted(worth, key=lambda part: -abs(part.delta_s or 0.0))[:_MOST_NAMED]


def _name(part: AttributionPart) -> str:
    return part.title[0].lower() + part.title[1:] if not part.title.startswith("KV") else part.title


def _by_the_model(found: Attribution) -> list[str]:
    shares = [share for share in found.factors if abs(share.total_s) >= ROUNDING_S]
    unpriced = found.unpriced_s or 0.0
    left = f"{change_seconds(unpriced)} the model gives to nothing that differs here"
    if not shares:
        return [] if abs(unpriced) < ROUNDING_S else [f"Of it, {left}."]
    named = ", ".join(f"{share.title} ({share.base} → {share.other}) {change_seconds(share.total_s)}" for share in shares)
    return [f"By the model: {named}; {left}." if abs(unpriced) >= ROUNDING_S else f"By the model: {named}."]


def _per_token(found: Attribution) -> list[str]:
    return ["The model does not price both runs, so the halves alone are split, by tokens and seconds a token."]
