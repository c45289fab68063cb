"""Fits: the arrays give what the domain predicts, derivatives are right, and constants that made synthetic rows are found again."""

from dataclasses import replace

import numpy as np
import pytest

from app.catalog import load
from app.catalog.measured import measurements
from app.domain.engine import EngineProfile
from app.domain.serving import predict
from benchmarks.asked import Asked, ask
from benchmarks.fitting.bands import Bands, band
from benchmarks.fitting.fits import SERVED as SETTINGS
from benchmarks.fitting.fits import Fit, holds_start_up, model_of
from benchmarks.fitting.parameters import SERVED, STREAM
from benchmarks.fitting.profiles import figures, groups
from benchmarks.fitting.served import ServedRows
from benchmarks.fitting.solve import Level, Settings, solve
from benchmarks.fitting.stream import StreamRows

VALUES = {"served": np.exp(SERVED.guesses), "stream": np.exp(STREAM.guesses)}


def rows(kind: str, count: int, engines: tuple[str, ...]) -> list[Asked]:
    """Some built-in rows, spread over the table."""
    catalog = load()
    mine = [row for row in measurements() if row.kind == kind and row.engine in engines]
    found = (ask(row, catalog, lambda name: None) for row in mine[:: max(len(mine) // count, 1)])
    return [one for one in found if isinstance(one, Asked)]


SERVED_ROWS = rows("served", 40, ("vLLM", "SGLang", "TensorRT-LLM"))
STREAM_ROWS = rows("stream", 40, ("llama.cpp", "gpt-fast (PyTorch)", "OpenVINO"))


def profile(asked: Asked, stream: bool) -> EngineProfile:
    """The constants as an engine profile, by the keys that the catalog would have."""
    names, values = (STREAM.names, VALUES["stream"]) if stream else (SERVED.names, VALUES["served"])
    found = figures(names, values, stream)
    times = {f"{key.removesuffix('_us')}_s": value / 1e6 for key, value in found.items() if key.endswith("_us")}
    others = {key: value for key, value in found.items() if not key.endswith("_us")}
    assert asked.profile is not None
    return EngineProfile("x", "X", schedule=asked.profile.schedule, **times, **others)


def test_served_arrays_are_what_the_domain_predicts() -> None:
    found = ServedRows.of(SERVED_ROWS).predict(np.tile(VALUES["served"], (len(SERVED_ROWS), 1)))
    for one, (itl, ttft) in zip(SERVED_ROWS, found, strict=True):
        prediction = predict(one.architecture, one.hardware, one.request, engine=profile(one, stream=False))
        assert itl == pytest.approx(prediction.itl_s, rel=1e-9)
        assert ttft == pytest.approx(prediction.ttft_s, rel=1e-9)


def test_stream_arrays_are_what_the_domain_predicts() -> None:
    found = StreamRows.of(STREAM_ROWS).predict(np.tile(VALUES["stream"], (len(STREAM_ROWS), 1)))[:, 0]
    for one, time in zip(STREAM_ROWS, found, strict=True):
        prediction = predict(one.architecture, one.hardware, one.request, engine=profile(one, stream=True))
        row = one.measurement
        expected = prediction.itl_s if row.tpot_s is not None else prediction.ttft_s if row.ttft_s else prediction.prefill.time_s
        assert time == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", ["served", "stream"])
def test_derivatives(kind: str) -> None:
    made = ServedRows.of(SERVED_ROWS) if kind == "served" else StreamRows.of(STREAM_ROWS)
    values = np.tile(VALUES[kind] * 1.07, (len(made.asked), 1))
    base, slopes = made.derivatives(values)
    for place, name in enumerate(made.parameters.names):
        moved = values.copy()
        moved[:, place] *= 1 + 1e-6
        by_difference = (made.predict(moved) - base) / (values[:, place] * 1e-6)[:, None]
        scale = values[:, [place]] / base
        np.testing.assert_allclose(slopes[:, :, place] * scale, by_difference * scale, atol=1e-4, err_msg=name)


def test_known_constants_are_found_again() -> None:
    made = StreamRows.of(STREAM_ROWS)
    truth = VALUES["stream"].copy()
    truth[STREAM.index("unpack")] *= 2.0
    truth[STREAM.index("e")] *= 0.6
    truth[STREAM.index("least")] *= 1.5
    rows_ = replace(made, measured=made.predict(np.tile(truth, (len(made.asked), 1))))
    found = solve(rows_, rows_.asked, Settings((0.07,), (), 40))
    error = rows_.predict(found.values(rows_.asked)) / rows_.measured - 1
    assert np.abs(error).max() < 0.02
    assert found.values(rows_.asked)[0, STREAM.index("unpack")] == pytest.approx(truth[STREAM.index("unpack")], rel=0.1)


def test_wild_rows_pull_little_and_unseen_groups_stay_with_the_level_above() -> None:
    made = StreamRows.of(STREAM_ROWS)
    measured = made.predict(np.tile(VALUES["stream"], (len(made.asked), 1)))
    measured[::9] *= 20.0
    settings = Settings((0.07,), (Level(lambda one: one.engine, 0.5),), 25)
    found = solve(replace(made, measured=measured), made.asked, settings)
    calm = np.ones(len(measured), dtype=bool)
    calm[::9] = False
    error = made.predict(found.values(made.asked))[calm] / measured[calm] - 1
    assert np.median(np.abs(error)) < 0.03
    stranger = replace(STREAM_ROWS[0], engine="never seen")
    np.testing.assert_allclose(found.logarithms([stranger])[0], found.terms[0][0])


@pytest.mark.parametrize("kind", ["served", "stream"])
def test_a_fit_that_leaves_rows_out_learns_nothing_of_them(kind: str) -> None:
    made = ServedRows.of(SERVED_ROWS) if kind == "served" else StreamRows.of(STREAM_ROWS)
    model = model_of(made.asked[0])
    mine = np.array([model_of(one) == model for one in made.asked])
    wild = made.measured * np.where(mine, 7.0, 1.0)[:, None]
    settings = Settings((0.07,) * made.measured.shape[1], (Level(lambda one: one.engine, 0.5),), 5)
    weights = np.ones_like(made.measured)
    calm, moved = (
        Fit.of(replace(made, measured=measured), settings, weights).left_out(model_of)[mine] for measured in (made.measured, wild)
    )
    np.testing.assert_array_equal(calm, moved)


def test_bands() -> None:
    ratios = np.linspace(0.8, 1.2, 101)
    # the 3 % and 97 % quantiles of an even spread, to three digits; too few rows; rows that are all exact
    assert band(ratios) == (0.812, 1.19)
    assert band(ratios[:3]) == (0.5, 2.0)
    low, high = band(np.full(50, 1.0))
    assert low < 1 < high


def test_a_model_is_held_against_the_band_of_the_others() -> None:
    made = ServedRows.of([one for one in SERVED_ROWS if one.experts])
    predicted = np.where(np.isfinite(made.measured), made.measured, 1.0)
    models = [model_of(one) for one in made.asked]
    mine = np.array([model == models[0] for model in models])
    assert 12 <= (~mine).sum() < len(models)
    # All others are predicted exactly, so their band is 3 % around 1; this model's times are 10 % longer than predicted.
    predicted[mine] /= 1.1
    inside = Bands(Fit(made, SETTINGS, predicted, None), predicted).held(0, np.ones(len(models), dtype=bool))  # type: ignore[arg-type]
    assert inside.tolist() == (~mine).tolist()


def test_constants_of_an_entry_fall_back_to_the_class_of_models() -> None:
    found = [(group.conditions, len(group.places)) for group in groups(SERVED_ROWS, "vllm", stream=False)]
    narrow = [(conditions, rows) for conditions, rows in found if "weights" in conditions]
    wide = [(conditions, rows) for conditions, rows in found if "weights" not in conditions]
    assert found == narrow + wide
    assert [conditions for conditions, _ in wide] in ([{"experts": True}, {"experts": False}], [{"experts": False}, {"experts": True}])
    for conditions, rows in wide:
        assert rows == sum(mine for other, mine in narrow if other["experts"] == conditions["experts"])


def test_a_ttft_that_holds_the_start_is_not_fitted() -> None:
    row = next(one for one in SERVED_ROWS)
    loads = {
        clients: replace(row, measurement=replace(row.measurement, sequences=clients, ttft_s=ttft))
        for clients, ttft in ((8.0, 0.9), (16.0, 0.4), (32.0, 0.5))
    }
    assert holds_start_up(list(loads.values())).tolist() == [True, False, False]
