"""A language model's shapes: sizes that all layers share, and groups of equal layers. Read from a `config.json` by `configs`.

Counts are exact: every matrix, bias and norm vector that the model class builds, tied tables once. Around the layers stand an input
table V·H, an output matrix V·H unless it is the same table, and a final norm.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.domain.layers import FULL, Attention, LayerGroup, Mlp, Reach


@dataclass(frozen=True)
class ModelArchitecture:
    """The shapes that decide what a pass costs.

    `final_norm_parameters` counts the small vectors around the layers. `looked_up_parameters` (an embedding for each layer) and
    `position_parameters` (learned positions) are tables that a pass only looks rows up in, as in the input embedding;
    `side_projection` are the columns of a matrix that makes the layers' side inputs. `extra_prediction_layers` predict further tokens;
    they are known, not counted.
    `experts_alone_quantised`: checkpoints of few bits keep all but the experts at 16 bit. `declared_parameters` overrides the count
    derived from shapes where a text states a round figure (textbook-8b).
    """

    name: str
    model_type: str
    hidden: int
    vocab: int
    groups: tuple[LayerGroup, ...]
    tied_embeddings: bool = False
    final_norm_parameters: int = 0
    looked_up_parameters: int = 0
    position_parameters: int = 0
    side_projection: int = 0
    extra_prediction_layers: int = 0
    experts_alone_quantised: bool = False
    max_positions: int | None = None
    native_dtype: str = "bf16"
    declared_parameters: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def layers(self) -> int:
        """Layers of all groups."""
        return sum(group.count for group in self.groups)

    @property
    def mixers(self) -> int:
        """Layers with attention or a recurrent mixer: each ends in one all-reduce of a tensor-parallel model."""
        return sum(group.count for group in self.groups if group.attention or group.latent or group.recurrent)

    @property
    def feed_forwards(self) -> int:
        """Layers with an MLP or experts: each ends in one all-reduce of a tensor-parallel model."""
        return sum(group.count for group in self.groups if group.mlp or group.experts)

    @property
    def depth(self) -> float:
        """Layers of the usual build, a mixer and a feed-forward part; a layer with only one of them counts half."""
        return (self.mixers + self.feed_forwards) / 2

    @property
    def embedding_parameters(self) -> int:
        """The input table, vocab x hidden; the output matrix is the same table when tied, another of this size when not."""
        return self.vocab * self.hidden

    @property
    def shape_parameters(self) -> int:
        """The exact count that follows from the shapes, tied tables once, whatever `declared_parameters` says."""
        return self._always_parameters + sum(group.count * group.routed_parameters(self.hidden) for group in self.groups)

    @property
    def parameters(self) -> int:
        """Total parameters of the text model: the declared figure where there is one, else the exact count."""
        return self.shape_parameters if self.declared_parameters is None else self.declared_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token goes through, tables included: of the routed experts the chosen ones. A declared figure stands."""
        if self.declared_parameters is not None:
            return self.declared_parameters
        return self._always_parameters + sum(group.count * group.chosen_parameters(self.hidden) for group in self.groups)

    @property
    def active_parameters_without_tables(self) -> int:
        """Active parameters without an untied input table and the layers' own: what publishers call active. Positions are counted."""
        return self._without_tables(self.active_parameters)

    @property
    def decode_weight_parameters(self) -> int:
        """Parameters that a decode step of one token reads: the active ones without what is looked up. A declared figure stands."""
        if self.declared_parameters is not None:
            return self.declared_parameters
        return self._without_tables(self.active_parameters) - self.position_parameters

    def _without_tables(self, parameters: int) -> int:
        if self.declared_parameters is not None:
            return parameters
        return parameters - self.looked_up_parameters - (0 if self.tied_embeddings else self.embedding_parameters)

    @property
    def _always_parameters(self) -> int:
        """All but the routed experts."""
        layers = sum(group.count * group.dense_parameters(self.hidden) for group in self.groups)
        around = self.final_norm_parameters + self.looked_up_parameters + self.position_parameters + self.hidden * self.side_projection
        return layers + (1 if self.tied_embeddings else 2) * self.embedding_parameters + around

    @property
    def expert_layers(self) -> int:
        """Layers with a mixture of experts."""
        return sum(group.count for group in self.groups if group.experts)

    @property
    def recurrent_layers(self) -> int:
        """Layers with a recurrent state."""
        return sum(group.count for group in self.groups if group.recurrent)

    def layers_that_see(self, kind: str) -> int:
        """Layers whose attention reaches this far (full, window, chunk, top)."""
        return sum(group.count for group in self.groups if group.reach is not None and group.reach.kind == kind)

    def kv_bytes_per_token(self, kv_bytes: float = 2.0) -> float:
        """Bytes of KV cache one more position takes over all layers, at `kv_bytes` per element, no window reached."""
        return sum(group.count * cache_elements(group) for group in self.groups) * kv_bytes + self.index_bytes_per_token

    @property
    def index_bytes_per_token(self) -> int:
        """Bytes that the indexers of sparse attention keep for a position: an 8-bit key and its 32-bit scale a layer."""
        return sum(group.count * index_bytes(group) for group in self.groups)

    def kv_cache_bytes(self, positions: int, kv_bytes: float = 2.0) -> float:
        """Bytes of KV cache of one sequence of `positions`; a windowed layer keeps at most its window. States come on top."""
        kept = [(group, group.reach.kept(positions)) for group in self.groups if group.reach is not None]
        return sum(group.count * (cache_elements(group) * kv_bytes + index_bytes(group)) * held for group, held in kept)

    @property
    def state_bytes(self) -> float:
        """Bytes of recurrent state that one sequence keeps over all layers: states in fp32, convolutions in 16 bit."""
        parts = [(group.count, group.recurrent) for group in self.groups]
        return sum(count * (4.0 * part.state + 2.0 * part.convolution) for count, part in parts if part is not None)


def cache_elements(group: LayerGroup) -> int:
    """Elements that one layer of the group keeps for each position; 0 where it keeps none or reads another layer's."""
    if group.latent is not None:
        return group.latent.cached
    part = group.attention
    return part.kv_heads * part.kv_width if part is not None and part.own_cache else 0


def index_bytes(group: LayerGroup) -> int:
    """Bytes that one layer's indexer keeps for each position."""
    part = group.latent
    return part.index_dim + 4 if part is not None and part.index_heads else 0


def merged(layers: Iterable[LayerGroup]) -> tuple[LayerGroup, ...]:
    """Groups of equal layers, in order of first appearance, from single ones (or groups)."""
    counts: dict[LayerGroup, int] = {}
    for layer in layers:
        key = replace(layer, count=1)
        counts[key] = counts.get(key, 0) + layer.count
    return tuple(replace(layer, count=count) for layer, count in counts.items())


def dense(
    name: str,
    model_type: str,
    *,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    intermediate: int,
    vocab: int,
    gated_mlp: bool = True,
    tied_embeddings: bool = False,
    sliding_window: int | None = None,
    windowed_layers: int = 0,
    norm_parameters_per_layer: int = 0,
    bias_parameters_per_layer: int = 0,
    final_norm_parameters: int = 0,
    max_positions: int | None = None,
    native_dtype: str = "bf16",
    declared_parameters: int | None = None,
    notes: tuple[str, ...] = (),
) -> ModelArchitecture:
    """A dense transformer whose layers differ at most in their window: `windowed_layers` of them see `sliding_window` positions."""

    def group(count: int, reach: Reach) -> LayerGroup:
        return LayerGroup(
            count,
            Attention(heads, kv_heads, head_dim, reach=reach),
            mlp=Mlp(intermediate, gated_mlp),
            norm_parameters=norm_parameters_per_layer,
            bias_parameters=bias_parameters_per_layer,
        )

    full = (group(layers - windowed_layers, FULL),) if layers > windowed_layers else ()
    sliding = (group(windowed_layers, Reach("window", sliding_window)),) if windowed_layers else ()
    return ModelArchitecture(
        name,
        model_type,
        hidden,
        vocab,
        full + sliding,
        tied_embeddings=tied_embeddings,
        final_norm_parameters=final_norm_parameters,
        max_positions=max_positions,
        native_dtype=native_dtype,
        declared_parameters=declared_parameters,
        notes=notes,
    )
