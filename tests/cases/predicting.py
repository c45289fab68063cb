"""Adapters of the cases of kind `predictor`: configs, devices and requests in, sizes and predictions as the API gives them out.

As in adapters.py names and units are changed here, nothing is worked out.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fastapi.testclient import TestClient

from app.catalog import load
from app.domain.architecture import ModelArchitecture
from app.domain.comparison import Side, compare
from app.domain.configs import from_config
from app.domain.prediction import Request
from app.domain.run import Distribution
from app.domain.serving import predict
from app.services.comparison_json import comparison_json
from app.services.prediction_json import prediction_json
from app.services.profile_json import architecture_json
from app.services.summary import run_summary
from tests.answers import API
from tests.cases.building import Given, shown
from tests.cases.outcome import Outcome

KV_FORMATS = {2: "bf16"}
WEIGHT_FORMATS = {2: "bf16"}
# The cases leave the model_type out: the class whose keys a config has.
CLASSES = (("num_local_experts", "mixtral"), ("head_dim", "qwen3"), ("intermediate_size", "llama"))


def named(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with the model_type of the class whose keys it has."""
    return {
        "model_type": next(kind for key, kind in CLASSES if key in config),
        **{key: value for key, value in config.items() if key != "id"},
    }


def cached(given: Given, client: TestClient) -> Outcome:
    """The cache of a config; parameters too where the config has all sizes."""
    config = dict(given["config"])
    if "full_layers" in config:
        config["layer_types"] = ["full_attention"] * config.pop("full_layers") + ["sliding_attention"] * config.pop("sliding_layers")
    body = {"config": config, "kv_dtype": KV_FORMATS[given["kv_bytes"]]}
    answer = client.post(f"{API}/kv-cache", json=body | ({"context": given["context"]} if "context" in given else {}))
    found = answer.json()
    if "intermediate_size" in config:
        found["architecture"] = architecture_json(from_config(named(config)))
    return Outcome(predicted={"": found}, status=answer.status_code, text=answer.text)


def counted_parameters(given: Given, client: TestClient) -> Outcome:
    return Outcome(predicted={one["id"]: {"architecture": architecture_json(from_config(named(one)))} for one in given["configs"]})


def batches(given: Given, client: TestClient) -> Outcome:
    """One prediction for each batch."""
    model = from_config(named(given["config"]))
    device = replace(load().hardware["textbook-h100"], bandwidth_bytes_per_s=given["hardware"]["hbm_bytes_s"])
    weights = WEIGHT_FORMATS[given["bytes_per_param"]]
    asked = {batch: Request(batch=batch, weight_dtype=weights, calibration="textbook") for batch in given["batch"]}
    found = {str(batch): prediction_json(predict(model, device, request)) for batch, request in asked.items()}
    return Outcome(predicted={"": {"architecture": architecture_json(model)}, **found})


def prompts(given: Given, client: TestClient) -> Outcome:
    """One prefill for each prompt: the catalog's round 8-billion model with the case's own figures."""
    device = replace(load().hardware["textbook-h100"], achieved_flops_per_s={"bf16": given["hardware"]["achieved_flops"]})
    asked = {size: Request(prompt_tokens=size, output_tokens=1, calibration="textbook") for size in given["prompt"]}
    found = {str(size): predict(_rounded(given), device, request) for size, request in asked.items()}
    return Outcome(predicted={size: prediction_json(one) for size, one in found.items()}, phases={one.phase for one in found.values()})


def _rounded(given: Given) -> ModelArchitecture:
    base = load().models["textbook-8b"].architecture
    (group,) = base.groups
    assert group.attention is not None
    attention = replace(group.attention, heads=given["num_attention_heads"], head_dim=given["head_dim"])
    return replace(base, groups=(replace(group, count=given["layers"], attention=attention),), declared_parameters=int(given["params"]))


def planned(given: Given, client: TestClient) -> Outcome:
    """A plan against a measurement, and that measurement as it was read: with its whole time over all tokens taken for TPOT."""
    plan, measured = (shown({**given[name], "e2e_ms": given[name]["total_ms"]}) for name in ("planner", "measured"))
    spread = run_summary(measured)["metrics"]["ntpot_s"]["mean"]
    figures = {"ttft_s": measured.metrics["ttft_s"], "e2e_s": measured.metrics["e2e_s"], "tpot_s": Distribution(mean=spread)}
    misread = shown({"output_tokens": given["measured"]["output_tokens"]}, figures)
    return Outcome(
        runs={"planner": run_summary(plan), "measured": run_summary(measured), "misread": run_summary(misread)},
        comparison=comparison_json([compare(Side(1, measured), Side(2, plan))]),
    )


PREDICTING: tuple[tuple[Callable[[Given], bool], Callable[[Given, TestClient], Outcome]], ...] = (
    (lambda given: "planner" in given, planned),
    (lambda given: "configs" in given, counted_parameters),
    (lambda given: "config" in given and "batch" in given, batches),
    (lambda given: "config" in given and "kv_bytes" in given, cached),
    (lambda given: "layers" in given and isinstance(given.get("prompt"), list), prompts),
)
