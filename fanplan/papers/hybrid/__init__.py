"""The experiments of Bickson et al. (2010), sections 4 and 5, with kmodes as one more line.

The curves are published as pictures only, so what the text says of them is what is checked.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.hybrid.multicast_figures import figure_4, section_4, table_1
from fanplan.papers.hybrid.samples import sample
from fanplan.papers.hybrid.settings import FULL, QUICK, Sizes, settings
from fanplan.papers.hybrid.unicast_figures import figure_5, figure_6, figure_7, figure_8, figure_9


def study(sizes: Sizes, runs: int) -> Study:
    """Table 1, section 4.2 and Figures 4 to 9 at these sizes."""
    items = (table_1(sizes), section_4(), figure_4(sizes), figure_5(), figure_6())
    return Study(
        settings(sizes), (*items, *figure_7(len(sizes.scales)), figure_8(), figure_9()), runs
    )


EXPERIMENT = Experiment("hybrid", "Bickson et al. 2010", sample, study(FULL, 5), study(QUICK, 3))
