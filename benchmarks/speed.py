"""How fast Phaseline is: `python -m benchmarks.speed [--json]`.

The cost model by itself (simulations compiled where numba is installed, phaseline[speed]); then pages as a browser gets them, over HTTP
from a real `phaseline serve` on a database of its own: `/` and `/runs/{id}` with 1,000 runs stored, `/runs` with 10,000. A page's figure
is the 95th percentile of the time from sending a request to the last byte of its answer, one request after another on one connection,
over the addresses of all its `groups`: what a page offers (sorting, searching, filtering, other numbers) counts like the page itself.
`compare_100k_p95_s` is the same of /api/v1/compare and /compare.md over two runs of 100,000 requests each that differ in all that can be
priced at once, `compare_page_100k_p95_s` of their page; `sweep_10k_p95_s` is that of one POST /predict that prices 10,000 points. The
processor time beside it is the server's own: where it is far below the time, something else used the machine.
`ready_s` is the median of a few starts on a database with 1,000 runs, with bytecode where the first of them could write it.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from fastapi.testclient import TestClient

from app.main import create_app
from app.services.context import make_context
from app.services.startup import prepare
from benchmarks.model_speed import heatmap_200x200_s, import_domain_s, predictions_per_s, simulations_per_s
from benchmarks.queries import noted
from benchmarks.report import Report, Target, as_json, as_text, machine, percentile
from benchmarks.seed import fill, fill_pair
from benchmarks.server import Server, ServerFailed, serving, settings_in

TARGETS = {
    "predictions_per_s": Target(1e6, "at least"),
    "simulations_per_s": Target(1e3, "at least"),
    "heatmap_200x200_s": Target(0.050),
    "import_domain_s": Target(0.3),
    "home_p95_s": Target(0.050),
    "run_page_p95_s": Target(0.050),
    "runs_page_10k_p95_s": Target(0.100),
    "compare_100k_p95_s": Target(0.150),
    "compare_page_100k_p95_s": Target(0.150),
    "sweep_10k_p95_s": Target(0.200),
    "ready_s": Target(3.0),
    "rss_bytes": Target(200e6),
}
_WARM_UP = 20


@dataclass(frozen=True)
class Counts:
    """How much is stored and asked."""

    runs: int = 1_000
    many_runs: int = 10_000
    requests: int = 300
    starts: int = 3
    compared: int = 100_000


@dataclass(frozen=True)
class _Served:
    """A server that was started: seconds and processor seconds to readiness, and its memory at the end."""

    ready_s: float
    ready_cpu_s: float
    rss_bytes: int


@dataclass(frozen=True)
class _Page:
    """One kind of page: the figure it gives, and how to get the n-th address of each group."""

    figure: str
    addresses: dict[str, Callable[[int], str]]


def measure(counts: Counts, folder: Path) -> Report:
    """Everything, in `folder`, which must be empty."""
    before = machine()
    figures: dict[str, float] = {
        "predictions_per_s": predictions_per_s(),
        "simulations_per_s": simulations_per_s(),
        "heatmap_200x200_s": heatmap_200x200_s(),
        "import_domain_s": import_domain_s(),
    }
    few, many = folder / "few", folder / "many"
    ids = _filled(few, counts.runs, sampled=counts.runs)
    many_ids = _filled(many, counts.many_runs, sampled=0)
    groups: list[dict[str, Any]] = []
    served = [
        _pages(few, (_home(), _run_page(ids), *_comparison(_pair(few, counts.compared))), counts.requests, figures, groups),
        _pages(many, (_run_list(many_ids),), counts.requests, figures, groups),
    ]
    figures["sweep_10k_p95_s"] = _sweep(few, counts.requests, groups)
    figures["ready_s"] = _ready(few, [served[0], *_starts(few, counts.starts - 1)], groups)
    figures["rss_bytes"] = max(server.rss_bytes for server in served)
    figures["runs_page_queries_1k"] = _queries(few)
    figures["runs_page_queries_10k"] = _queries(many)
    database = {name: (path / "phaseline.db").stat().st_size for name, path in (("few", few), ("many", many))}
    return Report(figures, groups, {**before, "counts": vars(counts), "database_bytes": database})


def _filled(folder: Path, runs: int, sampled: int) -> tuple[int, ...]:
    context = make_context(settings_in(folder))
    try:
        prepare(context)
        return fill(context, runs, sampled=sampled)
    finally:
        context.database.close()


def _pair(folder: Path, requests: int) -> tuple[int, int]:
    """Two long runs more in the same database."""
    context = make_context(settings_in(folder))
    try:
        return fill_pair(context, requests)
    finally:
        context.database.close()


def _comparison(ids: tuple[int, int]) -> tuple[_Page, ...]:
    query = f"base={ids[0]}&other={ids[1]}"
    api: dict[str, Callable[[int], str]] = {
        "/api/v1/compare": lambda _: f"/api/v1/compare?{query}",
        "/api/v1/compare.md": lambda _: f"/api/v1/compare.md?{query}",
    }
    return _Page("compare_100k_p95_s", api), _Page("compare_page_100k_p95_s", {"/compare": lambda _: f"/compare?{query}"})


def _starts(folder: Path, starts: int) -> Iterator[_Served]:
    """A few more starts on a database that is there."""
    for _ in range(starts):
        with serving(folder) as server:
            yield _Served(server.ready_s, server.ready_cpu_s, server.memory_bytes())


def _ready(folder: Path, starts: Sequence[_Served], groups: list[dict[str, Any]]) -> float:
    """The median of seconds to readiness."""
    seconds, cpu = [start.ready_s for start in starts], [start.ready_cpu_s for start in starts]
    by = {"start": f"database of {folder.name} runs"}
    groups.append({"by": by, "n": len(starts), "p50_s": median(seconds), "max_s": max(seconds), "server_cpu_s": median(cpu)})
    return median(seconds)


def _home() -> _Page:
    return _Page(
        "home_p95_s",
        {
            "/": lambda _: "/",
            "/ with other numbers": lambda n: (
                f"/?prompt_tokens={1000 + n}&output_tokens={100 + n}&model=llama-3-1-8b&hardware=h100-sxm5-80gb"
            ),
        },
    )


def _run_page(ids: Sequence[int]) -> _Page:
    # A prime step visits runs of every number of clients, none twice until all were there.
    return _Page("run_page_p95_s", {"/runs/{id}": lambda n: f"/runs/{ids[n * 7919 % len(ids)]}"})


def _run_list(ids: Sequence[int]) -> _Page:
    return _Page(
        "runs_page_10k_p95_s",
        {
            "/runs": lambda _: "/runs",
            "/runs sorted": lambda n: f"/runs?sort={('-mbu', 'ttft_p50_s', 'label')[n % 3]}",
            "/runs searched": lambda n: f"/runs?q=sweep+{n % max(len(ids) // 9, 1)}",
            "/runs filtered": lambda n: f"/runs?hardware={('h100-sxm5-80gb', 'l40s')[n % 2]}&tag=nightly",
        },
    )


def _pages(folder: Path, pages: Sequence[_Page], requests: int, figures: dict[str, float], groups: list[dict[str, Any]]) -> _Served:
    """Time the pages on one server; its memory is that after the last page."""
    with serving(folder) as server:
        for page in pages:
            figures[page.figure] = _time(server, page, requests, groups)
        memory = server.memory_bytes()
        groups.append(
            {"by": {"memory": f"database of {folder.name} runs"}, "n": 1, "rss_bytes": memory, "peak_bytes": server.memory_bytes("VmHWM")}
        )
        return _Served(server.ready_s, server.ready_cpu_s, memory)


def _time(server: Server, page: _Page, requests: int, groups: list[dict[str, Any]]) -> float:
    """The 95th percentile over `requests` requests for each group of the page."""
    every: list[float] = []
    for name, address in page.addresses.items():
        # Other addresses than those timed, so that the warm-up warms the code and not the pages.
        server.time([address(requests + n) for n in range(min(_WARM_UP, requests))])
        found = server.time([address(n) for n in range(requests)])
        every += found.seconds
        group = {"by": {"page": name}, "n": requests, "p50_s": percentile(found.seconds, 0.5), "p95_s": percentile(found.seconds, 0.95)}
        groups.append({**group, "server_cpu_s": found.cpu_s / requests, "body_bytes": found.body_bytes // requests})
    return percentile(every, 0.95)


def _sweep(folder: Path, requests: int, groups: list[dict[str, Any]]) -> float:
    """The 95th percentile of a POST /predict that prices 100 prompts x 100 batches."""
    axes = {"prompt_tokens": list(range(100, 10_100, 100)), "batch": list(range(1, 101))}
    body = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "engine": "vllm", "sweep": axes}
    with serving(folder) as server:
        server.time_posts("/api/v1/predict", body, min(_WARM_UP, requests))
        found = server.time_posts("/api/v1/predict", body, requests)
    group = {"by": {"call": "POST /predict, 10,000 points"}, "n": requests, "p50_s": percentile(found.seconds, 0.5)}
    groups.append({**group, "server_cpu_s": found.cpu_s / requests, "body_bytes": found.body_bytes // requests})
    return percentile(found.seconds, 0.95)


def _queries(folder: Path) -> int:
    """How many statements one view of /runs sends to the database, counted inside this process, which does not start what the server does
    by itself."""
    app = create_app(settings_in(folder))
    database = app.state.context.database
    with closing(database), noted(database) as statements:
        answer = TestClient(app, base_url="http://127.0.0.1").get("/runs")
        if answer.status_code != 200:
            raise ServerFailed(f"GET /runs answered {answer.status_code}")
        return len(statements)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; targets that are missed are shown and do not change the exit code."""
    options = _options(arguments)
    counts = Counts(options.runs, options.many_runs, options.requests, options.starts, options.compared)
    with tempfile.TemporaryDirectory(prefix="phaseline-speed-") as folder:
        try:
            report = measure(counts, Path(folder))
        except ServerFailed as error:
            print(f"speed: {error}", file=sys.stderr)
            return 1
    print(as_json(report) if options.json else as_text(report, TARGETS))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="How fast Phaseline is on this machine.")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    for name, default, what in (
        ("runs", Counts.runs, "runs stored for / and /runs/{id}"),
        ("many-runs", Counts.many_runs, "runs stored for /runs"),
        ("requests", Counts.requests, "requests timed for each group of addresses"),
        ("starts", Counts.starts, "starts of the server timed"),
        ("compared", Counts.compared, "requests of each of two runs compared"),
    ):
        parser.add_argument(f"--{name}", type=_positive, default=default, metavar="N", help=f"{what} (default {default:,})")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


if __name__ == "__main__":
    # Ended from outside, the folder and the server still go.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
