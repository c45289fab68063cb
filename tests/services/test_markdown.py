"""A comparison as Markdown."""

from app.domain.comparison import Side, compare
from app.domain.run import Distribution, Run
from app.services.diagnosing import explain_files
from app.services.markdown import comparison_markdown, escaped


def run(ttft: float, itl: float) -> Run:
    return Run(format="generic", metrics={"ttft_s": Distribution(mean=ttft), "itl_s": Distribution(mean=itl)})


def test_a_pair_with_its_causes_and_metrics() -> None:
    comparison = compare(Side(7, run(0.1, 0.01), {"engine": "a|b"}), Side(9, run(0.2, 0.01), {"engine": "<script>"}))
    text = comparison_markdown([comparison], [explain_files(comparison)]).replace("\xa0", " ")
    lines = text.splitlines()
    assert lines[0] == "## Run 9 against run 7"
    assert lines[2].startswith("Prefill got 2.0× slower; decode did not move. Undetermined between ")
    assert "- engine: a\\|b → \\<script\\>" in lines
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert ["TTFT, mean", "100 ms", "200 ms", "+100 %", "regressed"] in rows
    assert next(row for row in rows if row[0] == "ITL, mean")[-1] == "unchanged"
    assert any(line.strip().startswith("- Refuted if ") for line in lines)


def test_equal_runs_have_no_causes() -> None:
    comparison = compare(Side(1, run(0.1, 0.01)), Side(2, run(0.1, 0.01)))
    assert "most likely" not in comparison_markdown([comparison], [explain_files(comparison)])


def test_words_of_files_stay_words() -> None:
    assert escaped("a\n| b `c` <b>") == "a \\| b \\`c\\` \\<b\\>"
