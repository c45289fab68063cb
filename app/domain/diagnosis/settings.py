"""What two deployments say of their settings, as quantities: chunks of a prompt, switches turned on, widths, shares, other software."""

from math import ceil, inf

from app.domain.diagnosis.changes import Seen, changed
from app.domain.diagnosis.subject import Setup
from app.domain.diagnosis.thresholds import SAME_SETTING
from app.domain.run import Run

SWITCHES = ("eager", "adapters", "constrained", "speculative", "disaggregated")
# Labels that name the kernels which run, or the libraries that bring them.
_KERNELS = ("attention_backend", "moe_a2a_backend", "enable_torch_compile", "environment.cuda", "environment.torch", "environment.driver")
# Settings that move a phase by themselves, each with the least change of it that counts as one.
_OF_PROMPT = (
    "budget_change",
    "chunks_added",
    "cached_share_added",
    "bytes_per_parameter_change",
    "kv_element_bytes_change",
    "devices_change",
)
_OF_STEP = ("bytes_per_parameter_change", "kv_element_bytes_change", "fast_share_change", "devices_change", "speculative_added")
_OF_BOTH = ("eager_added", "adapters_added", "constrained_added", "disaggregated_added")


def settings_changes(base: Setup, other: Setup, a: Run, b: Run) -> Seen:
    """Settings that both sides say and that differ, as quantities: chunks of a prompt, switches turned on, widths, shares."""
    found: dict[str, float] = {}
    if base.chunk_budget_tokens and other.chunk_budget_tokens:
        found["budget_change"] = -1.0 if base.chunk_budget_tokens == inf else other.chunk_budget_tokens / base.chunk_budget_tokens - 1
        if base.chunk_budget_tokens == other.chunk_budget_tokens:
            found["budget_change"] = 0.0
        if a.workload.prompt_tokens_mean and b.workload.prompt_tokens_mean:
            chunks = _chunks(a, base.chunk_budget_tokens), _chunks(b, other.chunk_budget_tokens)
            found |= {"chunks_base": chunks[0], "chunks_other": chunks[1], "chunks_added": chunks[1] - chunks[0]}
    for switch in SWITCHES:
        before, after = getattr(base, switch), getattr(other, switch)
        if before is not None and after is not None:
            found[f"{switch}_added"] = after - before
    for name in ("bytes_per_parameter", "kv_element_bytes", "fast_share", "running_cap", "graph_limit", "devices", "pool_tokens"):
        found |= changed(name, getattr(base, name), getattr(other, name))
    if base.running_cap is not None and other.running_cap is not None and a.workload.concurrency:
        # A limit above the number of clients binds nobody.
        limits = (min(cap, float(a.workload.concurrency)) for cap in (base.running_cap, other.running_cap))
        found |= changed("binding_cap", *limits)
    if base.cached_share is not None and other.cached_share is not None:
        found["cached_share_added"] = other.cached_share - base.cached_share
    if base.preemptions is not None and other.preemptions is not None:
        found["preemptions_added"] = other.preemptions - base.preemptions
    shares = _others_share(base, a), _others_share(other, b)
    if shares[0] is not None and shares[1] is not None:
        found |= {"others_prompt_share_base": shares[0], "others_prompt_share_other": shares[1]}
        found["others_prompt_share_added"] = shares[1] - shares[0]
    software = _software_changed(a, b)
    if software is not None:
        found["software_changed"] = float(software)
    formats = [found[name] for name in ("bytes_per_parameter_change", "kv_element_bytes_change") if name in found]
    if formats:
        found["step_bytes_settings_moved"] = float(any(abs(value) > SAME_SETTING for value in formats))
    return {**found, **_settings_moved(found)}


def _software_changed(a: Run, b: Run) -> bool | None:
    """Whether engine, version or a named kernel differs; None where no version is known on both sides and nothing that is differs."""
    if a.engine is not None and b.engine is not None and a.engine != b.engine:
        return True
    if any(a.labels[name] != b.labels[name] for name in _KERNELS if name in a.labels and name in b.labels):
        return True
    return None if a.engine_version is None or b.engine_version is None else a.engine_version != b.engine_version


def _others_share(setup: Setup, run: Run) -> float | None:
    """Of the prompt tokens that the server read meanwhile, the part that was not this run's."""
    own: float | None = run.workload.prompt_tokens_total
    if own is None and run.workload.prompt_tokens_mean is not None and run.requests.completed:
        own = run.workload.prompt_tokens_mean * run.requests.completed
    return None if not setup.served_prompt_tokens or own is None else 1 - own / setup.served_prompt_tokens


def _settings_moved(changes: Seen) -> dict[str, float]:
    """How many of the known settings that act on a phase are not the same; no entry where none is known on both sides."""
    found = {}
    for name, settings in (("prompt_settings_moved", _OF_PROMPT), ("step_settings_moved", _OF_STEP)):
        known = [changes[each] for each in (*settings, *_OF_BOTH) if each in changes]
        if known:
            found[name] = float(sum(abs(value) > SAME_SETTING for value in known))
    return found


def _chunks(run: Run, budget: float) -> float:
    return 1.0 if budget == inf else float(ceil((run.workload.prompt_tokens_mean or 0.0) / budget))
