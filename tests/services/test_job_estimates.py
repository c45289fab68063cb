"""What a job takes on a device, and why it cannot run there."""

import pytest

from app.domain.errors import InvalidRequest
from app.jobs import KINDS, DeviceFacts, read_parameters
from app.services.job_estimates import refined
from app.services.profiles import catalog_book
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


@pytest.mark.parametrize(
    ("values", "device", "message"),
    [
        ({"dtype": "bf16"}, CPU, "it needs a worker with torch"),
        ({"model": "llama-3-1-8b"}, CPU, "numpy measures fp32 up to 160 million parameters"),
        ({"model": "llama-3-1-70b", "dtype": "bf16"}, TORCH, "GiB in all"),
    ],
)
def test_what_a_device_cannot_do_is_said_by_reason(values: dict[str, object], device: DeviceFacts, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        refined(BOOK, sweep(**values), device)
