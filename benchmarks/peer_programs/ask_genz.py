"""Asks GenZ: run by `benchmarks.peers` with the interpreter of the environment it made, never imported by Phaseline.

Questions are JSON lines on standard input, answers JSON lines on standard output. Its two public functions answer: prefill of one prompt
and decode of a batch, on a device given by the specification (it takes one), without efficiency factors, which it leaves to its user.
"""

import contextlib
import io
import json
import sys
from typing import Any

MODELS = {
    "meta-llama/Llama-3.1-70B": "meta-llama/meta-llama-3.1-70b",
    "meta-llama/Meta-Llama-3-70B": "meta-llama/meta-llama-3.1-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/meta-llama-3.1-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/meta-llama-3.1-8b",
    "meta-llama/Meta-Llama-3-8B": "meta-llama/meta-llama-3.1-8b",
    "meta-llama/Meta-Llama-3.1-8B": "meta-llama/meta-llama-3.1-8b",
    "meta-llama/Llama-2-7b-hf": "meta-llama/Llama-2-7B",
    "meta-llama/Llama-2-7b-chat-hf": "meta-llama/Llama-2-7B",
    "deepseek-ai/DeepSeek-R1": "deepseek-ai/DeepSeek-V3-Base",
    "deepseek-ai/DeepSeek-V3": "deepseek-ai/DeepSeek-V3-Base",
    "mistralai/Mixtral-8x7B-v0.1": "mistralai/Mixtral-8x7B",
    "mistralai/Mistral-7B-v0.1": "mistralai/Mistral-7B",
}
BITS = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "int8": "int8", "nvfp4": "int4", "awq": "int4", "q4_k_m": "int4"}


def estimate(question: dict[str, Any], prefill: Any, decode: Any) -> dict[str, Any]:
    """Its answer to one question."""
    model, bits = MODELS.get(question["model"]), BITS.get(question["weights"])
    if model is None or bits is None:
        return {"refused": "model or weight format not among its own"}
    if question["dp"] > 1 or question["pp"] > 1:
        return {"refused": "data-parallel attention and layer split are not asked of it"}
    device = question["device"]
    system = {
        "Flops": device["tflops"],
        "Memory_size": device["memory_gb"],
        "Memory_BW": device["bandwidth_gb_per_s"],
        "ICN": device["link_gb_per_s"] or 1,
        "real_values": True,
    }
    tp, ep = question["tp"], question["ep"]
    common = {"model": model, "system_name": system, "bits": bits, "tensor_parallel": tp // ep, "expert_parallel": ep}
    common["parallelism_heirarchy"] = f"TP{{{tp // ep}}}_EP{{{ep}}}_PP{{1}}"
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            first = prefill(batch_size=1, input_tokens=question["prompt_tokens"], **common)
            step = decode(
                batch_size=max(round(question["sequences"]), 1),
                input_tokens=question["prompt_tokens"],
                output_tokens=question["output_tokens"],
                Bb=1,
                **common,
            )
        return {"ttft_s": float(first["Latency"]) / 1e3, "itl_s": float(step["Latency"]) / 1e3}
    except Exception as fault:  # whatever it says is its answer
        return {"refused": f"{type(fault).__name__}: {str(fault)[:60]}"}


def main() -> None:
    """Answer every line of standard input."""
    from GenZ import decode_moddeling, prefill_moddeling

    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps({"id": question["id"], **estimate(question, prefill_moddeling, decode_moddeling)}), flush=True)


if __name__ == "__main__":
    main()
