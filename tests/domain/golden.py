"""The golden grid: predictions of a few models on a few devices, kept in golden_predictions.json.

A change of the model shows there as a diff to review. Make it anew with

    python -m tests.domain.golden

and raise MODEL_VERSION in app/domain/serving.py with it.
"""

import dataclasses
import itertools
import json
from pathlib import Path

from app.domain.prediction import Request
from app.domain.serving import MODEL_VERSION, predict
from tests.domain.subjects import ENGINE, GEFORCE, HYBRID, LLAMA_8B, MIXTURE, OLD_CARD, SERVER, SPARSE_LATENT, WINDOWED

FILE = Path(__file__).with_name("golden_predictions.json")
REQUESTS = {
    "founding": Request(),
    "textbook": Request(calibration="textbook"),
    "long prompt": Request(prompt_tokens=32_000, output_tokens=1000),
    "batch 32": Request(batch=32),
    "served 64": Request(concurrency=64, prompt_tokens=1024, output_tokens=256),
    "fp8": Request(weight_dtype="fp8", kv_dtype="fp8"),
    "q4_k_m": Request(weight_dtype="q4_k_m", activation_dtype="fp16"),
    "prefix": Request(cached_prefix_tokens=1900),
}
MIXED_REQUESTS = {
    "one stream": Request(),
    "textbook": Request(calibration="textbook"),
    "batch 32, fp8": Request(batch=32, weight_dtype="fp8_block", kv_dtype="fp8"),
    "served 64, nvfp4": Request(concurrency=64, prompt_tokens=8192, output_tokens=1024, weight_dtype="nvfp4"),
    "tp 8": Request(batch=64, tp=8),
    "tp 8, ep 8": Request(batch=64, tp=8, ep=8),
    "dp 8, ep 8": Request(batch=64, dp=8, ep=8),
    "tp 2, dp 4": Request(batch=64, tp=2, dp=4),
    "long context": Request(prompt_tokens=64_000, output_tokens=100, cached_prefix_tokens=60_000),
}
# An engine that looks for requests rarely, more so the more it does, with a floor for expert layers, on a device whose driver says less
# than its vendor.
RARELY = dataclasses.replace(
    ENGINE,
    admission_steps=20.0,
    admission_running_power=0.35,
    admission_devices_power=0.5,
    prefill_floor_per_expert_layer_s=3e-3,
    serial_front_end_s=0.02,
)
LESS_MEMORY = dataclasses.replace(SERVER, slug="server-7e10", driver_memory_bytes=7e10)
RARE_REQUESTS = {
    "drawn lengths": Request(concurrency=64, prompt_tokens=1024, output_tokens=256, shortest_length=0.8, weight_dtype="mxfp4"),
    "more than the pool holds": Request(concurrency=512, prompt_tokens=8192, output_tokens=256, shortest_length=0.8, weight_dtype="mxfp4"),
}
SERVER_REQUESTS = {"tp 4": Request(tp=4), "pp 2": Request(pp=2), "engine": Request(concurrency=16)}


def entry(found: object) -> dict[str, float]:
    """The figures that are kept, 12 significant digits each."""
    data = dataclasses.asdict(found)  # type: ignore[call-overload]
    kept = {key: data[key] for key in ("ttft_s", "itl_s", "total_s", "first_step_s", "last_step_s", "interference_s")}
    for phase in ("prefill", "decode"):
        kept |= {f"{phase}.{key}": data[phase][key] for key in ("time_s", "floor_s", "attainable_s", "comm_s", "flops", "bytes")}
    kept["memory.weight_bytes"], kept["memory.kv_bytes"] = data["memory"]["weight_bytes"], data["memory"]["kv_bytes"]
    return {key: float(f"{value:.12g}") for key, value in kept.items()}


def build() -> dict[str, object]:
    """The grid as it is now: {"model_version", "predictions": {case: figures}}."""
    cases = {}
    for model, device in itertools.product((LLAMA_8B, WINDOWED), (SERVER, GEFORCE, OLD_CARD)):
        for name, request in REQUESTS.items():
            cases[f"{model.name} | {device.slug} | {name}"] = entry(predict(model, device, request))
    for model, (name, request) in itertools.product((MIXTURE, SPARSE_LATENT, HYBRID), MIXED_REQUESTS.items()):
        if model is HYBRID and name.startswith("tp 8"):
            request = dataclasses.replace(request, tp=4, ep=min(request.ep, 4))
        cases[f"{model.name} | {SERVER.slug} | {name}"] = entry(predict(model, SERVER, request))
    for name, request in SERVER_REQUESTS.items():
        engine = ENGINE if name == "engine" else None
        cases[f"{LLAMA_8B.name} | {SERVER.slug} | {name}"] = entry(predict(LLAMA_8B, SERVER, request, engine=engine))
    for name, request in RARE_REQUESTS.items():
        cases[f"{MIXTURE.name} | {LESS_MEMORY.slug} | {name}"] = entry(predict(MIXTURE, LESS_MEMORY, request, engine=RARELY))
    return {"model_version": MODEL_VERSION, "predictions": cases}


if __name__ == "__main__":
    FILE.write_text(json.dumps(build(), indent=1) + "\n", encoding="utf-8")
