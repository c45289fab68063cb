"""Findings in one plain sentence."""

from dataclasses import replace

import pytest

from app.domain.comparison import Side, compare
from app.domain.diagnosis import diagnose_pair
from app.domain.run import Distribution, RequestCounts
from app.services.assessment import Assessment, assess
from app.services.sentences import comparison_sentence, run_sentence, speed
from tests.domain.diagnosis.measured import rows
from tests.services.measured import TEXTBOOK, TEXTBOOK_H100, measured


def said(text: str) -> str:
    return text.replace("\xa0", " ")


def test_a_run_near_its_limit() -> None:
    run = measured()
    assert said(run_sentence(run, assess(run, TEXTBOOK, TEXTBOOK_H100))) == (
        "Decode runs at 68.3 % of the bandwidth floor; prefill at 34.1 % or more of the peak"
    )


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (("ttft_s", "itl_s"), "95.0 ms to the first token, then 6.99 ms for each further one"),
        (("ttft_s",), "95.0 ms to the first token; the file has no time per output token"),
        (("itl_s",), "6.99 ms for each output token; the file has no time to the first"),
        ((), "This file has rates but no latencies of its phases"),
    ],
)
def test_a_run_whose_limit_is_not_known(keys: tuple[str, ...], sentence: str) -> None:
    run = measured(metrics={key: measured().metrics[key] for key in keys})
    assert said(run_sentence(run, Assessment())) == sentence


@pytest.mark.parametrize(("sent", "sentence"), [(20, "No request was completed of 20: there"), (None, "No request was completed: there")])
def test_a_run_without_requests(sent: int | None, sentence: str) -> None:
    run = measured(requests=RequestCounts(sent, 0, sent))
    assert run_sentence(run, Assessment()).startswith(sentence)


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.18, "18.0 % slower"), (3.1, "3.1× slower"), (2.0, "2.0× slower"), (0.71, "29.0 % faster"), (1.0, "0.0 % slower")],
)
def test_a_ratio_of_times_in_words(ratio: float, words: str) -> None:
    assert said(speed(ratio)) == words


def compared(first: float | None, step: float | None, **changes: object) -> str:
    """The founding request against one with these times in seconds."""
    times = {"ttft_s": first, "itl_s": step}
    metrics = {key: Distribution(mean=value, n=100) for key, value in times.items() if value is not None}
    base = replace(measured(), metrics={key: value for key, value in measured().metrics.items() if key != "e2e_s"})
    other = measured(metrics=metrics, **changes)
    return said(comparison_sentence(compare(Side(1, base, {}), Side(2, other, {}))))


def test_what_moved_between_two_runs() -> None:
    step = 1 / 143
    assert compared(0.095, step).startswith("Nothing moved beyond the noise: prefill +0")
    assert compared(0.19, step) == "Prefill got 2.0× slower; decode did not move."
    assert compared(0.095, step * 0.5) == "Decode got 50.0 % faster per token; prefill did not move."
    assert compared(0.19, step * 0.5) == "Prefill got 2.0× slower, decode 50.0 % faster; break-even at 29 output tokens."
    assert compared(0.19, step * 2) == "Prefill got 2.0× slower, decode 2.0× slower."


@pytest.mark.parametrize(
    ("sending_s", "sentence"),
    [
        (None, "The first token got 2.2× slower, at the server or before it: the files do not tell; decode did not move."),
        (0.001, "Prefill got 2.2× slower; decode did not move."),
        (0.151, "The added time lies on the client's side of the server, prefill +115 %, decode +0.0 %."),
    ],
)
def test_a_constant_before_every_first_token_is_the_servers_where_something_says_so(sending_s: float | None, sentence: str) -> None:
    def sent(seconds: float | None) -> dict[str, Distribution]:
        return {} if seconds is None else {"client_send_s": Distribution(mean=seconds)}

    base = rows(**sent(None if sending_s is None else 0.001))
    other = rows(prefill=(0.18, 5e-5), ttft=0.28, **sent(sending_s))
    compared = compare(Side(1, base.runs[0]), Side(2, other.runs[0]))
    assert said(comparison_sentence(compared, diagnose_pair(base, other))) == sentence


def test_what_is_not_known_is_said() -> None:
    assert compared(0.19, None) == "Prefill got 2.0× slower; decode is not known."
    assert compared(None, 0.014).endswith("; prefill is not known.")
    assert compared(None, None) == "Neither run has the latencies of its phases, so nothing can be said about them."


def test_runs_that_may_not_be_compared() -> None:
    assert compared(0.095, 0.007, requests=RequestCounts(5, 0, 5)) == "Not comparable: one of the runs completed no request."
