"""The four ordinary hostile inputs (ids beyond 64 bits, lone surrogates, NaN in a body, NaN in an answer), and their kin: never a 500."""

import json
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.api.answers import StrictJSON
from app.services.strict_json import strict_json
from tests.answers import API, ok, problem, strict
from tests.applications import row_counts
from tests.result_files import served, served_file, served_in_detail

JSON = {"content-type": "application/json"}
BIG_IDS = (2**63, 2**64, 10**30, 10**400)
ID_PATHS = (
    ("GET", "/runs/{}"),
    ("PATCH", "/runs/{}"),
    ("DELETE", "/runs/{}"),
    ("GET", "/runs/{}/requests"),
    ("GET", "/runs/{}/original"),
    ("GET", "/runs/{}/decomposition"),
    ("GET", "/runs/{}/roofline"),
    ("GET", "/compare?base={}&other=1"),
    ("GET", "/compare?base=1&other={}"),
    ("GET", "/compare?base=1&other=2&other={}"),
)


@pytest.mark.parametrize("number", [*BIG_IDS, 0, -1, -(2**63) - 1])
@pytest.mark.parametrize(("method", "path"), ID_PATHS)
def test_an_id_that_can_be_none_is_422(api: TestClient, method: str, path: str, number: int) -> None:
    body = {"json": {}} if method == "PATCH" else {}
    problem(api.request(method, API + path.format(number), **body), 422)


@pytest.mark.parametrize(("method", "path"), ID_PATHS)
def test_the_largest_id_is_simply_not_there(api: TestClient, method: str, path: str) -> None:
    body = {"json": {}} if method == "PATCH" else {}
    answer = problem(api.request(method, API + path.format(2**63 - 1), **body), 404)
    assert answer["detail"].startswith("There is no run")


@pytest.mark.parametrize("word", ["abc", "1.5", "1e3", "٣", "0x1", "null", "%00", "1%20OR%201=1"])
def test_an_id_that_is_no_number_is_422_without_an_echo(api: TestClient, word: str) -> None:
    problem(api.get(f"{API}/runs/{word}"), 422, "integer", hidden=(word,) if len(word) > 3 else ())


SURROGATE_BODIES = {
    "hardware name": ("POST", "/hardware", rb'{"name": "x\ud800y", "bandwidth_bytes_per_s": 1e12, "peak_flops_per_s": {"bf16": 1e15}}'),
    "hardware notes": (
        "POST", "/hardware", rb'{"name": "n", "notes": "\udfff", "bandwidth_bytes_per_s": 1e12, "peak_flops_per_s": {"bf16": 1e15}}',
    ),
    "hardware number format": ("POST", "/hardware", rb'{"name": "n", "bandwidth_bytes_per_s": 1e12, "peak_flops_per_s": {"\ud800": 1e15}}'),
    "hardware clone": ("POST", "/hardware", rb'{"clone_of": "\ud800"}'),
    "model name": ("POST", "/models", rb'{"name": "x\ud800y", "clone_of": "textbook-8b"}'),
    "model alias": ("POST", "/models", rb'{"name": "xy", "clone_of": "textbook-8b", "aliases": ["\ud800"]}'),
    "model config value": ("POST", "/models", rb'{"name": "xy", "config": {"model_type": "\ud800"}}'),
    "model config key": ("POST", "/models", rb'{"name": "xy", "config": {"\ud800": 1}}'),
    "predict model": ("POST", "/predict", rb'{"model": "x\ud800y"}'),
    "predict format": ("POST", "/predict", rb'{"weight_dtype": "\ud800"}'),
    "predict unknown key": ("POST", "/predict", rb'{"x\ud800y": 1}'),
    "sweep value": ("POST", "/predict", rb'{"sweep": {"model": ["x\ud800y"]}}'),
    "sweep key": ("POST", "/predict", rb'{"sweep": {"x\ud800y": [1]}}'),
    "run label": ("PATCH", "/runs/1", rb'{"label": "\ud800"}'),
    "run tag": ("PATCH", "/runs/1", rb'{"tags": ["\ud800"]}'),
    "run notes": ("PATCH", "/runs/1", rb'{"notes": "\ud800"}'),
}  # fmt: skip


@pytest.mark.parametrize("case", SURROGATE_BODIES)
def test_a_lone_surrogate_in_a_body_is_422(api: TestClient, case: str) -> None:
    method, path, body = SURROGATE_BODIES[case]
    problem(api.request(method, API + path, content=body, headers=JSON), 422)


WTF = quote_from_bytes("x\ud800y".encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    "path",
    [f"/predict?model={WTF}", f"/predict?{WTF}=1", f"/hardware/{WTF}", f"/models/{WTF}", f"/runs?sort={WTF}", f"/runs?cursor={WTF}"],
)
def test_a_surrogate_in_an_address_is_a_problem(api: TestClient, path: str) -> None:
    answer = api.get(API + path)
    problem(answer, answer.status_code)
    assert answer.status_code in (404, 422)


@pytest.mark.parametrize("key", ["q", "tag", "model", "hardware", "engine", "format", "project"])
@pytest.mark.parametrize("value", [WTF, "%00", "%E2%80%AE", "x" * 200])
def test_a_filter_of_any_text_finds_nothing_and_breaks_nothing(api: TestClient, key: str, value: str) -> None:
    assert ok(api.get(f"{API}/runs?{key}={value}"))["items"] == []


def test_surrogates_around_an_upload_are_replaced(api: TestClient) -> None:
    wrong = "a\ud800b".encode("utf-8", "surrogatepass")
    raw = api.post(f"{API}/runs?name={WTF}&label={WTF}&tags={WTF}&project={WTF}", content=served_file(1))
    form = (
        b'--x\r\ncontent-disposition: form-data; name="label"\r\n\r\n' + wrong
        + b'\r\n--x\r\ncontent-disposition: form-data; name="file"; filename="' + wrong + b'"\r\n\r\n' + served_file(2) + b"\r\n--x--\r\n"
    )  # fmt: skip
    sent = api.post(f"{API}/runs", content=form, headers={"content-type": "multipart/form-data; boundary=x"})
    for answer in (raw, sent):
        run = ok(answer, 201)["runs"][0]
        for text in (run["label"], run["file"], run["project"], *run["tags"]):
            text.encode("utf-8")
        assert ok(api.get(f"{API}/runs/{run['id']}")) == run


NUMBER_BODIES = {
    "predict": ("POST", "/predict", '{"prompt_tokens": %s}'),
    "hardware": ("POST", "/hardware", '{"name": "n", "bandwidth_bytes_per_s": %s, "peak_flops_per_s": {"bf16": 1e15}}'),
    "hardware rate": ("POST", "/hardware", '{"name": "n", "bandwidth_bytes_per_s": 1e12, "peak_flops_per_s": {"bf16": %s}}'),
    "model config": ("POST", "/models", '{"name": "n", "config": {"model_type": "llama", "hidden_size": %s}}'),
    "run": ("PATCH", "/runs/1", '{"tp": %s}'),
}


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "-1", "1e-320", "9" * 400, "true", '"x"', "[]"])
@pytest.mark.parametrize("case", NUMBER_BODIES)
def test_a_number_that_is_none_is_422(api: TestClient, case: str, word: str) -> None:
    method, path, body = NUMBER_BODIES[case]
    counts = row_counts(api)
    problem(api.request(method, API + path, content=body % word, headers=JSON), 422)
    assert row_counts(api) == counts


@pytest.mark.parametrize("word", ["NaN", "Infinity", "1e999", "1e-320", "9" * 400, str(2**53 + 1), "true", "[]", "null"])
def test_a_point_of_a_grid_that_is_no_number_is_422(api: TestClient, word: str) -> None:
    body = '{"sweep": {"prompt_tokens": [1, %s]}}' % word  # noqa: UP031
    problem(api.post(f"{API}/predict", content=body, headers=JSON), 422)


BROKEN_BODIES = {
    "cut": (b'{"prompt_tokens": ', 422),
    "nothing": (b"", 422),
    "a list": (b"[1]", 422),
    "a text": (b'"secret"', 422),
    "not UTF-8": (b'{"model": "\xff\xfe"}', 400),
    "nested 200000 deep": (b"[" * 200_000, 400),
    "a number of 5000 digits": (b'{"prompt_tokens": ' + b"1" * 5000 + b"}", 400),
}


@pytest.mark.parametrize("case", BROKEN_BODIES)
@pytest.mark.parametrize(("method", "path"), [("POST", "/predict"), ("POST", "/hardware"), ("POST", "/models"), ("PATCH", "/runs/1")])
def test_a_body_that_is_no_json_object_says_so(api: TestClient, method: str, path: str, case: str) -> None:
    body, status = BROKEN_BODIES[case]
    problem(api.request(method, API + path, content=body, headers=JSON), status, hidden=("secret",))


def test_json_as_another_content_type_says_which_to_send(api: TestClient) -> None:
    problem(api.post(f"{API}/predict", content=b"{}", headers={"content-type": "text/plain"}), 422, "Content-Type: application/json")


def test_an_unknown_key_is_named_and_its_value_is_not(api: TestClient) -> None:
    body = problem(api.post(f"{API}/predict", json={"promt_tokens": "hunter2"}), 422, "promt_tokens", hidden=("hunter2", '"input"'))
    assert body["errors"] == [{"where": "body.promt_tokens", "what": "Extra inputs are not permitted"}]


def test_errors_are_bounded_however_many_there_are(api: TestClient) -> None:
    answer = api.post(f"{API}/predict", json={"x" * 100_000: 1, **{f"k{n}": 1 for n in range(1000)}})
    assert len(problem(answer, 422)["errors"]) == 20
    assert len(answer.content) < 8_000


@pytest.mark.parametrize(
    "query",
    [
        "since=0001-01-01T00:00:00%2B14:00",
        "until=9999-12-31T23:59:59-14:00",
        "since=2026-13-01",
        "until=yesterday",
        "since=NaN",
        "since=2026",
        "until=0.5",
        "since=1767225600",
    ],
)
def test_a_moment_beyond_the_calendar_is_422(api: TestClient, query: str) -> None:
    problem(api.get(f"{API}/runs?{query}"), 422, query.split("=")[0])


def test_an_unknown_query_key_is_named(api: TestClient) -> None:
    problem(api.get(f"{API}/runs?modell=x"), 422, "query.modell")
    problem(api.get(f"{API}/predict?promt=1"), 422, "query.promt")


def test_what_leaves_is_json_even_when_a_service_slipped() -> None:
    content = {"a": float("nan"), "b": [float("inf"), {"c": float("-inf")}], "d": (1.0,), "e": "x\ud800"}
    assert json.loads(StrictJSON(content).body) == {"a": None, "b": [None, {"c": None}], "d": [1.0], "e": "x?"}
    assert strict_json({"a": 1}) == '{"a":1}'


# Figures a file may hold, from the ordinary to the absurd; as JSON text, since NaN and 1e999 are words there.
FIGURES = st.one_of(
    st.sampled_from(
        ["NaN", "Infinity", "-Infinity", "1e999", "1e-320", "5e-324", "1e-300", "1e18", "1e300", "0", "0.0", "-0.0", "-1", "null", '"7"']
    ),
    st.floats(min_value=0, allow_nan=False, allow_infinity=False).map(repr),
    st.integers(0, 10**19).map(str),
)
KEYS = st.sampled_from([key for key, value in served().items() if isinstance(value, int | float)])
DETAILED_KEYS = st.sampled_from(["ttfts", "itls", "input_lens", "output_lens", "duration", "completed", "total_output_tokens"])


def with_figure(report: dict[str, Any], changes: dict[str, str]) -> bytes:
    """The report as JSON with raw texts in place of some values."""
    whole = json.dumps({**report, **{key: f"@{key}@" for key in changes}})
    for key, text in changes.items():
        whole = whole.replace(f'"@{key}@"', text)
    return whole.encode()


def read_everything(client: TestClient, data: bytes, other: int) -> None:
    """Upload, and where it gave a run read all there is about it: no 500, and no number that is none."""
    fields = {"hardware": "h100-sxm5-80gb", "model": "llama-3-1-8b"}
    answer = client.post(f"{API}/runs", params=fields, content=data)
    assert answer.status_code in (200, 201, 422), answer.text
    for run in strict(answer).get("runs", []):
        number = run["id"]
        for path in (
            f"runs/{number}", f"runs/{number}/requests", f"runs/{number}/decomposition", f"runs/{number}/roofline",
            f"runs/{number}/decomposition?figure=plotly", f"runs/{number}/roofline?figure=plotly",
            f"compare?base={number}&other={other}", f"compare?base={other}&other={number}", "runs?limit=1",
        ):  # fmt: skip
            found = client.get(f"{API}/{path}")
            assert found.status_code in (200, 404, 422), f"{path}: {found.text}"
            strict(found)
        client.delete(f"{API}/runs/{number}")


def tried(examples: int) -> settings:
    """The same examples each time, so that a test fails for everybody or for nobody."""
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def other(api: TestClient) -> int:
    """A sound run to compare with."""
    fields = {"hardware": "h100-sxm5-80gb", "model": "llama-3-1-8b"}
    number: int = ok(api.post(f"{API}/runs", params=fields, content=served_file(99)), 201)["runs"][0]["id"]
    return number


FIGURE_CHANGES = st.dictionaries(KEYS, FIGURES, min_size=1, max_size=4)
ARRAY_FIGURES = st.lists(FIGURES, min_size=1, max_size=5)


@tried(12)
@given(changes=FIGURE_CHANGES)
def test_no_figure_of_a_file_breaks_an_answer(api: TestClient, other: int, changes: dict[str, str]) -> None:
    read_everything(api, with_figure(served(), changes), other)


@pytest.mark.soak
@tried(2000)
@given(changes=FIGURE_CHANGES)
def test_no_figure_breaks_an_answer_for_long(api: TestClient, other: int, changes: dict[str, str]) -> None:
    read_everything(api, with_figure(served(), changes), other)


def array_of(figures: list[str], nested: bool) -> str:
    return "[" + ", ".join(f"[{figure}]" if nested else figure for figure in figures) + "]"


@tried(12)
@given(key=DETAILED_KEYS, figures=ARRAY_FIGURES, nested=st.booleans())
def test_no_array_of_a_file_breaks_an_answer(api: TestClient, other: int, key: str, figures: list[str], nested: bool) -> None:
    read_everything(api, with_figure(served_in_detail(), {key: array_of(figures, nested)}), other)


@pytest.mark.soak
@tried(2000)
@given(key=DETAILED_KEYS, figures=ARRAY_FIGURES, nested=st.booleans())
def test_no_array_breaks_an_answer_for_long(api: TestClient, other: int, key: str, figures: list[str], nested: bool) -> None:
    read_everything(api, with_figure(served_in_detail(), {key: array_of(figures, nested)}), other)


TOKENS = st.one_of(st.integers(1, 10_000_000), st.sampled_from([1, 2, 10_000_000]))
RATES = st.one_of(st.floats(1, 1e21), st.sampled_from([1.0, 1e21]))
DEVICES = st.fixed_dictionaries(
    {"bandwidth_bytes_per_s": RATES, "peak_flops_per_s": st.fixed_dictionaries({"bf16": RATES})},
    optional={"memory_bytes": RATES, "link_bytes_per_s": RATES},
)
QUESTIONS = st.fixed_dictionaries(
    {"prompt_tokens": TOKENS, "output_tokens": TOKENS, "batch": st.integers(1, 1_000_000), "tp": st.sampled_from([1, 1, 2, 8, 3])},
    optional={"calibration": st.sampled_from(["textbook", "default"]), "weight_dtype": st.sampled_from(["bf16", "int4", "fp8"])},
)


def ask(client: TestClient, device: dict[str, Any], question: dict[str, Any]) -> None:
    """Every prediction is finite, and its times keep their order, on any device that can be entered."""
    slug = ok(client.post(f"{API}/hardware", json={"name": "property device", **device}), 201)["slug"]
    answer = client.post(f"{API}/predict", json={**question, "hardware": slug})
    client.delete(f"{API}/hardware/{slug}")
    assert answer.status_code in (200, 422), answer.text
    body = strict(answer)
    if answer.status_code == 422:
        return
    for phase in (body["prefill"], body["decode"]):
        assert 0 < phase["floor_s"] <= phase["attainable_s"] * (1 + 1e-9) <= phase["time_s"] * (1 + 1e-9) ** 2
    assert body["total_s"] > 0


@tried(20)
@given(device=DEVICES, question=QUESTIONS)
def test_no_device_and_no_question_break_a_prediction(api: TestClient, device: dict[str, Any], question: dict[str, Any]) -> None:
    ask(api, device, question)


@pytest.mark.soak
@tried(3000)
@given(device=DEVICES, question=QUESTIONS)
def test_nothing_breaks_a_prediction_for_long(api: TestClient, device: dict[str, Any], question: dict[str, Any]) -> None:
    ask(api, device, question)
