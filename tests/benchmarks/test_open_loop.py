"""The closed form of open loops against the simulator: one deployment, and the loads that are left out."""

from dataclasses import replace

import pytest

from app.catalog import load
from benchmarks import open_loop
from benchmarks.open_loop import DEPLOYMENTS, row


def test_a_load_is_priced_as_it_comes_and_as_clients_beside_it() -> None:
    catalog = load()
    found = row(catalog, DEPLOYMENTS[0], "tensorrt-llm", 1.0, 2.0)
    assert found is not None
    assert abs(found.ttft) < 0.2
    assert abs(found.itl) < 0.2
    # Equal clients of such an engine would leave one of them over for a whole answer.
    assert found.as_closed_ttft > 1.0


def test_a_rate_that_is_not_kept_up_with_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_loop, "REQUESTS", 400)
    short = replace(DEPLOYMENTS[0], rates=(1000.0,))
    assert row(load(), short, "vllm", 1.0, short.rates[0]) is None
