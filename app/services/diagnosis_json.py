"""A diagnosis as JSON-ready data, in the words of the public contract."""

from collections.abc import Mapping
from typing import Any

from app.domain.diagnosis import Finding
from app.services.diagnosing import Explained
from app.services.lever_effects import LeverEffect, effect_json
from app.services.sentences import diagnosis_sentence
from app.services.separating import separating_run
from app.services.summary import flags_json, number


def diagnosis_json(explained: Explained) -> dict[str, Any]:
    """Phase, findings most likely first, what is ruled out or undetermined, verdicts, and every quantity that was looked at."""
    found = explained.diagnosis
    return {
        "phase": found.phase,
        "findings": [finding_json(each, explained.effects) for each in found.findings],
        "ruled_out": [finding_json(each, explained.effects) for each in found.ruled_out],
        "undetermined": [
            {
                "between": list(each.between),
                "phase": each.phase,
                "ask": each.ask,
                "separating_run": separating_run(each, explained.run),
            }
            for each in found.undetermined
        ],
        "verdict": found.verdict,
        "verdicts": {"prefill": found.prefill_verdict, "decode": found.decode_verdict},
        "observables": {name: number(value) for name, value in sorted(found.observables.items())},
        "levels": [
            {"axis": each.axis, "at": each.at, **{name: number(value) for name, value in each.figures.items()}} for each in found.levels
        ],
        "flags": flags_json(found.flags),
        "stopped_by": found.stopped_by,
    }


def run_diagnosis_json(explained: Explained) -> dict[str, Any]:
    """A single run's diagnosis, with its sentence."""
    return {**diagnosis_json(explained), "sentence": diagnosis_sentence(explained.diagnosis)}


def finding_json(found: Finding, effects: Mapping[str, LeverEffect]) -> dict[str, Any]:
    """One cause with its evidence; `cause` is null where no word of the vocabulary fits and only advice follows."""
    rule = found.rule
    return {
        "cause": rule.cause,
        "rule": rule.id,
        "title": rule.title,
        "phase": rule.phase,
        "rank": found.rank,
        "signs": found.signs,
        "of": found.of,
        "evidence": list(found.evidence),
        "arithmetic": list(found.sums),
        "against": list(found.against),
        "refuted_by": rule.refuted_by,
        "missing": list(found.missing),
        "levers": [
            {"lever": advice.lever, "expected": effect_json(effects.get(advice.lever)), "seen": advice.seen or None}
            for advice in rule.levers
        ],
        "source": rule.source,
    }
