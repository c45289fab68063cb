"""The workflow of docs/ci.md: it is YAML, its scripts are shell, and every call and flag in them exists and does what is said."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from tests.answers import API, ok
from tests.result_files import data_of, served

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW: dict[str, Any] = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0])
(JOB,) = WORKFLOW["jobs"].values()
STEPS = {step["name"]: step for step in JOB["steps"] if "name" in step}
CURL_FLAGS = {"-sS", "--fail-with-body", "-G"}


def curl_calls(script: str) -> list[tuple[str, list[tuple[str, str]], list[tuple[str, str]]]]:
    """Of every curl in a script: the address, the fields of a form, the parameters of a query."""
    calls = []
    for line in script.replace("\\\n", " ").splitlines():
        if not line.strip().startswith("curl "):
            continue
        words = shlex.split(re.split(r" > | \|\| ", line)[0])[1:]
        form, query, address = [], [], ""
        while words:
            word = words.pop(0)
            if word in ("-F", "--data-urlencode"):
                name, _, value = words.pop(0).partition("=")
                (form if word == "-F" else query).append((name, value))
            elif word.startswith("$PHASELINE"):
                address = word.removeprefix("$PHASELINE")
            else:
                assert word in CURL_FLAGS, word
        calls.append((address, form, query))
    return calls


def test_it_is_a_workflow_of_steps_in_this_order() -> None:
    # YAML 1.1 reads a bare `on` as true.
    assert WORKFLOW[True] == "pull_request"
    assert list(STEPS) == ["Measure", "Upload", "Say what moved", "Gate"]
    assert WORKFLOW["permissions"]["pull-requests"] == "write"
    assert "run=" in STEPS["Upload"]["run"]
    for name in ("Say what moved", "Gate"):
        assert STEPS[name]["env"]["RUN"] == f"${{{{ steps.{STEPS['Upload']['id']}.outputs.run }}}}"


@pytest.mark.parametrize("name", STEPS)
def test_scripts_are_shell_and_hold_no_expression(name: str) -> None:
    """Expressions are handed over in the environment: in a script the words of a pull request would be run."""
    script = STEPS[name]["run"]
    assert "${{" not in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=20)
    set_there = {*JOB["env"], *STEPS[name].get("env", {}), "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"}
    assert set(re.findall(r"\$([A-Z_]+)\b", script)) <= set_there


def test_every_call_and_parameter_is_in_the_description(client: TestClient) -> None:
    paths = client.get(f"{API}/openapi.json").json()["paths"]
    found = [call for step in STEPS.values() for call in curl_calls(step["run"])]
    assert [address for address, _, _ in found] == [f"{API}/runs", f"{API}/compare.md", f"{API}/gate"]
    for address, form, query in found:
        if form:
            content = paths[address]["post"]["requestBody"]["content"]["multipart/form-data"]
            known = set(content["schema"]["properties"])
        else:
            known = {each["name"] for each in paths[address]["get"]["parameters"]}
        assert {name for name, _ in (*form, *query)} <= known, address


def test_the_steps_upload_judge_and_say_why(client: TestClient) -> None:
    """The calls of the scripts in their order, on a run that decodes 20 % slower than the baseline."""

    def result(itl_ms: float) -> bytes:
        return data_of(served(mean_tpot_ms=itl_ms, mean_itl_ms=itl_ms, mean_e2el_ms=50 + 50 * itl_ms))

    ((address, form, _),) = curl_calls(STEPS["Upload"]["run"])
    fields = {name: value.replace("$COMMIT", "abc") for name, value in form if name != "file"}

    def uploaded(itl_ms: float) -> int:
        number: int = ok(client.post(address, files={"file": ("result.json", result(itl_ms))}, data=fields), 201)["runs"][0]["id"]
        return number

    base, slower = uploaded(10.0), uploaded(12.0)
    values = {"$RUN": str(slower), "$SPEC": JOB["env"]["SPEC"]}

    def ask(step: str) -> Any:
        ((where, _, query),) = curl_calls(STEPS[step]["run"])
        return client.get(where, params={name: values.get(value, value) for name, value in query})

    assert ok(ask("Gate"))["verdict"] == "fail"
    ok(client.post(f"{API}/baselines", json={"run": base}), 201)
    gate = ok(ask("Gate"))
    assert (gate["verdict"], [clause["broken"] for clause in gate["clauses"]]) == ("fail", [True, False])
    # What jq picks out of the answer.
    assert json.loads(json.dumps(gate))["clauses"][0]["sentence"].startswith("ITL mean went from")
    text = ask("Say what moved").text
    assert text.startswith("## Gate failed\n")
    assert f"## Run {slower} against run {base}" in text
