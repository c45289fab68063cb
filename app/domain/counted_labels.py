"""Labels that a file gives of what was counted while a run lasted: they set nothing, and of repeats they have a mean.

`COUNTS` add up over a run, `MOMENTS` are gauges at one moment or the largest seen, `SHARES` and means of a run stand beside them.
"""

COUNTS = frozenset(
    {
        *("preemptions", "prompt_tokens", "generation_tokens", "draft_n", "draft_n_accepted"),
        *("flops_per_device", "bytes_read_per_device", "bytes_written_per_device"),
        *(f"spec_decode_{name}" for name in ("num_drafts", "num_draft_tokens", "num_accepted_tokens")),
    }
)
MOMENTS = frozenset(
    f"{gauge}_{when}" for gauge in ("requests_running", "requests_waiting", "kv_cache_usage") for when in ("before", "after", "max")
)
SHARES = frozenset({"measured_concurrency", "draft_acceptance_rate", "acceptance_length", "server_gpu_cache_hit_rate"})
COUNTED = COUNTS | MOMENTS | SHARES


def of_repeats(name: str, texts: list[str | None]) -> str | None:
    """One label for repeats: what all say, of what was counted the mean (whole where it is a count), else None."""
    known = [text for text in texts if text is not None]
    if len(known) < len(texts) or not known:
        return None
    if len(set(known)) == 1:
        return known[0]
    if name not in COUNTED:
        return None
    try:
        mean = sum(float(text) for text in known) / len(known)
    except ValueError:
        return None
    return f"{mean:.0f}" if name in COUNTS else f"{mean:.6g}"
