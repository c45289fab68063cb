"""What a layer is made of: attention of several kinds, recurrent states, dense and mixed feed-forward parts; and how far attention sees.

Each part counts its own parameters; `work` prices them and `memory` keeps their caches. A layer may have several parts of each kind
(attention beside a state-space mixer, experts beside a dense MLP). Sizes are numbers of elements; biases and norms, which are small,
stand as plain counts. H is the model's hidden size throughout.
"""

from dataclasses import dataclass
from typing import Literal

ReachKind = Literal["full", "window", "chunk", "top"]


@dataclass(frozen=True)
class Reach:
    """The positions a token attends to: all before it, the last `span` (window), its own chunk of `span`, or the best `span` (top)."""

    kind: ReachKind = "full"
    span: int | None = None

    def kept(self, positions: int) -> int:
        """Positions of a sequence whose keys and values stay in memory: a window or chunk forgets the rest."""
        return positions if self.span is None or self.kind == "top" else min(positions, self.span)


FULL = Reach()


@dataclass(frozen=True)
class Attention:
    """Multi-head, grouped-query or multi-query attention.

    `gate` is the width of an output gate (0: none). `value_dim` None: as the keys. `keys_as_values`: one projection gives both, though the
    cache holds both. `own_cache` False: the layer reads the cache of an earlier one, projects no keys and values and keeps none.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int | None = None
    reach: Reach = FULL
    gate: int = 0
    keys_as_values: bool = False
    own_cache: bool = True

    @property
    def query_size(self) -> int:
        """Width of the query projection, heads x head_dim (not always hidden)."""
        return self.heads * self.head_dim

    @property
    def output_size(self) -> int:
        """Width that the output projection takes, heads x value_dim."""
        return self.heads * self.values

    @property
    def values(self) -> int:
        """Elements of a value."""
        return self.head_dim if self.value_dim is None else self.value_dim

    @property
    def kv_width(self) -> int:
        """Elements that the cache keeps for a position and KV head: a key and a value."""
        return self.head_dim + self.values

    @property
    def projected_kv(self) -> int:
        """Columns of the key and value projections for one KV head."""
        if not self.own_cache:
            return 0
        return self.head_dim if self.keys_as_values else self.kv_width

    def parameters(self, hidden: int) -> int:
        """Elements of the projections: q and gate, k, v, o."""
        return hidden * (self.query_size + self.gate + self.kv_heads * self.projected_kv + self.output_size)


@dataclass(frozen=True)
class Latent:
    """Latent attention (MLA): keys and values are kept as one vector of kv_rank + rope_dim elements for all heads.

    `query_rank` 0: queries are projected directly. `top_k` makes it sparse: a token attends to its best `top_k` positions, chosen by an
    indexer of `index_heads` heads of `index_dim` (0 heads: the choice of an earlier layer is used again).
    """

    heads: int
    query_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    top_k: int | None = None
    index_heads: int = 0
    index_dim: int = 0

    @property
    def reach(self) -> Reach:
        """The positions a token attends to."""
        return FULL if self.top_k is None else Reach("top", self.top_k)

    @property
    def query_size(self) -> int:
        """Width of the queries of all heads."""
        return self.heads * (self.nope_dim + self.rope_dim)

    @property
    def output_size(self) -> int:
        """Width that the output projection takes, heads x value_dim."""
        return self.heads * self.value_dim

    @property
    def cached(self) -> int:
        """Elements that the cache keeps for a position."""
        return self.kv_rank + self.rope_dim

    @property
    def expanded(self) -> int:
        """Columns of the matrix that makes keys and values of all heads from the latent vector."""
        return self.heads * (self.nope_dim + self.value_dim)

    def parameters(self, hidden: int) -> int:
        """Elements of the matrices: down to the ranks, up to the heads, output, indexer."""
        rows = self.query_rank or hidden
        down = hidden * (self.query_rank + self.cached)
        up = rows * self.query_size + self.kv_rank * self.expanded
        return down + up + self.output_size * hidden + self.index_parameters(hidden)

    def index_parameters(self, hidden: int) -> int:
        """Elements of the indexer's matrices: queries from the latent query, one key, a weight for each head."""
        if not self.index_heads:
            return 0
        return (self.query_rank or hidden) * self.index_heads * self.index_dim + hidden * (self.index_dim + self.index_heads)


@dataclass(frozen=True)
class Recurrent:
    """A state-space or linear-attention mixer: a state of fixed size for each sequence instead of a cache that grows.

    Projections: hidden to `in_columns`, `inner` to hidden; state-space models of the first kind also inner to `selection` and
    `step_rank` to inner (0: none). `state` and `convolution` are elements kept for a sequence, `flops` the operations of one token
    on the state, `vectors` all other parameters (convolution, decays, norms).
    """

    kind: str
    inner: int
    in_columns: int
    state: int
    convolution: int
    flops: int
    vectors: int
    selection: int = 0
    step_rank: int = 0

    def parameters(self, hidden: int) -> int:
        """Elements of the matrices, and of all that `vectors` counts."""
        return hidden * (self.in_columns + self.inner) + self.inner * (self.selection + self.step_rank) + self.vectors


@dataclass(frozen=True)
class Mlp:
    """A dense feed-forward part: gate, up and down, or up and down."""

    intermediate: int
    gated: bool = True

    @property
    def matrices(self) -> int:
        """Matrices of hidden x intermediate."""
        return 3 if self.gated else 2

    def parameters(self, hidden: int) -> int:
        """Elements of the matrices."""
        return self.matrices * hidden * self.intermediate


@dataclass(frozen=True)
class Experts:
    """A mixture of experts: `chosen` of `count` for each token, each an MLP of `intermediate`, and a shared MLP for every token.

    `width` is what an expert takes and gives, None: hidden; else two matrices lead there and back. `expert_vectors` are biases of one
    expert, `vectors` what a token's routing needs beside the router's matrix.
    """

    count: int
    chosen: int
    intermediate: int
    gated: bool = True
    shared_intermediate: int = 0
    width: int | None = None
    expert_vectors: int = 0
    vectors: int = 0

    @property
    def matrices(self) -> int:
        """Matrices of width x intermediate in an expert."""
        return 3 if self.gated else 2

    def one_expert(self, hidden: int) -> int:
        """Parameters of one routed expert."""
        return self.matrices * (self.width or hidden) * self.intermediate + self.expert_vectors

    def routed(self, hidden: int) -> int:
        """Parameters of all routed experts."""
        return self.count * self.one_expert(hidden)

    def always(self, hidden: int) -> int:
        """Parameters that every token needs: router, shared expert, the way to a narrower width and back."""
        around = 2 * hidden * self.width if self.width else 0
        return hidden * self.count + self.matrices * hidden * self.shared_intermediate + around + self.vectors


@dataclass(frozen=True)
class LayerGroup:
    """`count` layers of the same build. `side_input` is the width of an input of its own that each layer mixes in (0: none)."""

    count: int
    attention: Attention | None = None
    latent: Latent | None = None
    recurrent: Recurrent | None = None
    mlp: Mlp | None = None
    experts: Experts | None = None
    norm_parameters: int = 0
    bias_parameters: int = 0
    side_input: int = 0

    def dense_parameters(self, hidden: int) -> int:
        """Parameters of one layer that every token needs, norms and biases included."""
        parts = [self.norm_parameters, self.bias_parameters, 2 * hidden * self.side_input]
        parts += [part.parameters(hidden) for part in (self.attention, self.latent, self.recurrent, self.mlp) if part is not None]
        return sum(parts) + (self.experts.always(hidden) if self.experts else 0)

    def routed_parameters(self, hidden: int) -> int:
        """Parameters of the routed experts of one layer."""
        return self.experts.routed(hidden) if self.experts else 0

    def chosen_parameters(self, hidden: int) -> int:
        """Parameters of the experts that one token goes through in one layer."""
        return self.experts.chosen * self.experts.one_expert(hidden) if self.experts else 0

    @property
    def reach(self) -> Reach | None:
        """How far the layer's attention sees; None without attention."""
        part = self.attention or self.latent
        return part.reach if part else None
