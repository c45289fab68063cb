"""The built-in measurements: every row reads, times are plausible figures, and the layout survives writing and reading."""

from pathlib import Path

import pytest

from app.catalog.measured import COLUMNS, measurements, read, write
from app.catalog.names import CatalogFault
from app.domain.measurement import Layout, Measurement

SERVED = Measurement(
    id="a1",
    kind="served",
    source="a bench",
    engine="vLLM",
    engine_version="1.0",
    model="owner/Model-8B",
    hardware="Some Device",
    layout=Layout(4, 1, 1, 4, 4),
    weight_dtype="fp8",
    expert_dtype="nvfp4",
    kv_dtype="",
    sequences=64.0,
    prompt_tokens=1024,
    output_tokens=128,
    ttft_s=0.25,
    tpot_s=0.0125,
    flags=("aggregate", "rejected"),
)


def test_a_measurement_survives_writing_and_reading(tmp_path: Path) -> None:
    pools = Measurement(
        **{
            **SERVED.__dict__,
            "id": "a2",
            "kind": "disaggregated",
            "prefill_layout": Layout(2, 2),
            "prefill_workers": 3,
            "ttft_s": None,
            "prompt_tokens": None,
        }
    )
    write(tmp_path / "rows.csv", [SERVED, pools])
    assert read(tmp_path / "rows.csv") == [SERVED, pools]


@pytest.mark.parametrize(("column", "value"), [("layout", ""), ("layout", "2xa"), ("sequences", "many"), ("prompt_tokens", "1.5")])
def test_a_broken_cell_is_named_with_its_line(tmp_path: Path, column: str, value: str) -> None:
    write(tmp_path / "rows.csv", [SERVED])
    head, row = (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()
    cells = row.split(",")
    cells[COLUMNS.index(column)] = value
    (tmp_path / "rows.csv").write_text(f"{head}\n{','.join(cells)}\n", encoding="utf-8")
    with pytest.raises(CatalogFault, match=r"rows\.csv, line 2"):
        read(tmp_path / "rows.csv")


def test_other_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,kind\n1,served\n", encoding="utf-8")
    with pytest.raises(CatalogFault, match="first line"):
        read(tmp_path / "rows.csv")


def test_the_built_in_rows_are_whole() -> None:
    rows = measurements()
    assert len({row.id for row in rows}) == len(rows) > 5000
    assert {row.kind for row in rows} == {"served", "disaggregated", "stream"}
    for row in rows:
        times = [time for time in (row.ttft_s, row.prefill_s, row.tpot_s) if time is not None]
        assert times
        assert all(0 < time < 2000 for time in times), row.id
        assert row.layout.devices >= 1
        assert row.source
