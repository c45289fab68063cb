"""Which importer reads a file: by its content, never by its name, and exactly one."""

import json
from pathlib import Path

import pytest

from app import formats
from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.formats import IMPORTERS, read_runs
from app.formats.document import read_document
from app.formats.importer import Importer

DATA = Path(__file__).resolve().parents[1] / "data"
IDS = tuple(importer.id for importer in IMPORTERS)
LAST = "generic"
FILES = sorted(path for format_id in IDS for path in (DATA / format_id).iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_of_our_files_is_matched_by_its_importer_alone(path: Path) -> None:
    document = read_document("without-a-name", path.read_bytes())
    matching = [importer.id for importer in IMPORTERS if importer.matches(document) is None]
    # The generic importer may know the keys of a tool's file too; it is asked when nobody else was.
    assert [format_id for format_id in matching if format_id != LAST] == [path.parent.name] * (path.parent.name != LAST)
    assert matching[0] == path.parent.name


def test_the_generic_importer_is_asked_last() -> None:
    assert IDS[-1] == LAST


def test_every_format_has_files_and_a_title() -> None:
    assert len(set(IDS)) == len(IDS)
    for importer in IMPORTERS:
        assert importer.title
        assert any(path.parent.name == importer.id for path in FILES)


@pytest.mark.parametrize("name", ["x.txt", "llama_bench.csv", "", "../../vllm.json"])
def test_the_name_decides_nothing(name: str) -> None:
    data = (DATA / "sglang_bench_serving" / "2025-12_native.jsonl").read_bytes()
    assert read_runs(name, data).format == "sglang_bench_serving"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"model_id": "m", "duration": 1.0}, "no statistics named like mean_ttft_ms"),
        ({"mean_ttft_ms": 1.0}, "no key model_id"),
        ({"model_id": "m", "mean_ttft_ms": 1, "total_output_tokens_retokenized": 1}, "is SGLang's"),
        ([{"model_id": "m", "mean_ttft_ms": 1}, {"x": 1}], "[1].no key model_id"),
        ([{"model_id": "m", "mean_ttft_ms": 1}, 7], "[1] is a number, not an object"),
        ({"avg_latency": 1.0}, "no key model_id"),
    ],
)
def test_reasons_for_declining_a_vllm_report(value: object, expected: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x.json", json.dumps(value).encode())
    assert expected in dict(refusal.value.tried)["vllm_bench_serve"]


@pytest.mark.parametrize(
    ("importer", "value", "expected"),
    [
        ("llama_bench", {"build_commit": "a", "avg_ts": 1.0}, "no key n_prompt"),
        ("llama_bench", {"build_commit": "a", "n_prompt": 1, "n_gen": 0}, "no key avg_ts or avg_ns"),
        ("sglang_bench_serving", {"total_output_tokens_retokenized": 1, "backend": "sglang"}, "no key completed"),
        ("vllm_bench_serve_log", {"a": 1}, "JSON, not a console log"),
    ],
)
def test_reasons_of_the_others(importer: str, value: object, expected: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x.json", json.dumps(value).encode())
    assert dict(refusal.value.tried)[importer] == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"gadget_version": "0.4", "input_config": {}}', "The JSON, with the keys gadget_version, input_config, is no result"),
        (b"just a diary entry\n", "The text is no result of a tool that is read here"),
        (b'["a", "b"]', "The JSON has no object in it"),
        (b'{"a": 1, "b', "the file is cut off"),
    ],
)
def test_an_unknown_file_is_refused_with_what_was_tried(data: bytes, expected: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x", data)
    assert expected in refusal.value.reason
    assert tuple(name for name, _ in refusal.value.tried) == IDS
    assert all(reason for _, reason in refusal.value.tried)


def test_keys_of_an_unknown_file_are_shown_safely() -> None:
    many = {f"key{number}": number for number in range(20)} | {"a\x00" * 500: 1}
    with pytest.raises(ImportRefused, match="key7 and 13 more") as refusal:
        read_runs("x", json.dumps(many).encode())
    assert len(refusal.value.reason.split(" These are")[0]) < 200


def test_a_refusal_inside_an_importer_says_who_refused() -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x", json.dumps({"model_id": "m", "mean_ttft_ms": 1.0, "completed": -1}).encode())
    assert refusal.value.tried[-1] == ("vllm_bench_serve", "completed must be a whole number of 0 or more, and is -1.")


def test_labels_of_any_importer_are_text_that_can_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Run(format="odd", labels={"rate\ud800": "\x00fast\ud800  lane", "gone": "\ud800"})
    importer = Importer("odd", "an odd tool", matches=lambda document: None, parse=lambda document: [odd])
    monkeypatch.setattr(formats, "IMPORTERS", (importer,))
    (run,) = formats.read_runs("x", b'{"a": 1}').runs
    assert run.labels == {"rate": "fast lane"}
