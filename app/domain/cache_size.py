"""What a KV cache takes, and what the usual mistakes would say: from the layers that keep one, whatever else the model is.

A layer keeps for each position 2·kv_heads·head_dim elements (keys and values), or kv_rank + rope_dim of latent attention; a layer with
a window keeps at most the window. Two figures stand beside the right one because they are met in calculators: every layer charged the
whole context, and latent attention stored by an engine that expands it to keys and values of all heads, heads·(nope + rope + value).
Source: the design's performance model, sections 2 and 4.
"""

from dataclasses import dataclass

from app.domain.architecture import cache_elements, index_bytes
from app.domain.layers import LayerGroup, Reach
from app.domain.quantity import number
from app.domain.run import Flag

GB, GIB = 1e9, 2**30
# Tables print so many decimals of a GiB.
_DECIMALS = 1000


@dataclass(frozen=True)
class CacheSize:
    """The cache of one sequence of `positions`, in bytes; `expanded` figures are None without latent attention."""

    layers: int
    positions: int
    bytes_per_token: float
    total_bytes: float
    unwindowed_bytes: float
    expanded_bytes_per_token: float | None

    @property
    def gb(self) -> float:
        """The total in GB, 10^9 bytes."""
        return self.total_bytes / GB

    @property
    def gib(self) -> float:
        """The total in GiB, 2^30 bytes."""
        return self.total_bytes / GIB

    @property
    def unwindowed_factor(self) -> float | None:
        """How many times too much charging every layer the whole context says; None where nothing is kept."""
        return self.unwindowed_bytes / self.total_bytes if self.total_bytes else None

    @property
    def expanded_factor(self) -> float | None:
        """How many times as much an engine keeps that expands latent attention."""
        return None if self.expanded_bytes_per_token is None else self.expanded_bytes_per_token / self.bytes_per_token

    @property
    def flags(self) -> tuple[Flag, ...]:
        """`unit_mismatch` where the size is a round figure in GiB and not in GB: tables print such figures under the name GB."""
        if not self.total_bytes or (self.gib * _DECIMALS) % 1 or not (self.gb * _DECIMALS) % 1:
            return ()
        text = f"{self.total_bytes:.0f} bytes are {number(self.gb)} GB and {self.gib:g} GiB: a table that says {self.gib:g} GB means GiB."
        return (Flag("unit_mismatch", text, (), {"gb": self.gb, "gib": self.gib}),)


def cache_size(groups: tuple[LayerGroup, ...], positions: int, kv_bytes: float) -> CacheSize:
    """The cache of one sequence of so many positions at `kv_bytes` an element. Recurrent states come on top."""
    each = [(group, cache_elements(group) * kv_bytes + index_bytes(group)) for group in groups]
    latent = [group for group in groups if group.latent is not None]
    expanded = sum(group.count * _expanded(group) * kv_bytes for group in latent)
    return CacheSize(
        layers=sum(group.count for group in groups),
        positions=positions,
        bytes_per_token=sum(group.count * size for group, size in each),
        total_bytes=sum(group.count * size * (group.reach or Reach()).kept(positions) for group, size in each),
        unwindowed_bytes=sum(group.count * size * positions for group, size in each),
        expanded_bytes_per_token=expanded if latent else None,
    )


def _expanded(group: LayerGroup) -> int:
    part = group.latent
    return part.heads * (part.nope_dim + part.rope_dim + part.value_dim) if part else 0
