"""The experiments of Ge, Ji, Kurose & Towsley (2002), and the signalling that they left open.

A run is the paper's whole experiment: 1,000 networks. So its medians and shares are those of a run.
"""

from __future__ import annotations

from itertools import chain

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.matchmaker.cost_figures import distributions
from fanplan.papers.matchmaker.entangled_figure import entangled
from fanplan.papers.matchmaker.examples import worked_examples
from fanplan.papers.matchmaker.growth_figures import growth
from fanplan.papers.matchmaker.samples import sample
from fanplan.papers.matchmaker.settings import FULL, QUICK, TREES, Sizes, settings
from fanplan.papers.matchmaker.signalling_figures import signalling_figures


def study(sizes: Sizes, runs: int) -> Study:
    """Figures 2, 5, 7 and 8 to 13, what sections 4 and 5 say in numbers, and signalling."""
    by_trees = [(*distributions(trees), *growth(sizes, trees)) for trees in TREES]
    items = (*worked_examples(), *chain(*by_trees), entangled(), *signalling_figures())
    return Study(settings(sizes), items, runs)


EXPERIMENT = Experiment("matchmaker", "Ge et al. 2002", sample, study(FULL, 5), study(QUICK, 3))
