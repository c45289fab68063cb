"""The house rules that no other tool keeps: sizes, names, templates, documentation."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from app.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
FILE_LINES = 500
FUNCTION_LINES = 60
CODE = {".py", ".js", ".css", ".html", ""}
BINARY = {".png", ".ico", ".woff2", ".gz", ".zst", ".zip", ".db"}
VENDORED = "static/vendor/"
SAMPLES = "tests/data/"

# A folder of somebody's machine, as opposed to the system folders that are the same everywhere.
MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:root|home|Users|work|mnt|media)/\w")
ADDRESS = re.compile(r"\b(?:https?|git|ssh)://(?:[\w.%+-]+(?::[^@/\s]*)?@)?(\[[0-9a-fA-F:]+\]|[\w.-]+)")
LOOPBACK = {"127.0.0.1", "localhost", "0.0.0.0", "[::1]"}
SERVICES = {"web"}  # of compose.yaml, on a network of its own
NAMESPACES = {"www.w3.org"}  # the name of SVG, never asked for anything
# Names that stand for somebody's own machine in an example.
EXAMPLE = re.compile(r"(?:^|\.)example(?:\.(?:com|org|net))?$|\.(?:test|invalid|example)$")
PRIVATE_NAME = re.compile(r"^[^.]+$|\.(?:internal|local|lan|corp|intranet|svc|home)$")
BUILD_FILES = re.compile(r"^(?:Makefile|Dockerfile|compose[\w.]*\.yaml|pyproject\.toml|requirements[\w-]*\.lock|\.ci/.*|scripts/.*)$")

TEMPLATE_FORBIDS = {
    "an inline style": re.compile(r"\sstyle\s*=\s*[\"']|<style\b", re.IGNORECASE),
    "an inline script": re.compile(r"<script\b(?![^>]*\bsrc=)(?![^>]*type=[\"']application/json[\"'])", re.IGNORECASE),
    "an event attribute": re.compile(r"\son[a-z]+\s*=\s*[\"']|\bhx-on\b|\bhx-on:", re.IGNORECASE),
    "a script address": re.compile(r"javascript:", re.IGNORECASE),
    "unescaped text": re.compile(r"\|\s*safe\b|autoescape\s+false|\bMarkup\("),
}


@cache
def committed() -> tuple[str, ...]:
    """The paths of this tree that are committed or would be, relative to its root."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    if listed.returncode == 0:
        names = listed.stdout.split("\0")
    else:  # unpacked from an archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not set(path.parts) & {".venv", ".venv-test", "__pycache__"}]
    return tuple(sorted(name for name in names if name and (ROOT / name).is_file()))


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def own_texts() -> Iterator[tuple[str, str]]:
    """Every committed text that we wrote: no vendored file, no sample of another tool's output, no binary, no lock."""
    for name in committed():
        if not name.startswith((VENDORED, SAMPLES)) and Path(name).suffix not in BINARY | {".lock"} and name != "LICENSE":
            yield name, text_of(name)


def own_code() -> Iterator[tuple[str, str]]:
    for name, text in own_texts():
        if Path(name).suffix in CODE:
            yield name, text


def python_functions() -> Iterator[tuple[str, int]]:
    """Each function of each Python file and its length in lines, docstring included, decorators not.

    A migration is left out: it is one list of statements, frozen once it is released.
    """
    for name, text in own_code():
        if name.startswith("migrations/versions/"):
            continue
        if name.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
            for node in ast.walk(ast.parse(text, name)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{name}:{node.lineno} {node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_files_have_one_job() -> None:
    long = {name: lines for name, text in own_code() if (lines := len(text.splitlines())) > FILE_LINES}
    assert not long, f"longer than {FILE_LINES} lines: {long}"


def test_functions_fit_a_screen() -> None:
    long = {name: lines for name, lines in python_functions() if lines > FUNCTION_LINES}
    assert not long, f"longer than {FUNCTION_LINES} lines: {long}"


def test_python_names_say_what_they_do() -> None:
    vague = re.compile(r"(?:^|_)(?:utils?|helpers?|manager)(?:$|_)|^handle_", re.IGNORECASE)
    # Tests may override what a library calls handle_…, as html.parser does.
    functions = [name for name, _ in python_functions() if vague.search(name.rsplit(" ", 1)[1]) and not name.startswith("tests/")]
    files = [name for name in committed() if name.endswith(".py") and vague.search(Path(name).stem)]
    assert not functions + files, "vague names"


@pytest.mark.parametrize("what", TEMPLATE_FORBIDS)
def test_templates_keep_the_content_security_policy(what: str) -> None:
    templates = [(name, text) for name, text in own_texts() if name.startswith("templates/")]
    assert templates, "no templates found"
    found = [f"{name}: {match.group().strip()}" for name, text in templates for match in TEMPLATE_FORBIDS[what].finditer(text)]
    assert not found, f"{what} in a template"


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("an inline style", '<td style="color: red">'),
        ("an inline script", "<script>go()</script>"),
        ("an event attribute", "<a onclick='go()'>"),
        ("an event attribute", '<div hx-on:click="go()">'),
        ("a script address", '<a href="javascript:go()">'),
        ("unescaped text", "{{ name|safe }}"),
    ],
)
def test_what_templates_must_not_hold_is_recognised(what: str, line: str) -> None:
    assert TEMPLATE_FORBIDS[what].search(line)


@pytest.mark.parametrize("line", ['<script src="/static/app.js" defer></script>', '<script type="application/json">{}</script>'])
def test_linked_scripts_and_data_are_allowed(line: str) -> None:
    assert not any(pattern.search(line) for pattern in TEMPLATE_FORBIDS.values())


def test_no_path_of_a_machine_is_committed() -> None:
    found = [f"{name}: {match.group()}" for name, text in own_texts() for match in MACHINE_PATH.finditer(text)]
    assert not found, "absolute paths of somebody's machine"


def names_a_machine(host: str) -> bool:
    return bool(PRIVATE_NAME.search(host)) and host not in LOOPBACK | SERVICES and not EXAMPLE.search(host)


def test_no_machine_is_named() -> None:
    texts = [(name, text) for name, text in own_texts() if not name.startswith("tests/")]
    found = [f"{name}: {host}" for name, text in texts for host in ADDRESS.findall(text) if names_a_machine(host.lower())]
    assert not found, "host names of somebody's network"


@pytest.mark.parametrize("host", ["buildbox", "mirror.internal", "gpu7.corp"])
def test_a_machine_is_recognised(host: str) -> None:
    assert names_a_machine(host)


def test_what_builds_names_no_host() -> None:
    """Packages come from whatever registry the machine is set up with."""
    names = [name for name in committed() if BUILD_FILES.match(name)]
    assert {"Makefile", "Dockerfile", "compose.yaml", "requirements.lock", "requirements-dev.lock", ".ci/run"} <= set(names)
    found = [f"{name}: {host}" for name in names for host in ADDRESS.findall(text_of(name)) if host not in LOOPBACK | SERVICES | NAMESPACES]
    assert not found, "hosts named in build files"


@pytest.mark.parametrize("field", Settings.model_fields)
def test_every_setting_is_documented(field: str) -> None:
    setting = f"PHASELINE_{field.upper()}"
    assert re.search(rf"\b{setting}\b", text_of("docs/operation.md")), f"docs/operation.md does not name {setting}"


def test_every_setting_that_is_named_exists() -> None:
    texts = "".join(text_of(name) for name in ("docs/operation.md", "compose.yaml", "Dockerfile"))
    named = set(re.findall(r"\bPHASELINE_[A-Z][A-Z_]*[A-Z]\b", texts))
    known = {f"PHASELINE_{field.upper()}" for field in Settings.model_fields}
    assert {name for name in named - known if not name.startswith(("PHASELINE_TESTS_", "PHASELINE_KEY"))} == set()


def test_every_setting_has_a_line_of_help() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
