"""The last gate of every importer."""

from dataclasses import replace

from app.domain.run import Distribution, Rate, RequestCounts, Run, Workload
from app.formats.storable import storable

RUN = Run(
    format="odd",
    metrics={"ttft_s": Distribution(mean=0.1, p99=0.2, n=3), "requests_per_s": Rate(2.0, "aggregate")},
    labels={"dataset": "random"},
    requests=RequestCounts(sent=4, completed=3, failed=1),
    workload=Workload(prompt_tokens_total=2**63 - 1),
)


def test_a_sound_run_is_left_as_it_is() -> None:
    found = storable(RUN)
    assert replace(found, metrics=RUN.metrics) == RUN
    assert found.metrics is RUN.metrics


def test_a_count_beyond_63_bits_is_not_known() -> None:
    found = storable(replace(RUN, requests=RequestCounts(sent=2**63 + 79, completed=2**63 - 1, failed=80)))
    assert found.requests == RequestCounts(sent=None, completed=2**63 - 1, failed=80)
    work = storable(replace(RUN, workload=Workload(prompt_tokens_total=2**63, output_tokens_total=2**70))).workload
    assert (work.prompt_tokens_total, work.output_tokens_total) == (None, None)


def test_figures_that_are_not_finite_are_absent_and_the_others_stay() -> None:
    metrics = {
        "ttft_s": Distribution(mean=float("inf"), p50=0.1, n=3),
        "e2e_s": Distribution(mean=float("nan")),
        "output_tokens_per_s": Rate(float("inf"), "aggregate"),
        "requests_per_s": Rate(2.0, "aggregate"),
    }
    found = storable(replace(RUN, metrics=metrics)).metrics
    assert found == {"ttft_s": Distribution(p50=0.1, n=3), "requests_per_s": Rate(2.0, "aggregate")}


def test_labels_are_text_that_can_be_stored() -> None:
    found = storable(replace(RUN, labels={"rate\ud800": "\x00fast\ud800  lane", "gone": "\ud800"}))
    assert found.labels == {"rate": "fast lane"}
