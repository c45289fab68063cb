"""Rows for the rules about first tokens and batches, in the order of the table."""

from app.domain.run import Distribution
from tests.domain.diagnosis.measured import loads
from tests.domain.diagnosis.pattern_rows import (
    BYTES,
    CONSTANT,
    PLATEAU,
    Row,
    bursts,
    flag,
    jump,
    means,
    prompts,
    rowed,
    single,
    wave,
)

FIRST_TOKEN = (
    means(
        "R01",
        "The prompt is read in more chunks",
        # 6,000 tokens at once, then in three pieces of 2,048.
        {"ttft": 0.30, "itl": 0.02, "prompt": 6000, "setup": {"chunk_budget_tokens": 8192}},
        {"ttft": 0.42, "itl": 0.02, "prompt": 6000, "setup": {"chunk_budget_tokens": 2048}},
        {"setup": {"chunk_budget_tokens": 8192}},
    ),
    means(
        "R01",
        "Fewer prompt tokens come from the cache",
        {"ttft": 0.2, "itl": 0.02, "setup": {"cached_share": 0.6}},
        {"ttft": 0.5, "itl": 0.02, "setup": {"cached_share": 0.1}},
        {"setup": {"cached_share": 0.59}},
    ),
    means(
        "R01",
        "The prompt pass itself is slower",
        {"ttft": 0.21, "itl": 0.02, "sm": 2e9},
        {"ttft": 0.31, "itl": 0.02, "sm": 2e9},
        {"sm": 1.5e9},
    ),
    Row(
        "R02",
        "Requests wait to be admitted",
        (
            loads((1, {"ttft": 0.1, "itl": 0.01}), (32, {"ttft": 0.4, "itl": 0.02})),
            loads((1, {"ttft": 0.1, "itl": 0.01}), (32, {"ttft": 0.9, "itl": 0.02})),
        ),
        # Alone 120 % more, too.
        (
            loads((1, {"ttft": 0.1, "itl": 0.01}), (32, {"ttft": 0.4, "itl": 0.02})),
            loads((1, {"ttft": 0.22, "itl": 0.01}), (32, {"ttft": 0.9, "itl": 0.02})),
        ),
    ),
    # 4,000 tokens in 2 s are 2,000 a second, in 5 s 800; alone 1,000. In 3.9 s they are 1,026.
    Row("R02", "A burst of prompts drains slower than one prompt alone", bursts(0.4, 2.0, 5.0), bursts(0.4, 2.0, 3.9)),
    flag("R02", "Each request waits for those sent before it", "server_queue_in_ttft"),
    means(
        "R03",
        "The device or its host wakes up from a pause",
        {"ttft": 0.05, "itl": 0.02, "idle": 0.0},
        {"ttft": 0.12, "itl": 0.02, "idle": 20.0},
        {"idle": 0.0},
    ),
    Row(
        "R03",
        "A constant stands before every first token",
        # 150 ms more alone and under load; then 150 and 600.
        (
            loads((1, {"ttft": 0.1, "itl": 0.01}), (16, {"ttft": 0.5, "itl": 0.02})),
            loads((1, {"ttft": 0.25, "itl": 0.01}), (16, {"ttft": 0.65, "itl": 0.02})),
        ),
        (
            loads((1, {"ttft": 0.1, "itl": 0.01}), (16, {"ttft": 0.5, "itl": 0.02})),
            loads((1, {"ttft": 0.25, "itl": 0.01}), (16, {"ttft": 1.1, "itl": 0.02})),
        ),
    ),
    means(
        "R03",
        "The added time is at the server and before its engine",
        {"ttft": 0.2, "itl": 0.02, "server": 0.19, "queue": 0.02, "prefill": 0.15},
        {"ttft": 0.4, "itl": 0.02, "server": 0.39, "queue": 0.02, "prefill": 0.15},
        {"prefill": 0.35},
    ),
    # 130 ms more by a constant, then by 0.13 ms more for each of 1,000 tokens.
    rowed("R03", "A constant stands before every first token", CONSTANT, {"prefill": (0.03, 1.8e-4)}),
    rowed(
        "R04",
        "A constant is added, and the server's own clock is not known",
        CONSTANT,
        {"client_send_s": Distribution(mean=0.001)},
        before={"client_send_s": Distribution(mean=0.001)},
    ),
    means(
        "R04",
        "The added time lies outside the server",
        {"ttft": 0.1, "itl": 0.01, "server": 0.08},
        {"ttft": 0.5, "itl": 0.01, "server": 0.082},
        {"server": 0.47},
    ),
    flag("R04", "Requests wait in the client before they are sent", "client_queue_excluded"),
    # 2e-4 n + 4e-9 n²: 0.416, 5.6 and 41.6 s; with 7.3 s in the middle no such curve.
    Row(
        "R05",
        "Attention grows with the square of the prompt",
        prompts((2e3, 0.416), (2e4, 5.6), (8e4, 41.6)),
        prompts((2e3, 0.416), (2e4, 7.3), (8e4, 41.6)),
    ),
    flag("R06", "The first requests met a cold engine", "cold_start_outliers"),
    rowed("R06", "The opening wave met a cold engine", {"flags": wave(1.7)}, {"flags": wave(0.16)}, base={"flags": wave(0.15)}),
    flag("R07", "Prompts came from the cache", "prefix_cache_hits"),
    means(
        "R20",
        "The core clock fell, and the prompt pass with it",
        {"ttft": 0.3, "itl": 0.02, "sm": 1.9e9, "memory": 1e10},
        {"ttft": 0.4, "itl": 0.02, "sm": 1.4e9, "memory": 1e10},
        {"memory": 7e9},
    ),
    rowed("R20", "Arithmetic is slower, and the clocks are not known", {"prefill": (0.03, 7e-5), "ttft": 0.15}, {"prefill": (0.05, 5e-5)}),
    means(
        "R20",
        "The prompt pass runs somewhere slower",
        {"prefill_rate": 1200, "decode_rate": 25, "prompt": 1000},
        {"prefill_rate": 200, "decode_rate": 25.1, "prompt": 1000},
        {"decode_rate": 12},
    ),
    rowed("R20", "Each prompt token takes more than twice as long", {"prefill": (0.03, 2.6e-4), "ttft": 0.34}, {"prefill": (0.03, 7e-5)}),
    means(
        "R26",
        "Weights of fewer bits are expanded in the prompt pass",
        {"ttft": 0.2, "itl": 0.03, "setup": {"bytes_per_parameter": 2}},
        {"ttft": 0.3, "itl": 0.015, "setup": {"bytes_per_parameter": 0.5}},
        {"setup": {"bytes_per_parameter": 2}},
    ),
    means(
        "R26",
        "The cache is quantised while the prompt is read",
        {"ttft": 0.2, "itl": 0.02, "setup": {"kv_element_bytes": 2}},
        {"ttft": 0.26, "itl": 0.02, "setup": {"kv_element_bytes": 1}},
        {"setup": {"kv_element_bytes": 2}},
    ),
    # 30,000 tokens at 5,000 a second are 6 s.
    means(
        "R28",
        "Short prompts wait for a long one",
        {"ttft": 0.2, "prefill_rate": 5000},
        {"ttft": 6.2, "prefill_rate": 5000, "setup": {"long_prompt_tokens": 30000}},
        {"ttft": 1.2},
    ),
)
BATCH = (
    single("R08", "The step is the reading of its bytes", {"itl": 0.012, "setup": BYTES}, {"itl": 0.02}),
    means(
        "R08",
        "A step reads more bytes",
        {"itl": 0.011, "setup": {**BYTES, "bytes_per_parameter": 1}},
        {"itl": 0.021, "setup": {**BYTES, "step_weight_bytes": 2e10, "bytes_per_parameter": 2}},
        {"setup": {**BYTES, "step_weight_bytes": 2e10, "bytes_per_parameter": 1}},
    ),
    # 2 · 7e9 · 6,050 are 85 TFLOP/s: of 600 a seventh, of 140 most.
    Row(
        "R09",
        "A step grows with its batch and the rate does not",
        (loads((128, {"itl": 0.02, "rate": 6000}), (256, {"itl": 0.04, "rate": 6050}), setup=PLATEAU),),
        (loads((128, {"itl": 0.02, "rate": 6000}), (256, {"itl": 0.04, "rate": 6050}), setup={**PLATEAU, "peak_flops_per_s": 1.4e14}),),
    ),
    Row(
        "R09",
        "The batch has filled the arithmetic",
        (loads((128, {"itl": 0.02, "rate": 6000}), (256, {"itl": 0.04, "rate": 6050}), setup={**PLATEAU, "peak_flops_per_s": 1.4e14}),),
        (loads((128, {"itl": 0.02, "rate": 6000}), (256, {"itl": 0.021, "rate": 11800}), setup={**PLATEAU, "peak_flops_per_s": 1.4e14}),),
    ),
    Row(
        "R09",
        "Small weights win alone and lose in a batch",
        (
            loads((1, {"itl": 0.02}), (64, {"itl": 0.03}), setup={"bytes_per_parameter": 2}),
            loads((1, {"itl": 0.012}), (64, {"itl": 0.05}), setup={"bytes_per_parameter": 0.5}),
        ),
        (
            loads((1, {"itl": 0.02}), (64, {"itl": 0.03}), setup={"bytes_per_parameter": 2}),
            loads((1, {"itl": 0.02}), (64, {"itl": 0.05}), setup={"bytes_per_parameter": 0.5}),
        ),
    ),
    means(
        "R09",
        "Fewer bytes did not make the step shorter",
        {"itl": 0.0125, "setup": BYTES},
        {"itl": 0.0126, "setup": {**BYTES, "step_weight_bytes": 5e9}},
        {"itl": 0.008},
    ),
    Row(
        "R11",
        "Beyond the captured batch each kernel is launched by itself",
        *(
            (
                loads(
                    *((n, {"itl": step}) for n, step in ((8, 0.005), (16, 0.0052), (32, 0.0056), (33, 0.012), (64, 0.013))),
                    setup={"graph_limit": limit},
                ),
            )
            for limit in (32, 16)
        ),
    ),
    rowed(
        "R11",
        "Above some number of sequences a step is of another kind now",
        {"fixed": 0.014, "each": 0.0005, "itl": 0.027, "flags": jump(1.6)},
        {"flags": jump(1.1)},
    ),
    # Twenty decode at once at most: more than eight, fewer than sixty-four.
    rowed(
        "R11",
        "The batch is larger than what is captured now",
        {"fixed": 0.016, "itl": 0.022, "setup": {"graph_limit": 8}},
        {"setup": {"graph_limit": 64}},
        base={"setup": {"graph_limit": 256}},
    ),
    rowed(
        "R12",
        "Requests wait for room in the pool of the cache",
        {"ttft": 2.4, "itl": 0.015, "decoding": 7.0, "most": 7.0, "setup": {"pool_used_share": 0.99}},
        {"setup": {"pool_used_share": 0.5}},
    ),
    means(
        "R12",
        "The pool of the cache is full",
        {"ttft": 0.2, "itl": 0.02, "setup": {"pool_used_share": 0.6}},
        {"ttft": 0.2, "itl": 0.03, "setup": {"pool_used_share": 0.98}},
        {"setup": {"pool_used_share": 0.8}},
    ),
    means(
        "R12",
        "Sequences are put out and computed again",
        {"ttft": 0.2, "itl": 0.02, "output": 100, "setup": {"preemptions": 2}},
        {"ttft": 0.2, "itl": 0.03, "output": 100, "setup": {"preemptions": 42}},
        {"setup": {"preemptions": 2}},
    ),
    # Twenty in fifty requests, then one.
    rowed(
        "R12",
        "Sequences wait in the middle of their answers while the others go on",
        {"ttft": 1.9, "passed_over_s": Distribution(mean=0.6, n=20)},
        {"passed_over_s": Distribution(mean=0.6, n=1)},
    ),
    single(
        "R13",
        "Steps wait for the prompts of others",
        {"itl": 0.02, "flags": ("bimodal_itl",), "setup": {"preemptions": 0}},
        {"setup": {"preemptions": 9}},
    ),
    rowed(
        "R13",
        "Steps wait for prompts more often",
        {"stalls": (1400, 0.1), "itl": 0.028},
        {"setup": {"chunk_budget_tokens": 8192}},
        before={"setup": {"chunk_budget_tokens": 2048}},
    ),
    # Its own prompts are 50 · 1,000 tokens.
    rowed(
        "R13",
        "The server reads the prompts of somebody else as well",
        {"itl": 0.031, "setup": {"served_prompt_tokens": 150_000}},
        {"setup": {"served_prompt_tokens": 50_400}},
        base={"setup": {"served_prompt_tokens": 50_000}},
    ),
    rowed(
        "R14",
        "Prompts are read in smaller pieces: they take longer, and nobody waits as long for them",
        {"ttft": 0.21, "stalls": (320, 0.028)},
        {"setup": {"chunk_budget_tokens": 4096}},
        before={"setup": {"chunk_budget_tokens": 4096}},
    ),
    rowed(
        "R14",
        "Prompts are read in larger pieces: they take less, and others wait longer for them",
        {},
        {"setup": {"chunk_budget_tokens": 4096}},
        base={"ttft": 0.21, "stalls": (320, 0.028)},
        before={"setup": {"chunk_budget_tokens": 4096}},
    ),
    means(
        "R14",
        "A smaller chunk budget trades the first token for the tail",
        {"ttft": 0.4, "itl": 0.02, "tail": 0.4, "setup": {"chunk_budget_tokens": 16384}},
        {"ttft": 0.5, "itl": 0.0201, "tail": 0.15, "setup": {"chunk_budget_tokens": 4096}},
        {"tail": 0.4},
    ),
)
