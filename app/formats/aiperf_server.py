"""The server's metrics that AIPerf scraped all through a run (server_metrics_export.json), beside the client's figures of that run.

Everything in it is a difference over the run: counters have their `total`, histograms `count`, `sum` and buckets, gauges the statistics of
what was seen. So it is read as a pair of scrapes whose first is empty, by the importer of such pairs: vLLM's series alone. Names are those
of the families, without `_total`. The server's own TTFT is set against the client's, and so taken only where it counts the same requests.
"""

from collections.abc import Iterator
from dataclasses import replace

from app.domain.run import MetricValue, Run
from app.domain.text import clean_text
from app.formats.document import Document
from app.formats.importer import Part
from app.formats.prometheus_text import Labels, Scrape
from app.formats.record import Record
from app.formats.stat_export import NO_ENGINE
from app.formats.vllm_prometheus import runs_between

OTHER_COUNTS = "The server finished {there} requests meanwhile and {ours} of the client's succeeded: its TTFT is not set against theirs."
NOT_READ = "The server's metrics hold no series of vLLM with a request that finished: they are not read."
_INSIDE = ("queue_s", "prefill_s")
_OF_OURS = {"ttft_s": "server_ttft_s", "cached_prompt_tokens": "cached_prompt_tokens"}
_COUNTED = ("preemptions", "spec_decode_num_drafts", "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens")
_SAID = ("block_size", "enable_lora", "enable_prefix_caching", "gpu_memory_utilization", "kv_cache_size_tokens", "num_gpu_blocks")
# The largest that was seen: of counts the sum of all engines, of a share the fullest engine.
_SUMMED = {"requests_running_max": "vllm:num_requests_running", "requests_waiting_max": "vllm:num_requests_waiting"}
_FULLEST = {"kv_cache_usage_max": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")}


def is_server_export(record: Record) -> bool:
    """Whether an object is the export of a server's metrics, and no result."""
    return "endpoints_configured" in record.child("summary") and isinstance(record.raw("metrics"), dict)


def part_of(document: Document) -> Part | None:
    """The export of a run and that of its server's metrics belong together by the benchmark that both name."""
    if not document.is_json or len(document.entries) != 1:
        return None
    record = Record(document.entries[0].values)
    benchmark = record.text("benchmark_id")
    if benchmark is None or "aiperf_version" not in record:
        return None
    if is_server_export(record):
        return Part(benchmark, 1.0)
    return Part(benchmark, 0.0) if "request_latency" in record else None


def with_server(run: Run, export: Record) -> Run:
    """The run with what its server said meanwhile: queue, prompt pass, its own TTFT, counters, the fullest pool, settings of its cache."""
    after = _scrape(export)
    runs = runs_between(Scrape(), after)
    if len(runs) != 1:
        return replace(run, warnings=(*run.warnings, NOT_READ))
    (server,) = runs
    completed = run.requests.completed
    ours = completed is not None and completed == server.requests.completed
    found: dict[str, MetricValue] = {key: value for key in _INSIDE if (value := server.metrics.get(key)) is not None}
    if ours:
        found |= {name: value for key, name in _OF_OURS.items() if (value := server.metrics.get(key)) is not None}
    labels = {key: server.labels[key] for key in (*_COUNTED, *_SAID) if key in server.labels}
    notes = tuple(note for note in run.warnings if note != NO_ENGINE)
    differs = () if ours else (OTHER_COUNTS.format(there=server.requests.completed, ours=completed),)
    return replace(
        run,
        engine=run.engine or server.engine,
        kv_dtype=run.kv_dtype or server.kv_dtype,
        metrics={**found, **run.metrics},
        labels={**labels, **_largest(export), **run.labels},
        warnings=(*notes, *differs),
    )


def _series(export: Record, name: str) -> Iterator[tuple[Labels, Record, Record]]:
    """The series of a family, each with its labels (its endpoint among them), its statistics and its buckets."""
    for values in export.child("metrics").child(name).sequence("series") or []:
        series = Record(values if isinstance(values, dict) else {})
        labels = [(clean_text(key, 60), word) for key, word in series.child("labels").items() if isinstance(word, str)]
        endpoint = series.text("endpoint_url") or ""
        yield tuple(sorted((*labels, ("endpoint_url", endpoint)))), series.child("stats"), series.child("buckets")


def _scrape(export: Record) -> Scrape:
    """What a scrape after the run would hold, had every counter begun with it."""
    scrape = Scrape()

    def put(name: str, labels: Labels, value: float | None) -> None:
        if value is not None:
            scrape.series.setdefault(name, {})[labels] = value

    for name, _ in export.child("metrics").items():
        kind = export.child("metrics").child(name).text("type")
        for labels, stats, buckets in _series(export, name) if name.startswith("vllm:") else ():
            if kind == "counter":
                put(name if name.endswith("_total") else f"{name}_total", labels, stats.number("total"))
            elif kind == "histogram":
                put(f"{name}_count", labels, stats.number("count"))
                put(f"{name}_sum", labels, stats.number("sum") or 0.0)
                for bound, _ in buckets.items():
                    put(f"{name}_bucket", tuple(sorted((*labels, ("le", bound)))), buckets.number(bound))
            elif kind == "gauge":
                put(name, labels, stats.number("max"))
    return scrape


def _largest(export: Record) -> dict[str, str]:
    found = {}
    for key, name in _SUMMED.items():
        values = [value for _, stats, _ in _series(export, name) if (value := stats.number("max")) is not None]
        if values:
            found[key] = f"{sum(values):.6g}"
    for key, names in _FULLEST.items():
        values = [value for name in names for _, stats, _ in _series(export, name) if (value := stats.number("max")) is not None]
        if values:
            found[key] = f"{max(values):.6g}"
    return found
