"""A stream as an importer hands it over: what the client saw of its own requests, and what its tools report beside them.

Three kinds of tools, as they are met: a client that times a stream and nothing else; one that also stores the engine's own configuration;
one that besides reads the server's metrics and the device's clocks. Nothing that no such tool reports is handed over, and what such tools
report whatever was changed is handed over whatever was changed:

client     times of the stream; NVIDIA's client (AIPerf, here of its own engine) traces each request as well and says how long it took to
           send it (`http_req_connection_overhead`, `http_req_sending`)
settings   version and flags, those at their defaults too (SGLang's `server_info`, flags under vLLM's `--metadata`); SGLang's says the size
           of its pool as well (`max_total_num_tokens`), and vLLM's client (0.33) stores the server's own TTFT and queue of each request
           (`server_ttfts`, `server_queue_times`)
server     the same of any engine; means of the server's histograms; its counters between two scrapes, which count every tenant's requests
           (vLLM: `prompt_tokens_total`, `num_preemptions_total`); the pool (`cache_config_info`); the device's clocks (NVML)
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.domain.checks import Evidence, as_shown, flagged
from app.domain.derive import request_distributions, statistics
from app.domain.run import Distribution, Floats, LoadMode, RequestCounts, RequestSamples, Run, Workload
from benchmarks.synthetic.deployment import Deployment, Served
from benchmarks.synthetic.stream import Noise

Tools = Literal["client", "settings", "server"]
# One report in five has the client's times alone; in turn with the others.
TOOLS: tuple[Tools, ...] = ("client", "settings", "server", "settings", "server")
# A client's timer and the counters of a server are not exact.
COUNTER_NOISE = 0.002
SENDING_S = 2e-4
_DEFAULTS = {"enforce_eager": "False", "cuda_graph_max_bs": "256", "enable_lora": "False", "cpu_offload_gb": "0"}


@dataclass(frozen=True, eq=False)
class _Seen:
    """The client's own view, one entry a request: moments in seconds from the start."""

    start: Floats
    first: Floats
    end: Floats
    gaps: tuple[Floats, ...]


def handed(deployment: Deployment, served: Served, tools: Tools, noise: Noise, random: np.random.Generator) -> Run:
    """The run that an importer makes of it."""
    own = np.flatnonzero(served.own)
    seen = _seen(deployment, served, own, noise, random)
    samples = _samples(served, own, seen, deployment, tools)
    load = deployment.load
    run = Run(
        format="generic",
        engine=deployment.engine.slug,
        engine_version=deployment.version if tools != "client" else None,
        model=deployment.model.name,
        hardware=deployment.hardware.slug,
        devices=deployment.request.tp,
        tp=deployment.request.tp,
        # A person who uploads says model, device, devices and the format of the weights; a tool says more.
        weight_dtype=deployment.request.weight_dtype,
        kv_dtype=deployment.request.kv_dtype if tools != "client" else None,
        duration_s=float(seen.end.max() - seen.start.min()),
        load_mode=_mode(deployment),
        measured_at="client",
        token_count_source="server usage",
        workload=Workload(
            prompt_tokens_mean=float(samples.prompt_tokens.mean()),
            output_tokens_mean=float(samples.output_tokens.mean()),
            prompt_tokens_total=round(float(samples.prompt_tokens.sum())),
            output_tokens_total=round(float(samples.output_tokens.sum())),
            concurrency=load.clients,
            request_rate_per_s=load.request_rate_per_s,
        ),
        requests=RequestCounts(own.size, own.size, 0),
        metrics={**request_distributions(samples), **_beside(served, own, deployment, tools, random)},
        samples=samples,
        labels=_labels(deployment, served, tools),
    )
    return as_shown(flagged(run, Evidence()))


def _mode(deployment: Deployment) -> LoadMode:
    if deployment.load.clients is None:
        return "open"
    return "single" if deployment.load.clients == 1 else "closed"


def _seen(deployment: Deployment, served: Served, own: npt.NDArray[np.int64], noise: Noise, random: np.random.Generator) -> _Seen:
    """Deliveries as they reach the client, late where it is cold, gathered by what stands between, on a clock that is not exact."""
    client, start, firsts, ends, gaps = deployment.client, served.stream.sent_s[own], [], [], []
    for place, index in enumerate(own):
        late = client.cold_s if place < client.cold else 0.0
        moments = (
            served.stream.deliveries_s[index] + late + np.abs(random.normal(0.0, noise.clock_s, served.stream.deliveries_s[index].size))
        )
        moments = np.maximum.accumulate(moments)
        if client.gathered > 1:
            moments = _gathered(moments, client.gathered)
        firsts.append(moments[0])
        ends.append(moments[-1])
        gaps.append(np.diff(moments))
    return _Seen(start, np.asarray(firsts), np.asarray(ends), tuple(gaps))


def _gathered(moments: Floats, together: int) -> Floats:
    """Each delivery at the moment of the last one of its group: a buffer that is sent on when it is full, or at the end."""
    last = np.minimum((np.arange(moments.size) // together + 1) * together, moments.size) - 1
    held: Floats = moments[last] + 2e-5 * (np.arange(moments.size) % together)
    return held


def _samples(served: Served, own: npt.NDArray[np.int64], seen: _Seen, deployment: Deployment, tools: Tools) -> RequestSamples:
    cached = served.sent.cached[own].astype(np.float64)
    return RequestSamples(
        ok=np.ones(own.size, dtype=np.bool_),
        prompt_tokens=served.sent.prompt[own].astype(np.float64),
        output_tokens=served.sent.output[own].astype(np.float64),
        ttft_s=seen.first - seen.start,
        e2e_s=seen.end - seen.start,
        start_s=seen.start,
        chunk_gaps_s=np.concatenate(seen.gaps),
        chunk_gap_counts=np.asarray([gaps.size for gaps in seen.gaps], dtype=np.int64),
        # Usage with its cached tokens is part of an answer where the server is told to report it.
        cached_tokens=cached if tools != "client" else None,
    )


def _beside(
    served: Served, own: npt.NDArray[np.int64], deployment: Deployment, tools: Tools, random: np.random.Generator
) -> dict[str, Distribution]:
    """What the server's own clock says, as far as the tool reads it."""
    if tools == "server":
        return _server(served, own, deployment, random)
    if deployment.engine.slug == "tensorrt-llm":
        # Writing takes a fraction of a millisecond where nothing holds it up.
        sending = statistics(deployment.client.delay_s + SENDING_S * (1 + random.random(own.size)))
        return {} if sending is None else {"client_send_s": sending}
    if tools == "settings" and deployment.engine.slug == "vllm":
        found = {"queue_s": statistics(_queues(served)[own]), "server_ttft_s": statistics(_server_first_tokens(served, deployment)[own])}
        return {key: value for key, value in found.items() if value is not None}
    return {}


def _queues(served: Served) -> Floats:
    waited: Floats = served.stream.admitted_s - served.stream.arrived_s
    return waited


def _server_first_tokens(served: Served, deployment: Deployment) -> Floats:
    """TTFT by the server's clock, which starts when the request is at its door."""
    firsts = np.asarray([times[0] for times in served.stream.deliveries_s])
    found: Floats = firsts - served.stream.sent_s - deployment.client.delay_s
    return found


def _server(served: Served, own: npt.NDArray[np.int64], deployment: Deployment, random: np.random.Generator) -> dict[str, Distribution]:
    """Means of the server's own histograms and of the device's clocks; a server counts every tenant's requests."""
    stream = served.stream
    firsts = np.asarray([times[0] for times in stream.deliveries_s])
    clock = 1 + random.normal(0.0, COUNTER_NOISE, 5)
    found = {
        "queue_s": statistics(_queues(served) * clock[0]),
        "prefill_s": statistics((firsts - stream.admitted_s) * clock[1]),
        "server_ttft_s": statistics(_server_first_tokens(served, deployment)[own] * clock[2]),
        "sm_clock_hz": Distribution(mean=deployment.clocks[0] * clock[3], n=60),
        "memory_clock_hz": Distribution(mean=deployment.clocks[1] * clock[4], n=60),
    }
    # A histogram gives its mean; percentiles of queues are not relied on.
    return {key: replace(value, std=None) for key, value in found.items() if value is not None}


def _labels(deployment: Deployment, served: Served, tools: Tools) -> dict[str, str]:
    if tools == "client":
        return {}
    schedule = deployment.schedule
    labels = {"max_num_batched_tokens": str(schedule.chunk), "max_num_seqs": str(schedule.cap), **_DEFAULTS}
    labels["speculative_num_steps"] = str(deployment.request.draft_tokens)
    labels |= deployment.settings
    if np.isfinite(served.pool_tokens) and (tools == "server" or deployment.engine.slug == "sglang"):
        labels["kv_cache_size_tokens"] = f"{served.pool_tokens:.0f}"
    if tools == "server":
        labels |= {"preemptions": str(served.stream.preemptions), "server_prompt_tokens": str(int(served.sent.prompt.sum()))}
        if np.isfinite(served.stream.pool_peak):
            labels["kv_cache_usage_max"] = f"{served.stream.pool_peak:.4f}"
    return labels
