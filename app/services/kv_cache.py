"""The size of a KV cache from a config, as plain data."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from app.domain.cache_size import cache_size
from app.domain.configs.cache import cache_layers
from app.domain.dtypes import number_format


def cache_json(config: Mapping[str, object], context: int, kv_dtype: str) -> dict[str, Any]:
    """The cache of one sequence of `context` positions, with the figures that common mistakes give.

    Raises UnsupportedModel for a config that cannot be read, InvalidRequest for an unknown format; each names its field.
    """
    layers = cache_layers(config)
    found = cache_size(layers.groups, context, number_format(kv_dtype, "kv_dtype").bytes)
    return {
        "num_hidden_layers": found.layers,
        "context": found.positions,
        "kv_bytes_per_token": found.bytes_per_token,
        "kv_bytes": found.total_bytes,
        "kv_gb": found.gb,
        "kv_gib": found.gib,
        "unwindowed": {"kv_bytes": found.unwindowed_bytes, "factor": found.unwindowed_factor},
        "expanded": {"kv_bytes_per_token": found.expanded_bytes_per_token, "factor": found.expanded_factor},
        "flags": [{**asdict(flag), "withholds": list(flag.withholds)} for flag in found.flags],
        "notes": list(layers.notes),
    }
