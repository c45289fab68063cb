"""Rules against observables: which causes are offered, in which order, what rules the others out, and which run would decide.

A cause is offered when its pattern holds and no separating sign rules it out. Offered causes are ranked by the signs that are there, stated
facts before times, then by the share of their signs that is, then by the order of the table; those that a sign speaks against without
ruling them out come behind the others. Where the evidence does not decide
between two causes of one phase, the answer is the run that would.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.domain.diagnosis.changes import Seen
from app.domain.diagnosis.observables import Observed
from app.domain.diagnosis.rule import FLAG, Rule, Sign, told, words_of
from app.domain.diagnosis.rules_batch import BATCH_RULES
from app.domain.diagnosis.rules_first_token import FIRST_TOKEN_RULES
from app.domain.diagnosis.rules_step import STEP_RULES
from app.domain.diagnosis.rules_whole import WHOLE_RULES
from app.domain.diagnosis.thresholds import NOISE
from app.domain.diagnosis.vocabulary import Phase

RULES: tuple[Rule, ...] = (*FIRST_TOKEN_RULES, *BATCH_RULES, *STEP_RULES, *WHOLE_RULES)

# Rules that say why two workloads are not one question; the others are not asked where the workloads differ.
ACROSS_WORKLOADS = frozenset({"R23", "R24", "R30"})

_OF_ROWS = frozenset({"first_itself_change", "step_itself_change"})
_ALONE = "the same question at one client, for both"
_SERVER = "the server's own time to the first token"
# What is not known -> how a person names it, and the parameters of the run that measures it (None: a setting to look up).
MISSING: Mapping[str, tuple[str, Mapping[str, Any] | None]] = {
    "alone_over_loaded_ttft": (_ALONE, {"concurrency": [1]}),
    "alone_over_loaded_itl": (_ALONE, {"concurrency": [1]}),
    "ttft_growth_with_load": ("a second load, for both", {"concurrency": [1]}),
    "extra_per_sequence_ratio": ("a second load, for both", {"concurrency": [1]}),
    "server_ttft_share_of_change": (_SERVER, None),
    "tokens_share_of_first_change": ("prompts of two lengths, for both", {"prompt_tokens": [256, 4096]}),
    "sequences_share_of_step_change": ("a second load, for both", {"concurrency": [1, 8, 32]}),
    "extra_like_step": ("the step at several loads", {"concurrency": [1, 8, 16, 32, 64]}),
    "prompt_settings_moved": ("the settings of both servers", None),
    "step_settings_moved": ("the settings of both servers", None),
    "decoding_most_other": ("the moments of each request", None),
    "passed_over_share_added": ("the gaps between tokens of each request", None),
    "software_changed": ("the version of both engines", None),
    "client_send_share_of_change": ("the time until the client had sent its requests", None),
    "others_prompt_share_added": ("the server's own count of prompt tokens", None),
    "step_bytes_settings_moved": ("the formats of weights and cache of both", None),
    "binding_cap_change": ("the limit of running sequences of both", None),
    "pool_used_share_other": ("how full the pool of the cache was", None),
    "pool_tokens_change": ("the size of the pool of both", None),
    "preemptions_added": ("the server's count of preemptions", None),
    "queue_share_of_change": ("the time in the server's queue", None),
    "outside_server_share_of_change": (_SERVER, None),
    "budget_change": ("the chunk budget of both", None),
    "step_at_graph_limit_other": ("the largest captured batch", None),
    "step_jump_change": ("the step at several loads", {"concurrency": [1, 8, 16, 32, 64]}),
    "alone_itl_change": (_ALONE, {"concurrency": [1]}),
    "prompt_itself_change": ("prompts of two lengths, for both", {"prompt_tokens": [256, 4096]}),
    "prefill_per_token_change": ("prompts of two lengths, for both", {"prompt_tokens": [256, 4096]}),
    "prefill_share_of_change": ("the time of the prompt pass by the server's clock", None),
    "prefill_rate_change": ("the prompt pass measured apart from the queue", None),
    "idle_added_s": ("the pauses between requests", None),
    "sm_clock_change": ("the core clock of both", {"kind": "device_microbench", "dtypes": ["bf16"]}),
    "memory_clock_change": ("the memory clock of both", {"kind": "device_microbench", "dtypes": ["bf16"]}),
    "chunks_added": ("the chunk budget of both", None),
    "bytes_per_parameter_change": ("the weight format of both", None),
    "fast_share_change": ("where the weights of both lie", None),
    "floor_ratio_over_measured": ("the bytes in each tier of memory", None),
    "constrained_added": ("whether answers are constrained", None),
    "step_at_graph_limit": ("the largest captured batch", None),
    "all_reduce_share": ("the time of one all-reduce", None),
    "decode_flops_share": ("model and device, for the share of arithmetic", None),
    "preemptions": ("the server's count of preemptions", None),
    "step_ratio": ("the step at several loads", {"concurrency": [1, 8, 16, 32, 64]}),
    "itl_change": ("the step of both", None),
    "ttft_change": ("the first token of both", None),
}


@dataclass(frozen=True)
class Finding:
    """One offered (or ruled out) cause with what speaks for it: `evidence` are the signs that hold, `against` those that do not.

    `doubted`: a sign speaks against it that does not rule it out, or the phase it is about did not move.
    """

    rule: Rule
    rank: int | None
    signs: int
    of: int
    weight: int
    evidence: tuple[str, ...]
    sums: tuple[str, ...]
    missing: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    doubted: bool = False

    @property
    def decided(self) -> bool:
        """Whether every sign of the rule is known and there."""
        return self.signs == self.of


@dataclass(frozen=True)
class Undetermined:
    """Causes that the evidence does not tell apart, and the run that would; `run` holds the parameters of a measuring job."""

    between: tuple[str, ...]
    phase: Phase
    ask: str
    run: Mapping[str, Any] | None


def judge(observed: Observed, rules: Sequence[Rule] = RULES) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The offered causes, most likely first, and those whose pattern is there but which a separating sign rules out."""
    seen = {**observed.figures, **{f"{FLAG}{flag}": 1.0 for flag in observed.flags}}
    offered: list[Finding] = []
    out: list[Finding] = []
    for rule in rules:
        if not all(sign.holds(seen) for sign in rule.pattern):
            continue
        states = [(sign, sign.holds(seen)) for sign in rule.separating]
        against = [sign for sign, state in states if state is False]
        ruled_out = any(sign.rules_out for sign in against)
        found = _finding(rule, seen, states, against)
        (out if ruled_out else offered).append(replace(found, doubted=found.doubted or _of_a_step_that_stood_still(rule, seen)))
    ranked = sorted(offered, key=lambda found: (found.doubted, -found.weight, -found.signs / found.of))
    return tuple(_ranked(found, place) for place, found in enumerate(ranked, 1)), tuple(out)


def of_means(offered: Sequence[Finding]) -> tuple[Finding, ...]:
    """The causes that rest on more than what a run's rows say of a phase by itself: where neither mean moved, that is noise."""
    kept = [found for found in offered if not any(sign.observable in _OF_ROWS for sign in found.rule.pattern)]
    return tuple(_ranked(found, place) for place, found in enumerate(kept, 1))


def _of_a_step_that_stood_still(rule: Rule, seen: Seen) -> bool:
    """Whether a cause of longer steps is offered where the mean step did not move, by what a run's rows say of the step alone."""
    still = abs(seen.get("itl_change", 1.0)) <= seen.get("itl_change_noise", NOISE)
    return rule.phase == "decode" and still and any(sign.observable == "step_itself_change" for sign in rule.pattern)


def _finding(rule: Rule, seen: Seen, states: Sequence[tuple[Sign, bool | None]], against: Sequence[Sign]) -> Finding:
    held = [*rule.pattern, *(sign for sign, state in states if state)]
    unknown = dict.fromkeys(
        MISSING.get(sign.observable, (sign.observable.replace("_", " "), None))[0] for sign, state in states if state is None
    )
    sums = tuple(text for template in rule.sums if (text := told(template, seen)) is not None)
    return Finding(
        rule=rule,
        rank=None,
        signs=len(held),
        of=len(rule.pattern) + len(rule.separating),
        weight=sum(sign.weight for sign in held),
        evidence=words_of(held, seen),
        sums=sums,
        missing=tuple(unknown),
        against=words_of(against, seen),
        doubted=bool(against),
    )


def _ranked(found: Finding, place: int) -> Finding:
    return replace(found, rank=place)


def undetermined(offered: Sequence[Finding], observed: Observed) -> tuple[Undetermined, ...]:
    """Where the first-ranked cause of a part of the request is not decided and another is offered beside it: what would decide."""
    found = []
    for part in (("prefill", "queue", "client", "transport"), ("decode",), ("both",)):
        rivals = [each for each in offered if each.rule.phase in part and not _of_the_data(each)]
        if len(rivals) < 2 or rivals[0].decided:
            continue
        between = tuple(dict.fromkeys(each.rule.cause or each.rule.title for each in rivals))
        observable = _separating(rivals, observed.figures)
        if len(between) < 2 or observable is None:
            continue
        ask, run = MISSING[observable]
        found.append(Undetermined(between, rivals[0].rule.phase, ask, run))
    return tuple(found)


def _of_the_data(found: Finding) -> bool:
    """Whether a rule rests on a flag alone, which says how the data is and not why two differ."""
    return not found.rule.separating and all(sign.kind == "flag" for sign in found.rule.pattern)


def _separating(rivals: Sequence[Finding], figures: Seen) -> str | None:
    """The unknown observable that most rivals ask for, one that a run measures before one that somebody has to look up."""
    asked: dict[str, int] = {}
    for rival in rivals:
        for sign in rival.rule.separating:
            if sign.observable in MISSING and sign.observable not in figures:
                asked[sign.observable] = asked.get(sign.observable, 0) + 1
    if not asked:
        return None
    return max(asked, key=lambda name: (MISSING[name][1] is not None, asked[name]))
