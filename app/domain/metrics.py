"""The metric registry: one row per quantity, from which columns, glossary, API and the colour of a delta follow.

Definitions are those every importer maps to, whatever a tool calls the number. `other_names` says which tools
use another name for it, so that a reader of their output finds it on the glossary page.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher", "neither"]
MetricPhase = Literal["prefill", "decode", "queue", "request", "load"]
Kind = Literal["distribution", "rate"]


@dataclass(frozen=True)
class Metric:
    """One quantity: its key (with its SI unit), what it means and which way is better."""

    key: str
    title: str
    unit: str
    kind: Kind
    better: Better
    phase: MetricPhase
    definition: str
    other_names: tuple[str, ...] = ()


_ROWS = (
    Metric(
        "ttft_s",
        "TTFT",
        "s",
        "distribution",
        "lower",
        "prefill",
        "Time from sending the request to receiving its first output token of any kind, reasoning included. "
        "The server's queue is inside, the client's wait for a free slot is not.",
        ("vLLM, SGLang: ttft", "AIPerf: time_to_first_token", "llmperf: ttft_s"),
    ),
    Metric(
        "ttft_answer_s",
        "First visible answer",
        "s",
        "distribution",
        "lower",
        "prefill",
        "Time from sending the request to its first token that a reader sees, reasoning left out. Where nothing is "
        "thought before the answer it equals TTFT.",
        ("AIPerf: time_to_first_output_token",),
    ),
    Metric(
        "server_ttft_s",
        "TTFT at the server",
        "s",
        "distribution",
        "lower",
        "prefill",
        "Time from the arrival of a request at the server to its first token, by the server's own clock: queue and "
        "prompt pass, no network and no client.",
        ("vLLM /metrics: time_to_first_token_seconds",),
    ),
    Metric(
        "outside_server_s",
        "Outside the server",
        "s",
        "distribution",
        "lower",
        "request",
        "TTFT less TTFT at the server: network, gateway and the client's own host.",
    ),
    Metric(
        "ttft_per_prompt_token_s",
        "TTFT per prompt token",
        "s",
        "distribution",
        "lower",
        "prefill",
        "TTFT of one request divided by its prompt tokens, every request weighted equally. It is a bound on the prompt "
        "pass from above; far below what arithmetic needs, the prompt was cached.",
    ),
    Metric(
        "prefill_s",
        "Prefill",
        "s",
        "distribution",
        "lower",
        "prefill",
        "Server or in-process time of the prompt pass alone: no queue, no network, no front-end. "
        "Only this is compared with the compute roof; TTFT bounds it from above.",
        ("llama-bench: pp test", "SGLang one_batch: prefill_latency", "llama-server: prompt_ms"),
    ),
    Metric(
        "queue_s",
        "Queue",
        "s",
        "distribution",
        "lower",
        "queue",
        "Time a request waited inside the server before its prompt pass began.",
        ("vLLM: request_queue_time_seconds",),
    ),
    Metric(
        "client_queue_s",
        "Client queue",
        "s",
        "distribution",
        "lower",
        "queue",
        "Time a request waited inside the client, between the moment it was due and the moment it was sent. In no other "
        "latency but the one from schedule.",
        ("vLLM: queue_times, client_queue_time", "AIPerf: credit_to_start_latency", "inference-perf: schedule_delay"),
    ),
    Metric(
        "client_send_s",
        "Sending",
        "s",
        "distribution",
        "lower",
        "prefill",
        "Time from the start of a request's clock until it was sent whole: a free connection, the name's address, connecting, writing. "
        "It is the client's own part of TTFT.",
        ("AIPerf: http_req_connection_overhead + http_req_sending",),
    ),
    Metric(
        "itl_s",
        "ITL",
        "s",
        "distribution",
        "lower",
        "decode",
        "Inter-token latency, token-weighted: the sum of all decode times divided by the sum of (output tokens − 1) over the "
        "requests that succeeded, so that total = TTFT + (output tokens − 1) × ITL holds on means.",
        ("llama-bench: 1 / tg rate",),
    ),
    Metric(
        "tpot_s",
        "TPOT",
        "s",
        "distribution",
        "lower",
        "decode",
        "Time per output token of one request: (end to end - TTFT) / (output tokens − 1), every request weighted equally; "
        "undefined below two tokens.",
        ("vLLM, SGLang: tpot", "GenAI-Perf, AIPerf: inter_token_latency"),
    ),
    Metric(
        "ntpot_s",
        "Normalised latency",
        "s",
        "distribution",
        "lower",
        "request",
        "Whole time of one request divided by its output tokens, first token inside, every request weighted equally. "
        "Not a time between tokens.",
        (
            "llmperf: inter_token_latency_s",
            "inference-perf: normalized_time_per_output_token",
            "GuideLLM since 0.4: time_per_output_token_ms",
        ),
    ),
    Metric(
        "chunk_gap_s",
        "Chunk gap",
        "s",
        "distribution",
        "lower",
        "decode",
        "Observed time between two chunks of a stream. One chunk may carry several tokens, so it is not an inter-token latency until "
        "tokens per chunk are known.",
        ("vLLM: itl", "SGLang with OpenAI backends: itl", "AIPerf: inter_chunk_latency"),
    ),
    Metric(
        "step_s",
        "Decode step",
        "s",
        "distribution",
        "lower",
        "decode",
        "Time of one pass of the decode phase: ITL times the tokens that one step gives a sequence (more than one with "
        "speculation). This, not ITL, meets the memory roofline.",
        ("SGLang one_batch: decode latency", "llama-batched-bench: t_tg / tg"),
    ),
    Metric(
        "decode_s",
        "Decode phase",
        "s",
        "distribution",
        "lower",
        "decode",
        "Time of one request from its first output token to its last: end to end less TTFT.",
        ("vLLM /metrics: request_decode_time_seconds",),
    ),
    Metric(
        "e2e_s",
        "Whole request",
        "s",
        "distribution",
        "lower",
        "request",
        "Time from sending the request to its last content token.",
        ("vLLM: e2el", "SGLang: e2e_latency", "AIPerf: request_latency"),
    ),
    Metric(
        "e2e_from_schedule_s",
        "Whole request from schedule",
        "s",
        "distribution",
        "lower",
        "request",
        "Time from the moment the request was due to its last content token: the client's wait for a free slot is "
        "inside, so that a server that falls behind cannot look healthy.",
    ),
    Metric(
        "idle_before_s",
        "Idle before",
        "s",
        "distribution",
        "neither",
        "load",
        "Time that nothing was in flight before a request was sent, where requests follow one another singly.",
    ),
    Metric(
        "prefill_tokens_per_s",
        "Prefill rate",
        "tokens/s",
        "rate",
        "higher",
        "prefill",
        "Prompt tokens divided by the time of the prompt pass; from TTFT it includes queue and front-end and says so.",
        ("llama-bench: pp t/s",),
    ),
    Metric(
        "decode_tokens_per_s",
        "Decode rate",
        "tokens/s",
        "rate",
        "higher",
        "decode",
        "What one request sees: 1 / ITL. Not the server's sum.",
        ("llama-bench: tg t/s", "InferenceMAX: interactivity"),
    ),
    Metric(
        "interactivity_tokens_per_s",
        "Interactivity",
        "tokens/s",
        "rate",
        "higher",
        "decode",
        "Tokens per second that one user sees arrive after the first: 1 / mean TPOT. Not output tokens / whole time, "
        "which counts the wait for the first.",
        ("InferenceMAX: intvty", "AIPerf: output_token_throughput_per_user"),
    ),
    Metric(
        "e2e_output_tokens_per_s",
        "Output rate of a request",
        "tokens/s",
        "rate",
        "higher",
        "request",
        "Output tokens of a mean request divided by its whole time, the wait for the first token inside: the other axis "
        "beside interactivity.",
        ("llmperf: request_output_throughput_token_per_s",),
    ),
    Metric(
        "output_tokens_per_s",
        "Output throughput",
        "tokens/s",
        "rate",
        "higher",
        "load",
        "Output tokens of all successful requests divided by the duration of the run: the server's sum, not one request's rate.",
        ("vLLM, SGLang: output_throughput",),
    ),
    Metric(
        "steady_output_tokens_per_s",
        "Output throughput, steady",
        "tokens/s",
        "rate",
        "higher",
        "load",
        "Output tokens per second between the first and the last moment at which every client had a request in flight: "
        "filling and draining are outside.",
    ),
    Metric(
        "input_tokens_per_s",
        "Input throughput",
        "tokens/s",
        "rate",
        "higher",
        "load",
        "Prompt tokens of all successful requests divided by the duration of the run.",
        ("vLLM: input_throughput", "inference-perf: input_tokens_per_sec"),
    ),
    Metric(
        "total_tokens_per_s",
        "Total throughput",
        "tokens/s",
        "rate",
        "higher",
        "load",
        "Prompt and output tokens of all successful requests divided by the duration of the run.",
        ("vLLM: total_token_throughput",),
    ),
    Metric(
        "requests_per_s",
        "Requests",
        "requests/s",
        "rate",
        "higher",
        "load",
        "Successful requests divided by the duration of the run.",
        ("vLLM, SGLang: request_throughput",),
    ),
    Metric(
        "goodput_requests_per_s",
        "Goodput",
        "requests/s",
        "rate",
        "higher",
        "load",
        "Successful requests that met every objective of their service level, divided by the duration of the run.",
        ("vLLM: request_goodput", "AIPerf: goodput"),
    ),
    Metric(
        "energy_per_output_token_j",
        "Energy per output token",
        "J",
        "rate",
        "lower",
        "load",
        "Energy of the device over the run divided by the output tokens of that run: prompt passes and idle time are inside. By the "
        "device's own counter where it has one, else power over time.",
    ),
    Metric(
        "sm_clock_hz",
        "Core clock",
        "Hz",
        "distribution",
        "neither",
        "load",
        "Clock of the device's arithmetic units while the run lasted; it moves prefill.",
        ("NVML: SM clock",),
    ),
    Metric(
        "memory_clock_hz",
        "Memory clock",
        "Hz",
        "distribution",
        "neither",
        "load",
        "Clock of the device's memory while the run lasted; it moves decode.",
        ("NVML: memory clock",),
    ),
    Metric(
        "intensity_flops_per_byte",
        "Work per byte",
        "FLOP/byte",
        "rate",
        "neither",
        "load",
        "Floating-point operations of one device divided by the bytes it read and wrote, as the server counted them over the run: "
        "where the run stands along the roofline.",
        ("vLLM: estimated_flops_per_gpu / (estimated_read_bytes_per_gpu + estimated_write_bytes_per_gpu)",),
    ),
    Metric(
        "flops_per_s",
        "Work rate",
        "FLOP/s",
        "rate",
        "higher",
        "load",
        "Floating-point operations of one device, as the server counted them, divided by the duration of the run, idle time inside.",
        ("vLLM: rate of estimated_flops_per_gpu_total",),
    ),
    Metric(
        "bytes_per_s",
        "Memory rate",
        "bytes/s",
        "rate",
        "higher",
        "load",
        "Bytes that one device read and wrote, as the server counted them, divided by the duration of the run, idle time inside.",
        ("vLLM: rate of estimated_read_bytes_per_gpu_total and estimated_write_bytes_per_gpu_total",),
    ),
    Metric(
        "lone_ttft_s",
        "TTFT without a queue",
        "s",
        "distribution",
        "lower",
        "prefill",
        "TTFT of the requests that were sent while no other waited for its first token: the prompt pass and what stands before it, without "
        "a queue.",
    ),
    Metric(
        "cached_prompt_tokens",
        "Cached prompt tokens",
        "tokens",
        "distribution",
        "neither",
        "prefill",
        "Prompt tokens of a request that the server found in its cache and did not compute, as its usage counts them.",
    ),
    Metric(
        "prefill_fixed_s",
        "Prefill, fixed part",
        "s",
        "distribution",
        "lower",
        "prefill",
        "The part of TTFT without a queue that does not depend on the prompt: the intercept of its line over prompt lengths, its standard "
        "error as the spread.",
    ),
    Metric(
        "prefill_per_token_s",
        "Prefill, each prompt token",
        "s",
        "distribution",
        "lower",
        "prefill",
        "What a further prompt token adds to TTFT without a queue: the slope of its line over prompt lengths, its standard error as the "
        "spread.",
    ),
    Metric(
        "step_quiet_s",
        "Step without prompts",
        "s",
        "distribution",
        "lower",
        "decode",
        "The lower quartile of the gaps in which no other request's first token came, for each number of decoding requests, averaged over "
        "the gaps: the decode step itself, without the prompts of others.",
    ),
    Metric(
        "step_fixed_s",
        "Step, fixed part",
        "s",
        "distribution",
        "lower",
        "decode",
        "The part of the step without prompts that does not grow with the batch: the intercept of its line over the number of decoding "
        "requests, its standard error as the spread.",
    ),
    Metric(
        "step_per_sequence_s",
        "Step, each sequence",
        "s",
        "distribution",
        "lower",
        "decode",
        "What a further decoding request adds to the step without prompts: the slope of its line over their number, its standard error as "
        "the spread.",
    ),
    Metric(
        "stall_s",
        "Stall",
        "s",
        "distribution",
        "lower",
        "decode",
        "A gap of twice the step without prompts or more, at the number of requests that decoded meanwhile: a prompt of somebody else, a "
        "preemption, a hiccup. Its count is that of all such gaps.",
    ),
    Metric(
        "passed_over_s",
        "Passed over",
        "s",
        "distribution",
        "lower",
        "decode",
        "A stall in which the other requests that decoded went on and got several tokens each: no pass held it up, its sequence was put "
        "out and computed again. Its count is that of all such stalls.",
    ),
    Metric(
        "decoding_requests",
        "Decoding requests",
        "requests",
        "distribution",
        "neither",
        "load",
        "Requests between their first and their last token, weighted by time, while there was any: how large the batch was.",
    ),
)

METRICS: Mapping[str, Metric] = {metric.key: metric for metric in _ROWS}
