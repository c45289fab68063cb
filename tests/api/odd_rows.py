"""Odd files by the row of the format specification that describes them, each with its outcome over HTTP.

A case is imported (201) with what must be said about it, or refused (422; 413 for what is too large or packed) with words of the reason.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.result_files import data_of, served, served_in_detail

Json = dict[str, Any]
Check = Callable[[list[Json]], bool]
DATA = Path(__file__).resolve().parents[1] / "data"


@dataclass(frozen=True)
class Odd:
    """A file of one row. `words` are in the refusal, or among warnings and flags of the first run; `check` looks at the runs."""

    row: int
    name: str
    data: bytes
    status: int = 201
    words: tuple[str, ...] = ()
    check: Check | None = None


def refused(row: int, name: str, data: bytes, *words: str, status: int = 422) -> Odd:
    return Odd(row, name, data, status, words)


def imported(row: int, name: str, data: bytes, *words: str, check: Check | None = None) -> Odd:
    return Odd(row, name, data, 201, words, check)


def fixture(path: str) -> bytes:
    return (DATA / path).read_bytes()


def stat(key: str, name: str, value: float | None) -> Check:
    """The first run's metric has this statistic; None for a metric or statistic that must be absent."""

    def holds(runs: list[Json]) -> bool:
        metric = runs[0]["metrics"].get(key)
        found = None if metric is None else metric[name]
        return found is None if value is None else found is not None and abs(found / value - 1) < 1e-9

    return holds


def has(**expected: Any) -> Check:
    """The first run has these values; a key like workload__concurrency looks inside."""

    def holds(runs: list[Json]) -> bool:
        for path, value in expected.items():
            found: Any = runs[0]
            for key in path.split("__"):
                found = found[key]
            if found != value:
                return False
        return True

    return holds


def count(number: int) -> Check:
    return lambda runs: len(runs) == number


def flagged(name: str) -> Check:
    return lambda runs: all(any(flag["flag"] == name for flag in run["flags"]) for run in runs)


def every(*checks: Check) -> Check:
    return lambda runs: all(check(runs) for check in checks)


def absent(*keys: str) -> Check:
    return lambda runs: not any(runs[0]["metrics"].get(key) for key in keys)


def literal(key: str, text: str, report: Json | None = None) -> bytes:
    """A report with this text in place of a value."""
    whole = report or served()
    return data_of(whole).replace(f'"{key}": {json.dumps(whole[key])}'.encode(), f'"{key}": {text}'.encode())


GOOD = data_of(served())
DETAIL = data_of(served_in_detail())
SGLANG: Json = {
    "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"), "max_concurrency": None, "duration": 10.0, "completed": 20,
    "total_input_tokens": 2000, "total_output_tokens": 1020, "total_output_tokens_retokenized": 1019, "mean_e2e_latency_ms": 550.0,
    "mean_ttft_ms": 50.0, "median_ttft_ms": 49.0, "mean_tpot_ms": 10.0, "mean_itl_ms": 10.0, "median_itl_ms": 9.0,
}  # fmt: skip
ONE_TOKEN = served(
    total_output_tokens=20, duration=1.0, output_throughput=20.0, request_throughput=20.0, total_token_throughput=2020.0,
    **{key: 0.0 for key in served() if "tpot" in key or "itl" in key},
    **{key.replace("ttft", "e2el"): value for key, value in served().items() if "ttft" in key},
)  # fmt: skip
ONE_BATCH: Json = {
    "run_name": "default", "batch_size": 8, "input_len": 512, "output_len": 1, "prefill_latency": 0.2, "prefill_throughput": 20480.0,
    "total_latency": 0.2, "overall_throughput": 20520.0,
}  # fmt: skip
FAILED = served(**{key: 0.0 for key in served() if key.endswith("_ms")}, completed=0, failed=20, total_output_tokens=0)
RECORD = fixture("aiperf/2025-11_records.jsonl")
EXPORT = json.loads(fixture("aiperf/2025-11_flat.json"))
BEFORE, AFTER = (fixture(f"vllm_prometheus/2026-05_{name}.txt") for name in ("before", "after"))
RESTARTED = AFTER.replace(b"process_start_time_seconds 1780000000.0", b"process_start_time_seconds 1780000100.0")
FALLEN = AFTER.replace(
    b'prompt_tokens_total{engine="0",model_name="acme/tiny-8b"} 5300.0', b'prompt_tokens_total{engine="0",model_name="acme/tiny-8b"} 12.0'
)
LOG = fixture("vllm_bench_serve_log/two_blocks.log")


def with_keys(report: Json, **changes: Any) -> bytes:
    return data_of({**report, **changes})


def nested(depth: int) -> bytes:
    return with_keys(served(), extra="@").replace(b'"@"', b"[" * depth + b"1" + b"]" * depth)


ROWS: tuple[Odd, ...] = (
    imported(1, "infinite rate of SGLang", data_of(SGLANG), check=has(workload__request_rate_per_s=None, workload__rate_unlimited=True)),
    imported(
        2, "NaN of a latency", with_keys(SGLANG, mean_e2e_latency_ms=float("nan")), "mean_e2e_latency_ms", check=stat("e2e_s", "mean", None)
    ),
    imported(2, "NaN of pandas in llmperf", fixture("llmperf/summary.json").replace(b"0.", b'NaN, "x": 0.', 1)),
    imported(3, "1e999", literal("mean_ttft_ms", "1e999"), "mean_ttft_ms", check=stat("ttft_s", "mean", None)),
    imported(3, "-Infinity", literal("mean_ttft_ms", "-Infinity"), "mean_ttft_ms", check=stat("ttft_s", "mean", None)),
    refused(3, "a count of 1e999", literal("completed", "1e999"), "completed must be a whole number"),
    refused(4, "JSON cut in a list", data_of([served(), served()])[:-300], "ends at byte", "inside [1]", "Send the whole file"),
    imported(4, "JSON lines cut: the runs carry the flag", GOOD + b"\n" + GOOD[:200], "Line 2 is cut off", check=flagged("truncated_file")),
    imported(
        5,
        "last line cut",
        GOOD + b"\n" + GOOD + b"\n" + GOOD[:100],
        "Line 3 is cut off and left out; the 2 lines before it are read.",
        check=count(2),
    ),
    imported(6, "two documents without a newline", GOOD + data_of(served(duration=12.0)), check=count(2)),
    imported(7, "lines named .json", GOOD + b"\n" + GOOD + b"\n", check=count(2)),
    imported(
        8,
        "nothing completed",
        data_of(FAILED),
        "0 of 20 requests completed",
        check=every(absent("ttft_s", "itl_s", "e2e_s"), has(requests={"sent": 20, "completed": 0, "failed": 20})),
    ),
    imported(
        9,
        "some failed",
        DETAIL,
        "1 of 5 requests",
        check=every(stat("ttft_s", "mean", 0.25), has(requests={"sent": 5, "completed": 4, "failed": 1})),
    ),
    imported(
        9,
        "a TTFT of 0 with an answer stays",
        with_keys(served_in_detail(), ttfts=[0.0, 0.2, 0.3, 0.0, 0.4]),
        check=every(has(requests__completed=4), stat("ttft_s", "mean", 0.3)),
    ),
    imported(
        10,
        "one output token each",
        data_of(ONE_TOKEN),
        "single output token",
        check=every(absent("itl_s", "tpot_s", "decode_tokens_per_s"), stat("ttft_s", "mean", 0.05), stat("e2e_s", "mean", 0.05)),
    ),
    imported(
        11, "one output token everywhere", data_of(ONE_BATCH), check=every(has(metrics__prefill_s__mean=0.2), absent("itl_s", "tpot_s"))
    ),
    refused(12, "an empty list", b"[]", "no runs in it"),
    refused(12, "an empty object", b"{}", "no runs in it"),
    refused(12, "no bytes", b"", "The file is empty"),
    imported(
        13,
        "arrays of unlike lengths",
        with_keys(served_in_detail(), input_lens=[10, 20, 30]),
        "their lengths differ",
        "input_lens 3",
        check=every(stat("ttft_s", "mean", 0.25), has(metrics__ttft_s__from="reported")),
    ),
    imported(
        14,
        "a request longer than the run",
        with_keys(served_in_detail(), itls=[[9.0, 0.01], [0.02] * 4, [0.03], [], []]),
        "does not fit into a run of 2 s",
        check=stat("e2e_s", "mean", 0.2825),
    ),
    imported(
        15,
        "an aggregate that its arrays contradict",
        with_keys(served_in_detail(), mean_ttft_ms=260.0),
        "ttft_s.mean says 260 ms and its samples give 250 ms",
        check=stat("ttft_s", "mean", 0.25),
    ),
    imported(
        16,
        "seconds under a name in milliseconds",
        with_keys(served(), mean_tpot_ms=0.01, mean_itl_ms=0.01, mean_e2el_ms=None),
        "tpot_s",
        check=absent("tpot_s"),
    ),
    imported(
        16,
        "a TTFT longer than the run",
        with_keys(served(), mean_ttft_ms=50_000.0, mean_e2el_ms=None),
        "ttft_s is 50 s in a run that lasted 11 s",
    ),
    imported(
        17,
        "the same stems without a unit are seconds",
        data_of({key.replace("_ms", ""): value / 1e3 if key.endswith("_ms") else value for key, value in served().items()}),
        check=stat("ttft_s", "mean", 0.05),
    ),
    refused(18, "a number of 5000 digits", literal("completed", "2" * 5000), "completed holds a number of more than 4300 digits"),
    refused(18, "2**63 + 1 tokens", with_keys(served(), total_output_tokens=2**63 + 1), "total_output_tokens is an integer beyond 63 bits"),
    refused(19, "nested 5000 deep", nested(5000), "nested more than 64 levels deep"),
    refused(19, "nested 70 deep", nested(70), "nested more than 64 levels deep"),
    refused(20, "a figure twice", GOOD[:-1] + b', "duration": 12.0}', "“duration” stands twice", "line 1, duration"),
    imported(20, "a key twice with one value", GOOD[:-1] + b', "duration": 11.0}', "“duration” stands twice", "with the same value"),
    imported(21, "UTF-8 with a mark", b"\xef\xbb\xbf" + GOOD, "UTF-8", check=stat("ttft_s", "mean", 0.05)),
    imported(21, "UTF-16 of PowerShell", GOOD.decode().encode("utf-16"), "UTF-16", check=stat("ttft_s", "mean", 0.05)),
    imported(
        22,
        "latin-1 in a name",
        json.dumps(served(model_id="modèle"), ensure_ascii=False).encode("latin-1"),
        "is not UTF-8",
        check=has(model="modèle"),
    ),
    imported(23, "a lone surrogate", literal("model_id", '"ac\\ud800me"'), check=has(model="acme")),
    imported(24, "NUL and control characters", literal("model_id", '"ac\\u0000\\u001bme"'), check=has(model="acme")),
    imported(25, "commas between thousands of GenAI-Perf", fixture("genai_perf/2025_profile.csv"), check=count(1)),
    imported(
        26,
        "semicolons and decimal commas",
        fixture("llama_bench/2026-05_semicolons.csv"),
        check=lambda runs: runs[0]["metrics"]["prefill_s"]["mean"] == 0.2,
    ),
    refused(
        26,
        "a point that may mean two things",
        b"Metric;avg;min;max;p1;p99\nRequest Latency (ms);1.550;1,0;2,0;1,0;2,0\n",
        "line 2",
        "may be 1550 or 1,550",
        "save it with commas",
    ),
    refused(
        26,
        "decimal commas between commas",
        b"Metric,avg,min,max,p1,p99\nRequest Latency (ms),550,00,440,00,700,00,450,00,690,00\n",
        "row on line 2 is longer than its header",
    ),
    imported(
        27,
        "times rounded by a spreadsheet",
        fixture("aiperf/2025-10_two_blocks.csv").replace(b"1762500000000000000.00", b"1.7625E+18"),
        "a spreadsheet re-saved the file",
        check=has(started_at=None),
    ),
    imported(
        27,
        "a date in another order",
        fixture("llama_bench/2026-05_quoted.csv").replace(b"2026-03-02T01:15:14Z", b"02.03.2026 01:15"),
        "no time as the tool writes it",
        check=has(started_at=None),
    ),
    imported(
        28,
        "blocks, an empty one, empty cells",
        fixture("aiperf/2025-10_two_blocks.csv").replace(b"8.00,15.00", b"8.00,", 1) + b"\n\nGPU,Metric,avg,min\n",
        check=every(count(1), stat("tpot_s", "max", None)),
    ),
    refused(29, "gzip", b"\x1f\x8b\x08\x00" + GOOD, "gzip", "upload the files inside", status=413),
    refused(29, "zip", b"PK\x03\x04" + GOOD, "zip", "upload the files inside", status=413),
    imported(
        32,
        "markup and formulas",
        with_keys(served(), model_id="<script>alert(1)</script>", team="=cmd()"),
        check=has(model="<script>alert(1)</script>", labels__team="=cmd()"),
    ),
    imported(33, "a path for a name", with_keys(served(), model_id="../../x"), check=has(model="../../x")),
    imported(33, "a name of 4 kB", with_keys(served(), model_id="m" * 4096), check=lambda runs: len(runs[0]["model"]) == 200),
    imported(34, "equal lines are runs of their own", GOOD + b"\n" + GOOD, check=count(2)),
    imported(36, "keys of next year", with_keys(served(), next_year=1, nested={"a": 1}), check=has(labels__next_year="1")),
    imported(
        36,
        "a schema of next year",
        with_keys(EXPORT, schema_version="9.9", aiperf_version="9.0"),
        "schema 9.9, newer than what is known here (1.4)",
        check=has(labels__schema_version="9.9"),
    ),
    imported(37, "no model", data_of(SGLANG), "does not name the model", check=has(model=None)),
    imported(
        38,
        "metadata named like ours",
        with_keys(served(), model="other", gpu="H100", ttft_s=9, prefill_s=9),
        check=every(
            has(labels__model="other", labels__ttft_s="9", model="meta-llama/Llama-3.1-8B"),
            stat("ttft_s", "mean", 0.05),
            absent("prefill_s"),
        ),
    ),
    imported(
        39,
        "a duration of 0",
        with_keys(served(), duration=0, request_throughput=0.0, output_throughput=0.0, total_token_throughput=0.0),
        "duration",
        check=absent("output_tokens_per_s", "requests_per_s", "total_tokens_per_s"),
    ),
    imported(
        39,
        "a gap below 0",
        with_keys(served_in_detail(), itls=[[0.01, -0.01], [0.02] * 4, [0.03], [], []]),
        "itls holds a negative value",
        check=has(metrics__ttft_s__from="reported"),
    ),
    imported(
        40,
        "gaps of 0",
        with_keys(served_in_detail(), itls=[[0.0, 0.02], [0.0, 0.04, 0.0, 0.04], [0.03], [], []]),
        check=lambda runs: runs[0]["metrics"]["chunk_gap_s"]["min"] == 0.0,
    ),
    imported(41, "warm-up among the records", RECORD, check=lambda runs: runs[0]["requests"]["completed"] < RECORD.count(b"\n")),
    imported(42, "a summary of stages", fixture("inference_perf/summary_counted_twice.json"), "do not add the two up"),
    imported(
        43,
        "a count that the requests contradict",
        with_keys(served_in_detail(), completed=5),
        "The file counts 5 completed requests; 4 of them",
        check=has(requests__completed=4),
    ),
    refused(
        44,
        "AIPerf's time slices",
        b'{"timeslices": [{"timeslice_index": 0}], "input_config": {}}',
        "figures by time slice",
        "send profile_export_aiperf.json",
    ),
    refused(
        44,
        "AIPerf's server metrics",
        b'{"summary": {"endpoints_configured": ["a"]}, "metrics": {}}',
        "the server's metrics",
        "send profile_export_aiperf.json",
    ),
    refused(
        44,
        "inference-perf's server metrics",
        b'{"load_summary": {}, "successes": {"count": 4, "rate": 1.5, "request_latency": {"mean": 1}}, "failures": {}}',
        "server's own metrics of one stage",
        "stage_N_lifecycle_metrics.json",
    ),
    imported(
        45, "a cancelled run", with_keys(EXPORT, was_cancelled=True), "cancelled before its end", check=has(labels__was_cancelled="true")
    ),
    refused(46, "a header and a crash", fixture("llama_bench/2026-06_crashed.log"), "no result rows"),
    imported(
        47,
        "rows of two models",
        fixture("llama_bench/2026-03_two_models.json"),
        check=lambda runs: len({run["model"] for run in runs}) == 2,
    ),
    imported(
        48,
        "blocks of a log with progress bars",
        LOG.replace(b"\n", b"\n 50%|#####     | 1/2\r100%|##########| 2/2\r", 3),
        "two decimals",
        check=count(2),
    ),
    imported(
        49,
        "a date without a zone",
        with_keys(served(), date="20250530-203806"),
        check=has(started_at=None, labels__date="20250530-203806", labels__date_timezone="not stated"),
    ),
    imported(
        49,
        "nanoseconds out of range",
        fixture("aiperf/2025-10_two_blocks.csv").replace(b"1762500000000000000.00", b"1762500000.00"),
        check=has(started_at=None),
    ),
    imported(
        50,
        "no median, no p99",
        data_of({key: value for key, value in served().items() if not key.startswith(("median_", "p99_"))}),
        check=every(stat("ttft_s", "p50", None), stat("ttft_s", "p99", None), stat("ttft_s", "mean", 0.05)),
    ),
    imported(51, "p99 of 20 samples", GOOD, check=has(metrics__ttft_s__n=20)),
    refused(52, "one scrape alone", BEFORE, "one scrape of vLLM's /metrics", "only the difference of two is a measurement"),
    refused(52, "a restart between two scrapes", BEFORE + RESTARTED, "The server was started anew between the scrapes"),
    refused(52, "a counter that falls", BEFORE + FALLEN, "vllm:prompt_tokens_total fell from the first scrape to the second"),
    imported(
        52,
        "metrics under their old names",
        fixture("vllm_prometheus/2025-02_federated_two_engines.txt"),
        check=lambda runs: runs[0]["metrics"]["chunk_gap_s"] is not None,
    ),
    refused(53, "a sign-in page", b"<!DOCTYPE html><html><body>Sign in</body></html>", "This is HTML", "sign-in page"),
    imported(54, "tokens counted by another tokenizer", data_of(SGLANG), check=lambda runs: bool(runs[0]["token_count_source"])),
)
# Rows that are about more than one file, or about its size: each has a test of its own.
ELSEWHERE = {30: "test_row_30", 31: "test_row_31", 35: "test_row_35"}
