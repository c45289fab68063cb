"""Causes and levers as a page shows them: strength as counted signs, each lever once with its predicted effect on both phases."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from app.domain.diagnosis import Finding
from app.domain.quantity import change_percent, seconds
from app.pages.job_form import job_query
from app.pages.learn import CHAPTER_OF_CAUSE
from app.services.diagnosing import Explained
from app.services.lever_effects import LeverEffect
from app.services.sentences import because
from app.services.separating import command, separating_run

_MEDIUM_FROM = 0.5
_WORDS: Mapping[str, str] = {
    "fp8_kv": "KV cache of 8 bit",
    "w8a8_or_fp8": "Weights and activations of 8 bit",
    "cuda_graphs": "CUDA graphs",
    "more_gpus": "More GPUs",
    "more_tp": "More tensor parallelism",
    "more_flops": "More FLOP/s",
    "kv_watermark": "A watermark on the KV pool",
    "async_mask": "Masks made beside the step",
    "raise_max_num_seqs": "Raise the cap on running sequences",
    "raise_max_num_batched_tokens": "Raise the chunk budget",
    "raise_graph_batch_limit": "Capture graphs for larger batches",
}


@dataclass(frozen=True)
class CauseRow:
    """One cause: `strength` is its counted signs in words, `badge` the colour of its phase (empty: of neither).

    `chapter` is the anchor of /learn that explains its pattern, empty where the rule names no cause.
    """

    found: Finding
    strength: str
    badge: str
    chapter: str


@dataclass(frozen=True)
class LeverRow:
    """One lever: `what` was changed and its effect on each phase; both effects empty where its size is not known."""

    title: str
    what: str
    seen: str
    prefill: str
    decode: str
    nothing: tuple[str, ...]


@dataclass(frozen=True)
class OpenQuestion:
    """Causes that are not told apart, what would tell, and the run that does: in words, as a form, as a command; empty: there is none."""

    between: str
    ask: str
    run: str = ""
    address: str = ""
    command: str = ""


@dataclass(frozen=True)
class CausesView:
    """What the block of causes and levers shows. `reason` is the first cause in one sentence, empty where none is offered."""

    reason: str
    causes: tuple[CauseRow, ...]
    ruled_out: tuple[CauseRow, ...]
    undetermined: tuple[OpenQuestion, ...]
    levers: tuple[LeverRow, ...]


def causes_view(explained: Explained) -> CausesView:
    """The block for one diagnosis."""
    found = explained.diagnosis
    return CausesView(
        " ".join(because(found)),
        tuple(_cause(each) for each in found.findings),
        tuple(_cause(each) for each in found.ruled_out),
        tuple(_undetermined(explained)),
        tuple(_levers(explained)),
    )


def lever_title(lever: str) -> str:
    """A lever's word of the vocabulary as a title."""
    return _WORDS.get(lever) or lever.replace("_", " ").capitalize()


def _cause(found: Finding) -> CauseRow:
    word = "strong" if found.decided else "medium" if found.signs > found.of * _MEDIUM_FROM else "weak"
    badge = {"prefill": "compute", "decode": "memory"}.get(found.rule.phase, "")
    return CauseRow(
        found,
        f"{word}: {found.signs} of {found.of} sign{'s' if found.of != 1 else ''}",
        badge,
        CHAPTER_OF_CAUSE.get(found.rule.cause or "", ""),
    )


def _undetermined(explained: Explained) -> list[OpenQuestion]:
    """The causes, what would tell, and the run that does it: in words, as a form filled in, as a command."""
    rows = []
    for each in explained.diagnosis.undetermined:
        between = " and ".join(cause.replace("_", " ") for cause in each.between)
        found = separating_run(each, explained.run)
        if found is None:
            rows.append(OpenQuestion(between, each.ask))
            continue
        kind = found["kind"]
        words = ", ".join(
            f"{key.replace('_', ' ')} {', '.join(map(str, values))}" for key, values in (each.run or {}).items() if key != "kind"
        )
        address = f"/jobs/new?{urlencode(job_query(kind, {key: value for key, value in found.items() if key != 'kind'}))}"
        rows.append(OpenQuestion(between, each.ask, words, address, command(found)))
    return rows


def _levers(explained: Explained) -> list[LeverRow]:
    """Those with a size first, the largest effect on either phase at the top."""
    seen = {advice.lever: advice.seen for each in explained.diagnosis.findings for advice in reversed(each.rule.levers)}
    sized = sorted(explained.diagnosis.levers, key=lambda lever: _size(explained.effects.get(lever)))
    return [_lever(lever, seen.get(lever, ""), explained.effects.get(lever)) for lever in sized]  # type: ignore[call-overload]


def _size(effect: LeverEffect | None) -> float:
    """The smaller of the two ratios after / before: less is more effect; a lever without a size comes last."""
    if effect is None:
        return float("inf")
    return min(after / before for before, after in (effect.ttft_s, effect.itl_s))


def _lever(lever: str, seen: str, effect: LeverEffect | None) -> LeverRow:
    title = lever_title(lever)
    if effect is None:
        return LeverRow(title, "", seen, "", "", ())
    nothing = tuple(
        f"Does nothing for {phase}: {why}."
        for phase, why in (("prefill", effect.prefill_unmoved), ("decode", effect.decode_unmoved))
        if why is not None
    )
    prefill, decode = (
        "" if why is not None else f"{name} {seconds(pair[0])} → {seconds(pair[1])}, {change_percent(pair[1] / pair[0] - 1)}"
        for name, pair, why in (("TTFT", effect.ttft_s, effect.prefill_unmoved), ("ITL", effect.itl_s, effect.decode_unmoved))
    )
    return LeverRow(title, effect.what, seen, prefill, decode, nothing)
