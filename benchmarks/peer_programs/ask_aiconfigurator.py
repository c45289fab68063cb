"""Asks aiconfigurator: run by `benchmarks.peers` with the interpreter of the environment it made, never imported by Phaseline.

Questions are JSON lines on standard input, answers JSON lines on standard output: {"id", "ttft_s", "itl_s"} or {"id", "refused"}.
Its own public function `cli_estimate` answers; only the reading of its YAML files is remembered between calls, which changes no figure.
"""

import copy
import json
import logging
import sys
import warnings
from typing import Any

import yaml

SYSTEMS = {
    "NVIDIA H100 SXM5 80GB": "h100_sxm",
    "NVIDIA H100 PCIe 80GB": "h100_pcie",
    "NVIDIA H200 SXM 141GB": "h200_sxm",
    "NVIDIA B200 SXM 180GB": "b200_sxm",
    "NVIDIA B300 SXM 288GB": "b300_sxm",
    "NVIDIA GB200 192GB": "gb200",
    "NVIDIA GB300 288GB": "gb300",
    "NVIDIA A100 SXM4 80GB": "a100_sxm",
    "NVIDIA A100 PCIe 80GB": "a100_pcie",
    "NVIDIA L40S": "l40s",
    "NVIDIA RTX PRO 6000 Blackwell Server": "rtx_pro_6000_server",
}
BACKENDS = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
# The quantisation of a checkpoint is part of the model's name there: the names of the published checkpoints.
CHECKPOINTS = {
    ("Qwen/Qwen3-32B", "fp8"): "Qwen/Qwen3-32B-FP8",
    ("Qwen/Qwen3-32B", "nvfp4"): "nvidia/Qwen3-32B-NVFP4",
    ("meta-llama/Llama-3.1-70B", "bf16"): "meta-llama/Meta-Llama-3.1-70B",
    ("meta-llama/Llama-3.1-8B-Instruct", "bf16"): "meta-llama/Meta-Llama-3.1-8B",
}
GEMM = {"bf16": "bfloat16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4", "int4_wo": "int4_wo"}
_SAFE_LOAD = yaml.load
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_parsed: dict[str, Any] = {}


def remembered_load(stream: Any) -> Any:
    """yaml.safe_load that parses each text once."""
    text = stream if isinstance(stream, str) else stream.read()
    if text not in _parsed:
        _parsed[text] = _SAFE_LOAD(text, Loader=_LOADER)  # a safe loader
    return copy.deepcopy(_parsed[text])


def estimate(question: dict[str, Any], ask: Any) -> dict[str, Any]:
    """Its answer to one question, with what it is told of the deployment and nothing it was not told."""
    system, backend = SYSTEMS.get(question["hardware"]), BACKENDS.get(question["engine"])
    if system is None or backend is None:
        return {"refused": "device or engine not supported"}
    if question["kind"] != "served":
        return {"refused": "not a served load"}
    moe = question["experts"]
    wanted: dict[str, Any] = {
        "system_name": system,
        "backend_name": backend,
        "database_mode": "HYBRID",
        "isl": question["prompt_tokens"],
        "osl": question["output_tokens"],
        "batch_size": max(round(question["sequences"] / question["dp"]), 1),
        "tp_size": question["tp"],
        "attention_dp_size": question["dp"],
    }
    if moe:
        wanted |= {"moe_ep_size": question["ep"], "moe_tp_size": question["devices"] // question["ep"]}
        wanted |= {"moe_quant_mode": MOE.get(question["expert_dtype"])} if question["expert_dtype"] in MOE else {}
    names = [CHECKPOINTS.get((question["model"], question["weight_dtype"])), question["model"], *question["other_names"]]
    last = "no name"
    for name in dict.fromkeys(name for name in names if name):
        gemm = None if moe else GEMM.get(question["weight_dtype"])
        for quantised in dict.fromkeys((gemm, None)):
            try:
                found = ask(model_path=name, **wanted, **({"gemm_quant_mode": quantised} if quantised else {}))
                return {"ttft_s": float(found.ttft) / 1e3, "itl_s": float(found.tpot) / 1e3, "asked": name}
            except Exception as fault:  # whatever it says is its answer
                last = f"{type(fault).__name__}: {str(fault)[:120]}"
    return {"refused": last}


MOE = {"bf16": "bfloat16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4", "int4_wo": "int4_wo"}


def main() -> None:
    """Answer every line of standard input."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    yaml.safe_load = remembered_load
    from aiconfigurator.cli.api import cli_estimate

    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps({"id": question["id"], **estimate(question, cli_estimate)}), flush=True)


if __name__ == "__main__":
    main()
