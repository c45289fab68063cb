"""Rows for the rules about the step and about the whole, in the order of the table."""

from dataclasses import replace

from tests.domain.diagnosis.measured import loads
from tests.domain.diagnosis.pattern_rows import (
    BYTES,
    GATHERED,
    Row,
    devices,
    flag,
    means,
    prompts,
    repeats,
    rowed,
    single,
)

STEP = (
    Row(
        "R15",
        "A step grows with the context it reads",
        prompts((1e3, 0.010), (1.6e4, 0.014), key="itl"),
        prompts((1e3, 0.010), (1.6e4, 0.0101), key="itl"),
    ),
    # Of 10 ms the bytes were 2; of 3 they would be most.
    means(
        "R16",
        "A fixed cost of each step, not its bytes",
        {"itl": 0.010, "setup": {"step_weight_bytes": 4e9, "bandwidth_bytes_per_s": 2e12}},
        {"itl": 0.0115, "setup": {"step_weight_bytes": 2e9, "bandwidth_bytes_per_s": 2e12}},
        {},
        before={"itl": 0.003},
    ),
    Row(
        "R16",
        "The same time is added to every step at every load",
        (loads((1, {"itl": 0.006}), (32, {"itl": 0.012})), loads((1, {"itl": 0.009}), (32, {"itl": 0.0151}))),
        (loads((1, {"itl": 0.006}), (32, {"itl": 0.012})), loads((1, {"itl": 0.009}), (32, {"itl": 0.0125}))),
    ),
    rowed(
        "R16",
        "Every pass takes the same time more, whatever is in it",
        {"fixed": 0.017, "itl": 0.023, "prefill": (0.038, 5e-5), "ttft": 0.139, "setup": {"eager": 0.0}},
        {"setup": {"eager": 1.0}},
        base={"setup": {"eager": 0.0}},
    ),
    single(
        "R16",
        "Launches and communication, not reading, make up the step",
        {"itl": 0.004, "setup": {"step_weight_bytes": 1.6e9, "bandwidth_bytes_per_s": 4e12}},
        {"setup": {"step_weight_bytes": 6e9, "bandwidth_bytes_per_s": 4e12}},
    ),
    means(
        "R16",
        "Graphs are off: each kernel is launched by itself",
        {"itl": 0.010, "setup": {"eager": 0.0}},
        {"itl": 0.014, "setup": {"eager": 1.0}},
        {"setup": {"eager": 0.0}},
    ),
    means(
        "R16",
        "Adapters add kernels to every layer",
        {"itl": 0.010, "setup": {"adapters": 0.0}},
        {"itl": 0.013, "setup": {"adapters": 1.0}},
        {"setup": {"adapters": 0.0}},
    ),
    # 1 ms for each of 4 and of 16 sequences; then 4 ms and 1.
    Row(
        "R17",
        "The host works for each sequence, one after another",
        (loads((4, {"itl": 0.010}), (16, {"itl": 0.013})), loads((4, {"itl": 0.014}), (16, {"itl": 0.029}))),
        (loads((4, {"itl": 0.010}), (16, {"itl": 0.013})), loads((4, {"itl": 0.014}), (16, {"itl": 0.014}))),
    ),
    rowed(
        "R17",
        "Each running sequence adds time to the step",
        {"each": 0.0008, "itl": 0.029, "setup": {"eager": 0.0}},
        {"setup": {"eager": 1.0}},
        base={"setup": {"eager": 0.0}},
    ),
    means(
        "R18",
        "Drafts were turned on in a large batch, and a phase takes longer",
        {"ttft": 0.2, "itl": 0.02, "clients": 32, "setup": {"speculative": 0.0}},
        {"ttft": 0.2, "itl": 0.03, "clients": 32, "setup": {"speculative": 1.0}},
        {"setup": {"speculative": 0.0}},
    ),
    Row(
        "R18",
        "Verifying drafts competes for arithmetic in a large batch",
        (
            loads((1, {"itl": 0.02}), (64, {"itl": 0.03}), setup={"speculative": 0.0}),
            loads((1, {"itl": 0.012}), (64, {"itl": 0.04}), setup={"speculative": 1.0}),
        ),
        (
            loads((1, {"itl": 0.02}), (64, {"itl": 0.03}), setup={"speculative": 0.0}),
            loads((1, {"itl": 0.021}), (64, {"itl": 0.04}), setup={"speculative": 1.0}),
        ),
    ),
    # 20 ms; with a twentieth at 25 GB/s 19 + 40: 2.95 times. Measured 2.9 times, then 5.
    means(
        "R21",
        "More of the weights lie in slower memory",
        {"itl": 0.022, "setup": {**BYTES, "step_weight_bytes": 2e10, "slow_bandwidth_bytes_per_s": 2.5e10, "fast_share": 1.0}},
        {"itl": 0.063, "setup": {**BYTES, "step_weight_bytes": 2e10, "slow_bandwidth_bytes_per_s": 2.5e10, "fast_share": 0.95}},
        {"itl": 0.11},
    ),
    means(
        "R21",
        "The memory clock fell, and the step with it",
        {"ttft": 0.2, "itl": 0.02, "sm": 1.9e9, "memory": 1e10},
        {"ttft": 0.2, "itl": 0.026, "sm": 1.9e9, "memory": 7.5e9},
        {"sm": 1.4e9},
    ),
    # Step by 1.25 at every number of sequences, then by 3 ms at each.
    rowed("R21", "Reading is slower, and the clocks are not known", {"fixed": 0.015, "each": 0.00025, "itl": 0.022}, {"each": 0.0002}),
    rowed(
        "R21",
        "The kernels of the step are slower",
        {"fixed": 0.0162, "each": 0.00027, "itl": 0.024, "setup": {"eager": 0.0}},
        {"setup": {"eager": 1.0}},
        base={"setup": {"eager": 0.0}},
    ),
    # 28 GB a token where the active weights are 3 and all are 30; then 10.
    single(
        "R21",
        "Every expert is read, not only the chosen ones",
        {"itl": 0.01, "bytes_rate": 2.8e12, "setup": {"parameters": 3e10, "active_parameters": 3e9, "bytes_per_parameter": 1}},
        {"bytes_rate": 1e12},
    ),
    # 13 of 14 GB of expanded weights a token; then 5.
    single(
        "R21",
        "Weights are expanded before they are read",
        {"itl": 0.01, "bytes_rate": 1.3e12, "setup": {"parameters": 7e9, "bytes_per_parameter": 0.5, "compute_bytes_per_parameter": 2}},
        {"bytes_rate": 5e11},
    ),
    single(
        "R19",
        "More is held than the device's memory has room for",
        {"itl": 0.045, "setup": {**BYTES, "held_share": 0.97}},
        {"setup": {**BYTES, "held_share": 0.8}},
    ),
    single("R19", "The step is too far from the floor for this device", {"itl": 0.12, "setup": BYTES}, {"itl": 0.04}),
    # 20 ms ÷ devices + 6, then + 0.5.
    Row(
        "R25",
        "A part of the step that more devices do not share",
        devices((1, 0.026), (2, 0.016), (4, 0.011)),
        devices((1, 0.0205), (2, 0.0105), (4, 0.0055)),
    ),
    # 30 layers · 2 · 0.2 ms are 12 ms of 22; then 1.2.
    Row(
        "R25",
        "Devices wait for each other",
        devices((1, 0.020), (2, 0.022), layers=30, all_reduces_per_layer=2, all_reduce_s=2e-4),
        devices((1, 0.020), (2, 0.022), layers=30, all_reduces_per_layer=2, all_reduce_s=2e-5),
    ),
    # Twice as fast on four times as many; then 3.3 times.
    means(
        "R25",
        "More devices, and the step gained less than they promise",
        {"itl": 0.02, "setup": {"devices": 1}},
        {"itl": 0.010, "setup": {"devices": 4}},
        {"itl": 0.006},
    ),
    means(
        "R25",
        "More devices, and the step got longer",
        {"itl": 0.02, "setup": {"devices": 1}},
        {"itl": 0.026, "setup": {"devices": 2}},
        {"setup": {"devices": 1}},
    ),
)
WHOLE = (
    Row(
        "R10",
        "Only so many sequences are ever admitted",
        (loads((16, {"itl": 0.01, "ttft": 0.1, "rate": 1500}), (64, {"itl": 0.0101, "ttft": 4.0, "rate": 1510})),),
        (loads((16, {"itl": 0.01, "ttft": 0.1, "rate": 1500}), (64, {"itl": 0.02, "ttft": 4.0, "rate": 1510})),),
    ),
    rowed(
        "R10",
        "Fewer sequences are admitted at once",
        {"ttft": 2.1, "itl": 0.015, "decoding": 6.0, "most": 6.0, "setup": {"running_cap": 6}},
        {"setup": {"running_cap": 256}},
        base={"setup": {"running_cap": 256}},
    ),
    means(
        "R19",
        "Both clocks fell",
        {"ttft": 0.2, "itl": 0.02, "sm": 1.9e9, "memory": 1e10},
        {"ttft": 0.26, "itl": 0.026, "sm": 1.4e9, "memory": 7.5e9},
        {"memory": 1e10},
    ),
    # Both by 1.3; then the first token by a constant.
    rowed(
        "R19",
        "Everything is slower by one factor, and the clocks are not known",
        {"fixed": 0.0156, "each": 0.00026, "itl": 0.0234, "prefill": (0.039, 6.5e-5), "ttft": 0.169},
        {"prefill": (0.054, 5e-5)},
    ),
    means(
        "R19",
        "The whole model runs somewhere slower",
        {"ttft": 0.2, "itl": 0.02},
        {"ttft": 0.9, "itl": 0.08},
        {"sm": 1e9},
        before={"sm": 2e9},
    ),
    flag("R22", "Something between server and client gathers the stream", "ttft_equals_e2e_buffering"),
    flag("R22", "Something between server and client gathers the stream", "transport_buffering"),
    # 0.1 + 49 · 0.02 = 1.08 s; 0.5 + 49 · 0.008 are 0.892 of 1.08, then of 0.892.
    means(
        "R22",
        "Something between server and client gathers the stream",
        {"ttft": 0.1, "itl": 0.02, "output": 50, "e2e": 1.08},
        {"ttft": 0.5, "itl": 0.008, "output": 50, "e2e": 1.08},
        {"e2e": 0.892},
    ),
    rowed("R22", "Tokens arrive in bursts", {"ttft": 0.5, "chunk_gap_s": GATHERED}, {"chunk_gap_s": replace(GATHERED, p50=0.012)}),
    # 8 a second are offered and 3 answered; then nearly all.
    means(
        "R23",
        "More requests are offered than are answered",
        {"ttft": 0.2, "offered": 2.0, "answered": 1.9},
        {"ttft": 3.0, "offered": 8.0, "answered": 3.0},
        {"answered": 7.4},
    ),
    means(
        "R23",
        "More requests wait for the same rate",
        {"clients": 16, "rate": 1000, "ttft": 0.2, "itl": 0.015, "output": 100},
        {"clients": 64, "rate": 1010, "ttft": 4.0, "itl": 0.016, "output": 100},
        {"rate": 1500},
    ),
    means(
        "R24",
        "The load moved along the same curve: no regression",
        {"clients": 8, "rate": 400, "itl": 0.015},
        {"clients": 32, "rate": 1200, "itl": 0.02},
        {"rate": 400},
    ),
    means(
        "R27",
        "Prefill and decode run apart, and the cache is sent between them",
        {"ttft": 0.2, "itl": 0.02, "setup": {"disaggregated": 0.0}},
        {"ttft": 0.3, "itl": 0.019, "setup": {"disaggregated": 1.0}},
        {"setup": {"disaggregated": 0.0}},
    ),
    # 5.7 of 6 s before the first token; then a step of twice the time.
    Row("R29", "One repeat stalled before its first tokens", repeats(6.0, 0.012), repeats(6.0, 0.024)),
    flag("R29", "A few requests make the mean", "mean_dominated_by_outlier"),
    means(
        "R30",
        "Answers became longer or shorter, and totals with them",
        {"itl": 0.02, "output": 100},
        {"itl": 0.02, "output": 150},
        {"output": 102},
    ),
    means(
        "R30",
        "Prompts became longer or shorter, and first tokens with them",
        {"ttft": 0.2, "prompt": 1000},
        {"ttft": 0.3, "prompt": 1600},
        {"prompt": 1020},
    ),
)
