"""The founding ideas where a reader meets them: each claim's figures on its page. The sums are in tests/domain/test_founding.py."""

from collections.abc import Callable

import pytest

from app.domain.quantity import NBSP, seconds
from tests.pages import markup
from tests.pages.conftest import Site

Words = Callable[[str], str]
HUNDRED_THOUSAND = "/predict?prompt_tokens=100000&output_tokens=50"


@pytest.mark.parametrize(
    ("row", "address", "figures"),
    [
        # 1: 2,000 x 4,096 once against 1 x 4,096 three hundred times
        (1, "/predict", ("2,000 × 4,096, once", "1 × 4,096, for 300 tokens in sequence")),
        # 2: 2 x 8e9 = 16 GFLOP a token, x 2,000 = 32 TFLOP; divided by 4.2e14 on Home
        (2, "/predict", ("Arithmetic 32.0 TFLOP 16.0 GFLOP", "2 × 8 billion × 2,000 and × 1")),
        (2, "/", ("32.0 TFLOP ÷ 420 TFLOP/s",)),
        # 3: 8e9 x 2 bytes
        (3, "/predict", ("Bytes moved 16.0 GB 16.0 GB 8 billion weights at 2 bytes, crossing once a pass",)),
        # 4: 3.2e13 / 4.2e14 = 76.2 ms, 1.6e10 / 3.35e12 = 4.78 ms, 76.2 / 4.78 = 15.95
        (4, "/", ("Prefill compute-bound 76.2 ms", "Memory would need 4.78 ms: 16 times less.", "prefill 5.1 %")),
        (4, "/predict", ("arithmetic, by 16×", "Prefill, predicted 2,000 420 TFLOP/s compute-bound")),
        # 5: 1.6e10 / 4.2e14 = 38.1 us against 4.78 ms: 125 x, the arithmetic waits 99.2 % of the step
        (5, "/", ("Decode bandwidth-bound 4.78 ms", "16.0 GB ÷ 3.35 TB/s", "Arithmetic needs 38.1 µs.")),
        (
            5,
            "/predict",
            ("memory, by 125×; the arithmetic waits 99.2 % of the step", "Decode, predicted 1.00 3.35 TFLOP/s bandwidth-bound"),
        ),
        # 6: work per byte is the token count; 4.2e14 / 3.35e12 = 125.4, 9.89e14 / 3.35e12 = 295
        (6, "/predict", ("Work per byte 2,000 FLOP/byte 1 FLOP/byte", "the ridge is at 125 achieved, 295 by specification")),
        (6, "/", ("Ridge, achieved 125", "Ridge, specification 295")),
        # 7: 1 / 4.776 ms = 209.4; 143 of it is 68.3 %
        (7, "run", ("Decode runs at 68.3 % of the bandwidth floor", "143 tokens/s at most 209 tokens/s", "68.3 % of the bandwidth (MBU)")),
        # 8: 95 ms + 299 / 143 s = 2.19 s; 95 / 2,186 = 4.3 %
        (8, "run", ("2.19 s 95.0 ms + 299 × 6.99 ms", "prefill 4.3 %, decode 95.7 %")),
        # 9: 2,000 / 95 ms = 21,053 tokens/s, / 143 = 147
        (9, "run", ("21,100 tokens/s in prefill and 143 tokens/s in decode, both per request: 147×",)),
        (9, "/glossary", ("2,000 in 95 ms is 21,100 tokens/s, 143 tokens/s in decode is 147 times less",)),
        # 12: 2 x 8e9 x 1e5 / 4.2e14 = 3.81 s; with 2.62 PFLOP of attention 10.05 s; 49 x 4.776 ms = 234 ms
        (12, HUNDRED_THOUSAND, ("3.81 s, 94.2 %", "49 × 4.78 ms = 234 ms, 5.8 %", "10.1 s with it")),
        # 14: 32 x 38.1 us = 1.22 ms of arithmetic against the same 4.78 ms
        (14, "/predict?batch=32", ("Arithmetic alone 2.44 s 1.22 ms", "Memory alone 4.78 ms 4.78 ms")),
        (14, "/predict?batch=32", ("209 tokens/s per request", "6,700 tokens/s aggregate")),
        # 15: 2 x 32 layers x 8 heads x 128 x 2 bytes x 2,150 positions = 282 MB, 1.8 % of 16 GB
        (15, "/predict", ("first 4.78 ms, last 4.78 ms: 2,150 positions leave 282 MB of KV cache, 1.8 % of the weights",)),
    ],
)
def test_a_founding_claim_is_on_its_page(site: Site, words: Words, row: int, address: str, figures: tuple[str, ...]) -> None:
    shown = words(f"/runs/{site.founding}" if address == "run" else address)
    assert [figure for figure in figures if figure not in shown] == [], f"row {row}"


@pytest.mark.parametrize("page", ["/predict", "run"])
def test_the_two_phases_stand_side_by_side_on_predict_and_on_each_run(site: Site, words: Words, page: str) -> None:
    """Row 19: shape of the pass, FLOPs, bytes, work per byte, bound, metric, growth, batching, levers."""
    shown = words(f"/runs/{site.founding}" if page == "run" else page)
    for title in (
        "Shape of the pass",
        "Arithmetic",
        "Bytes moved",
        "Work per byte",
        "Limited by",
        "Makes",
        "Gains from batching",
        "Levers",
    ):
        assert f" {title} " in shown
    assert "time to first token, 76.2 ms inter-token latency, 4.78 ms" in shown
    assert "Grows with prompt length output length, and context" in shown
    assert "Gains from batching nothing: the arithmetic units are busy most: one read serves the batch" in shown


def test_where_both_phases_meet_the_same_limit_the_table_says_so(words: Words) -> None:
    """512 sequences carry 512 FLOP/byte, right of the ridge: decode is compute-bound too and batching gives it no more."""
    shown = words("/predict?batch=512")
    assert shown.count("nothing: the arithmetic units are busy") == 2
    assert "decode compute-bound at 512" in shown
    few = words("/predict?prompt_tokens=16")
    assert few.count("most: one read serves the batch") == 2


def test_every_rate_says_whose_it_is(site: Site, words: Words) -> None:
    """Row 18, on the pages that show rates: the scope stands in the words beside the number."""
    run = words(f"/runs/{site.founding}")
    assert "Decode, per request 143 tokens/s" in run
    assert "Output, aggregate 137 tokens/s" in run
    assert "Output throughput 137 tokens/s aggregate" in run
    assert "Prefill rate 21,100 tokens/s request" in run
    compared = words(f"/compare?base={site.bf16}&other={site.int4}")
    assert "Decode rate , per request" in compared
    assert "Output throughput , aggregate" in compared
    assert "Output, tokens/s aggregate" in words("/runs")


@pytest.mark.parametrize(
    ("preset", "figures"),
    [
        ("Founding case", ("76.2 ms + 299 × 4.78 ms",)),
        # 16 x 2,000 tokens: 16 x 76.19 ms = 1.22 s
        ("32 k prompt", ("32,000 × 4,096, once", "1.22 s + 299 × 4.78 ms")),
        ("100 k prompt, 50 tokens", ("3.81 s + 49 × 4.78 ms",)),
        ("Batch of 32", ("2.44 s + 299 × 4.78 ms",)),
        # 8 GB / 3.35 TB/s = 2.39 ms; arithmetic the same
        ("Half the bytes", ("76.2 ms + 299 × 2.39 ms", "8 billion weights at 1 byte, crossing once a pass")),
        # each card half of both: 38.1 ms and 2.39 ms
        ("Two cards", ("38.1 ms + 299 × 2.39 ms", "8 billion weights at 2 bytes ÷ 2 devices")),
    ],
)
def test_each_preset_is_one_link_away(site: Site, words: Words, preset: str, figures: tuple[str, ...]) -> None:
    links = {link.words: link.attributes["href"] for link in markup.read(site.client.get("/predict").text).all("a")}
    shown = words(links[preset])
    assert [figure for figure in figures if figure not in shown] == []


def test_a_preset_keeps_model_device_and_mode(site: Site) -> None:
    chosen = "model=llama-3-1-8b&hardware=h100-sxm5-80gb"
    page = markup.read(site.client.get(f"/predict?{chosen}&prompt_tokens=7&calibration=default").text)
    links = {link.words: link.attributes["href"] for link in page.all("a")}
    assert links["Batch of 32"] == f"/predict?{chosen}&batch=32&calibration=default"


def test_the_comparison_says_which_phase_moved(site: Site, words: Words) -> None:
    """Row 20, on the sample pair: TTFT 78.2 -> 204 ms is 2.6 times, ITL 7.52 -> 5.12 ms is 31.9 % less."""
    shown = words(f"/compare?base={site.bf16}&other={site.int4}")
    assert "Prefill got 2.6× slower, decode 31.9 % faster; break-even at 54 output tokens" in shown
    assert "Comparable." in shown
    assert "Weights bf16 int4" in shown


def test_the_json_beside_a_page_has_the_same_numbers(site: Site) -> None:
    for address in ("/predict", HUNDRED_THOUSAND, "/predict?model=llama-3-1-8b&hardware=h100-sxm5-80gb&calibration=default"):
        page = markup.read(site.client.get(address).text)
        link = next(element.attributes["href"] for element in page.all("a") if element.words == "JSON")
        answer = site.client.get(link)
        assert answer.status_code == 200
        prediction = answer.json()
        shown = [element.words for element in page.all("b")]
        assert shown[0] == _seconds(prediction["ttft_s"])
        assert shown[1] == _seconds(prediction["itl_s"])


def _seconds(value: float) -> str:
    return seconds(value).replace(NBSP, " ")
