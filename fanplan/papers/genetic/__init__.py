"""The experiments of Guimarães & Rodrigues (2003), section 5, with our methods as further lines.

The figures are published as pictures only, so what the text says of them is what is checked.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.genetic.figures import (
    figure_8,
    figure_9,
    figure_10,
    figure_11,
    figures_6_and_7,
    ratios,
    table_3,
)
from fanplan.papers.genetic.samples import sample
from fanplan.papers.genetic.search import advice, iterations, table_4
from fanplan.papers.genetic.settings import FULL, QUICK, Sizes, settings


def study(sizes: Sizes, runs: int) -> Study:
    """Tables 1 to 4 and Figures 6 to 11 at these sizes."""
    items = (
        table_3(),
        *figures_6_and_7(sizes),
        ratios(sizes),
        *figure_8(sizes),
        figure_9(sizes),
        *figure_10(sizes),
        *figure_11(sizes),
        *advice(sizes),
        iterations(sizes),
        *table_4(),
    )
    return Study(settings(sizes), items, runs)


EXPERIMENT = Experiment(
    "genetic", "Guimarães & Rodrigues 2003", sample, study(FULL, 5), study(QUICK, 2)
)
