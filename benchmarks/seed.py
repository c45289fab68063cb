"""Fill a database with made-up runs, through the functions that an upload goes through once its file is read.

Every file is a sweep over the number of clients and gives a run for each. The runs differ in model, device, number format, clients,
date and speed, so that lists have something to sort, filter and search; every model and device is in the catalog, so that every run
has a prediction. They measure nothing.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import numpy as np

from app.domain.derive import request_distributions
from app.domain.run import STATS, Distribution, MetricValue, Rate, RequestCounts, RequestSamples, Run, Workload
from app.services.context import Context
from app.services.importing import Overrides, new_run
from app.services.profiles import ProfileBook, read_book
from app.store import uploads
from app.store.records import NewUpload
from app.store.requests import to_sample_rows
from app.store.rows import to_rows
from app.store.uploads import PreparedRun

FORMAT = "vllm_bench_serve"
CLIENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
OUTPUT_TOKENS = 128
_PROMPT_TOKENS = (512, 1024, 2000, 4096)
_MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen3-8B",
    "mistralai/Mistral-7B-v0.1",
    "google/gemma-2-9b-it",
)
_DEVICES = ("h100-sxm5-80gb", "a100-sxm4-80gb", "l40s", "instinct-mi300x-192gb")
_DTYPES = ("bf16", "fp8", "int4")
_TAGS = (("nightly",), ("nightly", "baseline"), (), ("tuning",))
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_FILES_A_TRANSACTION = 20


@dataclass(frozen=True, eq=False)
class _Load:
    """What a server shows under one number of clients: every request, and the statistics that follow."""

    clients: int
    samples: RequestSamples
    metrics: dict[str, Distribution]


def fill(context: Context, runs: int, *, sampled: int | None = None) -> tuple[int, ...]:
    """Store `runs` runs in an empty database with a schema and give their ids.

    A run has 100 to 1,024 requests of 128 output tokens. The first `sampled` runs (all when None) keep every request, as far as whole
    files go; of the others only the statistics are stored.
    """
    book = read_book(context)
    loads = [_load(clients) for clients in CLIENTS]
    ids: list[int] = []
    for group in _groups(-(-runs // len(loads))):
        prepared = [_file(book, loads, number, sampled is None or number * len(loads) < sampled) for number in group]
        with context.database.write() as session:
            for number, (upload, made) in zip(group, prepared, strict=True):
                packed = uploads.pack(BytesIO(json.dumps({"made by": "benchmarks.seed", "file": number}).encode()))
                ids += uploads.save(session, upload, packed, made[: runs - len(ids)]).run_ids
    return tuple(ids)


def fill_pair(context: Context, requests: int) -> tuple[int, int]:
    """Store two runs of `requests` requests each, with every request, that differ in all that a comparison may price at once.

    Twice the prompt, half as many tokens again, twice the clients, weights of half the bits, two devices for one.
    """
    book, received = read_book(context), _FIRST
    upload = NewUpload("pair.json", FORMAT, received)
    prepared = []
    for position, (clients, tokens, slowness, prompt, dtype, tp) in enumerate(
        ((64, 32, 1.0, 1000, "bf16", 1), (128, 48, 1.3, 2000, "fp8", 2))
    ):
        load = _load(clients, requests, tokens)
        run = _with_prompt(_run(load, slowness, received + timedelta(hours=position), with_samples=True), prompt)
        run = replace(run, model=_MODELS[0], hardware=_DEVICES[0], weight_dtype=dtype, tp=tp, devices=tp, label=f"pair, {clients} clients")
        prepared.append(PreparedRun(to_rows(new_run(book, run, Overrides()), upload, position), to_sample_rows(run.samples)))
    packed = uploads.pack(BytesIO(b'{"made by": "benchmarks.seed", "file": "pair"}'))
    with context.database.write() as session:
        first, second = uploads.save(session, upload, packed, prepared).run_ids
    return first, second


def _groups(files: int) -> Iterator[range]:
    for start in range(0, files, _FILES_A_TRANSACTION):
        yield range(start, min(start + _FILES_A_TRANSACTION, files))


def _load(clients: int, requests: int | None = None, tokens: int = OUTPUT_TOKENS) -> _Load:
    """Requests of `tokens` output tokens, whose first token waits longer and whose tokens come slower the more clients there are.

    Slow enough for the largest model here on the slowest device: a run that beats its floor would lose the figures that lists sort by.
    """
    rng = np.random.default_rng(clients)
    requests = requests or max(100, 4 * clients)
    ttft = (0.5 + 0.004 * clients) * rng.lognormal(0.0, 0.3, requests)
    gaps = (0.08 + 0.0001 * clients) * rng.lognormal(0.0, 0.1, (requests, tokens - 1))
    e2e = ttft + gaps.sum(axis=1)
    samples = RequestSamples(
        ok=np.full(requests, True),
        prompt_tokens=np.full(requests, 1000.0),
        output_tokens=np.full(requests, float(tokens)),
        ttft_s=ttft,
        e2e_s=e2e,
        start_s=np.sort(rng.uniform(0.0, float(e2e.sum()) / clients, requests)),
        chunk_gaps_s=gaps.ravel(),
        chunk_gap_counts=np.full(requests, tokens - 1, dtype=np.int64),
        errors=("",) * requests,
    )
    return _Load(clients, samples, request_distributions(samples))


def _file(book: ProfileBook, loads: list[_Load], number: int, with_samples: bool) -> tuple[NewUpload, list[PreparedRun]]:
    """The sweep with this number: the same loads on a faster or slower server."""
    rng = np.random.default_rng(number)
    slowness = float(rng.lognormal(0.0, 0.25))
    device, model = _DEVICES[number % len(_DEVICES)], _MODELS[number % len(_MODELS)]
    received = _FIRST + timedelta(minutes=30 * number)
    upload = NewUpload(f"sweep-{number:05}.json", FORMAT, received)
    overrides = Overrides(tags=_TAGS[number % len(_TAGS)], notes="Made up for a benchmark.")
    prepared = []
    for position, load in enumerate(loads):
        moment = received + timedelta(minutes=3 * position)
        run = _run(load, slowness * float(rng.uniform(0.95, 1.05)), moment, with_samples)
        run = replace(
            run, model=model, hardware=device, weight_dtype=_DTYPES[number % len(_DTYPES)], label=f"sweep {number}, {load.clients} clients"
        )
        run = _with_prompt(run, _PROMPT_TOKENS[number % len(_PROMPT_TOKENS)])
        prepared.append(PreparedRun(to_rows(new_run(book, run, overrides), upload, position), to_sample_rows(run.samples)))
    return upload, prepared


def _run(load: _Load, slowness: float, moment: datetime, with_samples: bool) -> Run:
    samples = _slower(load.samples, slowness)
    requests, tokens = samples.size, float(samples.output_tokens[0])
    duration_s = float(samples.e2e_s.sum()) / load.clients
    metrics: dict[str, MetricValue] = {key: _slower_statistics(known, slowness) for key, known in load.metrics.items()}
    metrics["output_tokens_per_s"] = Rate(requests * tokens / duration_s, "aggregate")
    metrics["requests_per_s"] = Rate(requests / duration_s, "aggregate")
    return Run(
        format=FORMAT,
        engine="vllm",
        engine_version="0.9.1",
        devices=1,
        tp=1,
        started_at=moment,
        duration_s=duration_s,
        load_mode="single" if load.clients == 1 else "closed",
        measured_at="client",
        token_count_source="server",
        workload=Workload(None, tokens, None, round(requests * tokens), load.clients, None, rate_unlimited=True),
        requests=RequestCounts(sent=requests, completed=requests, failed=0),
        metrics=metrics,
        samples=samples if with_samples else None,
        labels={"dataset": "random"},
    )


def _with_prompt(run: Run, tokens: int) -> Run:
    total = tokens * (run.requests.completed or 0)
    samples = run.samples and replace(run.samples, prompt_tokens=np.full(run.samples.size, float(tokens)))
    return replace(run, workload=replace(run.workload, prompt_tokens_mean=float(tokens), prompt_tokens_total=total), samples=samples)


def _slower(samples: RequestSamples, factor: float) -> RequestSamples:
    return replace(
        samples,
        ttft_s=samples.ttft_s * factor,
        e2e_s=samples.e2e_s * factor,
        start_s=None if samples.start_s is None else samples.start_s * factor,
        chunk_gaps_s=samples.chunk_gaps_s * factor,
    )


def _slower_statistics(known: Distribution, factor: float) -> Distribution:
    changed: dict[str, Any] = {stat: value * factor for stat in STATS if (value := known.stat(stat)) is not None}
    return replace(known, **changed)
