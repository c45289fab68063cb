"""The comparison with other predictors, on a stand-in program: it is asked once, its answers are kept, and what it refuses is counted."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.catalog import load
from app.catalog.measured import measurements
from benchmarks import peers
from benchmarks.asked import Asked, ask

# Answers 10 ms a token and 200 ms to the first to every second question; says which it was asked.
STAND_IN = """
import json, sys
for place, line in enumerate(sys.stdin):
    asked = json.loads(line)
    print(f"asked {asked['id']}", file=sys.stderr)
    answer = {"refused": "no table: that of the rest"} if place % 2 else {"itl_s": 0.01, "ttft_s": 0.2}
    print(json.dumps({"id": asked["id"], **answer}))
"""
PEER = peers.Peer("stand-in", (), "ask.py")


def rows(count: int) -> list[Asked]:
    """Served rows of one engine as they are asked, each with 20 ms a token and 100 ms to the first."""
    mine = [row for row in measurements() if row.kind == "served" and row.engine == "vLLM"][:count]
    found = (ask(replace(row, tpot_s=0.02, ttft_s=0.1), load(), lambda name: None) for row in mine)
    return [one for one in found if isinstance(one, Asked)]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scratch folder in which the stand-in is installed, and the one peer there is."""
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "ask.py").write_text(STAND_IN, encoding="utf-8")
    home = tmp_path / "stand-in-environment"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python").symlink_to(sys.executable)
    (home / "installed").touch()
    monkeypatch.setattr(peers, "PROGRAMS", tmp_path / "programs")
    monkeypatch.setattr(peers, "PEERS", (PEER,))
    return tmp_path


def test_a_peer_is_asked_what_is_not_kept(scratch: Path) -> None:
    asked = [peers.question(one) for one in rows(3)]
    told = peers.answers(PEER, asked[:2], scratch, kept_only=False)
    assert [told[one["id"]].get("itl_s") for one in asked[:2]] == [0.01, None]
    assert set(peers.answers(PEER, asked, scratch, kept_only=True)) == {one["id"] for one in asked[:2]}
    # The third is the first of its own question, so it is answered; the others are not asked again.
    assert peers.answers(PEER, asked, scratch, kept_only=False)[asked[2]["id"]]["itl_s"] == 0.01
    assert len((scratch / "stand-in-answers.jsonl").read_text(encoding="utf-8").splitlines()) == 3


def test_a_question_holds_nothing_that_was_measured() -> None:
    one = rows(1)[0]
    other = replace(one, measurement=replace(one.measurement, ttft_s=9.0, tpot_s=9.0))
    assert peers.question(one) == peers.question(other)


def test_the_command_compares_rows_that_both_answer(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = rows(12)
    assert len(asked) == 12
    left: dict[tuple[str, str], float] = {(one.measurement.id, "decode"): 0.025 for one in asked}
    monkeypatch.setattr(peers, "questions", lambda rows: asked)
    monkeypatch.setattr(peers, "left_out_times", lambda rows: left)
    assert peers.main(["--scratch", str(scratch), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["figures"] == {"stand_in_answered_share": 0.5}
    decode = next(group for group in found["groups"] if group["by"].get("group", "").endswith("tpot"))
    # 10 ms said and 25 ms with the model left out, where 20 ms were measured
    assert (decode["n"], decode["median_ape"]) == (6, pytest.approx(0.5))
    assert decode["ours_left_out_median_ape"] == pytest.approx(0.25)
    refused = next(group for group in found["groups"] if "refused" in group["by"])
    assert refused == {"by": {"peer": "stand-in", "refused": "no table"}, "n": 12}
    assert peers.main(["--scratch", str(scratch), "--kept"]) == 0
    assert "stand_in_answered_share" in capsys.readouterr().out
