"""What is known about the spread of a metric, and what may be judged."""

import numpy as np

from app.domain.distribution import spread_of
from app.domain.run import Distribution, Flag, Run
from tests.made_up import measured_run, request_samples


def spread(**stats: float):  # type: ignore[no-untyped-def]
    return spread_of(Run(format="generic", metrics={"ttft_s": Distribution(**stats)}), "ttft_s")


def test_without_samples_the_percentiles_that_are_known_are_the_outline() -> None:
    found = spread(p50=0.4, p99=0.9, min=0.3, max=1.4, n=320)
    assert found is not None
    assert [(mark.name, mark.percent) for mark in found.outline] == [("min", 0.0), ("p50", 50.0), ("p99", 99.0), ("max", 100.0)]
    assert (found.hue, found.of_what, found.samples.size) == ("prefill", "requests", 0)


def test_one_figure_alone_is_no_distribution() -> None:
    assert spread(mean=0.4) is None
    assert spread(p50=0.4) is None
    assert spread_of(Run(format="generic"), "ttft_s") is None


def test_a_withheld_metric_is_not_drawn() -> None:
    run = measured_run()
    flagged = Run(format="generic", metrics=run.metrics, flags=(Flag("metric_bug", "…", ("ttft_s",)),))
    assert spread_of(flagged, "ttft_s") is None
    mean_only = Run(format="generic", metrics=run.metrics, flags=(Flag("cold_start_outliers", "…", ("ttft_s.mean",)),))
    assert spread_of(mean_only, "ttft_s") is not None


def test_a_percentile_needs_ten_samples_beyond_it() -> None:
    """Of 200, p95 leaves 10 beyond and p99 two; of 1,000, p99 leaves 10."""
    few, many = spread(p50=0.1, p95=0.2, n=200), spread(p50=0.1, p99=0.2, n=1000)
    assert few is not None
    assert many is not None
    assert not few.rests_on_too_little(95.0)
    assert few.rests_on_too_little(99.0)
    assert not many.rests_on_too_little(99.0)
    unknown = spread(p50=0.1, p99=0.2)
    assert unknown is not None
    assert unknown.rests_on_too_little(50.0)


def test_samples_are_sorted_and_only_of_requests_that_succeeded() -> None:
    samples = request_samples(np.array([0.3, 0.1, np.nan, 0.2]))
    samples.ok[0] = False
    found = spread_of(measured_run(), "ttft_s", samples)
    assert found is not None
    assert found.samples.tolist() == [0.1, 0.2]


def test_each_metric_finds_its_own_samples() -> None:
    samples = request_samples(np.array([0.1, 0.2]))
    run = measured_run(
        tpot_s=Distribution(mean=0.007, p50=0.007), chunk_gap_s=Distribution(p50=0.007, p99=0.008), e2e_s=Distribution(p50=2.2, p99=2.3)
    )
    tpot, gaps, whole = (spread_of(run, key, samples) for key in ("tpot_s", "chunk_gap_s", "e2e_s"))
    assert tpot is not None
    assert gaps is not None
    assert whole is not None
    assert np.allclose(tpot.samples, 0.007)
    assert (gaps.of_what, gaps.samples.size) == ("gaps", 10)
    assert np.allclose(whole.samples, [2.193, 2.293])
    assert (tpot.hue, whole.hue) == ("decode", "rest")


def test_itl_weighs_tokens_so_requests_are_not_its_samples() -> None:
    run = measured_run(itl_s=Distribution(mean=0.007, p50=0.007, p99=0.008, n=59800))
    found = spread_of(run, "itl_s", request_samples(np.array([0.1, 0.2])))
    assert found is not None
    assert found.samples.size == 0


def test_the_finding_quotes_only_what_may_be_judged() -> None:
    """p99 of 320 requests leaves three beyond: the last that counts is p95, 1.4 times the median."""
    found = spread(p50=0.4, p90=0.5, p95=0.55, p99=0.9, n=320)
    assert found is not None
    assert found.finding.replace("\u00a0", " ") == "TTFT: half of 320 requests within 400 ms, 95 % within 550 ms, 1.4× the median."
    unknown = spread(p50=0.4, p95=0.55)
    assert unknown is not None
    assert unknown.finding.replace("\u00a0", " ") == "TTFT: half of an unknown number of requests within 400 ms."
