"""One operating point measured, as a point of our own document: its samples, the server's own figures, and the client's health."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from app.domain.checks.measuring import client_limited
from app.domain.derive import request_distributions, statistics, token_weighted_itl
from app.domain.run import MetricValue, RequestSamples
from app.domain.text import duration
from app.formats.phaseline_document import Point
from app.formats.serving import SERVER_USAGE
from app.worker.load.columns import Columns
from app.worker.load.health import Health
from app.worker.load.offering import Offered
from app.worker.load.probe import Probed
from app.worker.load.scrape import ServerFigures

CHUNKS = "chunks"
_OFF = 0.05


@dataclass(frozen=True)
class Shape:
    """What a point asks for: tokens, and either clients or a rate (requests per second; None with arrivals of a trace)."""

    prompt_tokens: int
    output_tokens: int
    concurrency: int | None = None
    rate_per_s: float | None = None
    traced: bool = False

    @property
    def words(self) -> str:
        """The point in one line."""
        load = f"concurrency {self.concurrency}" if self.concurrency else f"{self.rate_per_s:g} requests/s" if self.rate_per_s else "trace"
        return f"{load}, prompt {self.prompt_tokens}, output {self.output_tokens}"


@dataclass(frozen=True)
class Deployment:
    """What is measured, in the words of whoever asked: nothing of it can be seen from outside."""

    model: str
    hardware: str | None = None
    devices: int | None = None
    engine: str | None = None
    weight_dtype: str | None = None


@dataclass(frozen=True)
class Measured:
    """A point's answers and what was seen around them."""

    shape: Shape
    deployment: Deployment
    offered: Offered
    probed: Probed
    warmup: RequestSamples | None
    server: ServerFigures | None

    @property
    def columns(self) -> Columns:
        """The answers."""
        return self.offered.columns

    @property
    def health(self) -> Health:
        """The client meanwhile."""
        return self.offered.health


def point_of(measured: Measured) -> Point:
    """The point as it goes into the document."""
    shape, columns, samples = measured.shape, measured.columns, measured.columns.samples
    done = int(samples.ok.sum())
    if not done:
        return _failed(measured)
    itl = token_weighted_itl(samples)
    server = measured.server
    limited = measured.health.limited(None if itl is None else itl.mean)
    flags = [client_limited(limited, _health_figures(measured.health))] if limited else []
    if server is not None and server.cache_hits is not None:
        flags.append(server.cache_hits)
    return Point(
        **asdict(measured.deployment),
        load_mode="open" if shape.concurrency is None else "closed",
        measured_at="client",
        token_count_source=SERVER_USAGE if measured.probed.counts else CHUNKS,
        started_at=datetime.fromtimestamp(measured.offered.began, UTC).isoformat(),
        duration_s=columns.ended_s,
        window_s=measured.offered.window_s,
        concurrency=shape.concurrency,
        request_rate_per_s=shape.rate_per_s,
        sent=samples.size,
        requests=samples,
        kv_dtype=None if server is None else server.kv_dtype,
        metrics=_metrics(measured, done),
        flags=flags,
        labels=_labels(measured),
        warnings=_warnings(measured, done),
        details=_details(measured),
    )


def _metrics(measured: Measured, done: int) -> Mapping[str, MetricValue]:
    """The server's figures, and of a closed loop how long the client took from one answer to its next request."""
    server = {} if measured.server is None else measured.server.metrics(done)
    dispatched = None if measured.shape.concurrency is None else statistics(measured.columns.dispatch_s)
    return server if dispatched is None else {**server, "client_queue_s": dispatched}


def _failed(measured: Measured) -> Point:
    shape, samples = measured.shape, measured.columns.samples
    reasons = sorted({error for error in samples.errors if error})
    return Point(
        status="error",
        reason=f"none of {samples.size} requests succeeded: {'; '.join(reasons[:3]) or 'no reason known'}",
        **asdict(measured.deployment),
        load_mode="open" if shape.concurrency is None else "closed",
        measured_at="client",
        started_at=datetime.fromtimestamp(measured.offered.began, UTC).isoformat(),
        duration_s=measured.columns.ended_s,
        prompt_tokens=float(shape.prompt_tokens),
        output_tokens=float(shape.output_tokens),
        concurrency=shape.concurrency,
        request_rate_per_s=shape.rate_per_s,
        sent=samples.size,
    )


def _labels(measured: Measured) -> Mapping[str, str]:
    probed, shape = measured.probed, measured.shape
    server = {} if measured.server is None else measured.server.labels
    labels = {
        **server,
        "api": probed.asking.api,
        "asked_prompt_tokens": str(shape.prompt_tokens),
        "asked_output_tokens": str(shape.output_tokens),
    }
    if probed.left_out:
        labels["left_out"] = ", ".join(probed.left_out)
    if shape.traced:
        labels["arrivals"] = "trace"
    elif shape.rate_per_s is not None:
        labels["arrivals"] = "poisson"
    return labels


def _warnings(measured: Measured, done: int) -> list[str]:
    shape, samples, probed = measured.shape, measured.columns.samples, measured.probed
    said = []
    if probed.left_out:
        said.append(f"The server refuses {', '.join(probed.left_out)}: asked without, so that answers may end before their length.")
    if not probed.counts:
        said.append("The server sends no usage: tokens are not counted, and only times of chunks are known.")
    for word, asked, column in (
        ("prompt", shape.prompt_tokens, samples.prompt_tokens),
        ("output", shape.output_tokens, samples.output_tokens),
    ):
        mean = float(column[samples.ok].mean())
        if np.isfinite(mean) and abs(mean / asked - 1) > _OFF:
            said.append(f"Asked for {asked} {word} tokens and got {mean:.4g} on average, by the server's count.")
    if measured.offered.given_up:
        said.append("The point ended early: nothing succeeded any more.")
    if measured.columns.resent:
        said.append(f"{measured.columns.resent} requests were sent again: the server had closed the connection they were first sent on.")
    if measured.offered.late:
        said.append(f"{measured.offered.late} requests were put together when they were due already.")
    if measured.server is not None and measured.server.completed is not None and measured.server.completed != done:
        said.append(
            f"The server finished {measured.server.completed} requests meanwhile and {done} are ours: others used it, or some failed."
        )
    return said


def _details(measured: Measured) -> Mapping[str, Any]:
    """What a reader of the document may want beside the samples: the client's health, the warm-up, figures from the schedule."""
    details: dict[str, Any] = {"client": asdict(measured.health), "continuous_usage": measured.probed.continuous}
    if measured.warmup is not None:
        details["warmup"] = {key: value.tolist() for key, value in (("ttft_s", measured.warmup.ttft_s), ("e2e_s", measured.warmup.e2e_s))}
    if measured.server is not None:
        details["server"] = dict(measured.server.means)
    samples = measured.columns.samples
    if samples.scheduled_s is not None and samples.start_s is not None:
        waited = samples.start_s - samples.scheduled_s
        details["from_schedule"] = {
            key: {name: float(np.percentile(column[samples.ok], level)) for name, level in (("p50", 50), ("p90", 90), ("p99", 99))}
            for key, column in (("ttft_s", samples.ttft_s + waited), ("e2e_s", samples.e2e_s + waited))
        }
    return details


def _health_figures(health: Health) -> Mapping[str, float]:
    figures = {"cpu_share": health.cpu_share, "lag_p99_s": health.lag_p99_s, "coalesced_share": health.coalesced_share}
    return {key: value for key, value in figures.items() if value is not None}


def row_of(measured: Measured, point: Point) -> dict[str, Any]:
    """The measured point as flat figures for a live table or chart; None where a figure is not known."""
    shape, samples = measured.shape, measured.columns.samples
    found = request_distributions(samples)
    ttft, itl = found.get("ttft_s"), found.get("itl_s")
    output = float(np.nansum(samples.output_tokens[samples.ok]))
    done, seconds = int(samples.ok.sum()), measured.columns.ended_s
    return {
        "phase": "both",
        "status": "ok" if done else "error",
        "concurrency": shape.concurrency,
        "request_rate_per_s": shape.rate_per_s,
        "prompt_tokens": shape.prompt_tokens,
        "output_tokens": shape.output_tokens,
        "requests": done,
        "failed": samples.size - done,
        "ttft_s": None if ttft is None else ttft.p50,
        "ttft_p99_s": None if ttft is None else ttft.p99,
        "itl_s": None if itl is None else itl.mean,
        "tokens_per_s": output / seconds if output and seconds else None,
        "requests_per_s": done / seconds if done and seconds else None,
        "flags": ", ".join(flag.flag for flag in point.flags),
    }


def progress_words(shape: Shape, ended: int, since_s: float) -> str:
    """What is going on, for a line of progress."""
    return f"{shape.words}: {ended} answers in {duration(since_s)}"
