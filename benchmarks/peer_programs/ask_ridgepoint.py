"""Asks ridgepoint: run by `benchmarks.peers` with the interpreter of the environment it made, never imported by Phaseline.

Questions are JSON lines on standard input, answers JSON lines on standard output. It takes no number of clients, so it is asked about
single streams alone: its best figures of decode rate and time to first token.
"""

import json
import sys
from typing import Any

MODELS = {
    "meta-llama/Meta-Llama-3-8B": "llama-3-8b",
    "meta-llama/Meta-Llama-3.1-8B": "llama-3-8b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3-8b",
    "meta-llama/Meta-Llama-3-70B": "llama-3-70b",
    "meta-llama/Meta-Llama-3.1-70B": "llama-3-70b",
    "meta-llama/Llama-2-7b-hf": "llama-2-7b",
    "meta-llama/Llama-2-7b-chat-hf": "llama-2-7b",
    "mistralai/Mistral-7B-v0.1": "mistral-7b",
    "Qwen/Qwen2-7B": "qwen2.5-7b",
    "mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b",
}
DEVICES = {
    "NVIDIA A100 SXM4 40GB": "a100-40gb",
    "NVIDIA A100 SXM4 80GB": "a100-80gb",
    "NVIDIA A100 PCIe 80GB": "a100-80gb",
    "NVIDIA H100 SXM5 80GB": "h100-80gb",
    "NVIDIA H100 PCIe 80GB": "h100-80gb",
    "NVIDIA H200 SXM 141GB": "h200-141gb",
    "NVIDIA B200 SXM 180GB": "b200-192gb",
    "NVIDIA L40S": "l40s-48gb",
    "NVIDIA GeForce RTX 4090": "rtx4090-24gb",
    "NVIDIA GeForce RTX 3090": "rtx3090-24gb",
    "AMD Instinct MI300X 192GB": "mi300x-192gb",
}
FORMATS = {"bf16": "fp16", "fp16": "fp16", "fp8": "fp8", "q4_k_m": "q4_k_m", "q8_0": "q8_0", "awq": "awq", "int8": "int8"}


def estimate(question: dict[str, Any], fit: Any) -> dict[str, Any]:
    """Its answer to one question."""
    if question["kind"] != "stream" or question["sequences"] != 1:
        return {"refused": "it takes no number of clients"}
    model, device, dtype = MODELS.get(question["model"]), DEVICES.get(question["hardware"]), FORMATS.get(question["weights"])
    if model is None or device is None or dtype is None:
        return {"refused": "model, device or weight format not among its own"}
    engine = "llamacpp" if question["engine"] == "llama-cpp" else "vllm"
    context = question["prompt_tokens"] + question["output_tokens"] // 2
    try:
        sizes = {"count": question["devices"], "ctx": max(context, 1), "prompt": question["prompt_tokens"]}
        told = json.loads(fit(model, device, engine=engine, dtype=dtype, as_json=True, **sizes))
        speed = told["speed"]
        return {"ttft_s": float(speed["ttft_s"]["best"]), "itl_s": 1.0 / float(speed["decode_tok_s"]["best"])}
    except Exception as fault:  # whatever it says is its answer
        return {"refused": f"{type(fault).__name__}: {str(fault)[:60]}"}


def main() -> None:
    """Answer every line of standard input."""
    import ridgepoint

    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps({"id": question["id"], **estimate(question, ridgepoint.fit)}), flush=True)


if __name__ == "__main__":
    main()
