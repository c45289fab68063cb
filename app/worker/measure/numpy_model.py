"""The model in numpy, fp32, for any machine. A decode step of one sequence is matrix-vector products, as on any device."""

import resource
from dataclasses import dataclass, field

import numpy as np

from app.domain.built_model import LayerShape, ModelShape
from app.worker.measure.model import NORM_EPSILON, WEIGHT_LIMIT, Tokens, Weights, rope_angles, weight_shapes

Floats32 = np.typing.NDArray[np.float32]


def random_weights(shape: ModelShape, seed: int) -> dict[str, Floats32]:
    """Weights of this shape: uniform matrices, norms of one."""
    random = np.random.default_rng(seed)
    found: dict[str, Floats32] = {}
    for name, size in weight_shapes(shape).items():
        if len(size) == 1:
            found[name] = np.ones(size, dtype=np.float32)
            continue
        values = random.random(size, dtype=np.float32)
        values -= np.float32(0.5)
        values *= np.float32(2 * WEIGHT_LIMIT)
        found[name] = values
    return found


@dataclass
class _Cache:
    """Keys and values of one layer, shape (batch, KV heads, positions, head_dim)."""

    keys: Floats32
    values: Floats32


@dataclass
class NumpyModel:
    """A model of this shape with these weights; the cache belongs to the batch that is running."""

    shape: ModelShape
    weights: Weights
    backend: str = "numpy"
    version: str = np.__version__
    _caches: list[_Cache] = field(default_factory=list)
    _position: int = 0
    _next: Tokens = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _logits: Floats32 = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    _angles: Floats32 = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))

    def begin(self, batch: int, positions: int) -> None:
        """Caches of the size wanted; those of the same size are used again."""
        layers = self.shape.layers
        sizes = [(batch, layer.kv_heads, positions, layer.head_dim) for layer in layers]
        if [cache.keys.shape for cache in self._caches] != sizes:
            self._caches = [_Cache(np.zeros(size, dtype=np.float32), np.zeros(size, dtype=np.float32)) for size in sizes]
            self._angles = rope_angles(positions, layers[0].head_dim)
        self._position = 0

    def prefill(self, tokens: Tokens) -> None:
        """One pass over the prompts."""
        self._pass(tokens)

    def step(self) -> None:
        """The token that was chosen last goes in."""
        self._pass(self._next[:, None])

    def logits(self) -> Floats32:
        """Of the last position of each sequence."""
        return self._logits

    def release(self) -> None:
        """Drop the cache."""
        self._caches = []

    def peak_bytes(self) -> int | None:
        """The largest resident set of this process."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def _pass(self, tokens: Tokens) -> None:
        x = self.weights["embed"][tokens]
        for index, layer in enumerate(self.shape.layers):
            x += self._attention(index, layer, _normed(x, self.weights[f"{index}.attention_norm"]))
            hidden = _normed(x, self.weights[f"{index}.mlp_norm"]) @ self.weights[f"{index}.gate_up"].T
            gate, up = hidden[..., : layer.intermediate], hidden[..., layer.intermediate :]
            x += (gate / (1 + np.exp(-gate)) * up) @ self.weights[f"{index}.down"].T
        last = _normed(x[:, -1], self.weights["final_norm"])
        self._logits = last @ self.weights["embed" if self.shape.tied else "output"].T
        self._next = self._logits.argmax(axis=-1)
        self._position += tokens.shape[1]

    def _attention(self, index: int, layer: LayerShape, x: Floats32) -> Floats32:
        batch, new, _ = x.shape
        start, end = self._position, self._position + new
        qkv = (x @ self.weights[f"{index}.qkv"].T).reshape(batch, new, layer.heads + 2 * layer.kv_heads, layer.head_dim)
        qkv = qkv.transpose(0, 2, 1, 3)
        angles = self._angles[start:end]
        queries, keys = _rotated(qkv[:, : layer.heads], angles), _rotated(qkv[:, layer.heads : layer.heads + layer.kv_heads], angles)
        cache = self._caches[index]
        cache.keys[:, :, start:end] = keys
        cache.values[:, :, start:end] = qkv[:, layer.heads + layer.kv_heads :]
        group = layer.heads // layer.kv_heads
        out = np.empty_like(queries)
        for head in range(layer.kv_heads):
            # One KV head at a time, so that the scores of all heads never stand in memory together.
            mine = slice(head * group, (head + 1) * group)
            scores = queries[:, mine] @ cache.keys[:, None, head, :end].transpose(0, 1, 3, 2)
            scores *= np.float32(layer.head_dim**-0.5)
            out[:, mine] = _attended(scores, start) @ cache.values[:, None, head, :end]
        mixed: Floats32 = out.transpose(0, 2, 1, 3).reshape(batch, new, -1) @ self.weights[f"{index}.attention_out"].T
        return mixed


def _attended(scores: Floats32, start: int) -> Floats32:
    """Softmax over the positions that each new token may see, in place. Shape (batch, heads, new, positions)."""
    new, positions = scores.shape[-2:]
    if new > 1:
        scores[..., np.arange(positions)[None, :] > np.arange(start, start + new)[:, None]] = -np.inf
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def _normed(x: Floats32, weight: Floats32) -> Floats32:
    """x over its root mean square, times the weight."""
    mean = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
    size: Floats32 = np.sqrt(mean + np.float32(NORM_EPSILON), dtype=np.float32)
    normed: Floats32 = x / size * weight
    return normed


def _rotated(x: Floats32, angles: Floats32) -> Floats32:
    """Rotary embedding: the halves of each head turned against each other by the angle of their position."""
    half = x.shape[-1] // 2
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=-1)
