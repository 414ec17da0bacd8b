"""The experiments of Bickson et al. (2010), sections 4 and 5, with kmodes as one more line.

The curves are published as pictures only, so what the text says of them is what is checked.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.hybrid.figures import hybrid_items
from fanplan.papers.hybrid.samples import FULL, QUICK, HybridSizes, hybrid_settings, sample_hybrid


def hybrid_study(sizes: HybridSizes, runs: int) -> Study:
    return Study(hybrid_settings(sizes), hybrid_items(sizes), runs)


EXPERIMENT = Experiment(
    "hybrid", "Bickson et al. 2010", sample_hybrid, hybrid_study(FULL, 5), hybrid_study(QUICK, 3)
)
