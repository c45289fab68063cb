"""Which facts a diagnosis reads beside times, and which formats state them: found in what the importers make of the files of tests/data."""

from collections.abc import Callable, Mapping

from app.domain.checks import as_shown
from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.formats import IMPORTERS, read_runs
from app.services.told_by import told_by
from tests.formats.importer_versions import DATA

Fact = Callable[[Run], bool]


def _setting(name: str) -> Fact:
    return lambda run: getattr(told_by(run), name) is not None


def _metric(key: str) -> Fact:
    return lambda run: key in run.metrics


def _flag(name: str) -> Fact:
    return lambda run: any(flag.flag == name for flag in run.flags)


_SETTINGS = (
    *("chunk_budget_tokens", "running_cap", "graph_limit", "pool_tokens", "pool_used_share", "preemptions", "cached_share"),
    *(
        "eager",
        "adapters",
        "constrained",
        "speculative",
        "disaggregated",
        "bytes_per_parameter",
        "kv_element_bytes",
        "devices",
        "fast_share",
    ),
)
_METRICS = (
    *("queue_s", "prefill_s", "server_ttft_s", "client_queue_s", "client_send_s", "cached_prompt_tokens", "sm_clock_hz", "memory_clock_hz"),
    "bytes_per_s",
)
_FLAGS = ("reasoning_before_content", "first_chunk_role_only", "per_role_gpu_denominator")
FACTS: Mapping[str, Fact] = {
    **{name: _setting(name) for name in _SETTINGS},
    **{key: _metric(key) for key in _METRICS},
    **{name: _flag(name) for name in _FLAGS},
}


def stated() -> dict[str, tuple[str, ...]]:
    """The formats, in their order, that state each fact in at least one of their files."""
    runs = {importer.id: _runs(importer.id) for importer in IMPORTERS}
    return {name: tuple(key for key, each in runs.items() if any(fact(run) for run in each)) for name, fact in FACTS.items()}


def _runs(format_id: str) -> list[Run]:
    found = []
    for path in sorted((DATA / format_id).iterdir()):
        try:
            found += [as_shown(run) for run in read_runs(path.name, path.read_bytes()).runs]
        except ImportRefused:
            continue
    return found


def table() -> str:
    """The table of docs/formats.md."""
    rows = [f"| `{name}` | {', '.join(f'`{key}`' for key in formats) or '–'} |" for name, formats in stated().items()]
    return "\n".join(("| fact | stated by |", "| --- | --- |", *rows))


if __name__ == "__main__":
    print(table())  # noqa: T201
