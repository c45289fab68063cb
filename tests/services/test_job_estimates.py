"""What a job takes on a device, and why it cannot run there."""

from dataclasses import replace

import pytest

from app.domain.errors import InvalidRequest
from app.jobs import KINDS, DeviceFacts, Estimate, read_parameters
from app.services.job_estimates import refined
from app.services.job_fit import limit_of
from app.services.profiles import catalog_book
from app.store.jobs import NewJob
from tests.services.measured import CATALOG

BOOK = catalog_book(CATALOG)
CPU = DeviceFacts("a processor", "cpu", ("numpy",), memory_bytes=8 * 2**30)
TORCH = DeviceFacts("a processor", "cpu", ("numpy", "torch"), memory_bytes=64 * 2**30)


def sweep(**values: object):  # type: ignore[no-untyped-def]
    return read_parameters(KINDS["inprocess_sweep"], values)


@pytest.mark.parametrize("kind", ["device_microbench", "inprocess_sweep"])
def test_what_a_newcomer_presses_runs_on_a_processor_without_a_profile(kind: str) -> None:
    found = refined(BOOK, read_parameters(KINDS[kind], {}), CPU)
    assert found.seconds > 0
    assert found.memory_bytes is None or found.memory_bytes < CPU.memory_bytes


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_memory_does_not_need_the_devices_rates(dtype: str) -> None:
    """25 M weights of 2 or 4 bytes, a small cache, logits, and 1 GiB for the framework."""
    found = refined(BOOK, sweep(dtype=dtype), TORCH)
    assert found.memory_bytes is not None
    assert 2**30 + 2 * 25e6 < found.memory_bytes < 2**30 + 4 * 25e6 + 300e6
    assert "no profile yet" in found.sentence


def test_without_a_profile_the_time_is_rough_and_says_so() -> None:
    """24.9 M parameters: 0.5 s to draw them, 8 s for the look at the device; then six times a prompt of 512 and 31 steps.

    On one core of 40 GFLOP/s and 8 GB/s the 12.6 M of the layers are 2 · 12.6 M · 512 / 4e10 = 0.32 s of products; a step reads them and
    the 6.1 M of the head, 75 MB in 9.4 ms, 31 of them 0.29 s. What a usual device makes of its rates, and launches, at most double that.
    """
    found = refined(BOOK, sweep(), CPU)
    assert (found.rough, found.at_most_s) == (True, 300.0)
    assert 8.5 + 6 * 0.61 < found.seconds < 8.5 + 6 * 0.61 * 2
    assert "roughly, by the rates of a usual one of its class" in found.sentence
    four = refined(BOOK, sweep(threads=4), CPU)
    assert 3 < (found.seconds - 8.5) / (four.seconds - 8.5) < 4


def test_a_rough_time_never_exceeds_the_limits_of_the_job() -> None:
    found = refined(BOOK, sweep(point_limit_s=2.0, prompt_tokens=[512, 1024]), CPU)
    assert (found.seconds, found.at_most_s) == (4.0, 4.0)


def test_with_a_profile_it_is_the_cost_models_and_not_rough() -> None:
    found = refined(BOOK, sweep(dtype="bf16"), replace(TORCH, kind="gpu", hardware="h100-sxm5-80gb"))
    assert (found.rough, found.at_most_s) == (False, 300.0)
    assert found.seconds < 10
    rough = refined(BOOK, sweep(dtype="bf16"), replace(TORCH, kind="gpu"))
    assert rough.rough
    assert found.seconds < rough.seconds < found.seconds + 20


def test_a_rough_job_is_ended_by_its_own_limits_and_another_by_three_times_its_estimate() -> None:
    job = NewJob("inprocess_sweep", {})
    assert limit_of(job, Estimate(100.0, None, "", rough=True, at_most_s=3000.0)) == 3120.0
    assert limit_of(job, Estimate(1000.0, None, "", at_most_s=30_000.0)) == 3120.0
    assert limit_of(job, Estimate(1.0, None, "", rough=True)) == 600.0
    assert limit_of(replace(job, limit_s=5.0), Estimate(1000.0, None, "")) == 5.0


@pytest.mark.parametrize(
    ("values", "device", "message"),
    [
        ({"dtype": "bf16"}, CPU, "it needs a worker with torch"),
        ({"model": "llama-3-1-8b"}, CPU, "numpy measures fp32 up to 160 million parameters"),
        ({"model": "llama-3-1-70b", "dtype": "bf16"}, TORCH, "GiB in all"),
        ({"model": "mixtral-8x7b-v0-1", "dtype": "bf16"}, TORCH, r"not built here: groups\[0\]\.experts is set"),
    ],
)
def test_what_a_device_cannot_do_is_said_by_reason(values: dict[str, object], device: DeviceFacts, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        refined(BOOK, sweep(**values), device)
