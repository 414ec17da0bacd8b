"""Tables 1 to 4 of Zhang & Hu (2005): every published cell could be one of our runs."""

from __future__ import annotations

import numpy as np
import pytest
from studies import samples_of

from fanplan.papers.experiment import Samples, judge_statement
from fanplan.papers.hyper import EXPERIMENT
from fanplan.papers.hyper.figures import DOUBTFUL, PUBLISHED, ROWS, published_tables, server_figures
from fanplan.papers.hyper.samples import SCENARIOS, hyper_settings, sample_hyper

RUNS = 24
CELLS = [(metric, way, *row) for metric, way in PUBLISHED for row in ROWS]


@pytest.fixture(scope="module")
def samples() -> Samples:
    return samples_of(hyper_settings(), sample_hyper, *range(RUNS))


def distance(published: float, values: np.ndarray) -> float:
    """In standard deviations of a run: the published numbers are those of one. Printed to three
    digits, or whole.
    """
    rounding = 0.5 if published >= 100 else 0.0005
    off = abs(published - float(values.mean())) - rounding
    return max(0.0, off) / max(float(values.std(ddof=1)), 1e-9)


@pytest.mark.parametrize(("metric", "way", "scenario", "share"), CELLS)
def test_published_cells_are_near(
    samples: Samples, metric: str, way: str, scenario: str, share: int
) -> None:
    published = PUBLISHED[metric, way][ROWS.index((scenario, share))]
    values = samples[scenario, f"{way} {share} {metric}"]
    doubtful = (metric, way, scenario, share) in DOUBTFUL
    assert (distance(published, values) > 3) == doubtful
    if doubtful:
        assert distance(2198, values) < 1


def test_every_point_is_measured_and_statements_hold(samples: Samples) -> None:
    for item in EXPERIMENT.full.items:
        for line in item.lines:
            assert all(len(samples[point.setting, point.key]) == RUNS for point in line.points)
        for statement in item.statements:
            assert judge_statement(item, statement, samples).margin > 0, statement.text


def test_true_saving_is_never_dearer_at_equal_state(samples: Samples) -> None:
    for scenario in SCENARIOS:
        for key in ("nc 10", "nc 20", "fc 10", "fc 20"):
            ours, theirs = (samples[scenario, f"{key} {whose}"] for whose in ("ours", "cost"))
            assert (ours <= theirs + 1e-9).all()


def test_figures_are_numbered_and_average_to_the_tables(samples: Samples) -> None:
    assert [item.name for item in server_figures()] == [f"Figure {n}" for n in range(8, 26)]
    for item in server_figures():
        for line in item.lines:
            means = [samples[point.setting, point.key].mean() for point in line.points]
            assert means == sorted(means)
    servers = [f"hybrid 10 matches of {place}" for place in range(1, 21)]
    mean = np.mean([samples["zipf-uni", key] for key in servers])
    assert mean == pytest.approx(samples["zipf-uni", "hybrid 10 matches"].mean())


def test_tables_have_all_81_cells() -> None:
    assert sum(len(line.points) for item in published_tables() for line in item.lines) == 81
