"""Stored runs diagnosed: what is known about each deployment from its file and its prediction, and the levers with their sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.domain.against_baseline import phase_noise
from app.domain.comparison import Comparison
from app.domain.diagnosis import Diagnosis, Setup, Subject, diagnose, diagnose_pair, noises
from app.domain.diagnosis.curves import along
from app.domain.prediction import Prediction
from app.domain.run import Run
from app.services.lever_effects import LeverEffect
from app.services.levers import levers_of
from app.services.runs import RunView
from app.services.told_by import layers_on_device, offloaded_bytes, told_by, width


@dataclass(frozen=True)
class Explained:
    """A diagnosis with the predicted size of the levers it names, by lever; `run` is the one that would be measured anew to decide."""

    diagnosis: Diagnosis
    effects: Mapping[str, LeverEffect] = field(default_factory=dict)
    run: Run | None = None


def explain_run(view: RunView) -> Explained:
    """Is this run good, what bounds it, and which levers apply."""
    found = diagnose(deployment(view))
    return Explained(found, _effects(view, found), view.stored.run)


def explain_runs(views: Sequence[RunView]) -> Explained:
    """Runs of one deployment at several loads, prompt lengths or degrees of parallelism, or repeats: what their curve says.

    What is known beside them, and the size of levers, is that of the last along what differs.
    """
    told = {view.id: deployment(view) for view in views}
    runs = along([found.runs[0] for found in told.values()])
    last = next(view for view in views if told[view.id].runs[0] is runs[-1])
    found = diagnose(Subject(runs, told[last.id].setup))
    return Explained(found, _effects(last, found), last.stored.run)


def explain_pair(comparison: Comparison, base: RunView, other: RunView) -> Explained:
    """Why the other run differs; levers are sized for the other run."""
    found = diagnose_pair(deployment(base), deployment(other), comparison, noises(phase_noise(comparison.metrics)))
    return Explained(found, _effects(other, found), other.stored.run)


def explain_files(comparison: Comparison) -> Explained:
    """The same of two runs that are not stored: what their files say."""
    base, other = (Subject((side.run,), told_by(side.run)) for side in (comparison.base, comparison.other))
    return Explained(diagnose_pair(base, other, comparison), run=comparison.other.run)


def _effects(view: RunView, found: Diagnosis) -> Mapping[str, LeverEffect]:
    return {lever: effect for lever, effect in levers_of(view, found.levers).effects.items() if not effect.bound}


def deployment(view: RunView) -> Subject:
    """A stored run with what its file and its prediction say; flags of physics withhold what they withhold."""
    run = replace(view.stored.run, flags=(*view.stored.run.flags, *view.assessment.flags))
    return Subject((run,), _priced(view, told_by(run)))


def _priced(view: RunView, setup: Setup) -> Setup:
    """The setup with bytes, FLOPs and rates of the run's own prediction; what a flag withholds is left out."""
    prediction, hardware, model = view.assessment.prediction, view.hardware, view.model
    if prediction is None or hardware is None or model is None:
        return setup
    decode, prefill = prediction.decode, prediction.prefill
    devices = float(prediction.request.tp * prediction.request.pp)
    cache = sum(term.bytes for term in decode.terms if term.part == "kv")
    architecture = model.architecture
    priced = replace(
        setup,
        devices=devices,
        layers=float(architecture.layers),
        active_parameters=float(architecture.active_parameters),
        bytes_per_parameter=setup.bytes_per_parameter or width(prediction.request.weight_dtype),
        peak_flops_per_s=prediction.ridge_peak * hardware.bandwidth_bytes_per_s,
        held_share=_held_share(prediction),
    )
    if view.assessment.mbu is not None:
        priced = replace(
            priced,
            step_weight_bytes=(decode.bytes - cache) * devices,
            step_kv_bytes=cache * devices,
            bandwidth_bytes_per_s=hardware.bandwidth_bytes_per_s,
            achieved_bandwidth_bytes_per_s=decode.bytes / decode.attainable_s if decode.bound == "memory" else None,
        )
    if view.assessment.mfu is not None:
        achieved = prefill.flops / prefill.attainable_s if prefill.bound == "compute" else None
        priced = replace(priced, prefill_flops=prefill.flops, achieved_flops_per_s=achieved)
    offloaded, resident = offloaded_bytes(view.stored.run), (decode.bytes - cache) * devices
    if offloaded is None and priced.fast_share is None:
        # llama.cpp counts the output as a layer more.
        return replace(priced, fast_share=layers_on_device(view.stored.run, architecture.layers + 1.0))
    return priced if offloaded is None else replace(priced, fast_share=max(1.0 - offloaded / resident, 0.0))


def _held_share(prediction: Prediction) -> float | None:
    """What the model says is held, as a part of a device's memory; None where that is not known."""
    memory = prediction.memory
    if not memory.capacity_bytes:
        return None
    return (memory.weight_bytes + memory.kv_bytes + memory.activation_bytes) / memory.capacity_bytes
