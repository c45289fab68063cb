"""What our own measuring notices beside the figures: repeats that disagree, a machine that was not alone, a client at its limit."""

from collections.abc import Callable, Mapping

from app.domain.run import Flag
from app.domain.stability import Spread
from app.domain.telemetry import Telemetry
from app.domain.text import percent

STOLEN_CORES = 0.05
# A core's worth of other work is what the measured threads may have lost.
OTHER_CORES = 0.5
_PREFILL = ("ttft_s.mean", "prefill_s.mean")
_DECODE = ("itl_s.mean", "tpot_s.mean", "step_s.mean")


def noisy_samples(prefill: Spread | None, decode: Spread | None) -> Flag | None:
    """Repeats of one pass differ by more than a tenth of their median; beyond a quarter their mean is withheld."""
    named = (("prefill", prefill, _PREFILL), ("decode step", decode, _DECODE))
    off = [(name, found, means) for name, found, means in named if found is not None and found.verdict != "stable"]
    if not off:
        return None
    words = " and ".join(f"the {name}'s by {percent(found.iqr_share)} of their median ({found.verdict})" for name, found, _ in off)
    figures = {f"{name.split()[0]}_iqr_share": found.iqr_share for name, found, _ in off}
    withheld = tuple(mean for _, found, means in off if found.verdict == "unusable" for mean in means)
    return Flag("noisy_samples", f"Repeats of the same pass spread: {words}. Measure again on a quiet machine.", withheld, figures)


def contended(telemetry: Telemetry | None, threads: int | None) -> Flag | None:
    """Something else used the device or the processor while the run lasted."""
    if telemetry is None:
        return None
    others = telemetry.known("other_processes")
    if others.size and others.max() > 0:
        text = f"Up to {int(others.max())} other processes used the device during the run: its rates are not the device's own."
        return Flag("contended", text, (), {"other_processes": float(others.max())})
    stolen, busy = telemetry.mean("cpu_steal_cores"), telemetry.mean("cpu_busy_cores")
    if stolen is not None and stolen > STOLEN_CORES:
        text = f"Other machines on this host took {stolen:.2g} processor cores during the run: times are longer than its own."
        return Flag("contended", text, (), {"stolen_cores": stolen})
    if threads is not None and busy is not None and busy > threads + OTHER_CORES:
        text = f"{busy:.2g} processor cores were busy while the run used {threads}: other work shared caches and memory with it."
        return Flag("contended", text, (), {"busy_cores": busy, "threads": float(threads)})
    return None


def throttled(telemetry: Telemetry | None) -> Flag | None:
    """The device says that it slowed itself down."""
    share = None if telemetry is None else telemetry.throttled_share
    if telemetry is None or not share:
        return None
    text = f"The device was slowed for {percent(share)} of the run by {', '.join(telemetry.throttle_words)}; recorded, not discarded."
    return Flag("clock_throttle", text, (), {"throttled_share": share})


def client_limited(evidence: str, figures: Mapping[str, float]) -> Flag:
    """The measuring client was at its own limit, so that its times hold waits of its own."""
    return Flag("client_limited", evidence, (), figures)


def cache_hits(evidence: str, figures: Mapping[str, float]) -> Flag:
    """The server's counters say that prompts were found in its cache."""
    return Flag("prefix_cache_hits", evidence, ("prefill_tokens_per_s",), figures)


def device_contended(evidence: str, figures: Mapping[str, float]) -> Flag:
    """Somebody else's work ran on the device, as the measuring process itself saw."""
    return Flag("contended", evidence, (), figures)


def waiting_server(evidence: str, figures: Mapping[str, float]) -> Flag:
    """Two levels of load show that requests wait in the server for each other: TTFT is not the prompt pass."""
    return Flag("server_queue_in_ttft", evidence, ("prefill_tokens_per_s",), figures)


# Flags that a document of our own may carry: what it withholds is decided here and not by the file.
STATED: Mapping[str, Callable[[str, Mapping[str, float]], Flag]] = {
    "client_limited": client_limited,
    "prefix_cache_hits": cache_hits,
    "contended": device_contended,
    "server_queue_in_ttft": waiting_server,
}
