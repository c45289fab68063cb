"""vLLM's `/metrics` as a pair of scrapes: what the server itself measured between them.

Everything there counts since the server started, so one scrape means nothing and the difference of two is a run: histograms of TTFT, queue,
prefill, decode, gap, TPOT and whole request, by the server's own clock; counters of tokens and requests; gauges at both moments. Means
are exact (sum / count). Quantiles are interpolated within a bucket, and beyond the last bound they are not known.

TTFT begins when the request reaches the server, the queue inside. Prefill runs from the first scheduling to the first token, decode from
there to the last token, both with the passes of other requests in between. A request of one token enters the histogram of TPOT as 0, which
is taken out. The time between the scrapes is in the file only where an HTTP date or the series' own timestamps are.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.domain.checks import Evidence, flagged
from app.domain.derive import ONE_TOKEN_PER_CHUNK, aggregate_rates, with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import Distribution, MetricValue, Rate, RequestCounts, Run, Workload
from app.domain.text import clean_text, duration, percent
from app.formats.document import Document
from app.formats.importer import Importer, Part
from app.formats.prometheus_histogram import Histogram
from app.formats.prometheus_text import Scrape, read_scrapes
from app.formats.record import whole_total
from app.formats.scrape_difference import START, Difference, in_series
from app.formats.serving import SERVER_USAGE
from app.formats.vllm_scrape_words import BYTES, FINISHED, FLOPS, counted_labels, gauge_labels, identity

ID = "vllm_prometheus"
_WANTED = ("vllm:", START)
_MARK = "vllm:"
ALONE = (
    "This is one scrape of vLLM's /metrics. Its counters run since the server started, so only the difference of two is a measurement: "
    "send two together, taken before and after the benchmark, as two files of one upload (phaseline import before.txt after.txt), or one "
    "behind the other in one file."
)
NO_DURATION = (
    "The scrapes do not say when they were taken, so there is no duration and no rate over time. Saved with `curl -i`, they carry the date."
)
WHOLE_SECONDS = "The duration is that between the dates of two HTTP answers, in whole seconds: rates are off by up to {share}."
WORK_NOT_COUNTED = "The server counted no FLOPs: start vLLM with --enable-mfu-metrics for its work per byte."
_HISTOGRAMS = {
    "ttft_s": ("vllm:time_to_first_token_seconds",),
    "queue_s": ("vllm:request_queue_time_seconds",),
    "prefill_s": ("vllm:request_prefill_time_seconds",),
    "e2e_s": ("vllm:e2e_request_latency_seconds",),
}
# Names changed over time; while both are there they are the same.
_GAPS = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
_DECODE = ("vllm:request_decode_time_seconds",)
_TPOT = ("vllm:request_time_per_output_token_seconds",)
_PROMPTS, _OUTPUTS = ("vllm:request_prompt_tokens",), ("vllm:request_generation_tokens",)
_COMPUTED = "vllm:request_prefill_kv_computed_tokens"
_FAILED = frozenset({"abort", "error"})
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def matches(document: Document) -> str | None:
    """None for a text with series of vLLM in the Prometheus text format."""
    if document.is_json:
        return "JSON, not a Prometheus scrape"
    if not any(line.lstrip("\ufeff \t").startswith(_MARK) for line in document.text.splitlines()):
        return "no series whose name begins with vllm:"
    return None


def part_of(document: Document) -> Part | None:
    """A single scrape belongs to the others of its upload, in the order of how much its server had done; None for any other document."""
    if matches(document) is not None:
        return None
    try:
        scrapes = read_scrapes(document.text, _WANTED)
    except ImportRefused:
        return None
    if len(scrapes) != 1:
        return None
    done = [value for name, series in scrapes[0].series.items() if name.endswith(("_total", "_count")) for value in series.values()]
    return Part("scrapes", sum(done))


def parse(document: Document) -> list[Run]:
    """One run for each model that the server served between the scrapes. Raises ImportRefused when they are no pair."""
    scrapes = read_scrapes(document.text, _WANTED)
    if len(scrapes) == 1:
        raise ImportRefused(ALONE)
    before, after, between = in_series(scrapes)
    runs = runs_between(before, after, between)
    if not runs:
        raise ImportRefused("No request finished between the two scrapes: take the second one when the benchmark has ended.")
    return runs


def runs_between(before: Scrape, after: Scrape, between: tuple[Scrape, ...] = ()) -> list[Run]:
    """One run for each model of which requests finished between two scrapes in order; none where none did."""
    return [run for model in _models(after) if (run := _run(Difference(before, after, model, between))) is not None]


def _models(scrape: Scrape) -> list[str | None]:
    names = {dict(labels).get("model_name") for name, series in scrape.series.items() if name.startswith(_MARK) for labels in series}
    known: list[str | None] = [*sorted(name for name in names if name is not None)]
    return known or [None]


@dataclass(frozen=True)
class _Finished:
    """The requests that ended between the scrapes: how many, how many of those failed, and their tokens (None: not known)."""

    counts: RequestCounts
    prompt: Histogram | None
    output: Histogram | None

    @property
    def gaps(self) -> float | None:
        """Output tokens after the first, over all of them."""
        return self.output.total - self.output.count if self.output is not None else None

    @property
    def single_token(self) -> float:
        """Requests of at most one output token; 0 where no bucket tells."""
        return (self.output.up_to(1.0) or 0.0) if self.output is not None else 0.0


def _run(between: Difference) -> Run | None:
    """The run of one model; None when none of its requests finished."""
    finished = _finished(between)
    if not finished.counts.completed:
        return None
    words = identity(between)
    run = Run(
        format=ID,
        engine="vllm",
        model=clean_text(between.model) if between.model else None,
        kv_dtype=words.kv_dtype,
        measured_at="server",
        token_count_source=SERVER_USAGE,
        started_at=_started(between),
        duration_s=_duration(between),
        workload=_workload(finished),
        requests=finished.counts,
        labels={**words.labels, **gauge_labels(between), **counted_labels(between)},
    )
    histograms = {key: found for key, names in _HISTOGRAMS.items() if (found := between.histogram(*names)) is not None}
    if (decode := between.histogram(*_DECODE)) is not None:
        histograms["decode_s"] = decode
    if (tpot := between.histogram(*_TPOT)) is not None:
        histograms["tpot_s"] = tpot.without_zeros(min(finished.single_token, tpot.count))
    per_gap = _tokens_per_gap(between)
    if (gaps := between.histogram(*_GAPS)) is not None:
        histograms["chunk_gap_s"] = gaps
        if per_gap is not None and abs(per_gap - 1) <= ONE_TOKEN_PER_CHUNK:
            histograms["itl_s"] = gaps
    metrics: dict[str, MetricValue] = {key: _distribution(found) for key, found in histograms.items() if found.count > 0}
    metrics |= _exact_itl(decode, finished.gaps, metrics.get("itl_s"))
    metrics |= {**_over_time(between, run), **_cached_tokens(between, finished)}
    notes = (*_notes(between, run, histograms), *_work_notes(between))
    evidence = Evidence(tokens_per_chunk=per_gap, saturated=_saturated(histograms), cached_prompt_tokens=_cached(between, finished))
    done = with_request_rates(replace(run, metrics={**metrics, **_prefill_rate(between, finished, metrics)}, warnings=notes))
    return _without_failures_excluded(flagged(done, evidence), finished)


def _without_failures_excluded(run: Run, finished: _Finished) -> Run:
    """Where requests that failed are in the histograms, none is left out of them: said, in place of the flag."""
    completed, failed = run.requests.completed or 0, run.requests.failed or 0
    if not failed or finished.output is None or finished.output.count < completed + failed:
        return run
    note = f"{failed} of {completed + failed} requests were aborted or failed; the server's histograms have them too."
    kept = tuple(flag for flag in run.flags if flag.flag != "failures_excluded")
    return replace(run, flags=kept, warnings=(*run.warnings, note))


def _finished(between: Difference) -> _Finished:
    reasons = {reason: rise for reason, rise in between.rises(FINISHED, "finished_reason").items() if rise >= 0}
    output = between.histogram(*_OUTPUTS)
    if reasons:
        failed = whole_total(sum(rise for reason, rise in reasons.items() if reason in _FAILED))
        completed = whole_total(sum(rise for reason, rise in reasons.items() if reason not in _FAILED))
        counts = RequestCounts(None, completed, failed)
    else:
        whole = between.histogram(*_HISTOGRAMS["e2e_s"])
        counts = RequestCounts(None, None if whole is None else whole_total(whole.count), None)
    return _Finished(counts, between.histogram(*_PROMPTS), output)


def _workload(finished: _Finished) -> Workload:
    """Tokens of the requests that ended. How many clients there were is not in a scrape: its gauges show two moments."""
    prompt, output = finished.prompt, finished.output
    return Workload(
        prompt_tokens_mean=prompt.mean if prompt is not None else None,
        output_tokens_mean=output.mean if output is not None else None,
        prompt_tokens_total=whole_total(prompt.total) if prompt is not None else None,
        output_tokens_total=whole_total(output.total) if output is not None else None,
    )


def _distribution(found: Histogram) -> Distribution:
    """Mean and quantiles of a histogram; `n` are its observations."""
    return Distribution(
        mean=found.mean,
        p50=found.quantile(0.5),
        p90=found.quantile(0.9),
        p95=found.quantile(0.95),
        p99=found.quantile(0.99),
        n=whole_total(found.count),
        origin="derived",
    )


def _tokens_per_gap(between: Difference) -> float | None:
    """Output tokens after the first of each request, for each gap that the server saw: 1 without speculation."""
    gaps, first = between.histogram(*_GAPS), between.histogram(*_HISTOGRAMS["ttft_s"])
    made = between.rise("vllm:generation_tokens_total")
    if gaps is None or first is None or not made or made <= first.count:
        return None
    return (made - first.count) / gaps.count


def _exact_itl(decode: Histogram | None, gaps: float | None, of_gaps: MetricValue | None) -> dict[str, MetricValue]:
    """ITL = decode times / (output tokens - 1) of the requests that ended, with the quantiles of the gaps where each is one token."""
    if decode is None or not gaps or gaps < 0 or decode.total <= 0:
        return {}
    spread = of_gaps if isinstance(of_gaps, Distribution) else Distribution(origin="derived")
    return {"itl_s": replace(spread, mean=decode.total / gaps, n=whole_total(gaps))}


def _saturated(histograms: dict[str, Histogram]) -> tuple[str, ...]:
    """The quantiles, as `metric.stat`, that lie beyond the last bound of their histogram."""
    return tuple(f"{key}.{stat}" for key, found in histograms.items() for stat, q in _QUANTILES.items() if found.saturated(q))


def _prefill_rate(between: Difference, finished: _Finished, metrics: dict[str, MetricValue]) -> dict[str, MetricValue]:
    """Prompt tokens that were computed, not found in the cache, per second of prefill of the request."""
    computed, prefill = between.histogram(_COMPUTED), metrics.get("prefill_s")
    if computed is None or computed.mean is None or not isinstance(prefill, Distribution) or not prefill.mean:
        return {}
    return {"prefill_tokens_per_s": Rate(computed.mean / prefill.mean, "request", "derived")}


def _cached(between: Difference, finished: _Finished) -> int | None:
    """Prompt tokens that were found in the prefix cache: those of the requests that ended, else those of all that asked."""
    computed = between.histogram(_COMPUTED)
    if finished.prompt is not None and computed is not None and computed.count == finished.prompt.count:
        return whole_total(max(0.0, finished.prompt.total - computed.total))
    hits = between.rise("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
    return None if hits is None else whole_total(hits)


def _cached_tokens(between: Difference, finished: _Finished) -> dict[str, MetricValue]:
    """Prompt tokens of a mean request that were in the cache, where the requests that ended say so themselves."""
    computed, prompt = between.histogram(_COMPUTED), finished.prompt
    if prompt is None or computed is None or computed.count != prompt.count:
        return {}
    mean = max(0.0, prompt.total - computed.total) / prompt.count
    return {"cached_prompt_tokens": Distribution(mean=mean, n=whole_total(prompt.count), origin="derived")}


def _duration(between: Difference) -> float | None:
    """Seconds between the scrapes, None where they do not say when they were taken, or the same moment."""
    start, end = between.before.time_s, between.after.time_s
    return end - start if start is not None and end is not None and end > start else None


def _started(between: Difference) -> datetime | None:
    moment = between.before.time_s
    try:
        return None if moment is None else datetime.fromtimestamp(moment, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _over_time(between: Difference, run: Run) -> dict[str, MetricValue]:
    """Rates of the server where the duration is known, and its work per byte, which needs none."""
    prompt, output = (between.rise(f"vllm:{name}_tokens_total") for name in ("prompt", "generation"))
    counted = (None if rise is None else whole_total(rise) for rise in (prompt, output))
    rates = aggregate_rates(run.duration_s, run.requests.completed, *counted)
    found: dict[str, MetricValue] = {key: Rate(value, "aggregate", "derived") for key, value in rates.items()}
    flops, moved = between.mean_rise(FLOPS), _bytes_moved(between)
    if flops and moved:
        found["intensity_flops_per_byte"] = Rate(flops / moved, "device", "derived")
    if flops and run.duration_s:
        found["flops_per_s"] = Rate(flops / run.duration_s, "device", "derived")
    if moved and run.duration_s:
        found["bytes_per_s"] = Rate(moved / run.duration_s, "device", "derived")
    return found


def _bytes_moved(between: Difference) -> float | None:
    """Bytes read and, where the server counts them, written by one device."""
    read, written = (between.mean_rise(name) for name in BYTES)
    return read + (written or 0.0) if read else None


def _work_notes(between: Difference) -> tuple[str, ...]:
    return (WORK_NOT_COUNTED,) if between.mean_rise(FLOPS) == 0 else ()


def _notes(between: Difference, run: Run, histograms: dict[str, Histogram]) -> list[str]:
    """How quantiles and duration are known, and which requests are in which latency."""
    medians = {key: (bucket, found.quantile(0.5)) for key, found in histograms.items() if (bucket := found.bucket(0.5)) is not None}
    notes = []
    if medians:
        widths = ", ".join(f"{key} in {duration(low)} to {duration(high)}" for key, ((low, high), _) in medians.items())
        notes.append(f"Means are exact; quantiles are interpolated within the buckets of the server's histograms, the median of {widths}.")
    if uneven := [key for key, (_, median) in medians.items() if median is None]:
        notes.append(f"Of {', '.join(uneven)} the mean rules out that times are spread evenly in that bucket: its quantiles are left out.")
    if run.duration_s is None:
        notes.append(NO_DURATION)
    elif between.before.whole_seconds or between.after.whole_seconds:
        notes.append(WHOLE_SECONDS.format(share=percent(1 / run.duration_s)))
    first, whole = histograms.get("ttft_s"), histograms.get("e2e_s")
    if first is not None and whole is not None and first.count != whole.count:
        notes.append(
            f"Requests were in flight at a scrape: TTFT is that of {first.count:.0f} requests, the other latencies of the "
            f"{whole.count:.0f} that ended, so they need not add up."
        )
    return notes


IMPORTER = Importer(ID, "vLLM /metrics (two Prometheus scrapes)", matches, parse, part_of=part_of, version=2)
