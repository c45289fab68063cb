"""The simulator against measurements: which rows are taken, and the medians of a group by hand."""

from collections import Counter

import pytest

from app.catalog.measured import measurements
from benchmarks.fit import questions
from benchmarks.simulated import Row, chosen, group, rows


def test_a_few_rows_of_each_deployment_are_taken_the_same_each_time() -> None:
    asked = questions([one for one in measurements() if one.kind == "served"][:400])
    found = chosen(asked, each=3)
    assert found == chosen(asked, each=3)
    assert max(Counter((one.engine, one.hardware.slug, one.measurement.model, one.weights) for one in found).values()) == 3
    assert all(one.profile is not None and one.request.prefill_replicas is None for one in found)


def test_a_row_is_simulated_beside_the_closed_form() -> None:
    one = next(one for one in chosen(questions(measurements()), each=40) if one.request.concurrency == 1)
    (found,) = rows([one])
    # A lone client has no queue: both say the same.
    assert found.ttft == pytest.approx(found.closed_ttft, rel=0.05, abs=0.01)
    assert found.itl == pytest.approx(found.closed_itl, rel=0.05, abs=0.01)


def test_medians_and_their_bias_are_in_percent() -> None:
    one = next(iter(chosen(questions([one for one in measurements() if one.kind == "served"][:50]), each=1)))
    found = group("three", [Row(one, error, -error, 0.0, error / 2) for error in (0.1, -0.3, 0.2)])
    assert (found["n"], found["ttft_median_ape"], found["ttft_bias"]) == (3, 20.0, 10.0)
    assert (found["itl_median_ape"], found["itl_bias"]) == (20.0, -10.0)
    assert (found["closed_ttft_median_ape"], found["closed_itl_bias"]) == (0.0, 5.0)
