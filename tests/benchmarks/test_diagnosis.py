"""Synthetic pairs with one known change: drawn as the seed says, handed over as tools do, judged by what was done."""

from dataclasses import replace

import numpy as np
import pytest

from app.catalog import load
from app.domain.simulation import Simulator
from benchmarks.diagnosis import Answer, answer, as_markdown, figures, groups, tools_of
from benchmarks.report import Report
from benchmarks.synthetic.deployment import serve
from benchmarks.synthetic.handing import TOOLS
from benchmarks.synthetic.kinds import KINDS, world
from benchmarks.synthetic.pairs import draw
from benchmarks.synthetic.stream import QUIET, Noise

KIND = {kind.name: kind for kind in KINDS}


def said(
    kind: str, cause: str | None, said_cause: str, between: tuple[str, ...] = (), phases: tuple[str, str] = ("decode", "decode")
) -> Answer:
    return Answer(kind, "client", cause, phases[0], said_cause, phases[1], between, (said_cause,), 1)


def test_there_are_twenty_kinds_and_more_each_with_every_kind_of_tools() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 20
    met = {(KINDS[index % len(KINDS)].name, tools_of(index)) for index in range(len(TOOLS) * len(KINDS))}
    assert len(met) == len(set(TOOLS)) * len(KINDS)


def test_a_watched_stream_without_noise_is_the_simulators_own() -> None:
    drawn = world(load(), np.random.default_rng(3), clients=(4,))
    deployment = replace(drawn, engine=replace(drawn.engine, admission_steps=None, admission_running_power=None, variants=()))
    stream = serve(deployment, QUIET, np.random.default_rng(0)).stream
    simulated = Simulator.of(
        deployment.model.architecture, deployment.hardware, deployment.request, engine=deployment.engine, schedule=deployment.schedule
    ).run(deployment.load, "plain")
    firsts = np.array([times[0] for times in stream.deliveries_s])
    ends = np.array([times[-1] for times in stream.deliveries_s])
    np.testing.assert_allclose(firsts, simulated.timeline.first_s, rtol=1e-9)
    np.testing.assert_allclose(ends, simulated.timeline.finished_s, rtol=1e-9)
    assert [times.size for times in stream.deliveries_s] == simulated.timeline.output_tokens.tolist()


def test_a_pair_is_the_same_for_the_same_seed_and_says_nothing_of_what_was_done() -> None:
    first, again = (draw(load(), KIND["graphs_off"], "client", 11, Noise()) for _ in range(2))
    assert first.other.metrics == again.other.metrics
    assert first.other.labels == {}
    assert first.other.samples is not None


# Pairs whose phases move well past the noise of their runs: drawn is also what moves by less than a run tells, such as TTFT by 2 %.
@pytest.mark.parametrize(
    ("kind", "seed", "phase"),
    [
        ("no_change", 5, "none"),
        ("graphs_off", 1, "both"),
        ("graphs_off", 5, "decode"),
        ("graphs_off", 4, "decode"),
        ("weights_wider", 2, "both"),
    ],
)
def test_a_pair_whose_settings_are_told_is_diagnosed(kind: str, seed: int, phase: str) -> None:
    found = answer(draw(load(), KIND[kind], "server", seed, Noise()))
    assert found.phase == phase
    assert found.right
    assert found.phase_right


def test_figures_are_strict_and_what_is_rightly_undetermined_stands_beside_them() -> None:
    found = [
        said("a", "preemption", "preemption"),
        said("a", "preemption", "kv_capacity", ("kv_capacity", "preemption")),
        said("b", "power_cap", "prefill_kernel", phases=("prefill", "queue")),
        said("c", None, "nothing", phases=("none", "none")),
    ]
    counted = figures(found)
    assert counted["first_cause_right"] == 0.5
    assert counted["right_or_rightly_undetermined"] == 0.75
    assert counted["phase_right"] == 0.75
    assert (counted["pairs"], counted["kinds"]) == (4, 3)
    rows = {next(iter(row["by"].items())): row for row in groups(found)}  # type: ignore[attr-defined]
    assert rows["kind", "a"]["said"] == {"preemption": 1, "kv_capacity": 1}
    assert rows["kind", "b"]["phases"] == {"prefill → queue": 1}


def test_the_table_names_what_was_said_instead() -> None:
    found = [said("graphs_off", "eager_mode", "eager_mode"), said("graphs_off", "eager_mode", "decode_kernel")]
    table = as_markdown(Report(figures(found), groups(found), {}))
    assert table.splitlines()[-1] == "| graphs off | 2 | 1 | 0 | 2 | decode_kernel 1 |"
