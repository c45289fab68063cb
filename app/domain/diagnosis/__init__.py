"""From one deployment's runs, or two deployments', to the phase that moved, its cause and a lever: gates in order, then rules.

    G0 comparable?   workloads that differ are compared by what is per token only
    G1 possible?     a figure that a flag withholds is not looked at
    G2 real?         a change counts beyond 3 %, or beyond twice the spread between repeats
    G3 phase         delta total = delta TTFT + delta((n - 1) x ITL) + remainder
    G4 cause         rules: a pattern, the evidence that separates, what is missing
    G5 lever         advice of the rules that hold; its size by the performance model is worked out where model and device are known

Every verdict comes with its arithmetic and the observation that would refute it. Where the evidence does not decide, the answer is the
run that would. Source: the design's page on diagnosis.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.comparison import Comparison, Side, compare
from app.domain.diagnosis.changes import Seen
from app.domain.diagnosis.curves import Level
from app.domain.diagnosis.judging import ACROSS_WORKLOADS, RULES, Finding, Undetermined, judge, of_means, undetermined
from app.domain.diagnosis.observables import Observed, noises, observe, observe_pair
from app.domain.diagnosis.phase import pair_phase, single_phase
from app.domain.diagnosis.repeats import apart
from app.domain.diagnosis.rule import Rule
from app.domain.diagnosis.step_flag import step_flag
from app.domain.diagnosis.subject import Setup, Subject
from app.domain.diagnosis.verdicts import decode_verdict, pair_verdict, prefill_verdict, single_verdict
from app.domain.diagnosis.vocabulary import Phase, Verdict
from app.domain.run import Flag

__all__ = [
    "RULES",
    "Diagnosis",
    "Finding",
    "Level",
    "Rule",
    "Setup",
    "Subject",
    "Undetermined",
    "diagnose",
    "diagnose_pair",
    "noises",
]


@dataclass(frozen=True)
class Diagnosis:
    """What is said about one deployment, or about the difference of two.

    `stopped_by` is the gate that ended the reasoning, None when all were passed. `observables` are the quantities that rules looked at, by
    name, `levels` those of each load or prompt length.
    """

    phase: Phase
    findings: tuple[Finding, ...]
    ruled_out: tuple[Finding, ...]
    undetermined: tuple[Undetermined, ...]
    verdict: Verdict | None
    decode_verdict: Verdict | None
    prefill_verdict: Verdict | None
    observables: Seen
    levels: tuple[Level, ...]
    flags: tuple[Flag, ...]
    stopped_by: str | None = None

    @property
    def levers(self) -> tuple[str, ...]:
        """Advice of all findings, once each, in their order."""
        return tuple(dict.fromkeys(advice.lever for found in self.findings for advice in found.rule.levers))


def diagnose(subject: Subject, told: Seen | None = None) -> Diagnosis:
    """Is it good, and what bounds it: one deployment's runs. `told` are observables that somebody states."""
    seen = observe(subject, told)
    findings, out = judge(seen)
    figures = seen.figures
    return Diagnosis(
        phase=single_phase(subject, seen, findings),
        findings=findings,
        ruled_out=out,
        undetermined=undetermined(findings, seen),
        verdict=single_verdict(figures),
        decode_verdict=decode_verdict(figures),
        prefill_verdict=prefill_verdict(figures),
        observables=figures,
        levels=seen.levels,
        flags=_flags(subject, seen),
    )


def _flags(subject: Subject, seen: Observed) -> tuple[Flag, ...]:
    """Flags that only several runs together give."""
    return tuple(flag for flag in (apart(subject.runs), step_flag(seen.figures)) if flag is not None)


def diagnose_pair(base: Subject, other: Subject, comparison: Comparison | None = None, told: Seen | None = None) -> Diagnosis:
    """Why `other` differs from `base`. `comparison` is that of the two runs at the highest load, worked out here where it is not given."""
    compared = comparison or compare(Side(1, base.runs[-1]), Side(2, other.runs[-1]))
    seen = observe_pair(base, other, told)
    comparable = compared.comparable.ok
    findings, out = judge(seen, RULES if comparable else _across())
    verdict = pair_verdict(seen.figures)
    if not comparable and verdict != "faster_per_token":
        verdict = None
    phase = pair_phase(seen, findings)
    if phase == "none":
        findings = of_means(findings)
    return Diagnosis(
        phase=phase,
        findings=findings,
        ruled_out=out,
        undetermined=undetermined(findings, seen) if comparable else (),
        verdict=verdict,
        decode_verdict=None,
        prefill_verdict=None,
        observables=seen.figures,
        levels=seen.levels,
        flags=(),
        stopped_by=None if comparable and phase != "none" else "G2" if comparable else "G0",
    )


def _across() -> Sequence[Rule]:
    return [rule for rule in RULES if rule.id in ACROSS_WORKLOADS]
