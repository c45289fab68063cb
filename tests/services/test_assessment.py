"""A measured run beside its prediction, with figures worked out by hand."""

from dataclasses import replace

import pytest

from app.catalog import load
from app.domain.run import Distribution, Rate, Run, Workload
from app.domain.simulation import ServedLoad, Simulator
from app.services.assessment import assess

CATALOG = load()
TEXTBOOK = CATALOG.models["textbook-8b"].architecture
TEXTBOOK_H100 = CATALOG.hardware["textbook-h100"]
LLAMA = CATALOG.models["llama-3-1-8b"].architecture
H100 = CATALOG.hardware["h100-sxm5-80gb"]


def served(ttft: float = 0.095, itl: float = 1 / 143, clients: int = 1, **changes: object) -> Run:
    base = Run(
        format="vllm_bench_serve",
        measured_at="client",
        load_mode="single" if clients == 1 else "closed",
        weight_dtype="bf16",
        workload=Workload(prompt_tokens_mean=2000, output_tokens_mean=300, concurrency=clients),
        metrics={"ttft_s": Distribution(mean=ttft), "itl_s": Distribution(mean=itl)},
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_the_founding_request_runs_at_68_percent_of_the_floor() -> None:
    # 16 GB / 3.35 TB/s = 4.776 ms against 6.993 ms; 32 TFLOP / 95 ms = 337 TFLOP/s of 989.
    found = assess(served(), TEXTBOOK, TEXTBOOK_H100)
    assert found.decode_floor_s == pytest.approx(1.6e10 / 3.35e12)
    assert found.mbu == pytest.approx(0.683, abs=5e-4)
    assert found.mfu == pytest.approx(3.2e13 / 0.095 / 9.89e14)
    assert found.mfu_from_ttft


def test_ttft_under_load_is_no_prefill_time() -> None:
    found = assess(served(itl=0.030, clients=32), LLAMA, H100)
    assert found.mfu is None
    assert "TTFT under load holds queueing" in " ".join(found.reasons)
    assert found.mbu is not None


def test_clients_that_wait_are_not_in_the_pass() -> None:
    # 32 clients, 400 tokens/s at 10 ms a token: by Little's law 4 sequences run together.
    waiting = served(itl=0.010, clients=32)
    waiting = replace(waiting, metrics={**waiting.metrics, "output_tokens_per_s": Rate(400, "aggregate")})
    four = assess(served(itl=0.010, clients=4), LLAMA, H100)
    found = assess(waiting, LLAMA, H100)
    assert found.prediction is not None
    assert four.prediction is not None
    assert found.prediction.decode.bytes == four.prediction.decode.bytes


def test_faster_than_the_bytes_allow_is_flagged() -> None:
    found = assess(served(itl=0.002), TEXTBOOK, TEXTBOOK_H100)
    assert [flag.flag for flag in found.flags] == ["impossible_above_roofline"]
    assert "less than the 4.78\u00a0ms" in found.flags[0].evidence


def test_a_static_batch_is_priced_as_one_pass_of_all() -> None:
    one = assess(served(load_mode="static_batch", measured_at="in_process", format="sglang_one_batch"), LLAMA, H100).prediction
    workload = Workload(prompt_tokens_mean=2000, output_tokens_mean=300, concurrency=8)
    eight = assess(
        served(load_mode="static_batch", measured_at="in_process", format="sglang_one_batch", workload=workload), LLAMA, H100
    ).prediction
    assert one is not None
    assert eight is not None
    # The logits of one row a sequence are there eight times too, so that the arithmetic is exactly eightfold.
    assert eight.prefill.flops == pytest.approx(8 * one.prefill.flops)
    assert eight.front_end_s == 0


def test_llama_bench_decodes_behind_its_depth_and_not_behind_the_prompt() -> None:
    def at(depth: int) -> float:
        workload = Workload(prompt_tokens_mean=512, output_tokens_mean=128, concurrency=1, context_depth_tokens=depth)
        run = served(format="llama_bench", measured_at="in_process", workload=workload)
        prediction = assess(run, LLAMA, H100).prediction
        assert prediction is not None
        return prediction.decode.bytes

    # 4,096 more positions, 131,072 bytes each.
    assert at(4097) - at(1) == pytest.approx(4096 * 131_072)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (served(model="acme/unheard-of"), "“acme/unheard-of” has no entry here"),
        (served(), "does not name the model"),
    ],
)
def test_an_unknown_model_is_a_reason_and_no_guess(run: Run, words: str) -> None:
    found = assess(run, None, H100)
    assert found.prediction is None
    assert words in found.reasons[0]


def test_a_quantised_name_without_its_format_is_not_priced_as_bf16() -> None:
    found = assess(served(weight_dtype=None, model="acme/Llama-3.1-8B-AWQ"), LLAMA, H100)
    assert found.prediction is None
    assert "looks quantised" in found.reasons[0]


def test_the_models_own_format_is_taken_and_said() -> None:
    found = assess(served(weight_dtype=None, model="meta-llama/Llama-3.1-8B"), LLAMA, H100)
    assert found.prediction is not None
    assert "Weights taken as bf16" in found.notes[0]


def test_a_format_that_nobody_knows_is_a_reason() -> None:
    found = assess(served(weight_dtype="int3_weird"), LLAMA, H100)
    assert found.prediction is None
    assert "int3_weird" in found.reasons[0]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"tp": 8}, (8, 1, 1)),
        ({"tp": 1, "dp": 8, "ep": 8, "devices": 8}, (1, 8, 8)),
        # the tool's tp counts all devices of a stage, eight attention ranks among them
        ({"tp": 8, "dp": 8, "ep": 8, "devices": 8}, (1, 8, 8)),
        ({"tp": 8, "dp": 4, "ep": 8, "devices": 8}, (2, 8, 4)),
        # without experts of their own `dp` counts copies of the model
        ({"tp": 2, "dp": 4, "devices": 8}, (2, 1, 1)),
    ],
)
def test_ranks_of_a_mixture_are_priced_as_they_were_placed(sizes: dict[str, int], expected: tuple[int, int, int]) -> None:
    found = assess(served(clients=16, weight_dtype="fp8", **sizes), CATALOG.models["deepseek-v3"].architecture, H100)
    assert found.prediction is not None
    request = found.prediction.request
    assert (request.tp, request.ep, request.dp) == expected


def test_ranks_play_no_part_in_a_dense_model() -> None:
    found = assess(served(clients=16, tp=2, dp=4, ep=8, devices=8), LLAMA, H100)
    assert found.prediction is not None
    assert (found.prediction.request.tp, found.prediction.request.ep, found.prediction.request.dp) == (2, 1, 1)


def test_answers_of_different_length_do_not_come_in_waves() -> None:
    """SGLang computes prompts alone: equal requests stay together and wait for one another, drawn ones for half a step or so."""
    run = served(itl=0.01, clients=32, engine="sglang")
    drawn = replace(run, workload=replace(run.workload, shortest_length=0.25))
    equal, apart = (assess(one, LLAMA, H100, CATALOG.engines["sglang"]).prediction for one in (run, drawn))
    assert equal is not None
    assert apart is not None
    # Means of 2,000 and 300 tokens are drawn up to 3,200 and 480: (1 + 0.25) / 2 of those.
    assert (apart.request.prompt_tokens, apart.request.output_tokens, apart.request.shortest_length) == (3200, 480, 0.25)
    assert apart.prefill.flops == pytest.approx(equal.prefill.flops, rel=1e-9)
    assert apart.decode.bytes == pytest.approx(equal.decode.bytes, rel=1e-9)
    assert apart.queue_s < 0.5 * equal.queue_s


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_requests_at_their_own_moments_wait_for_no_wave(engine: str) -> None:
    """Equal lengths keep clients in step and not what comes at a rate; on TensorRT-LLM, priced as clients, it waited six times as long."""
    # 4/s · 255 tokens · 8 ms: 8 are in flight (Little's law).
    run = served(itl=0.008, engine=engine, load_mode="open", workload=Workload(1024, 256, request_rate_per_s=4.0, shortest_length=1.0))
    run = replace(run, metrics={**run.metrics, "output_tokens_per_s": Rate(4 * 256, "aggregate")})
    found = assess(run, LLAMA, H100, CATALOG.engines[engine]).prediction
    assert found is not None
    assert (found.request.concurrency, found.request.open_loop) == (8, True)
    profile, asked = CATALOG.engines[engine], replace(found.request, concurrency=None, open_loop=False)
    seen = Simulator.of(LLAMA, H100, asked, engine=profile).run(ServedLoad(1024, 256, request_rate_per_s=4.0, requests=600))
    assert found.ttft_s == pytest.approx(seen.ttft.mean, rel=0.15)
    # One alone, now and then, is one alone.
    rare = replace(run, metrics={**run.metrics, "output_tokens_per_s": Rate(100, "aggregate")})
    lone = assess(rare, LLAMA, H100, profile).prediction
    assert lone is not None
    assert (lone.request.concurrency, lone.request.open_loop) == (None, False)
