"""Rates of pools over the devices of a role and of all, and which division of devices gives most."""

import re
from dataclasses import replace

import pytest

from app.catalog import load
from app.services.pools import binding_words, per_device, pools_json, splits_of
from app.services.predicting import Answer, Question, answer
from app.services.profiles import catalog_book

BOOK = catalog_book(load())


def asked(**changes: object) -> Answer:
    base = Question("llama-3-1-8b", "h100-sxm5-80gb")
    request = replace(base.request, calibration="default", engine="vllm", prefill_replicas=1, decode_replicas=3, **changes)  # type: ignore[arg-type]
    return answer(BOOK, replace(base, request=request))


def test_a_rate_says_over_which_devices() -> None:
    found = asked(concurrency=96, tp=2, prefill_tp=4)
    pools = found.prediction.pools
    assert pools is not None
    rates = per_device(pools, 2000, 300)
    assert rates is not None
    # 4 devices prefill, 6 decode.
    assert rates["output_tokens_per_s_over_decode"] == pytest.approx(rates["output_tokens_per_s_over_all"] * 10 / 6)
    assert rates["prompt_tokens_per_s_over_prefill"] == pytest.approx(rates["requests_per_s_over_all"] * 10 / 4 * 2000)
    assert rates["requests_per_s_over_all"] * 10 == pools.requests_per_s


def test_the_best_split_is_near_the_balanced_ratio_and_no_other_gives_more() -> None:
    found = asked(concurrency=256)
    splits, pools = splits_of(found), found.prediction.pools
    assert splits is not None
    assert pools is not None
    assert [one.prefill_replicas for one in splits.shown] == list(range(1, 8))
    assert all(one.prefill_replicas + one.decode_replicas == splits.devices == 8 for one in splits.shown)
    assert all(one.clients == 512 for one in splits.shown)
    assert splits.best.requests_per_s_per_device == max(one.requests_per_s_per_device for one in splits.shown)
    ends = [splits.shown[0].prediction.pools, splits.shown[-1].prediction.pools]
    assert [end.binds for end in ends if end is not None] == ["prefill", "decode"]
    assert pools.balanced_ratio is not None
    best = splits.best.prefill_replicas / splits.best.decode_replicas
    assert 0.5 < best / pools.balanced_ratio < 2.0
    # As the constants stand, a pool of either kind keeps up with about one of the other.
    assert pools.balanced_ratio == pytest.approx(1.0, rel=0.25)
    words = binding_words(pools)
    assert words.startswith("the prefill pool sets the pace; both keep up alike at ")
    told = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", words)]
    assert told[0] / told[1] == pytest.approx(pools.balanced_ratio, rel=0.01)


def test_devices_that_do_not_divide_evenly_are_left_over() -> None:
    splits = splits_of(asked(concurrency=64, tp=2))
    assert splits is not None
    assert all(one.devices <= splits.devices for one in splits.shown)
    assert all(one.devices == 2 * (one.prefill_replicas + one.decode_replicas) for one in splits.shown)


def test_without_clients_there_is_no_rate_and_nothing_to_divide() -> None:
    told = pools_json(asked())
    assert told is not None
    assert (told["per_device"], told["splits"], told["binds"], told["requests_per_s"]) == (None, None, None, None)
    assert told["first_gap_s"] > told["transfer"]["time_s"] > 0
    alone = asked()
    assert pools_json(replace(alone, prediction=replace(alone.prediction, pools=None))) is None
