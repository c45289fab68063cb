"""What a job takes on a device, refined with what services know: the model's shapes and the device's profile."""

from collections.abc import Callable
from dataclasses import replace

from app.domain.architecture import ModelArchitecture
from app.domain.built_model import shape_of
from app.domain.errors import InvalidRequest
from app.domain.prediction import Prediction, Request
from app.domain.serving import predict
from app.jobs import DeviceFacts, Estimate, JobParameters
from app.jobs.inprocess_sweep import InprocessSweep
from app.services.predicting import answer, question_of
from app.services.profiles import ProfileBook
from app.services.rough_rates import rough_profile

# The share of a device's memory that a job may plan with, and what a framework takes before any weight.
_USABLE = 0.9
_FRAMEWORK_BYTES = 1024**3
# numpy measures models up to this size; beyond it the time of a step says more of the memory manager than of the machine.
MOST_NUMPY_PARAMETERS = 160_000_000
# Random weights are drawn and cast at about this rate on one core.
_WEIGHTS_PER_S = 5e7
# A device that nobody knows is looked at before the sweep.
_FIRST_LOOK_S = 8.0
# A device that states a rate for every format of a job: only the memory of what is priced there is used.
_ANY_HARDWARE = "h100-sxm5-80gb"


def refined(book: ProfileBook, parameters: JobParameters, device: DeviceFacts) -> Estimate:
    """Seconds and bytes of a job on a device. Raises InvalidRequest or UnknownName that says why it cannot run there."""
    first = parameters.estimate(device)
    if not isinstance(parameters, InprocessSweep):
        return first
    architecture = book.model(parameters.model).architecture
    count = architecture.parameters
    shape_of(architecture, max(parameters.prompt_tokens) + parameters.output_tokens)
    by_numpy = parameters.backend == "numpy" or "torch" not in device.backends
    if by_numpy and (parameters.dtype != "fp32" or count > MOST_NUMPY_PARAMETERS):
        raise InvalidRequest(
            "backend",
            f"numpy measures fp32 up to {MOST_NUMPY_PARAMETERS / 1e6:.0f} million parameters, and this is {parameters.dtype} "
            f"with {count / 1e6:,.0f} million: it needs a worker with torch",
        )
    largest = _priced(book, parameters, device, max(parameters.prompt_tokens), max(parameters.batches))
    held = largest.memory
    logits = 4 * max(parameters.batches) * book.model(parameters.model).architecture.vocab
    memory = int(held.weight_bytes + held.kv_bytes + held.activation_bytes + logits + _FRAMEWORK_BYTES)
    if device.memory_bytes is not None and memory > _USABLE * device.memory_bytes:
        raise InvalidRequest(
            "model", f"it needs about {memory / 2**30:.1f} GiB and {device.name} has {device.memory_bytes / 2**30:.1f} GiB in all"
        )
    backend = "numpy" if by_numpy else "torch"
    many = len(parameters.prompt_tokens) * len(parameters.batches)
    points = "1 point" if many == 1 else f"{many} points"
    if device.hardware is None:
        seconds = _FIRST_LOOK_S + _seconds(
            parameters, count, lambda prompt, batch: _roughly(architecture, parameters, device, prompt, batch)
        )
        sentence = f"{backend} on {device.name}, {points}; the device has no profile yet: roughly, by the rates of a usual one of its class"
    else:
        seconds = _seconds(parameters, count, lambda prompt, batch: _priced(book, parameters, device, prompt, batch))
        sentence = f"{backend} on {device.name}, {points}, by the cost model"
    # A point is ended at its limit, so that no estimate goes beyond the sum of these.
    seconds = seconds if first.at_most_s is None else min(seconds, first.at_most_s)
    return replace(first, seconds=seconds, memory_bytes=memory, sentence=sentence, rough=device.hardware is None)


def _seconds(parameters: InprocessSweep, weights: int, point: Callable[[int, int], Prediction]) -> float:
    """Drawing the weights, then each point once to warm up and as often as it is repeated."""
    points = [point(prompt, batch) for prompt in parameters.prompt_tokens for batch in parameters.batches]
    return weights / _WEIGHTS_PER_S + (parameters.repeats + 1) * sum(priced.total_s for priced in points)


def _roughly(architecture: ModelArchitecture, parameters: InprocessSweep, device: DeviceFacts, prompt: int, batch: int) -> Prediction:
    """One point on a usual device of the class."""
    dtype = parameters.dtype
    request = Request(prompt, parameters.output_tokens, batch=batch, weight_dtype=dtype, activation_dtype=dtype, kv_dtype=dtype)
    return predict(architecture, rough_profile(device, parameters.threads), request)


def _priced(book: ProfileBook, parameters: InprocessSweep, device: DeviceFacts, prompt: int, batch: int) -> Prediction:
    """One point as the cost model prices it; on a device without a profile only its memory means something."""
    question = {
        "model": parameters.model,
        "hardware": device.hardware or _ANY_HARDWARE,
        "prompt_tokens": prompt,
        "output_tokens": parameters.output_tokens,
        "batch": batch,
        "weight_dtype": parameters.dtype,
        "activation_dtype": parameters.dtype,
        "kv_dtype": parameters.dtype,
        "calibration": "default",
    }
    return answer(book, question_of(question)).prediction
