"""A comparison as Markdown, for a pull request or a chat. Words of files are escaped: they neither break a table nor become HTML."""

import re
from collections.abc import Sequence

from app.domain.attribution import ROUNDING_S
from app.domain.comparison import Comparison, MetricDelta
from app.domain.gates import Gate
from app.domain.metrics import METRICS
from app.domain.quantity import change_percent, change_seconds, in_metric_unit, seconds
from app.services.attribution_words import attribution_sentences
from app.services.diagnosing import Explained
from app.services.gating import all_passed, clause_sentence, gates_sentence
from app.services.sentences import because, comparison_sentence

_HALVES = {"prefill": "First token", "decode": "Further tokens"}
_SHOWN = ("mean", "p50", "p99", "value")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def comparison_markdown(comparisons: Sequence[Comparison], reasons: Sequence[Explained], gates: Sequence[Gate] = ()) -> str:
    """The gate where there is one, then each pair: its sentence, the causes with arithmetic and refutation, what is ruled out, and the
    metrics that both sides have."""
    pairs = (line for pair in zip(comparisons, reasons, strict=True) for line in _pair(*pair))
    return "\n".join((*(gate_lines(gates) if gates else ()), *pairs)) + "\n"


def gate_lines(gates: Sequence[Gate]) -> list[str]:
    """The judgement of a gate: its sentence, and each clause with what was found."""
    several = len(gates) > 1
    heading = "passed" if all_passed(gates) else "failed"
    lines = [f"## Gate {heading}", "", escaped(gates_sentence(gates)), "", "| clause | outcome | found |", "| --- | --- | --- |"]
    for gate in gates:
        for result in gate.results:
            outcome = f"**{result.outcome}**" if result.broken else result.outcome
            found = f"run {gate.run_id}: {clause_sentence(result)}" if several else clause_sentence(result)
            lines.append(f"| {escaped(result.clause.text)} | {outcome} | {escaped(found)} |")
    return [*lines, ""]


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _pair(comparison: Comparison, explained: Explained) -> list[str]:
    found = explained.diagnosis
    sentence = " ".join((comparison_sentence(comparison, found), *because(found)))
    lines = [f"## Run {comparison.other.id} against run {comparison.base.id}", "", escaped(sentence), ""]
    lines += [f"- Not comparable: {escaped(reason)}" for reason in comparison.comparable.reasons]
    for item in comparison.comparable.differing:
        lines.append(f"- {escaped(item.key)}: {escaped(str(item.base))} → {escaped(str(item.other))}")
    return [*lines, *_moved(comparison), *_causes(explained), *_table(comparison)]


def _moved(comparison: Comparison) -> list[str]:
    """Where the change of a mean request lies: the sentences, and the parts that add up."""
    found = comparison.attribution
    if found is None:
        return []
    lines = ["", "### Where the change lies", "", *(f"- {escaped(text)}" for text in attribution_sentences(found))]
    if comparison.break_even_output_tokens is not None:
        lines.append(f"- Break-even at {comparison.break_even_output_tokens:,} output tokens.")
    lines += ["", "| part of a mean request | base | other | change | workload | settings | not priced |", f"| --- |{' ---: |' * 6}"]
    for half in found.halves:
        split = (half.workload_s, half.efficiency_s, half.unpriced_s)
        lines.append(_part_row(f"**{_HALVES[half.phase]}**", (half.base_s, half.other_s, half.delta_s), split))
        for part in found.parts:
            if part.phase == half.phase and part.kind is not None and not part.nothing:
                split = (part.workload_s, part.efficiency_s, part.unpriced_s)
                name = part.title if part.kind == "unexplained" else f"{part.title}, {part.kind}"
                lines.append(_part_row(escaped(name), (part.base_s, part.other_s, part.delta_s), split))
    lines.append(_part_row("In neither half", (None, None, found.shown_remainder_s), (None, None, None)))
    return [*lines, _part_row("**Whole request**", (found.base_total_s, found.other_total_s, found.total_s), (None, None, None))]


def _part_row(name: str, ends: Sequence[float | None], split: Sequence[float | None]) -> str:
    a, b, change = ends
    cells = [*("" if value is None else seconds(value) for value in (a, b))]
    cells += ["" if value is None else "0" if abs(value) < ROUNDING_S else change_seconds(value) for value in (change, *split)]
    return f"| {name} | {' | '.join(cells)} |"


def _causes(explained: Explained) -> list[str]:
    found = explained.diagnosis
    lines = ["", "### Why, most likely first", ""] if found.findings or found.ruled_out else []
    for each in found.findings:
        lines.append(f"{each.rank}. **{escaped(each.rule.title)}** ({each.rule.phase}, {each.signs} of {each.of} signs, {each.rule.id})")
        lines += [f"   - {escaped(text)}" for text in (*each.sums, *each.evidence)]
        if each.missing:
            lines.append(f"   - Not known: {escaped(', '.join(each.missing))}")
        lines.append(f"   - Refuted if {escaped(each.rule.refuted_by)}")
    lines += [f"- Ruled out: {escaped(each.rule.title)}. {escaped(' '.join(each.against))}" for each in found.ruled_out]
    return lines


def _table(comparison: Comparison) -> list[str]:
    rows = [row for row in comparison.metrics if row.stat in _SHOWN and row.base is not None and row.other is not None]
    if not rows:
        return []
    return ["", "| metric | base | other | change | verdict |", "| --- | ---: | ---: | ---: | --- |", *map(_row, rows)]


def _row(row: MetricDelta) -> str:
    metric = METRICS[row.key]
    change = "" if row.change is None else change_percent(row.change)
    name = metric.title if row.stat == "value" else f"{metric.title}, {row.stat}"
    cells = (name, in_metric_unit(row.base or 0.0, metric.unit), in_metric_unit(row.other or 0.0, metric.unit), change, row.verdict)
    return f"| {' | '.join(escaped(cell) for cell in cells)} |"
