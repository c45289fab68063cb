"""The commands: what they print, one JSON object with --json, one sentence and an exit code when something is wrong."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.api.comparison_shapes import ComparisonShape
from app.api.shapes import PredictionShape, RunSummary
from app.settings import UPLOAD_CEILING_BYTES
from tests.commands import Ended, Run, runner
from tests.measured_loads import DEVICE, ENGINE, GRID, report
from tests.result_files import data_of, served, served_file
from tests.services.improved import improve, refuse, slower

TINY_CONFIG = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def result(ended: Ended, code: int = 0) -> Any:
    """The one JSON object that stands on standard output and nothing else there."""
    assert ended.code == code, ended.err
    assert ended.out.endswith("\n")
    assert ended.out.count("\n") == 1
    value = json.loads(ended.out)
    assert isinstance(value, dict)
    return value


def sentence(ended: Ended, *words: str, code: int = 2) -> None:
    """One sentence on standard error, nothing on standard output."""
    assert ended.code == code
    assert ended.out == ""
    assert ended.err.startswith("phaseline: ")
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err
    for word in words:
        assert word in ended.err


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_without_words_the_help_lists_every_command(run: Run) -> None:
    ended = run()
    assert ended.code == 2
    for command in ("serve", "predict", "parse", "import", "compare", "check"):
        assert command in ended.out + ended.err


@pytest.mark.parametrize("command", ["serve", "predict", "parse", "import", "compare", "check"])
def test_every_command_has_help(run: Run, command: str) -> None:
    ended = run(command, "--help")
    assert ended.code == 0
    assert "--help" in ended.out


def test_the_version(run: Run) -> None:
    ended = run("--version")
    assert (ended.code, ended.out.count("."), ended.err) == (0, 2, "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing"], "nothing"),
        (["predict", "--nothing"], "--nothing"),
        (["predict", "--prompt", "many"], "--prompt"),
        (["parse"], "files"),
        (["compare"], "runs"),
        (["serve", "--port", "70000"], "--port"),
    ],
)
def test_a_wrong_word_is_a_sentence(run: Run, words: list[str], told: str) -> None:
    sentence(run(*words), told, "See `phaseline --help`.")


def test_the_founding_figures(run: Run) -> None:
    answer = result(run("predict", "--model", "textbook-8b", "--hardware", "textbook-h100", "--calibration", "textbook", "--json"))
    PredictionShape.model_validate(answer)
    assert answer["prefill"]["time_s"] == pytest.approx(0.0761905, rel=1e-6)
    assert answer["decode"]["time_s"] == pytest.approx(0.00477612, rel=1e-6)
    assert answer["total_s"] == pytest.approx(1.5043, abs=1e-4)
    lines = run("predict", "--model", "textbook-8b", "--hardware", "textbook-h100", "--calibration", "textbook").out.replace("\xa0", " ")
    assert "76.2 ms" in lines
    assert "4.78 ms" in lines
    assert "compute-bound" in lines
    assert "memory-bound" in lines


def test_every_option_of_a_prediction_counts(run: Run) -> None:
    base = ["predict", "--model", "llama-3-1-8b", "--hardware", "h100-sxm5-80gb", "--json"]
    plain = result(run(*base))
    for option in (
        ["--prompt", 100], ["--output", 10], ["--batch", 8], ["--concurrency", 8], ["--cached-prefix", 1000], ["--tp", 2],
        ["--weight-dtype", "int4"], ["--kv-dtype", "fp8"], ["--engine", "llama-cpp"], ["--calibration", "textbook"],
    ):  # fmt: skip
        assert result(run(*base, *option)) != plain, option
    assert result(run(*base, "--pp", 1, "--ep", 1, "--activation-dtype", "bf16")) == plain
    apart = [*base, "--concurrency", 16, "--prefill-replicas", 1]
    pooled = result(run(*apart))
    for option in (["--decode-replicas", 2], ["--prefill-tp", 2], ["--prefill-dp", 2], ["--transfer-bytes-per-s", 1e9]):
        assert result(run(*apart, *option)) != pooled, option
    told = run(*[word for word in apart if word != "--json"]).out
    for word in ("prefill pool", "decode pool", "first gap", "per device", "binds", "best split"):
        assert word in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--model", "llama-3-1-9b"], ["llama-3-1-9b", "Did you mean", "llama-3-1-8b"]),
        (["--hardware", "h100"], ["h100-sxm5-80gb"]),
        (["--engine", "vlm"], ["vllm"]),
        (["--prompt", "0"], ["prompt_tokens"]),
        (["--prompt", "9" * 400], ["prompt_tokens"]),
        (["--weight-dtype", "fp99"], ["weight_dtype", "bf16"]),
        (["--calibration", "guess"], ["textbook, default, or the number of a calibration"]),
        (["--model", "missing/config.json"], ["missing/config.json cannot be read"]),
        (["--hardware", "missing.json"], ["missing.json cannot be read"]),
    ],
)
def test_a_prediction_that_cannot_be_made_is_a_sentence(run: Run, words: list[str], told: list[str]) -> None:
    for as_json in ([], ["--json"]):
        sentence(run("predict", *words, *as_json), *told)


def test_a_model_and_a_device_from_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    config = written(tmp_path / "tiny", "config.json", json.dumps(TINY_CONFIG).encode())
    device = {"name": "Ours", "bandwidth_bytes_per_s": 1e12, "peak_flops_per_s": {"bf16": 1e14}, "memory_bytes": 1e10}
    hardware = written(tmp_path, "ours.json", json.dumps(device).encode())
    answer = result(run("predict", "--model", config, "--hardware", hardware, "--json"))
    # A step reads at most every weight, 0.42 MB, and 2,300 positions of 512 bytes: 1.6 MB, under two microseconds at 1e12 bytes/s.
    assert 0 < answer["decode"]["floor_s"] < 2e-6
    assert answer["memory"]["capacity_bytes"] == 1e10


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "one JSON object"),
        (b'{"model_type": "brand_new"}', "model_type"),
        (b'{"model_type": "llama", "hidden_size": NaN}', "hidden_size"),
    ],
)
def test_a_config_that_cannot_be_used_is_a_sentence(run: Run, tmp_path: Path, content: bytes, told: str) -> None:
    sentence(run("predict", "--model", written(tmp_path, "config.json", content)), told)


def test_parse_prints_the_runs_and_stores_nothing(run: Run, tmp_path: Path) -> None:
    files = [written(tmp_path, name, served_file(number)) for number, name in enumerate(("a.json", "b.json"))]
    answer = result(run("parse", *files, "--json"))
    assert answer["refused"] == []
    assert [found["file"] for found in answer["runs"]] == ["a.json", "b.json"]
    for found in answer["runs"]:
        RunSummary.model_validate(found)
        assert found["metrics"]["ttft_s"]["mean"] == 0.05
    lines = run("parse", *files)
    assert lines.code == 0
    assert lines.out.count("vllm_bench_serve, 100 -> 51 tokens, first token 50.0") == 2
    assert not (tmp_path / "data").exists()


def test_two_scrapes_are_parsed_stored_and_compared_as_one_run(run: Run, tmp_path: Path) -> None:
    folder = Path(__file__).parent / "data" / "vllm_prometheus"
    before, after = (str(folder / f"2026-05_{name}.txt") for name in ("before", "after"))
    answer = result(run("parse", after, before, "--json"))
    assert [found["file"] for found in answer["runs"]] == ["2026-05_before.txt + 2026-05_after.txt"]
    (stored,) = result(run("import", after, before, "--json"))["runs"]
    assert stored["metrics"]["e2e_s"]["mean"] == answer["runs"][0]["metrics"]["e2e_s"]["mean"] == 1.06
    other = written(tmp_path, "other.json", served_file())
    (comparison,) = result(run("compare", before, after, other, "--json"))["comparisons"]
    assert "The measured at differs: server against client." in comparison["comparable"]["reasons"]


def test_parse_of_a_refused_file_exits_2_and_still_prints_the_others(run: Run, tmp_path: Path) -> None:
    good, bad = written(tmp_path, "good.json", served_file()), written(tmp_path, "bad.html", b"<html>no")
    answer = result(run("parse", good, bad, "--json"), code=2)
    assert [found["file"] for found in answer["runs"]] == ["good.json"]
    (refusal,) = answer["refused"]
    assert refusal["file"] == "bad.html"
    assert "HTML" in refusal["reason"]
    unknown = result(run("parse", written(tmp_path, "x.json", b'{"a": 1}'), "--json"), code=2)
    assert {tried["format"] for tried in unknown["refused"][0]["tried"]} >= {"vllm_bench_serve", "llama_bench"}
    lines = run("parse", good, bad)
    assert lines.code == 2
    assert lines.out.startswith("good.json: ")
    assert lines.err.startswith("bad.html: refused: This is HTML")


def test_parse_reads_what_has_no_utf_8_name(run: Run, tmp_path: Path) -> None:
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"r\xff.json"))
    Path(path).write_bytes(served_file())
    answer = result(run("parse", path, "--json"))
    answer["runs"][0]["file"].encode()


@pytest.mark.parametrize("command", ["parse", "import", "compare"])
def test_a_file_that_cannot_be_read_is_a_sentence(run: Run, tmp_path: Path, command: str) -> None:
    good = written(tmp_path, "good.json", served_file())
    sentence(run(command, good, tmp_path / "missing.json"), "missing.json cannot be read: No such file")
    sentence(run(command, good, tmp_path), "cannot be read")


@pytest.mark.parametrize("command", ["parse", "import"])
def test_a_file_over_32_mib_is_a_sentence(run: Run, tmp_path: Path, command: str) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(UPLOAD_CEILING_BYTES + 1)
    sentence(run(command, large), "larger than 32 MiB")


def test_import_stores_and_says_what(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", served_file())
    options = [
        "--hardware",
        "h100-sxm5-80gb",
        "--model",
        "llama-3-1-8b",
        "--tp",
        2,
        "--weight-dtype",
        "bf16",
        "--label",
        "x",
        "--tags",
        "a,b",
    ]
    answer = result(run("import", path, *options, "--json"))
    (stored,) = answer["runs"]
    assert (stored["id"], stored["label"], stored["tags"], stored["tp"], stored["file"]) == (1, "x", ["a", "b"], 2, "r.json")
    assert stored["efficiency"]["mbu"] > 0
    assert (answer["refused"], answer["warnings"]) == ([], [])


def test_import_of_the_same_bytes_stores_once_and_corrects(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", served_file())
    assert result(run("import", path, "--json"))["runs"][0]["hardware"] is None
    again = result(run("import", path, "--hardware", "l4", "--json"))
    assert (again["runs"][0]["id"], again["runs"][0]["hardware"]) == (1, "l4")
    assert "here already, as run 1" in again["warnings"][0]
    assert "applied to the runs that exist: hardware" in again["warnings"][1]
    lines = run("import", path)
    assert (lines.code, lines.out) == (0, "run 1: r.json\n")
    assert "here already" in lines.err


def test_import_of_a_refused_file_exits_2_and_keeps_the_others(run: Run, tmp_path: Path) -> None:
    good, bad = written(tmp_path, "good.json", served_file()), written(tmp_path, "bad.json", b"{")
    answer = result(run("import", bad, good, "--json"), code=2)
    assert [stored["file"] for stored in answer["runs"]] == ["good.json"]
    assert [refusal["file"] for refusal in answer["refused"]] == ["bad.json"]
    assert {"format", "reason"} == set(answer["refused"][0]["tried"][0])


def test_import_needs_a_file_or_the_samples(run: Run) -> None:
    sentence(run("import"), "at least one result file, or --samples")


def test_an_override_that_cannot_be_used_stores_nothing(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", served_file())
    sentence(run("import", path, "--tp", "0"), "“tp” must be a whole number")
    sentence(run("compare", 1, 2), "There is no run 1")


def test_the_samples_are_stored_once_and_can_be_compared(run: Run) -> None:
    first = result(run("import", "--samples", "--json"))
    again = result(run("import", "--samples", "--json"))
    assert [stored["id"] for stored in again["runs"]] == [stored["id"] for stored in first["runs"]]
    lines = run("import", "--samples")
    assert lines.code == 0
    (hint,) = [line for line in lines.out.splitlines() if line.startswith("compare the samples: phaseline compare ")]
    base, other = hint.split()[-2:]
    comparison = result(run("compare", base, other, "--json"))
    ComparisonShape.model_validate(comparison)
    assert comparison["phase"] == "prefill"
    printed = run("compare", base, other)
    assert printed.code == 0
    assert printed.out.startswith("Prefill got ")
    assert "A mean request changed by" in printed.out
    assert run("compare", base, other, "--markdown").out.startswith(f"## Run {other} against run {base}")


def test_files_are_compared_without_being_stored(run: Run, tmp_path: Path) -> None:
    base = written(tmp_path, "base.json", data_of(served()))
    other = written(tmp_path, "other.json", data_of(served(mean_ttft_ms=100.0, mean_e2el_ms=600.0)))
    answer = result(run("compare", base, other, "--json"))
    assert (answer["base"], answer["others"], answer["phase"]) == (1, [2], "prefill")
    assert answer["attribution"]["notes"][0].startswith("Run 1: No prediction: ")
    assert not (tmp_path / "data").exists()


def test_a_comparison_that_cannot_be_is_a_sentence(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", served_file())
    sentence(run("compare", path), "needs two runs")
    sentence(run("compare", path, "1"), "not both in one comparison")
    sentence(run("compare", "1"), "two different runs")
    sentence(run("compare", "9" * 30, "1"), "name a run by its number")
    sentence(run("compare", "1,2", "2"), "Run 2 stands on two sides")
    sentence(run("compare", path, written(tmp_path, "x.json", b"{")), "cut off")


def test_check_of_a_new_installation_says_what_to_do(run: Run) -> None:
    answer = result(run("check", "--json"), code=2)
    assert answer["ok"] is False
    checks = {item["name"]: item for item in answer["checks"]}
    assert checks["catalog"]["ok"]
    assert not checks["schema"]["ok"]
    assert "PHASELINE_AUTO_MIGRATE=1" in checks["schema"]["detail"]


def test_check_of_a_sound_installation(run: Run) -> None:
    run("import", "--samples")
    answer = result(run("check", "--json"))
    assert answer["ok"] is True
    assert [item["name"] for item in answer["checks"]] == ["catalog", "schema", "database", "integrity", "devices"]
    printed = run("check")
    assert (printed.code, printed.err) == (0, "")
    assert all(line.startswith("ok ") for line in printed.out.splitlines())


def test_check_of_a_damaged_database(run: Run, tmp_path: Path) -> None:
    run("import", "--samples")
    path = tmp_path / "data" / "phaseline.db"
    for beside in tmp_path.joinpath("data").glob("phaseline.db-*"):
        beside.unlink()
    path.write_bytes(b"no database at all, but long enough to be taken for one by nobody" * 20)
    ended = run("check", "--json")
    answer = result(ended, code=2)
    assert any("damaged" in item["detail"] for item in answer["checks"] if not item["ok"])


def test_a_setting_that_cannot_be_used_is_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHASELINE_PORT", "eighty")
    sentence(run("check"), "The setting PHASELINE_PORT cannot be used")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "phaseline.example"])
def test_serve_refuses_an_address_that_others_reach(run: Run, tmp_path: Path, host: str) -> None:
    sentence(run("serve", "--host", host), host, "PHASELINE_OPEN=1", "PHASELINE_HOST=127.0.0.1")
    assert not (tmp_path / "data").exists()


def test_a_fault_of_ours_is_a_sentence_too(run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    def fail() -> None:
        raise KeyError("inner detail")

    monkeypatch.setattr("app.commands.predict.load", fail)
    with pytest.raises(KeyError) as caught:
        run("predict")
    sys.excepthook(caught.type, caught.value, caught.tb)
    shown = capsys.readouterr()
    assert shown.err == "phaseline: KeyError, a fault of ours: run the command as `python -X dev -m app …` and report it.\n"


def test_a_file_is_stored_with_its_folders_below_here_and_never_with_those_above(run: Run, tmp_path: Path) -> None:
    (tmp_path / "h200").mkdir()
    absolute = written(tmp_path / "h200", "tp2.json", served_file(2))
    written(tmp_path / "h200", "tp4.json", served_file(1))
    report = result(run("import", "h200/tp4.json", absolute, "--json"))
    assert [each["file"] for each in report["runs"]] == ["h200/tp4.json", "tp2.json"]
    assert [[hint["key"] for hint in each["suggestions"]] for each in report["runs"]] == [["hardware", "tp"], ["tp"]]


def test_files_are_read_again_from_the_command_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "a.json", served_file(1))
    (stored,) = result(run("import", path, "--json"))["runs"]
    version = improve(monkeypatch, slower)
    dry = result(run("reimport", "--all", "--dry-run", "--json"))
    assert [(each["file"], each["applied"], each["runs"][0]["outcome"]) for each in dry["files"]] == [("a.json", False, "changed")]
    shown = run("reimport", stored["id"], "--dry-run").out
    assert f"a.json: would be read again, vllm_bench_serve, version {version - 1} to {version}" in shown
    assert "metric ttft_s.mean: 0.05 -> 0.1" in shown
    done = result(run("reimport", stored["id"], "--json"))
    assert (done["files"][0]["applied"], done["refused"]) == (True, [])
    assert result(run("reimport", "--all", "--json")) == {"files": [], "refused": []}
    sentence(run("reimport"), "--all")
    sentence(run("reimport", stored["id"], "--all"), "--all")
    sentence(run("reimport", 999), "There is no run 999")


def test_a_file_that_is_refused_now_is_said_with_an_exit_code(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result(run("import", written(tmp_path, "a.json", served_file(1)), "--json"))
    improve(monkeypatch, refuse)
    ended = run("reimport", "--all")
    assert (ended.code, ended.out) == (2, "")
    assert "a.json: refused: " in ended.err
    assert [each["file"] for each in result(run("reimport", "--all", "--json"), 2)["refused"]] == ["a.json"]


def test_a_load_is_simulated_and_its_goodput_counted(run: Run) -> None:
    asked = ["predict", "--model", "llama-3-1-8b", "--hardware", "h100-sxm5-80gb", "--prompt", "500", "--output", "20"]
    served = result(run(*asked, "--concurrency", "4", "--simulate", "--json"))["served"]
    assert (served["method"], served["requests"], served["goodput"]) == ("simulated", 40, None)
    open_loop = result(run(*asked, "--rate", "2", "--requests", "30", "--seed", "5", "--ttft-target", "10", "--json"))["served"]
    assert (open_loop["requests"], open_loop["goodput"]["share"]) == (30, 1.0)
    assert open_loop["in_flight"] == 1
    flying = result(run(*asked, "--concurrency", "4", "--open-loop", "--json"))["served"]
    assert (flying["clients"], flying["in_flight"], flying["method"]) == (None, 4, "closed_form")
    text = run(*asked, "--concurrency", "4", "--simulate", "--tpot-target", "0.5").out
    assert "simulated 40 requests" in text
    assert "front-end" in text
    assert "within the target" in text
    sentence(run(*asked, "--simulate"), "concurrency")


def test_stored_runs_are_calibrated_and_the_calibration_predicts(run: Run, tmp_path: Path) -> None:
    sentence(run("calibrate", "--hardware", DEVICE, "--engine", ENGINE), "needs 8 operating points and 0 are there")
    files = []
    for number, (clients, prompt) in enumerate(GRID):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_bytes(report(clients, prompt))
    assert run("import", *map(str, files), "--hardware", DEVICE, "--weight-dtype", "bf16").code == 0
    made = result(run("calibrate", "--hardware", DEVICE, "--engine", ENGINE, "--json"))
    assert made["left_out"]["decode"]["mean"] < 0.05 < made["before"]["decode"]["mean"]
    said = run("calibrate", "--hardware", DEVICE, "--engine", ENGINE, "--dtype", "bf16").out
    assert "calibration 2: h100-sxm5-80gb, vllm, bf16" in said
    assert "from runs 1, 2, 3, 4, 5, 6, 7, 8" in said
    asked = ["predict", "--model", "llama-3-1-8b", "--hardware", DEVICE, "--engine", ENGINE]
    assert "Calibration 1 scales the rates" in run(*asked, "--calibration", "1").out
    sentence(run(*asked, "--calibration", "9"), "There is no calibration 9")
