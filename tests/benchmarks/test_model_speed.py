"""The benchmark of the cost model runs and its figures are of the right order; the targets themselves are judged by its own run."""

from benchmarks.model_speed import heatmap_200x200_s, import_domain_s, predictions_per_s, simulations_per_s


def test_figures_are_of_the_right_order_even_on_a_busy_machine() -> None:
    assert predictions_per_s() > 100_000
    assert simulations_per_s() > 0
    assert 0 < heatmap_200x200_s() < 1
    assert 0 < import_domain_s() < 3
