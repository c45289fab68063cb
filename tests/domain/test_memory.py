"""What a request keeps in memory, whether it fits and how many would, by hand."""

import dataclasses

import numpy as np
import pytest

from app.domain.memory import footprint
from app.domain.prediction import Request
from app.domain.request_rules import Load
from app.domain.work import ElementBytes
from tests.domain.subjects import LLAMA_8B, ONLY_FP32, PENCIL, SERVER, TEXTBOOK_8B, TINY, WINDOWED

ELEMENT = ElementBytes(2, 2, 2)


def load(**changes: int) -> Load:
    return Load.of(Request(**changes))


def test_weights_cache_and_activations_of_one_device() -> None:
    memory = footprint(LLAMA_8B, SERVER, ELEMENT, load(batch=4)).memory()
    assert memory.weight_bytes == 2 * 8_030_261_248
    assert memory.kv_bytes_per_token == 131072
    assert memory.kv_bytes == 4 * 2300 * 131072
    # 8,000 tokens of prompt in one pass: 2 bytes * 8000 * (2*4096 + 4096 + 2*1024 + 2*14336), and 4 rows of 128,256 logits in 4 bytes
    assert memory.activation_bytes == 2 * 8000 * (8192 + 6144 + 28672) + 4 * 4 * 128256
    assert memory.capacity_bytes == 8e10
    # (0.95*8e10 - weights - activations) / (2300*131072) sequences
    pool = 0.95 * 8e10 - memory.weight_bytes - memory.activation_bytes
    assert memory.max_batch == int(pool // (2300 * 131072)) == 196
    assert memory.fits is True


def test_activations_are_those_of_one_chunk_at_most() -> None:
    whole = footprint(LLAMA_8B, SERVER, ELEMENT, load(prompt_tokens=100_000)).memory()
    assert whole.activation_bytes == 2 * 8192 * (8192 + 6144 + 28672) + 4 * 128256


def test_too_large_a_batch_does_not_fit() -> None:
    memory = footprint(LLAMA_8B, SERVER, ELEMENT, load(batch=1000)).memory()
    assert memory.fits is False
    assert memory.max_batch is not None
    assert memory.max_batch < 1000


def test_too_large_a_model_leaves_room_for_none() -> None:
    memory = footprint(LLAMA_8B, PENCIL, ELEMENT, load()).memory()
    assert (memory.fits, memory.max_batch) == (False, 0)


def test_unknown_memory_is_not_known_rather_than_zero() -> None:
    memory = footprint(LLAMA_8B, ONLY_FP32, ELEMENT, load()).memory()
    assert (memory.capacity_bytes, memory.fits, memory.max_batch) == (None, None, None)


def test_a_served_load_holds_a_cache_per_client() -> None:
    assert footprint(LLAMA_8B, SERVER, ELEMENT, load(concurrency=32)).kv_bytes == 32 * 2300 * 131072


def test_devices_share_weights_and_cache() -> None:
    alone = footprint(LLAMA_8B, SERVER, ELEMENT, load()).memory()
    two = footprint(LLAMA_8B, SERVER, ELEMENT, load(tp=2)).memory()
    staged = footprint(LLAMA_8B, SERVER, ELEMENT, load(pp=2)).memory()
    assert two.weight_bytes == staged.weight_bytes == alone.weight_bytes / 2
    assert two.kv_bytes == staged.kv_bytes == alone.kv_bytes / 2
    # three stages of 32 layers: the largest has 11
    assert footprint(LLAMA_8B, SERVER, ELEMENT, load(pp=3)).weight_bytes == pytest.approx(alone.weight_bytes * 11 / 32)


def test_kv_heads_are_copied_when_ranks_outnumber_them() -> None:
    # TINY has 2 KV heads: four ranks keep one each; K and V of half a head more, 2*8*2*0.5 weights in 2 layers
    memory = footprint(TINY, SERVER, ELEMENT, load(tp=4, prompt_tokens=10, output_tokens=10)).memory()
    assert memory.weight_bytes == 2 * (1704 / 4 + 2 * 2 * 8 * 2 * 0.5)
    assert memory.kv_bytes_per_token == 2 * 2 * 1 * 2 * 2


def test_a_window_bounds_its_layers() -> None:
    memory = footprint(WINDOWED, SERVER, ELEMENT, load(prompt_tokens=9000, output_tokens=1000)).memory()
    assert memory.kv_bytes == 2 * 4 * 256 * 2 * (2 * 10_000 + 10 * 1024)
    assert memory.kv_bytes == WINDOWED.kv_cache_bytes(10_000)


def test_a_declared_count_is_what_is_stored() -> None:
    assert footprint(TEXTBOOK_8B, SERVER, ELEMENT, load()).weight_bytes == 16e9


def test_arrays_are_the_scalars_side_by_side() -> None:
    batches = np.array([1.0, 50.0, 1000.0])
    many = footprint(LLAMA_8B, SERVER, ELEMENT, dataclasses.replace(load(), batch=batches))
    ones = [footprint(LLAMA_8B, SERVER, ELEMENT, load(batch=int(batch))).memory() for batch in batches]
    assert list(np.asarray(many.fits)) == [float(bool(one.fits)) for one in ones]
    assert list(np.asarray(many.kv_bytes)) == [one.kv_bytes for one in ones]
    assert list(np.asarray(many.pool_sequences)) == [one.max_batch for one in ones]


def test_what_the_driver_says_is_what_a_pool_is_cut_from() -> None:
    # 81,559 MiB of a device that is sold with 80 GB
    seen = dataclasses.replace(SERVER, driver_memory_bytes=81559 * 2.0**20)
    memory = footprint(LLAMA_8B, seen, ELEMENT, load(batch=4)).memory()
    assert memory.capacity_bytes == 81559 * 2**20
    pool = 0.95 * 81559 * 2**20 - memory.weight_bytes - memory.activation_bytes
    assert memory.max_batch == int(pool // (2300 * 131072)) == 213
