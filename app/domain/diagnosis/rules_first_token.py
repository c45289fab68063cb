"""Rules whose pattern is a change before the first token: R01 to R07, R20, R26, R28."""

from app.domain.diagnosis.rule import (
    Advice,
    Rule,
    above,
    below,
    doubted,
    fact,
    fell,
    flagged,
    no_rise,
    not_flagged,
    rose,
    silent,
    still,
    within,
)
from app.domain.diagnosis.signs import NOT_PASSED_OVER, SOFTWARE_CHANGED
from app.domain.diagnosis.thresholds import BEYOND_CLOCKS, FITS, LOAD_ONLY, MOSTLY, POOL_FULL, QUADRATIC, SAME_KIND, SAME_SETTING

_TTFT = "{ttft_base_s} → {ttft_other_s}, {ttft_change}"
_SLOWER = rose("ttft_change", "The first token takes longer: {ttft_change}.")
_PROMPT_SLOWER = rose("first_itself_change", "The first token takes longer, queue and waiting steps aside: {first_itself_change}.")
_STEP_SAME = still("step_itself_change", "The step itself did not move: {step_itself_change}.")
_SETTINGS_SAME = below("prompt_settings_moved", 0.5, "No setting that is known to act on prompts was changed.")
_WITH_TOKENS = above(
    "tokens_share_of_first_change", MOSTLY, "The added time grows with the prompt: {tokens_share_of_first_change} of it is for each token."
)
_NOT_WITH_TOKENS = below(
    "tokens_share_of_first_change", LOAD_ONLY, "The added time does not grow with the prompt: {tokens_share_of_first_change} is for tokens."
)
_NO_BURSTS = above("gap_median_change", -MOSTLY, "Tokens do not come in bursts: the median gap moved by {gap_median_change}.")
_STREAM_SOUND = (
    *(not_flagged(flag, "Nothing gathers the stream.") for flag in ("ttft_equals_e2e_buffering", "transport_buffering")),
    _NO_BURSTS,
)
_CLOCK_SAME = still("sm_clock_change", "The core clock is the same: {sm_clock_change}.")
_NOT_SENDING = silent(
    below("client_send_share_of_change", MOSTLY, "It is not the client's sending: {client_send_share_of_change} of the added time.")
)
_NOT_IDLE = below("idle_added_s", 1e-9, "Requests follow one another as closely as before ({idle_added_s} more pause).")
_SEEN_ALONE = above("alone_over_loaded_ttft", LOAD_ONLY, "A lone request is slower too ({alone_ttft_change} of its time).")
_ONLY_LOADED = below(
    "alone_over_loaded_ttft", LOAD_ONLY, "A lone request hardly moved ({alone_ttft_change}), the loaded server did ({ttft_change})."
)
_NOT_BEFORE_ENGINE = below(
    "front_end_share_of_change", SAME_KIND, "It is not before the engine: {front_end_share_of_change} of the added time."
)
_WITHIN_CLOCKS = below(
    "prompt_pass_change",
    1 / BEYOND_CLOCKS - 1,
    "The prompt pass takes longer by no more than clocks can account for: {prompt_pass_change}.",
)
_AT_SERVER = above(
    "server_ttft_share_of_change", MOSTLY, "{server_ttft_share_of_change} of the added time is there by the server's own clock."
)

FIRST_TOKEN_RULES = (
    Rule(
        "R01",
        "chunked_prefill_budget",
        "The prompt is read in more chunks",
        "prefill",
        (_SLOWER, fact(above("chunks_added", 0, "A prompt now takes {chunks_other} chunks, before {chunks_base}."))),
        levers=(Advice("raise_max_num_batched_tokens", "TTFT +28 % at a quarter of the budget"), Advice("shorter_prompt")),
        sums=("⌈prompt ÷ budget⌉ = {chunks_base} → {chunks_other} chunks", _TTFT),
        refuted_by="a prompt shorter than the budget is slower by as much.",
        source="vllm-project/vllm#7604",
    ),
    Rule(
        "R01",
        None,
        "Fewer prompt tokens come from the cache",
        "prefill",
        (_SLOWER, fact(below("cached_share_added", -SAME_SETTING, "The cached part of the prompts changed by {cached_share_added}."))),
        levers=(Advice("prefix_cache", "TTFT 5.86 → 2.55 s at 66 % hits (0xBakeer/qwen38-flash-next-spark#9)"),),
        sums=(_TTFT,),
        refuted_by="the same requests with the cache flushed are as far apart.",
        source="0xBakeer/qwen38-flash-next-spark#9",
    ),
    Rule(
        "R01",
        "prefill_kernel",
        "The prompt pass itself is slower",
        "prefill",
        (_PROMPT_SLOWER, _STEP_SAME),
        (
            _SEEN_ALONE,
            _AT_SERVER,
            _NOT_IDLE,
            _NOT_SENDING,
            _CLOCK_SAME,
            _WITH_TOKENS,
            _SETTINGS_SAME,
            below("chunks_added", 0.5, "The prompt is read in as many chunks as before."),
            above(
                "prefill_rate_change", -BEYOND_CLOCKS, "The prompt pass lost less than a slower place would take: {prefill_rate_change}."
            ),
            _WITHIN_CLOCKS,
            _NOT_BEFORE_ENGINE,
            *_STREAM_SOUND,
            SOFTWARE_CHANGED,
        ),
        levers=(Advice("prefix_cache"), Advice("shorter_prompt"), Advice("more_flops")),
        sums=(_TTFT,),
        refuted_by="one request alone takes as long as before.",
        source="tabbyAPI#451",
    ),
    Rule(
        "R02",
        "scheduling_or_admission",
        "Requests wait to be admitted",
        "queue",
        (_SLOWER, _STEP_SAME),
        (
            _ONLY_LOADED,
            _AT_SERVER,
            _NOT_SENDING,
            above("queue_share_of_change", MOSTLY, "{queue_share_of_change} of the added time is in the server's queue."),
            silent(above("decoding_most_other", 1, "More than one is under way: {decoding_most_other} decode at once at most.")),
            silent(above("decoding_change", -SAME_KIND, "As many requests decode at once as before: {decoding_change}.")),
            silent(below("pool_used_share_other", POOL_FULL, "The pool of the cache is not full: {pool_used_share_other}.")),
            silent(below("preemptions_added", 1, "Nothing more was preempted.")),
            NOT_PASSED_OVER,
            silent(below("chunks_added", 0.5, "The prompt is read in as many chunks as before.")),
            silent(above("held_up_change", -MOSTLY, "A token that has to wait waits about as long: {held_up_change}.")),
            silent(
                below(
                    "stall_share_added", SAME_SETTING, "Steps do not wait for prompts more often: {stall_share_base} → {stall_share_other}."
                )
            ),
            silent(_NO_BURSTS),
            still("prefill_rate_change", "The prompt pass itself did not move: {prefill_rate_change}."),
            above(
                "ttft_growth_with_load", 1, "The ratio grows with the load: {ttft_growth_with_load} times from the lowest to the highest."
            ),
        ),
        levers=(
            Advice("lower_concurrency"),
            Advice("data_parallel_replicas"),
            Advice("raise_max_num_seqs"),
            Advice("chunked_prefill_interleave", "median TTFT up to −37 % (vllm-project/vllm#33743)"),
        ),
        sums=(_TTFT, "alone {alone_ttft_change}, under load {ttft_change}"),
        refuted_by="one request alone is slower by the same factor.",
        source="vllm-project/vllm#33743, sgl-project/sglang#11856",
    ),
    Rule(
        "R02",
        "prefill_scheduling",
        "A burst of prompts drains slower than one prompt alone",
        "queue",
        (
            _SLOWER,
            below(
                "burst_drain_over_alone",
                1,
                "The burst drains at {burst_drain_other_per_s}, one request alone at {alone_prefill_other_per_s}.",
            ),
            fell("burst_drain_change", "The burst drained at {burst_drain_base_per_s} before."),
        ),
        (_ONLY_LOADED,),
        levers=(Advice("raise_max_num_batched_tokens"), Advice("data_parallel_replicas"), Advice("lower_concurrency")),
        sums=("{burst_drain_base_per_s} → {burst_drain_other_per_s}; alone {alone_prefill_other_per_s}",),
        refuted_by="one request alone reads its prompt as slowly as the burst does.",
        source="sgl-project/sglang#11856",
    ),
    Rule(
        "R02",
        "scheduling_or_admission",
        "Each request waits for those sent before it",
        "queue",
        (flagged("server_queue_in_ttft", "TTFT grows in a straight line in the order of sending."),),
        levers=(Advice("raise_max_num_seqs"), Advice("lower_concurrency"), Advice("data_parallel_replicas")),
        sums=("{first_token_s} to the first token",),
        refuted_by="a server with room for all of them shows the same line.",
        source="vllm-project/vllm#4252",
    ),
    Rule(
        "R03",
        "idle_power_state",
        "The device or its host wakes up from a pause",
        "prefill",
        (_SLOWER, _STEP_SAME, above("idle_added_s", 0, "Requests come after {idle_added_s} more pause.")),
        levers=(),
        sums=(_TTFT, "pause {idle_added_s}"),
        refuted_by="back to back requests are as slow.",
        source="vllm-project/vllm#31602",
    ),
    Rule(
        "R03",
        None,
        "A constant stands before every first token",
        "prefill",
        (_SLOWER, _STEP_SAME, within("added_ttft_ratio", 1 - SAME_KIND, 1 + SAME_KIND, "The same time is added alone and under load.")),
        (_NOT_IDLE, _NOT_SENDING, _AT_SERVER),
        levers=(),
        sums=("{ttft_added_s} at every load",),
        refuted_by="a prompt twice as long adds twice as much.",
        source="vllm-project/vllm#7635",
    ),
    Rule(
        "R03",
        None,
        "The added time is at the server and before its engine",
        "prefill",
        (
            _SLOWER,
            above(
                "front_end_share_of_change", SAME_KIND, "{front_end_share_of_change} of the added time is in neither queue nor prompt pass."
            ),
        ),
        (_NOT_IDLE, _STEP_SAME),
        levers=(),
        sums=(_TTFT, "queue {queue_added_s}, prompt pass {prefill_added_s}, at the server in all {server_ttft_added_s}"),
        refuted_by="without tokenising (a prompt of token ids) the first token is as late.",
        source="vllm-project/vllm#7635",
    ),
    Rule(
        "R03",
        None,
        "A constant stands before every first token",
        "prefill",
        (_PROMPT_SLOWER, _STEP_SAME, _NOT_WITH_TOKENS),
        (
            _NOT_IDLE,
            _NOT_SENDING,
            _AT_SERVER,
            silent(below("prefill_share_of_change", MOSTLY, "By the server's clock {prefill_share_of_change} of it is the prompt pass.")),
            _CLOCK_SAME,
            _SETTINGS_SAME,
            *_STREAM_SOUND,
        ),
        levers=(),
        sums=(_TTFT, "without a queue {lone_ttft_base_s} → {lone_ttft_other_s}"),
        refuted_by="a prompt twice as long adds twice as much.",
        source="vllm-project/vllm#7635",
    ),
    Rule(
        "R04",
        "client_host_slow",
        "A constant is added, and the server's own clock is not known",
        "client",
        (_PROMPT_SLOWER, _STEP_SAME, _NOT_WITH_TOKENS),
        (
            above("outside_server_share_of_change", MOSTLY, "{outside_server_share_of_change} of the added time is outside the server."),
            fact(
                above(
                    "client_send_share_of_change",
                    MOSTLY,
                    "{client_send_share_of_change} of the added time passes before the client has sent its request.",
                )
            ),
            # Settings of a server that stayed the same are no word about its client.
            silent(_SETTINGS_SAME),
            *_STREAM_SOUND,
        ),
        levers=(),
        sums=(_TTFT, "without a queue {lone_ttft_base_s} → {lone_ttft_other_s}"),
        refuted_by="by the server's clock the first token takes as much longer.",
        source="aiperf#1424",
    ),
    Rule(
        "R04",
        "client_host_slow",
        "The added time lies outside the server",
        "client",
        (
            _SLOWER,
            above("outside_server_share_of_change", MOSTLY, "{outside_server_share_of_change} of the added time is outside the server."),
        ),
        (below("server_ttft_share_of_change", MOSTLY, "By the server's clock {server_ttft_added_s}."), _STEP_SAME, *_STREAM_SOUND),
        levers=(),
        sums=("({ttft_other_s} − {server_ttft_other_s}) − ({ttft_base_s} − {server_ttft_base_s}) = {outside_server_added_s}",),
        refuted_by="a client on the server's own host sees the same added time.",
        source="aiperf#1424, dstack#4269",
    ),
    Rule(
        "R04",
        None,
        "Requests wait in the client before they are sent",
        "client",
        (flagged("client_queue_excluded", "The client sends later than it was due, and its clock starts then."),),
        levers=(),
        refuted_by="latency from the schedule equals latency from sending.",
        source="vllm-project/vllm#54101",
    ),
    Rule(
        "R05",
        None,
        "Attention grows with the square of the prompt",
        "prefill",
        (
            above("quadratic_share", QUADRATIC, "At the longest prompt the quadratic term is {quadratic_share} of the first token."),
            below("fit_error", FITS, "The prompts between are within {fit_error} of the curve through the ends."),
        ),
        levers=(Advice("prefix_cache"), Advice("shorter_prompt"), Advice("more_flops")),
        sums=("{linear_s_per_token} · n + {quadratic_s_per_token2} · n²; half at {half_point_tokens} tokens",),
        refuted_by="a prompt between is off the curve by more than 10 %.",
        source="kekzl/imp#1004, omlx#3555",
    ),
    Rule(
        "R06",
        None,
        "The first requests met a cold engine",
        "prefill",
        (flagged("cold_start_outliers", "The first requests took far longer than the rest."),),
        levers=(),
        refuted_by="a second run without a restart starts as slowly.",
        source="tokenspeed#921, aws-do-eks#88",
    ),
    Rule(
        "R06",
        None,
        "The opening wave met a cold engine",
        "prefill",
        (
            above("opening_wave_added_share", MOSTLY, "The opening wave adds {opening_wave_added_s} more to the mean than before."),
            no_rise("ttft_change", "The other requests' first tokens did not take longer: {ttft_change}."),
        ),
        (doubted(_STEP_SAME),),
        levers=(),
        sums=("{opening_wave_added_s} more in the mean, {opening_wave_added_share} of the others' first token",),
        refuted_by="a second run without a restart starts as slowly.",
        source="tokenspeed#921, aws-do-eks#88",
    ),
    Rule(
        "R07",
        None,
        "Prompts came from the cache",
        "prefill",
        (flagged("prefix_cache_hits", "The prompt was read faster than arithmetic allows, or the server counts cached tokens."),),
        levers=(),
        refuted_by="prompts that no request had before are as fast.",
        source="vllm-project/vllm#18639",
    ),
    Rule(
        "R20",
        "power_cap",
        "The core clock fell, and the prompt pass with it",
        "prefill",
        (_PROMPT_SLOWER, fact(fell("sm_clock_change", "The core clock moved by {sm_clock_change}."))),
        (still("memory_clock_change", "The memory clock is the same."), _SETTINGS_SAME),
        levers=(),
        sums=("clock {sm_clock_change}, prompt tokens a second {prefill_rate_change}, step {itl_change}",),
        refuted_by="the prompt pass is as slow at the former clock.",
        source="ninfer-3090#72, 1bit-MONSTER#1216",
    ),
    Rule(
        "R20",
        "power_cap",
        "Arithmetic is slower, and the clocks are not known",
        "prefill",
        (_PROMPT_SLOWER, _STEP_SAME, _WITH_TOKENS),
        (
            fact(fell("sm_clock_change", "The core clock moved by {sm_clock_change}.")),
            _WITHIN_CLOCKS,
            _SETTINGS_SAME,
        ),
        levers=(),
        sums=("a prompt token {prefill_per_token_change}, step {step_itself_change}", _TTFT),
        refuted_by="the prompt pass is as slow at the clock that the base had.",
        source="ninfer-3090#72, 1bit-MONSTER#1216",
    ),
    Rule(
        "R20",
        "prefill_on_cpu",
        "The prompt pass runs somewhere slower",
        "prefill",
        (
            below(
                "prefill_rate_change", -BEYOND_CLOCKS, "The prompt is read at {prefill_rate_other_per_s}, before {prefill_rate_base_per_s}."
            ),
            _STEP_SAME,
        ),
        (above("sm_clock_change", -SAME_KIND, "The core clock does not account for it: {sm_clock_change}."), _NOT_BEFORE_ENGINE),
        levers=(),
        sums=("{prefill_rate_base_per_s} → {prefill_rate_other_per_s}", _TTFT),
        refuted_by="with all layers on the device the prompt pass is as slow.",
        source="ollama#12037",
    ),
    Rule(
        "R20",
        "prefill_on_cpu",
        "Each prompt token takes more than twice as long",
        "prefill",
        (
            _PROMPT_SLOWER,
            above(
                "prompt_pass_change", 1 / BEYOND_CLOCKS - 1, "The prompt pass, and each token of it, takes longer by {prompt_pass_change}."
            ),
            _STEP_SAME,
        ),
        (
            above("sm_clock_change", -SAME_KIND, "The core clock does not account for it: {sm_clock_change}."),
            _SEEN_ALONE,
            _AT_SERVER,
            _SETTINGS_SAME,
            above("tokens_share_of_first_change", MOSTLY, "{tokens_share_of_first_change} of the added time is for each token."),
            below("stall_share_added", SAME_SETTING, "No more tokens wait for prompts than before."),
            _NOT_BEFORE_ENGINE,
        ),
        levers=(),
        sums=(_TTFT, "a prompt token {prefill_per_token_change}"),
        refuted_by="with all layers on the device the prompt pass is as slow.",
        source="ollama#12037",
    ),
    Rule(
        "R26",
        "dequant_in_prefill",
        "Weights of fewer bits are expanded in the prompt pass",
        "prefill",
        (_SLOWER, fell("step_itself_change", "The step takes less: {step_itself_change}.")),
        (
            fact(below("bytes_per_parameter_change", 0, "Weights changed by {bytes_per_parameter_change}.")),
            _CLOCK_SAME,
            below("chunks_added", 0.5, "The prompt is read in as many chunks as before."),
            not_flagged("transport_buffering", "Nothing gathers the stream."),
        ),
        levers=(Advice("w8a8_or_fp8", "AWQ decodes at 97 against 38 tokens/s at batch 1 (AutoAWQ#276)"),),
        sums=("{ttft_added_s} before the first token, {itl_added_s} a step",),
        refuted_by="the wider weights are as slow in the same version.",
        source="AutoAWQ#276, Model-Optimizer#2015",
    ),
    Rule(
        "R26",
        "kv_quantisation_cost_in_prefill",
        "The cache is quantised while the prompt is read",
        "prefill",
        (_PROMPT_SLOWER, fact(below("kv_element_bytes_change", 0, "An element of the cache changed by {kv_element_bytes_change}."))),
        (_SEEN_ALONE,),
        levers=(),
        sums=(_TTFT,),
        refuted_by="the wider cache is as slow in the same version.",
        source="vllm-project/vllm#42058",
    ),
    Rule(
        "R28",
        "prefill_interference",
        "Short prompts wait for a long one",
        "queue",
        (
            _SLOWER,
            within(
                "wait_over_long_prefill",
                1 - SAME_KIND,
                1 + SAME_KIND,
                "The wait is the long prompt's own pass: {ttft_added_s} against {long_prefill_s}.",
            ),
        ),
        levers=(
            Advice("chunked_prefill_interleave", "worst gap 11.2 → 0.9 s (tenstorrent/vllm-tt-plugin#119)"),
            Advice("disaggregate_prefill"),
        ),
        sums=("{long_prompt_tokens_other} tokens take {long_prefill_s}; the wait is {ttft_added_s}",),
        refuted_by="the short prompts wait as long without the long one.",
        source="vllm-project/vllm#10235, vllm-project/vllm#21495",
    ),
)
