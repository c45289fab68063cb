"""Which rows the targets of the design were set without: the written rules of `engine_profiles.md`, section 5.

They stand beside the contract's exclusions (`benchmarks.scoring`), which are fewer and decide what is reached; no row is kept from a fit
for one of these. Each rule is named in RULES with the words of the page that it comes from. Two more of that section hold for every figure
here and need no rule: labels that are squares are read as the deployment behind them (`app.domain.measurement.deployment`), and
one measurement under several labels counts once (`benchmarks.fit.distinct`). What the page calls suspect, a hint, or a choice made after a
look at errors ("clear labels", section 6) is no rule.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.measurement import Measurement, Phase
from benchmarks.asked import Asked
from benchmarks.fitting.fits import above_longer_answers, above_twice_the_load

Booleans = npt.NDArray[np.bool_]

ORIGIN = "engine_profiles.md, section 5"
UNUSABLE_TP = 72
FASTER_TPOT, SLOWER_TTFT = 0.14, 0.10  # of two rows of one deployment: so much less TPOT with so much more TTFT is speculation
BY_NAME = "excluded by name, a judgement: "
BOTH: tuple[Phase, ...] = ("decode", "prefill")
TTFT: tuple[Phase, ...] = ("prefill",)


@dataclass(frozen=True)
class Rule:
    """A reason of the design to leave rows out: its name, the phases that it takes from a row, and which rows it holds for."""

    name: str
    phases: tuple[Phase, ...]
    holds: Callable[[Sequence[Asked]], Booleans]


def _where(test: Callable[[Measurement], bool]) -> Callable[[Sequence[Asked]], Booleans]:
    """A rule that looks at one row at a time."""
    return lambda asked: np.array([test(one.measurement) for one in asked], dtype=bool)


def _of(engine: str, releases: Sequence[str], weights: str | None = None, model: str = "") -> Callable[[Sequence[Asked]], Booleans]:
    """Rows of releases of an engine, of a model and a weight format where such are named."""
    return _where(
        lambda row: (
            row.engine == engine
            and row.engine_version in releases
            and model in row.model.partition("/")[2]
            and weights in (None, row.weight_dtype)
        )
    )


def faster_of_a_pair(asked: Sequence[Asked]) -> Booleans:
    """Rows of models with layers that predict further tokens, whose deployment was measured elsewhere with more TPOT and less TTFT."""
    found = np.zeros(len(asked), dtype=bool)
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place, one in enumerate(asked):
        row = one.measurement
        if one.architecture.extra_prediction_layers > 0 and row.tpot_s is not None and row.ttft_s is not None:
            groups[one.engine, one.architecture.groups, one.hardware.slug, one.request].append(place)
    for places in groups.values():
        tpot, ttft = (np.array([getattr(asked[at].measurement, name) for at in places]) for name in ("tpot_s", "ttft_s"))
        faster = tpot[:, None] <= (1.0 - FASTER_TPOT) * tpot[None, :]
        slower = ttft[:, None] >= (1.0 + SLOWER_TTFT) * ttft[None, :]
        found[places] = (faster & slower).any(axis=1)
    return found


def _short_answers_of_70b(asked: Sequence[Asked]) -> Booleans:
    rows = [one.measurement for one in asked]
    mine = [row.engine == "TensorRT-LLM" and "70B" in row.model and (row.prompt_tokens, row.output_tokens) == (1024, 1024) for row in rows]
    return np.array(mine, dtype=bool) & above_longer_answers(asked)


RULES = (
    Rule("tensor parallel over 72 devices, unusable", BOTH, _where(lambda row: row.layout.tp == UNUSABLE_TP)),
    Rule("the faster of two rows of one deployment: speculative", BOTH, faster_of_a_pair),
    Rule(BY_NAME + "TensorRT-LLM 1.3.0rc1 and rc5, 1.2.0rc6.post1", BOTH, _of("TensorRT-LLM", ("1.3.0rc1", "1.3.0rc5", "1.2.0rc6.post1"))),
    Rule(BY_NAME + "Qwen3-235B on vLLM 0.12", BOTH, _of("vLLM", ("0.12.0",), model="Qwen3-235B")),
    Rule(BY_NAME + "8B in fp8 on vLLM 0.12", BOTH, _of("vLLM", ("0.12.0",), "fp8", "-8B")),
    Rule(BY_NAME + "32B in fp8 on vLLM 0.12", BOTH, _of("vLLM", ("0.12.0",), "fp8", "-32B")),
    Rule("TTFT above that at twice the load: start-up", TTFT, above_twice_the_load),
    Rule("TTFT of 70B on TensorRT-LLM above 1.8 times that with a longer answer: start-up", TTFT, _short_answers_of_70b),
    Rule("TTFT of SGLang in fp4 without a version: start-up", TTFT, _of("SGLang", ("",), "nvfp4")),
)


def left_out_by_design(asked: Sequence[Asked]) -> dict[tuple[str, Phase], str]:
    """The rule that leaves a phase of a served row out, by the row's id and the phase; the first of RULES that holds."""
    served = [one for one in asked if one.measurement.kind == "served"]
    found: dict[tuple[str, Phase], str] = {}
    for key, name in _holding(served):
        found.setdefault(key, name)
    return found


def _holding(served: Sequence[Asked]) -> Iterator[tuple[tuple[str, Phase], str]]:
    for rule in RULES if served else ():
        for one, held in zip(served, rule.holds(served), strict=True):
            for phase in rule.phases if held else ():
                yield (one.measurement.id, phase), rule.name
