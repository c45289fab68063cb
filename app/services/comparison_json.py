"""The comparison of the public contract as JSON-ready data."""

from collections.abc import Sequence
from typing import Any

from app.domain.comparison import Comparison
from app.services.attribution_words import attribution_json
from app.services.diagnosing import Explained, explain_files
from app.services.diagnosis_json import diagnosis_json
from app.services.sentences import because, comparison_sentence
from app.services.summary import flags_json


def comparison_json(comparisons: Sequence[Comparison], reasons: Sequence[Explained] | None = None) -> dict[str, Any]:
    """The answer of /compare. The first pair stands at the top level; `comparisons` holds one entry for each of the others.

    `reasons` are the diagnoses of the pairs in order; without them each is made of what the two files say.
    """
    found = reasons if reasons is not None else [explain_files(comparison) for comparison in comparisons]
    pairs = [_pair(comparison, reason) for comparison, reason in zip(comparisons, found, strict=True)]
    return {
        "base": comparisons[0].base.id,
        "others": [comparison.other.id for comparison in comparisons],
        **{key: value for key, value in pairs[0].items() if key != "other"},
        "comparisons": pairs,
    }


def _pair(comparison: Comparison, reason: Explained) -> dict[str, Any]:
    comparable = comparison.comparable
    return {
        "other": comparison.other.id,
        "repeats": {"base": list(comparison.base.ids), "other": list(comparison.other.ids)},
        "comparable": {
            "ok": comparable.ok,
            "reasons": list(comparable.reasons),
            "differing": [{"key": item.key, "base": item.base, "other": item.other} for item in comparable.differing],
            "agreeing": comparable.agreeing,
        },
        "metrics": [
            {
                "key": row.key,
                "stat": row.stat,
                "base": row.base,
                "other": row.other,
                "delta": row.delta,
                "ratio": row.ratio,
                "change": row.change,
                "verdict": row.verdict,
                "n": list(row.n),
                "noise": row.noise,
                "note": row.note,
            }
            for row in comparison.metrics
        ],
        "attribution": attribution_json(comparison.attribution),
        **diagnosis_json(reason),
        "flags": flags_json((*comparison.flags, *reason.diagnosis.flags)),
        "sentence": " ".join((comparison_sentence(comparison, reason.diagnosis), *because(reason.diagnosis))),
        "break_even_output_tokens": comparison.break_even_output_tokens,
        "notes": list(comparison.notes),
    }
