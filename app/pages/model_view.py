"""What a model's page says about its layers: each group of equal layers in words, and the model in one line."""

from dataclasses import dataclass

from app.domain.architecture import ModelArchitecture
from app.domain.layers import Attention, Experts, Latent, LayerGroup, Mlp, Reach, Recurrent
from app.domain.quantity import count


@dataclass(frozen=True)
class GroupView:
    """A group of equal layers: how many, what mixes positions, what follows."""

    layers: int
    mixer: str
    feed_forward: str


def group_views(architecture: ModelArchitecture) -> tuple[GroupView, ...]:
    """Every group of layers in words."""
    return tuple(GroupView(group.count, mixer_words(group), feed_forward_words(group)) for group in architecture.groups)


def kinds(architecture: ModelArchitecture) -> str:
    """What tells the model from a dense transformer that sees everything, in a few words; empty for one that does not differ."""
    found = []
    if architecture.expert_layers:
        parts = [group.experts for group in architecture.groups if group.experts]
        mixtures = dict.fromkeys(f"{part.chosen} of {count(part.count)}" for part in parts)
        found.append(f"{', '.join(mixtures)} experts")
    if any(group.latent for group in architecture.groups):
        found.append("latent attention")
    found += [f"{word} in {_layers(architecture, group)} layers" for group in architecture.groups if (word := _limited(group.reach))]
    if architecture.recurrent_layers:
        found.append(f"a state in {architecture.recurrent_layers} of {architecture.layers} layers")
    return ", ".join(dict.fromkeys(found))


def _layers(architecture: ModelArchitecture, group: LayerGroup) -> str:
    alike = sum(other.count for other in architecture.groups if other.reach == group.reach)
    return f"{alike} of {architecture.layers}"


def _limited(reach: Reach | None) -> str:
    if reach is None or reach.span is None:
        return ""
    return {"window": f"window {count(reach.span)}", "chunk": f"chunks of {count(reach.span)}", "top": f"best {count(reach.span)}"}[
        reach.kind
    ]


def mixer_words(group: LayerGroup) -> str:
    """What mixes positions in a layer of the group."""
    parts = []
    if group.attention is not None:
        parts.append(_attention(group.attention))
    if group.latent is not None:
        parts.append(_latent(group.latent))
    if group.recurrent is not None:
        parts.append(_recurrent(group.recurrent))
    return "; beside it ".join(parts) or "nothing"


def feed_forward_words(group: LayerGroup) -> str:
    """What follows the mixer in a layer of the group."""
    parts = []
    if group.mlp is not None:
        parts.append(_mlp(group.mlp))
    if group.experts is not None:
        parts.append(_experts(group.experts))
    return "; beside it ".join(parts) or "nothing"


def _attention(part: Attention) -> str:
    words = f"{part.heads} heads, {part.kv_heads} KV heads of {part.head_dim}"
    limit = _limited(part.reach)
    words += f", {limit}" if limit else ", all positions"
    if part.gate:
        words += ", output gate"
    if part.keys_as_values:
        words += ", keys serve as values"
    return words if part.own_cache else f"{words}, on the cache of an earlier layer"


def _latent(part: Latent) -> str:
    words = f"latent attention: {part.heads} heads, {part.kv_rank} + {part.rope_dim} elements kept a position"
    limit = _limited(part.reach)
    if limit:
        words += f", {limit} positions" + ("" if part.index_heads else " as chosen by an earlier layer")
    return words


def _recurrent(part: Recurrent) -> str:
    return f"{part.kind.replace('_', ' ')}: a state of {count(part.state)} elements"


def _mlp(part: Mlp) -> str:
    return f"MLP of {count(part.intermediate)}, {'gated' if part.gated else 'plain'}"


def _experts(part: Experts) -> str:
    words = f"{part.chosen} of {part.count} experts of {count(part.intermediate)}, {'gated' if part.gated else 'plain'}"
    if part.width:
        words += f", on {count(part.width)} elements"
    return f"{words}, a shared one of {count(part.shared_intermediate)}" if part.shared_intermediate else words
