"""The documents against the code: everything there is is named, everything named exists, and what is shown as output is printed."""

import ast
import importlib
import inspect
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import typer.main
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient

from app import cli
from app.catalog import load
from app.charts import CHARTS
from app.domain.checks.files import TRUNCATED_FILE, UNKNOWN_SCHEMA
from app.domain.configs import MODEL_TYPES
from app.domain.constants import DEFAULTS
from app.domain.dtypes import FORMATS
from app.domain.errors import ImportRefused
from app.domain.hardware import LABELS
from app.domain.metrics import METRICS
from app.domain.observed import measured_times
from app.domain.quantity import NBSP, bytes_, factor, flops, intensity, percent, seconds, tokens_rate
from app.domain.roofline import idle_share
from app.formats import IMPORTERS, read_runs
from app.pages import page_router
from app.services import runs
from app.services.context import Context
from app.services.predicting import Answer, answer, question_of
from app.services.profiles import catalog_book
from app.services.sample_runs import load_samples
from app.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    *(f"docs/{name}.md" for name in ("api", "ci", "extension", "formats", "measured", "measuring", "model", "operation", "use")),
)
PICTURE_BYTES = 300_000
ELIDED = "…"
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`([^`\n]+)`")


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Block:
    """A fenced block: the page it stands on, its kind (sh, console, json) and its text."""

    page: str
    kind: str
    text: str


def blocks(*pages: str) -> list[Block]:
    return [Block(page, match[2], inspect.cleandoc(match[3])) for page in pages for match in _FENCE.finditer(text_of(page))]


def prose(page: str) -> str:
    return _FENCE.sub("", text_of(page))


def code(page: str) -> str:
    """Everything that stands as code on a page: blocks and spans."""
    return "\n".join([*(block.text for block in blocks(page)), *_SPAN.findall(prose(page))])


def named(word: str, page: str) -> bool:
    """Whether `word` stands as code on the page, by itself."""
    return re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", code(page)) is not None


def table(page: str, *head: str) -> list[list[str]]:
    """The cells of the rows of the table with this head."""
    lines = text_of(page).splitlines()
    at = lines.index(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in head)}|")
    rows = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


# ---- everything there is is named ----------------------------------------------------------------------------------------------------


def commands() -> list[str]:
    return sorted(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined]


def flag_names() -> set[str]:
    """The first argument of every `Flag(...)` that the code writes."""
    found = set()
    for path in (*(ROOT / "app" / "domain").rglob("*.py"), *(ROOT / "app" / "services").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Flag"
            if called and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return found | {UNKNOWN_SCHEMA, TRUNCATED_FILE}


def page_addresses() -> list[str]:
    """The address of every page that is looked at, that is, answers GET."""
    return sorted({str(context.path) for context in iter_route_contexts(page_router.routes) if "GET" in (context.methods or ())})


@pytest.mark.parametrize("field", Settings.model_fields)
def test_every_setting_has_a_row(field: str) -> None:
    assert f"`PHASELINE_{field.upper()}`" in {row[0] for row in table("docs/operation.md", "setting", "default", "meaning")}


@pytest.mark.parametrize("command", commands())
def test_every_command_is_named(command: str) -> None:
    rows = [row[0] for row in table("docs/use.md", "command", "does")]
    assert any(re.match(rf"`phaseline {command}[ `]", row) for row in rows)


@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda importer: importer.id)
def test_every_importer_is_named(importer: Any) -> None:
    for head in (("id", "tool", "files"), ("id", "it is this format when every object or the text has")):
        assert f"`{importer.id}`" in {row[0] for row in table("docs/formats.md", *head)}


def test_importers_are_named_in_the_order_in_which_they_are_asked() -> None:
    rows = table("docs/formats.md", "id", "it is this format when every object or the text has")
    assert [row[0].strip("`") for row in rows] == [importer.id for importer in IMPORTERS]


def test_every_metric_has_its_row() -> None:
    rows = {row[0].strip("`"): row for row in table("docs/use.md", "key", "name", "better", "meaning")}
    assert list(rows) == list(METRICS)
    assert {key: row[2] for key, row in rows.items()} == {key: metric.better for key, metric in METRICS.items()}


def test_every_flag_has_its_row() -> None:
    rows = [row[0].strip("`") for row in table("docs/use.md", "flag", "raised when", "withholds")]
    assert sorted(rows) == sorted(flag_names())


def test_every_call_has_its_row_and_every_row_its_call(client: TestClient) -> None:
    paths: dict[str, dict[str, Any]] = client.get("/api/v1/openapi.json").json()["paths"]
    calls = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert {row[0].strip("`") for row in table("docs/api.md", "call", "does")} == calls


@pytest.mark.parametrize("address", page_addresses())
def test_every_page_is_named(address: str) -> None:
    assert f"`{address}`" in text_of("docs/use.md")


def test_every_constant_has_its_row() -> None:
    rows = {row[0].strip("`"): tuple(row[1:3]) for row in table("docs/model.md", "constant", "value", "label", "source")}
    shown = {key: seconds(item.value).replace(NBSP, " ") if key.endswith("_s") else f"{item.value:g}" for key, item in DEFAULTS.items()}
    assert rows == {key: (shown[key], item.label) for key, item in DEFAULTS.items()}


def test_formats_families_labels_and_engines_are_named() -> None:
    wanted = [*FORMATS, *MODEL_TYPES, *LABELS, *load().engines]
    assert [word for word in wanted if not named(word, "docs/model.md")] == []


def test_charts_are_named() -> None:
    assert [name for name in CHARTS if not named(name, "docs/extension.md")] == []


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", text_of("Makefile"), re.MULTILINE))


def test_every_target_is_named() -> None:
    everything = "\n".join(code(page) for page in PAGES)
    assert [target for target in targets() if not re.search(rf"\bmake {target}\b", everything)] == []


# ---- everything named exists ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_targets_commands_and_options_that_are_named_exist(page: str) -> None:
    text = code(page).replace("\\\n", " ")
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets()
    known = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    for words in re.findall(r"(?<![\w/.-])phaseline ([a-z][^\n`]*)", text):
        command, *rest = words.split()
        assert command in known, f"phaseline {command}"
        said = known[command]
        while rest and rest[0] in getattr(said, "commands", {}):
            said = said.commands[rest.pop(0)]
        options = {option for parameter in said.params for option in parameter.opts} | {"--help"}
        assert {word for word in rest if re.match(r"--[a-z]", word)} <= options, words


@pytest.mark.parametrize("page", PAGES)
def test_settings_and_benchmarks_that_are_named_exist(page: str) -> None:
    settings = set(re.findall(r"\bPHASELINE_[A-Z][A-Z_]*[A-Z]\b", text_of(page)))
    known = {f"PHASELINE_{field.upper()}" for field in Settings.model_fields}
    assert {name for name in settings - known if not name.startswith(("PHASELINE_TESTS_", "PHASELINE_KEY"))} == set()
    for name in re.findall(r"-m benchmarks\.(\w+)", text_of(page)):
        assert (ROOT / "benchmarks" / f"{name}.py").is_file()


@pytest.mark.parametrize("page", PAGES)
def test_paths_and_names_of_the_code_exist(page: str) -> None:
    places = re.compile(r"(?:app|docs|tests|scripts|templates|static|migrations|benchmarks)(?:/[\w.-]+)+")
    for span in _SPAN.findall(prose(page)):
        if places.fullmatch(span):
            assert (ROOT / span).exists(), span
        elif re.fullmatch(r"app(\.\w+)+\.[A-Za-z_]+", span) and not span.endswith(".py"):
            module, _, name = span.rpartition(".")
            assert hasattr(importlib.import_module(module), name), span


def anchors(page: str) -> set[str]:
    """The names of a page's headings, as a renderer makes them."""
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_resolve(page: str) -> None:
    for target in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (ROOT / page).parent / path if path else ROOT / page
        assert place.exists(), target
        if anchor:
            assert anchor in anchors(str(place.resolve().relative_to(ROOT))), target


def test_every_document_is_reached_from_the_readme() -> None:
    linked = set(_LINK.findall(text_of("README.md")))
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")} | {"CHANGELOG.md", "SECURITY.md", "LICENSE"} <= linked


def test_the_picture_is_small_enough_for_a_readme() -> None:
    assert 10_000 < (ROOT / "docs" / "images" / "home.png").stat().st_size < PICTURE_BYTES


@pytest.mark.parametrize("page", PAGES)
def test_the_tone_is_plain(page: str) -> None:
    assert re.findall(r"\w!|! |!$", prose(page)) == []
    boasts = (
        r"\b(powerful|seamless\w*|blazing\w*|effortless\w*|cutting-edge|state-of-the-art|simply|just works|game-chang\w*|robust|amazing)\b"
    )
    assert re.findall(boasts, prose(page), re.IGNORECASE) == []


# ---- the founding figures ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def founding() -> Answer:
    return answer(catalog_book(load()), question_of({}))


def test_the_founding_table_is_what_is_predicted(founding: Answer) -> None:
    prediction = founding.prediction
    prefill, decode = prediction.prefill, prediction.decode
    hidden, request = founding.model.architecture.hidden, prediction.request
    wanted = [
        ("shape of the pass", f"{request.prompt_tokens:,} × {hidden:,}, once", f"1 × {hidden:,}, {request.output_tokens - 1} times"),
        ("arithmetic", flops(prefill.flops), flops(decode.flops)),
        ("bytes moved", bytes_(prefill.bytes), bytes_(decode.bytes)),
        ("work per byte", intensity(prefill.intensity_flops_per_byte), intensity(decode.intensity_flops_per_byte)),
        ("arithmetic alone", seconds(prefill.compute_s), seconds(decode.compute_s)),
        ("memory alone", seconds(prefill.memory_s), seconds(decode.memory_s)),
        (
            "limited by",
            f"arithmetic, by {factor(prefill.compute_s / prefill.memory_s)}",
            f"memory, by {factor(decode.memory_s / decode.compute_s)}",
        ),
        ("expected", seconds(prefill.time_s), seconds(decode.time_s)),
        ("floor", seconds(prefill.floor_s), seconds(decode.floor_s)),
    ]
    assert table("docs/use.md", "", "prefill", "decode") == [[cell.replace(NBSP, " ") for cell in row] for row in wanted]


@pytest.mark.parametrize("page", ["README.md", "docs/use.md"])
def test_the_founding_sentences_have_the_predicted_figures(page: str, founding: Answer) -> None:
    prediction = founding.prediction
    measured_s = 1 / 143  # seconds a token: the measured request of the founding text
    wanted = [
        f"{flops(prediction.prefill.flops)} ÷ 420 TFLOP/s = {seconds(prediction.prefill.compute_s)}",
        f"{bytes_(prediction.decode.bytes)} ÷ 3.35 TB/s = {seconds(prediction.decode.memory_s)}",
        seconds(prediction.decode.compute_s),
        f"the arithmetic waits {percent(idle_share(prediction.decode))} of the step",
        percent(prediction.decode.floor_s / measured_s),
        tokens_rate(1 / measured_s),
    ]
    text = " ".join(prose(page).split()).lower()
    assert [words for words in wanted if words.replace(NBSP, " ").lower() not in text] == []


def test_the_measured_sentences_are_those_of_the_sample_run(context: Context) -> None:
    load_samples(context, datetime(2026, 11, 29, tzinfo=UTC))
    view = runs.view(context, 1)
    times, found = measured_times(view.stored.run), view.assessment
    assert times.step_s
    assert times.first_token_s
    assert found.prediction
    wanted = [
        f"TTFT {seconds(times.first_token_s)}, ITL {seconds(times.step_s)} ({tokens_rate(1 / times.step_s)})",
        f"{seconds(times.total_s)} in all, prefill {percent(times.prefill_share)} of it",
        f"decode runs at {percent(found.mbu)} of the bandwidth floor",
        f"reaches at least {percent(found.mfu)} of the peak",
        f"the other {seconds(times.first_token_s - found.prediction.ttft_s)} of TTFT",
    ]
    text = " ".join(prose("docs/use.md").split())
    assert [words for words in wanted if words.replace(NBSP, " ") not in text] == []


# ---- what is shown as output is printed ----------------------------------------------------------------------------------------------


def transcript(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the output under it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output.rstrip("\n")


def matches(shown: str, printed: str) -> bool:
    """Whether `printed` is `shown`, where … stands for anything: within a line, or as a line by itself for any lines."""
    pattern = r"(?:.*\n)*?".join(
        re.escape(part).replace(re.escape(ELIDED), ".*") for part in re.split(rf"^{ELIDED}\n", shown + "\n", flags=re.MULTILINE)
    )
    return re.fullmatch(pattern, printed.replace(NBSP, " ").rstrip("\n") + "\n") is not None


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a", "a\n", True),
        ("a", "a\nb\n", False),
        ("a\n…", "a\nb\nc\n", True),
        ("…\nc", "a\nb\nc\n", True),
        ("…\nc", "a\nb\n", False),
        ("a … c", f"a b{NBSP}b c", True),
        ("a … c", "a\nc", False),
    ],
)
def test_three_dots_stand_for_anything(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same


@pytest.mark.parametrize("page", [page for page in PAGES if any(block.kind == "console" for block in blocks(page))])
def test_commands_print_what_is_shown(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)  # not the root of the tree, whose .env may hold somebody's settings
    monkeypatch.setattr("sys.excepthook", sys.excepthook)  # put back what the command puts in its place
    request.addfinalizer(load_settings.cache_clear)
    for block in blocks(page):
        for command, shown in transcript(block) if block.kind == "console" else ():
            load_settings.cache_clear()
            monkeypatch.setattr("sys.argv", shlex.split(command))
            with pytest.raises(SystemExit):
                cli.main()
            captured = capsys.readouterr()
            printed = captured.out + captured.err
            assert matches(shown, printed), f"{command} prints\n{printed}"


class Curl:
    """The few options of curl that the documents use, against the application under test."""

    def __init__(self, client: TestClient, folder: Path) -> None:
        self._client = client
        self._folder = folder

    def __call__(self, command: str) -> Any:
        words = shlex.split(command.replace("\\\n", " "))[1:]
        call: dict[str, Any] = {"headers": {}, "files": [], "data": {}}
        query: list[tuple[str, str]] = []
        method = url = None
        while words:
            word = words.pop(0)
            if word.startswith("http"):
                url = word.removeprefix("http://127.0.0.1:8000")
            elif word == "-X":
                method = words.pop(0)
            elif word == "-H":
                name, _, value = words.pop(0).partition(": ")
                call["headers"][name] = value
            elif word == "-G":
                method = "GET"
            elif word == "--data-urlencode":
                name, _, value = words.pop(0).partition("=")
                query.append((name, value))
            elif word in ("-d", "--data-binary"):
                call["content"] = self._bytes(words.pop(0))
            elif word == "-F":
                self._field(call, words.pop(0))
            else:
                assert word in ("-s", "-sS"), word
        assert url is not None
        url += f"{'&' if '?' in url else '?'}{urlencode(query)}" if query else ""
        sent = {key: value for key, value in call.items() if value}
        return self._client.request(method or ("POST" if set(sent) - {"headers"} else "GET"), url, **sent).json()

    def _bytes(self, text: str) -> bytes:
        return (self._folder / text[1:]).read_bytes() if text.startswith("@") else text.encode()

    def _field(self, call: dict[str, Any], field: str) -> None:
        name, _, value = field.partition("=")
        if value.startswith("@"):
            call["files"].append((name, (value[1:], self._bytes(value))))
        else:
            call["data"][name] = value


def holds(shown: Any, answered: Any, at: str = "") -> list[str]:
    """Where an answer is not what is shown: keys and trailing elements may be left out, numbers rounded to a part in a hundred."""
    if isinstance(shown, dict) and isinstance(answered, dict):
        missing = [f"{at}.{key} is not there" for key in shown if key not in answered]
        return missing + [odd for key in shown if key in answered for odd in holds(shown[key], answered[key], f"{at}.{key}")]
    if isinstance(shown, list) and isinstance(answered, list):
        short = [f"{at} has {len(answered)} elements"] if len(answered) < len(shown) else []
        return short + [odd for index, (a, b) in enumerate(zip(shown, answered, strict=False)) for odd in holds(a, b, f"{at}[{index}]")]
    if type(shown) in (int, float) and type(answered) in (int, float):
        return [] if answered == pytest.approx(shown, rel=0.01, abs=1e-6) else [f"{at} is {answered}"]
    said = answered.replace(NBSP, " ") if isinstance(answered, str) else answered
    return [] if shown == said else [f"{at} is {said!r}"]


@pytest.mark.parametrize(
    ("answered", "odd"),
    [({"a": [1.001, 2], "b": 0}, []), ({"a": [1.1]}, [".a[0] is 1.1"]), ({"a": []}, [".a has 0 elements"]), ({}, [".a is not there"])],
)
def test_an_answer_is_held_to_what_is_shown(answered: Any, odd: list[str]) -> None:
    assert holds({"a": [1]}, answered) == odd


def test_calls_answer_what_is_shown(client: TestClient, tmp_path: Path) -> None:
    curl = Curl(client, tmp_path)
    answered: Any = None
    for block in blocks("docs/api.md"):
        if block.kind == "json":
            assert holds(json.loads(block.text), answered) == [], block.text
        elif block.text.startswith("curl"):
            answered = curl(block.text)
        else:
            subprocess.run(["sh", "-eu", "-c", block.text], cwd=tmp_path, check=True, timeout=10)


REFUSED = {
    "nothing": b"",
    "`[]`": b"[]",
    "a sign-in page": b"<!doctype html><title>Sign in</title>",
    "the first half of a file": b'{"model_id": "m", "mean_ttft_ms": 3, "ttfts": [0.1, 0.2',
    "a stray word": b'{"model_id": "m", oops}',
    "5,000 brackets": b"[" * 5000 + b"]" * 5000,
    "an archive": b"\x1f\x8b\x08\x00",
    "bytes": bytes(range(256)) * 10,
    "a count of −1": b'{"model_id": "m", "mean_ttft_ms": 3, "completed": -1}',
    "a count of 22 digits": b'{"model_id": "m", "mean_ttft_ms": 3, "completed": 9999999999999999999999}',
    "one figure twice": b'{"model_id": "m", "mean_ttft_ms": 3, "mean_ttft_ms": 4}',
    "AIPerf's server metrics": b'{"aiperf_version": "0.8", "summary": {"endpoints_configured": []}, "metrics": {}}',
    "a CSV row that does not fit": b'build_commit,n_prompt,n_gen,avg_ts\n"a","1","0","3","4"\n',
    "a log that was stopped": b"============ Serving Benchmark Result ============\n=====\n",
}


def test_refusals_say_what_is_documented() -> None:
    said = []
    for what, data in REFUSED.items():
        with pytest.raises(ImportRefused) as refused:
            read_runs("x", data)
        said.append([what, refused.value.reason])
    assert table("docs/formats.md", "what was sent", "what is said") == said
