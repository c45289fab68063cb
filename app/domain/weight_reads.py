"""How much of a model's weights one decode step reads, and how much there is to read.

A dense model reads everything for one token. A mixture of experts reads the distinct experts that the tokens of a step touch, E·(1 - (1 -
k/E)^T) in a layer on average: few for one sequence, nearly all for a few dozen. Counting active weights alone under-counts the bytes of
a batch, counting all over-counts those of one sequence. Source: the design's performance model, section 2.
"""

from app.domain.phases import Question, step_numbers
from app.domain.prediction import WeightReads
from app.domain.work import PassNumbers, Placement, Quantity, operators, pass_numbers

# Tokens of a pass that touches every expert.
_ALL = 1e12


def weight_reads(question: Question, running: Quantity) -> WeightReads:
    """The weights that a decode step of `running` sequences reads, with the operators of the full model in either mode."""
    step = step_numbers(question, running, 0.0)
    read, everything = _bytes(question, step), _bytes(question, pass_numbers(1.0, 0.0, _ALL))
    bandwidth = question.hardware.bandwidth_bytes_per_s
    return WeightReads(read, read / bandwidth, everything, everything / bandwidth, _distinct(question, float(step.tokens)))


def _bytes(question: Question, numbers: PassNumbers) -> float:
    load = question.load
    place = Placement(load.tp, load.pp, load.ep, load.dp)
    work = operators(question.architecture, numbers, question.formats.element_bytes(), place)
    return float(sum(one.weight_bytes for one in work))


def _distinct(question: Question, tokens: float) -> float | None:
    """E·(1 - (1 - k/E)^T), averaged over the layers with experts."""
    parts = [(group.count, group.experts) for group in question.architecture.groups if group.experts is not None]
    if not parts:
        return None
    layers = sum(count for count, _ in parts)
    touched = sum(count * part.count * (1.0 - float((1.0 - part.chosen / part.count) ** tokens)) for count, part in parts)
    return touched / layers
