"""Reading the real sample files, and what tests ask of the runs in any file."""

from pathlib import Path

from app.domain.run import Distribution, Run
from app.formats import read_runs


def runs_of(shared_dir: Path, path: str) -> tuple[Run, ...]:
    """The runs of one sample; its folder names the format that must recognise it."""
    parsed = read_runs("sample", (shared_dir / "samples" / path).read_bytes())
    assert parsed.format == path.split("/")[0]
    return parsed.runs


def distribution(run: Run, key: str) -> Distribution:
    """The distribution of a metric that must be there."""
    found = run.distribution(key)
    assert found is not None
    return found


def value(run: Run, key: str) -> float:
    """The rate of a metric that must be there."""
    rate = run.rate(key)
    assert rate is not None
    return rate.value


def names(run: Run) -> set[str]:
    """The flags that a run carries."""
    return {flag.flag for flag in run.flags}


def evidence(run: Run) -> dict[str, str]:
    """The flags that a run carries, each with what it is raised on."""
    return {flag.flag: flag.evidence for flag in run.flags}


def mean(run: Run, key: str) -> float | None:
    """The mean of a metric that must be there."""
    return distribution(run, key).mean
