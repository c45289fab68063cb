"""What the bytes and FLOPs of a deployment allow: the decode floor by bytes really read, tier by tier, and shares of both denominators.

    bytes a step = weights read + 2 L kv d b · context · sequences
    floor        = bytes / (devices · bandwidth), tiers of memory one after the other
    share        = floor / measured step

Both denominators are kept apart: the specified bandwidth and the achieved one; the share of the achieved one is what is judged.
"""

from collections.abc import Mapping

from app.domain.diagnosis.subject import Setup


def weight_bytes(setup: Setup) -> float | None:
    """Bytes of weights that a step reads: as told, else active (or all) parameters at their width."""
    if setup.step_weight_bytes is not None:
        return setup.step_weight_bytes
    count = setup.active_parameters if setup.active_parameters is not None else setup.parameters
    return None if count is None or setup.bytes_per_parameter is None else count * setup.bytes_per_parameter


def kv_bytes(setup: Setup) -> float | None:
    """Bytes of KV cache that a step reads: keys and values of every position of every sequence in every layer."""
    if setup.step_kv_bytes is not None:
        return setup.step_kv_bytes
    parts = (setup.layers, setup.kv_heads, setup.head_dim, setup.kv_element_bytes, setup.context_tokens, setup.sequences)
    total = 2.0
    for part in parts:
        if part is None:
            return None
        total *= part
    return total


def step_bytes(setup: Setup) -> float | None:
    """All bytes that a decode step reads; the weights alone where nothing is known of the cache."""
    weights, cache = weight_bytes(setup), kv_bytes(setup)
    return None if weights is None else weights + (cache or 0.0)


def floors(setup: Setup) -> Mapping[str, float]:
    """What follows from the setup alone, by name: `floor_s` at the achieved bandwidth (else the specified), its parts and denominators."""
    found: dict[str, float] = {}
    read, cache = step_bytes(setup), kv_bytes(setup)
    if read is None:
        return found
    found["step_bytes"] = read
    found["step_weight_bytes"] = read - (cache or 0.0)
    if cache is not None:
        found["step_kv_bytes"] = cache
    devices = setup.devices or 1.0
    specified, achieved = setup.bandwidth_bytes_per_s, setup.achieved_bandwidth_bytes_per_s
    fast = achieved if achieved is not None else specified
    if fast is None:
        return found
    if setup.fast_share is not None and setup.slow_bandwidth_bytes_per_s is not None:
        quick = setup.fast_share * read / (devices * fast)
        slow = (1 - setup.fast_share) * read / setup.slow_bandwidth_bytes_per_s
        found |= {"floor_s": quick + slow, "slow_tier_share": slow / (quick + slow)}
    else:
        found["floor_s"] = read / (devices * fast)
        if specified is not None:
            found["floor_specified_s"] = read / (devices * specified)
    found["ceiling_per_s"] = 1 / found["floor_s"]
    if setup.bytes_per_parameter is not None and setup.bytes_per_parameter > 2 and cache is None:
        # 16-bit weights are the nearest smaller format that needs no calibration data.
        found["ceiling_16bit_per_s"] = found["ceiling_per_s"] * setup.bytes_per_parameter / 2
    return found


def shares(setup: Setup, step_s: float) -> Mapping[str, float]:
    """A measured decode step against the floor, by name; `share_of_floor` is judged, the others stand beside it."""
    found = dict(floors(setup))
    if "floor_s" not in found or step_s <= 0:
        return found
    read, devices = found["step_bytes"], setup.devices or 1.0
    found |= {"share_of_floor": found["floor_s"] / step_s, "step_over_floor_s": step_s - found["floor_s"]}
    found["step_bytes_per_s"] = read / step_s
    if setup.bandwidth_bytes_per_s is not None:
        found["share_of_specified"] = read / (step_s * devices * setup.bandwidth_bytes_per_s)
        if setup.resident_bytes is not None:
            found["wrong_share_of_resident"] = setup.resident_bytes / (step_s * devices * setup.bandwidth_bytes_per_s)
    if setup.layers:
        found["step_s_per_layer"] = step_s / setup.layers
    return found


def counted(setup: Setup, bytes_per_s: float, step_s: float) -> Mapping[str, float]:
    """Bytes that a counter saw for each token, beside those of the active weights in their format and of all weights expanded."""
    found = {"counted_bytes_per_token": bytes_per_s * step_s}
    if setup.bytes_per_parameter is None:
        return found
    if setup.active_parameters is not None:
        found["active_weight_bytes"] = setup.active_parameters * setup.bytes_per_parameter
        found["excess_bytes_ratio"] = found["counted_bytes_per_token"] / found["active_weight_bytes"]
    if setup.parameters is not None:
        found["all_weight_bytes"] = setup.parameters * setup.bytes_per_parameter
        found["counted_over_all_weights"] = found["counted_bytes_per_token"] / found["all_weight_bytes"]
        if setup.compute_bytes_per_parameter is not None:
            found["all_expanded_bytes"] = setup.parameters * setup.compute_bytes_per_parameter
            found["counted_over_expanded"] = found["counted_bytes_per_token"] / found["all_expanded_bytes"]
            found["expansion"] = setup.compute_bytes_per_parameter / setup.bytes_per_parameter
    return found
