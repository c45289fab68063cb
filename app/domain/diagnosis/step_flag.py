"""The flag of a step over the batch: two kinds of per-token time in one load, told by where they part."""

from app.domain.diagnosis.changes import Seen
from app.domain.run import Flag


def step_flag(seen: Seen) -> Flag | None:
    """`bimodal_itl` where ITL jumps between two neighbouring batches and hardly moves on either side."""
    if "step_ratio" not in seen:
        return None
    text = (
        f"Per-token times are of two kinds: up to {seen['step_from_batch']:,.0f} running sequences, and from {seen['step_to_batch']:,.0f} "
        f"on {seen['step_ratio']:.3g} times as long. Neither mean nor median of the run describes a step."
    )
    return Flag("bimodal_itl", text, (), {name: seen[name] for name in ("step_from_batch", "step_to_batch", "step_ratio")})
