"""The model in torch: the same arithmetic as in numpy, on a processor or a GPU, with fused or plain attention.

With CUDA graphs the decode step is recorded once and replayed: addresses stay, so that attention reads the whole cache of the batch and
masks what is not there yet. Without, it reads what is there.
"""

import resource
from typing import Any

import numpy as np

from app.domain.built_model import LayerShape, ModelShape
from app.worker.measure.model import NORM_EPSILON, WEIGHT_LIMIT, Tokens, Weights, rope_angles, weight_shapes
from app.worker.measure.torch_seam import torch_module

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_RECORDED_AFTER = 2


def random_tensors(shape: ModelShape, device: Any, dtype: str, seed: int) -> dict[str, Any]:
    """Weights made on the device itself: uniform matrices, norms of one."""
    torch = torch_module()
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    kind, found = getattr(torch, DTYPES[dtype]), {}
    for name, size in weight_shapes(shape).items():
        values = torch.ones(size, dtype=kind, device=device)
        found[name] = values if len(size) == 1 else values.uniform_(-WEIGHT_LIMIT, WEIGHT_LIMIT, generator=generator)
    return found


class TorchModel:
    """A model of this shape with these tensors, all on one device."""

    backend = "torch"

    def __init__(self, shape: ModelShape, weights: Weights, attention: str = "sdpa", graphs: bool = False) -> None:
        self._torch = torch_module()
        self.version = str(self._torch.__version__)
        self.shape = shape
        self._weights = weights
        self._device, self._dtype = weights["embed"].device, weights["embed"].dtype
        self._fused = attention == "sdpa"
        self._graphs = graphs
        self._graph: Any = None
        self._caches: list[tuple[Any, Any]] = []
        self._count = 0
        if self._on_gpu:
            self._torch.cuda.reset_peak_memory_stats(self._device)

    @property
    def _on_gpu(self) -> bool:
        return str(self._device.type) == "cuda"

    def begin(self, batch: int, positions: int) -> None:
        """Caches of the size wanted; those of the same size, and what was recorded on them, are used again."""
        torch = self._torch
        sizes = [(batch, layer.kv_heads, positions, layer.head_dim) for layer in self.shape.layers]
        if [tuple(keys.shape) for keys, _ in self._caches] != sizes:
            self.release()
            self._caches = [
                (torch.zeros(size, dtype=self._dtype, device=self._device), torch.zeros(size, dtype=self._dtype, device=self._device))
                for size in sizes
            ]
            angles = torch.from_numpy(rope_angles(positions, self.shape.layers[0].head_dim)).to(self._device)
            self._cos, self._sin = angles.cos().to(self._dtype), angles.sin().to(self._dtype)
            self._places = torch.arange(positions, device=self._device)
            self._next = torch.zeros(batch, dtype=torch.int64, device=self._device)
            self._position = torch.zeros(1, dtype=torch.int64, device=self._device)
            self._logits = torch.zeros((batch, self.shape.vocab), dtype=self._dtype, device=self._device)
        self._set_position(0)

    def prefill(self, tokens: Tokens) -> None:
        """One pass over the prompts."""
        with self._torch.inference_mode():
            self._pass(self._torch.from_numpy(tokens).to(self._device), whole_cache=False)
            self._set_position(tokens.shape[1])
        self._wait()

    def step(self) -> None:
        """Replayed where it was recorded."""
        with self._torch.inference_mode():
            if self._graphs and self._on_gpu:
                self._replay()
            else:
                self.decode(whole_cache=False)
        self._count += 1
        self._wait()

    def decode(self, whole_cache: bool) -> None:
        """One step; with `whole_cache` by addresses that never change, as a recording needs them."""
        self._pass(self._next[:, None], whole_cache)
        self._position += 1

    def logits(self) -> "np.typing.NDArray[np.float32]":
        """Of the last position of each sequence."""
        found: np.typing.NDArray[np.float32] = self._logits.float().cpu().numpy()
        return found

    def release(self) -> None:
        """Drop the cache and what was recorded on it."""
        self._caches, self._graph = [], None
        if self._on_gpu:
            self._torch.cuda.empty_cache()

    def peak_bytes(self) -> int | None:
        """What torch held at most on the device, or the largest resident set of this process."""
        if self._on_gpu:
            return int(self._torch.cuda.max_memory_allocated(self._device))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def _set_position(self, count: int) -> None:
        self._count = count
        self._position.fill_(count)

    def _wait(self) -> None:
        if self._on_gpu:
            self._torch.cuda.synchronize(self._device)

    def _replay(self) -> None:
        if self._graph is None:
            self._record()
        self._graph.replay()

    def _record(self) -> None:
        """Run the step beside the main stream until its kernels are chosen, put everything back, then record it."""
        cuda, torch = self._torch.cuda, self._torch
        before, kept = self._position.clone(), self._next.clone()
        beside = cuda.Stream(self._device)
        beside.wait_stream(cuda.current_stream(self._device))
        with cuda.stream(beside):
            for _ in range(_RECORDED_AFTER):
                self._position.copy_(before)
                self._next.copy_(kept)
                self.decode(whole_cache=True)
        cuda.current_stream(self._device).wait_stream(beside)
        self._position.copy_(before)
        self._next.copy_(kept)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self.decode(whole_cache=True)

    def _pass(self, tokens: Any, whole_cache: bool) -> None:
        weights, linear = self._weights, self._torch.nn.functional.linear
        x = self._torch.nn.functional.embedding(tokens, weights["embed"])
        for index, layer in enumerate(self.shape.layers):
            x = x + self._attention(index, layer, self._normed(x, weights[f"{index}.attention_norm"]), whole_cache)
            hidden = linear(self._normed(x, weights[f"{index}.mlp_norm"]), weights[f"{index}.gate_up"])
            gate, up = hidden.split(layer.intermediate, dim=-1)
            x = x + linear(self._torch.nn.functional.silu(gate) * up, weights[f"{index}.down"])
        last = self._normed(x[:, -1], weights["final_norm"])
        self._logits.copy_(linear(last, weights["embed" if self.shape.tied else "output"]))
        self._next.copy_(self._logits.argmax(dim=-1))

    def _attention(self, index: int, layer: LayerShape, x: Any, whole_cache: bool) -> Any:
        batch, new, _ = x.shape
        linear = self._torch.nn.functional.linear
        qkv = linear(x, self._weights[f"{index}.qkv"]).view(batch, new, layer.heads + 2 * layer.kv_heads, layer.head_dim).transpose(1, 2)
        queries, keys, values = qkv.split((layer.heads, layer.kv_heads, layer.kv_heads), dim=1)
        start = self._count
        places = self._position if new == 1 and whole_cache else self._places[start : start + new]
        cos, sin = self._cos.index_select(0, places), self._sin.index_select(0, places)
        queries, keys = _rotated(self._torch, queries, cos, sin), _rotated(self._torch, keys, cos, sin)
        key_cache, value_cache = self._caches[index]
        key_cache.index_copy_(2, places, keys)
        value_cache.index_copy_(2, places, values)
        seen = None
        if whole_cache:
            seen = (self._places <= self._position).view(1, 1, 1, -1)
        else:
            key_cache, value_cache = key_cache[:, :, : start + new], value_cache[:, :, : start + new]
        out = (self._fused_attention if self._fused else self._plain_attention)(queries, key_cache, value_cache, seen)
        return linear(out.transpose(1, 2).reshape(batch, new, -1), self._weights[f"{index}.attention_out"])

    def _fused_attention(self, queries: Any, keys: Any, values: Any, seen: Any) -> Any:
        causal = seen is None and queries.shape[2] > 1
        attend = self._torch.nn.functional.scaled_dot_product_attention
        return attend(queries, keys, values, attn_mask=seen, is_causal=causal, enable_gqa=queries.shape[1] != keys.shape[1])

    def _plain_attention(self, queries: Any, keys: Any, values: Any, seen: Any) -> Any:
        torch = self._torch
        batch, heads, new, head_dim = queries.shape
        grouped = queries.view(batch, keys.shape[1], -1, new, head_dim)
        scores = grouped @ keys[:, :, None].transpose(-1, -2) * head_dim**-0.5
        if seen is not None:
            scores = scores.masked_fill(~seen[:, :, None], float("-inf"))
        elif new > 1:
            later = torch.ones((new, keys.shape[2]), dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        out = torch.softmax(scores, dim=-1, dtype=torch.float32).to(values.dtype) @ values[:, :, None]
        return out.view(batch, heads, new, head_dim)

    def _normed(self, x: Any, weight: Any) -> Any:
        return self._torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, NORM_EPSILON)


def _rotated(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
