"""A TPOT that is whole time / output tokens is told from one that is not."""

import pytest

from app.domain.checks import data_flags
from app.domain.run import Distribution, Run, Workload


@pytest.mark.parametrize(
    ("tpot_s", "told"),
    [
        (0.030, True),  # 6.03 s / 201 tokens
        (0.03003, True),  # as a file rounds it
        (0.02525, False),  # (6.03 - 0.98) s / 200, the definition
        (0.0302, False),  # requests of unlike lengths: near, and neither
        (0.0280, False),
    ],
)
def test_only_the_quotient_itself_is_told(tpot_s: float, told: bool) -> None:
    metrics = {"ttft_s": Distribution(mean=0.98), "e2e_s": Distribution(mean=6.03), "tpot_s": Distribution(mean=tpot_s)}
    flags = {flag.flag: flag for flag in data_flags(Run("x", workload=Workload(output_tokens_mean=201.0), metrics=metrics))}
    assert ("tpot_includes_first_token" in flags) is told
    if told:
        assert "tpot_s" in flags["tpot_includes_first_token"].withholds
        assert flags["tpot_includes_first_token"].figures["tpot_without_first_s"] == pytest.approx(0.02525)
