"""The recurrent mixers that configs describe: Mamba of both kinds, the gated delta rule, lightning attention.

`flops` are the operations of one token on the state: for each state element a decay, an input and an output (multiply and add each),
once more where the delta rule reads the state before it writes; and the short convolution.
"""

import math

from app.domain.configs.reader import ConfigReader, shown
from app.domain.layers import Recurrent


def mamba(hidden: int, inner: int, state: int, kernel: int, rank: int, biases: int, conv_bias: bool, norms: int = 0) -> Recurrent:
    """A mixer of the first kind: a state of `state` elements for each of `inner` channels; the input chooses step and projections.

    `biases` counts those of the input and output projections, `norms` the norm vectors inside the mixer.
    """
    vectors = inner * kernel + (inner if conv_bias else 0) + inner + inner * state + inner + biases + norms
    return Recurrent(
        kind="mamba",
        inner=inner,
        in_columns=2 * inner,
        state=inner * state,
        convolution=inner * (kernel - 1),
        flops=6 * inner * state + 2 * kernel * inner,
        vectors=vectors,
        selection=rank + 2 * state,
        step_rank=rank,
    )


def mamba2(heads: int, head_dim: int, state: int, groups: int, kernel: int, biases: int, conv_bias: bool, norm: bool = True) -> Recurrent:
    """A mixer of the second kind: a state of head_dim x state for each head, its inputs shared by `groups` of heads."""
    inner = heads * head_dim
    channels = inner + 2 * groups * state
    vectors = channels * kernel + (channels if conv_bias else 0) + 3 * heads + (inner if norm else 0) + biases
    return Recurrent(
        kind="mamba2",
        inner=inner,
        in_columns=inner + channels + heads,
        state=inner * state,
        convolution=channels * (kernel - 1),
        flops=6 * inner * state + 2 * kernel * channels,
        vectors=vectors,
    )


def delta_net(reader: ConfigReader) -> Recurrent:
    """The gated delta rule of Qwen3-Next and Qwen3.5: a state of key_dim x value_dim for each value head, an output gate."""
    keys, values = reader.whole("linear_num_key_heads"), reader.whole("linear_num_value_heads")
    key_dim, value_dim = reader.whole("linear_key_head_dim"), reader.whole("linear_value_head_dim")
    if values % keys:
        raise reader.refuse("linear_num_value_heads", f"is {values}, no multiple of linear_num_key_heads ({keys}).")
    kernel = reader.whole("linear_conv_kernel_dim", 4)
    inner, channels = values * value_dim, 2 * keys * key_dim + values * value_dim
    state = values * key_dim * value_dim
    return Recurrent(
        kind="gated_delta_net",
        inner=inner,
        in_columns=channels + inner + 2 * values,
        state=state,
        convolution=channels * (kernel - 1),
        flops=8 * state + 2 * kernel * channels,
        vectors=channels * kernel + 2 * values + value_dim,
    )


def lightning(heads: int, head_dim: int) -> Recurrent:
    """Lightning attention: a state of head_dim x head_dim for each head, a norm and an output gate as wide as the heads."""
    inner = heads * head_dim
    return Recurrent(
        kind="lightning_attention",
        inner=inner,
        in_columns=4 * inner,
        state=inner * head_dim,
        convolution=0,
        flops=6 * inner * head_dim,
        vectors=inner,
    )


def step_rank(reader: ConfigReader, key: str, hidden: int) -> int:
    """The rank of a first-kind mixer's step: a number, or "auto" and absent for a sixteenth of hidden."""
    if reader.values.get(key, "auto") == "auto":
        reader.ignore(key)
        return math.ceil(hidden / 16)
    return reader.whole(key)


def mixer_width(reader: ConfigReader, expand_key: str, hidden: int) -> int:
    """`expand` times hidden, which may be a fraction as long as the product is whole."""
    reader.ignore(expand_key)
    expand = reader.values.get(expand_key, 2)
    if isinstance(expand, bool) or not isinstance(expand, int | float) or not 0 < expand <= 1000 or int(expand * hidden) < 1:
        raise reader.refuse(expand_key, f"is {shown(expand)}; give the factor between hidden_size and the mixer's width.")
    return int(expand * hidden)
