"""`phaseline compare --fail-on`: what is printed and the exit code a pipeline goes by."""

import json
from pathlib import Path

import pytest

from tests.commands import Run, runner
from tests.result_files import data_of, served


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A base, a run of 20 % more time a token, one of 40 %."""
    made = []
    for name, itl in (("base", 10.0), ("slower", 12.0), ("slowest", 14.0)):
        path = tmp_path / f"{name}.json"
        path.write_bytes(
            data_of(served(mean_tpot_ms=itl, median_tpot_ms=itl, mean_itl_ms=itl, median_itl_ms=itl, mean_e2el_ms=50 + 50 * itl))
        )
        made.append(path)
    return made[0], made[1], made[2]


def test_a_broken_gate_is_exit_code_3(run: Run, files: tuple[Path, Path, Path]) -> None:
    base, slower, _ = files
    ended = run("compare", base, slower, "--fail-on", "itl.mean>+5%", "--fail-on", "ttft.mean>+5%")
    assert (ended.code, ended.err) == (3, "")
    lines = ended.out.replace("\xa0", " ").splitlines()
    assert "The gate fails: 1 of 2 clauses broken (itl.mean>+5%)." in lines
    assert "  BAD ITL mean went from 10.0 ms to 12.0 ms, +20.0 %: above +5.0 %." in lines
    assert "  ok  TTFT mean went from 50.0 ms to 50.0 ms, ±0.0 %: not above +5.0 %." in lines


def test_a_gate_that_holds_is_exit_code_0(run: Run, files: tuple[Path, Path, Path]) -> None:
    base, slower, _ = files
    ended = run("compare", base, slower, "--fail-on", "itl.mean>+25%")
    assert ended.code == 0
    assert "The gate passes: 1 clause, none broken." in ended.out


def test_every_run_is_held_against_the_base(run: Run, files: tuple[Path, Path, Path]) -> None:
    ended = run("compare", *files, "--fail-on", "itl.mean>+25%", "--json")
    assert ended.code == 3
    gate = json.loads(ended.out)["gate"]
    assert [clause["broken"] for clause in gate["clauses"]] == [False, True]
    assert [clause["run"] for clause in gate["clauses"]] == [2, 3]


def test_markdown_has_the_gate_on_top(run: Run, files: tuple[Path, Path, Path]) -> None:
    base, slower, _ = files
    ended = run("compare", base, slower, "--fail-on", "itl.mean>+5%", "--markdown")
    assert ended.code == 3
    assert ended.out.startswith("## Gate failed\n")


def test_what_is_not_known_breaks_unless_allowed(run: Run, files: tuple[Path, Path, Path]) -> None:
    base, slower, _ = files
    words = ("compare", base, slower, "--fail-on", "prefill.p50>+5%")
    assert run(*words).code == 3
    allowed = run(*words, "--allow-missing")
    assert allowed.code == 0
    assert "1 could not be judged" in allowed.out


def test_a_spec_that_cannot_be_read_is_misuse(run: Run, files: tuple[Path, Path, Path]) -> None:
    base, slower, _ = files
    ended = run("compare", base, slower, "--fail-on", "itl.p50=5%")
    assert (ended.code, ended.out) == (2, "")
    assert "The gate cannot be read at character 8" in ended.err


def repeats(folder: Path, name: str, *itls: float) -> str:
    """Files of one measurement repeated, as one argument."""
    paths = []
    for place, itl in enumerate(itls):
        path = folder / f"{name}{place}.json"
        figures = dict.fromkeys(("mean_tpot_ms", "median_tpot_ms", "mean_itl_ms", "median_itl_ms"), itl)
        path.write_bytes(data_of(served(**figures, mean_e2el_ms=50 + 50 * itl)))
        paths.append(str(path))
    return ",".join(paths)


def test_files_joined_by_commas_are_repeats(run: Run, tmp_path: Path) -> None:
    base, other = repeats(tmp_path, "base", 9.0, 10.0, 11.0), repeats(tmp_path, "other", 11.0, 11.5, 12.0)
    ended = run("compare", base, other, "--fail-on", "itl.mean>+5%", "--json")
    (clause,) = json.loads(ended.out)["gate"]["clauses"]
    assert (ended.code, clause["outcome"]) == (0, "within noise")
    assert (clause["change"], clause["noise"]) == (pytest.approx(0.15), pytest.approx(0.2))
    assert clause["repeats"] == {"base": [1, 2, 3], "run": [4, 5, 6]}


def test_steady_repeats_make_a_small_change_count(run: Run, tmp_path: Path) -> None:
    base, other = repeats(tmp_path, "base", 10.0, 10.01, 9.99), repeats(tmp_path, "other", 11.0, 11.01, 10.99)
    assert run("compare", base, other, "--fail-on", "itl.mean>+5%").code == 3


def test_files_that_are_no_repeats_are_misuse(run: Run, tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    longer = tmp_path / "longer.json"
    longer.write_bytes(data_of(served(total_input_tokens=4000)))
    ended = run("compare", files[1], f"{files[0]},{longer}")
    assert ended.code == 2
    assert "repeats, and one is none" in ended.err
    two = tmp_path / "two.json"
    two.write_bytes(data_of(served()) + b"\n" + data_of(served(mean_ttft_ms=51.0)))
    ended = run("compare", files[1], f"{files[0]},{two}")
    assert ended.code == 2
    assert "holds 2 runs" in ended.err


def test_a_file_with_a_comma_in_its_name_is_a_file(run: Run, tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    odd = tmp_path / "a,b.json"
    odd.write_bytes(files[0].read_bytes())
    assert run("compare", odd, files[1], "--fail-on", "itl.mean>+5%").code == 3
