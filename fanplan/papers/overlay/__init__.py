"""The experiments of Tajuddin (2011), chapters 4 to 6, with our trees and allocations as lines.

Table 5.2 is published in numbers. The figures are pictures only, so what the text says of them is
what is checked.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.overlay.client_figures import figures_6
from fanplan.papers.overlay.factor_figure import figure_6_8
from fanplan.papers.overlay.hybrid_table import table_5_2
from fanplan.papers.overlay.samples import sample
from fanplan.papers.overlay.settings import FULL, QUICK, Sizes, settings
from fanplan.papers.overlay.tree_figures import (
    figure_5_3,
    figure_5_5,
    figure_5_6,
    worked_examples,
)


def study(sizes: Sizes, runs: int) -> Study:
    """The worked examples, Table 5.2 and Figures 5.3 to 6.8 at these sizes."""
    items = (
        *worked_examples(),
        *figure_5_3(sizes),
        *figure_5_5(sizes),
        *figure_5_6(sizes),
        *table_5_2(),
        *figures_6(sizes),
        *figure_6_8(sizes),
    )
    return Study(settings(sizes), items, runs)


EXPERIMENT = Experiment("overlay", "Tajuddin 2011", sample, study(FULL, 5), study(QUICK, 2))
