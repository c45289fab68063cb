"""The words of a diagnosis, as the cases' README lists them: phases, causes, levers, verdicts."""

from typing import Literal, get_args

Phase = Literal["prefill", "decode", "both", "queue", "client", "transport", "none"]
Cause = Literal[
    "all_experts_read", "batch_not_amortised", "chunked_prefill_budget", "client_host_slow", "compute_bound", "cpu_offload",
    "cuda_graph_ceiling", "decode_kernel", "dequant_compute_at_large_batch", "dequant_in_prefill", "dequantised_copies", "eager_mode",
    "fixed_step_overhead", "host_side_sampling", "idle_power_state", "kv_capacity", "kv_quantisation_cost_in_prefill", "lora_kernels",
    "memory_bandwidth", "missing_kernel_support", "paging_or_fallback", "power_cap", "preemption", "prefill_interference",
    "prefill_kernel", "prefill_on_cpu", "prefill_scheduling", "running_sequence_cap", "scheduling_or_admission", "tp_communication",
    "tp_fixed_cost", "wrong_device_or_offload",
]  # fmt: skip
Lever = Literal[
    "async_mask", "chunked_prefill_interleave", "cuda_graphs", "data_parallel_replicas", "disable_proxy_buffering",
    "disaggregate_prefill", "faster_grammar_backend", "fewer_bytes", "fix_interconnect", "fp8_kv", "kv_watermark", "larger_batch",
    "lower_concurrency", "merge_adapter", "more_bandwidth", "more_flops", "more_gpus", "more_quantisation", "more_threads", "more_tp",
    "no_evict_policy", "prefix_cache", "raise_graph_batch_limit", "raise_max_num_batched_tokens", "raise_max_num_seqs",
    "shorter_context", "shorter_prompt", "smaller_batch", "speculative_decoding", "w8a8_or_fp8",
]  # fmt: skip
Verdict = Literal[
    "at_roofline", "good", "ordinary", "far_below", "overhead_bound", "consistent_with_bytes", "decode_good_prefill_compute_limited",
    "quadratic_attention", "prefill_worse_decode_better", "opposite_moves_cancel", "faster_per_token", "trade_off",
]  # fmt: skip

PHASES: tuple[Phase, ...] = get_args(Phase)
CAUSES: tuple[Cause, ...] = get_args(Cause)
LEVERS: tuple[Lever, ...] = get_args(Lever)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
