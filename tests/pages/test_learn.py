"""/learn: the founding figures in words, and a chapter for every cause."""

from collections.abc import Callable

import pytest

from app.domain.diagnosis.vocabulary import CAUSES
from app.pages.learn import CHAPTER_OF_CAUSE, CHAPTERS
from tests.pages.conftest import Site

Words = Callable[[str], str]


@pytest.mark.parametrize(
    "figures",
    [
        # 3.2e13 / 4.2e14, 1.6e10 / 3.35e12, and 76.2 ms + 299 x 4.776 ms
        "76.2 ms to the first token, then 4.78 ms for each of the 299 further ones",
        "= 1.50 s, of which prefill is 5.1 %",
        # 1e5 x 1.6e10 / 4.2e14 = 3.81 s; 49 x 4.776 ms = 0.234 s
        "prefill takes 3.81 s and all of decode 234 ms",
        # 4.2e14 / 3.35e12 and 9.89e14 / 3.35e12
        "here 125 FLOP/byte at achieved rates, 295 FLOP/byte by specification",
        # 4.776 / 1.5
        "from 4.78 ms to 3.18 ms and leaves prefill at 76.2 ms",
        # 32 x 38.1 us under 4.78 ms; 32 / 4.776 ms
        "1.22 ms of arithmetic under the same 4.78 ms of reading, 6,700 tokens/s aggregate",
        # rows 11 and 15 of the founding ideas
        "3.3 % at 2,000, 52.4 % at 32,000",
        "282 MB of cache in the middle of the answer",
        # 2,000 / 95 ms = 21,053; / 143 = 147
        "is 21,100 tokens/s; the same request then decodes at 143 tokens/s, 147×",
        "= 2.19 s",
        # the tables beside the first and the third chapter: 3.81 + 0.234 s, 4.776 / 1.5, 4.776 / 4
        "Total 1.50 s 4.04 s Prefill’s share 5.1 % 94.2 %",
        "1.5 times the bandwidth 76.2 ms 3.18 ms weights of 4 bit 76.2 ms 1.19 ms",
    ],
)
def test_each_figure_is_the_founding_texts(words: Words, figures: str) -> None:
    assert figures in words("/learn")


def test_the_pass_of_the_second_chapter_carries_what_was_asked(words: Words) -> None:
    """At 2,000 tokens the arithmetic is the larger bill; at 32 the reads are, and 25.5 % of the pass has arithmetic to do."""
    assert "The pass takes 76.2 ms the larger of 4.78 ms and 76.2 ms" in words("/learn?tokens=2000")
    assert "Arithmetic busy 25.5 % of the pass" in words("/learn")


@pytest.mark.parametrize("tokens", ["0", "-1", "ten", "10001", "1e3", "９"])
def test_a_pass_that_cannot_be_is_refused_and_the_page_is_there(site: Site, tokens: str) -> None:
    answer = site.client.get("/learn", params={"tokens": tokens})
    assert answer.status_code == 422
    assert "a whole number from 1 to 10,000" in answer.text


def test_every_cause_has_a_chapter() -> None:
    assert set(CHAPTER_OF_CAUSE) == set(CAUSES)
    assert set(CHAPTER_OF_CAUSE.values()) <= {anchor for anchor, _ in CHAPTERS}
