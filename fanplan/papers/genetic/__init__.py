"""The experiments of Guimarães & Rodrigues (2003), section 5, with our methods as further lines.

The figures are published as pictures only, so what the text says of them is what is checked.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.genetic.figures import genetic_items
from fanplan.papers.genetic.samples import sample_genetic
from fanplan.papers.genetic.settings import FULL, QUICK, GeneticSizes, genetic_settings


def genetic_study(sizes: GeneticSizes, runs: int) -> Study:
    return Study(genetic_settings(sizes), tuple(genetic_items(sizes)), runs)


EXPERIMENT = Experiment(
    "genetic",
    "Guimarães & Rodrigues 2003",
    sample_genetic,
    genetic_study(FULL, 5),
    genetic_study(QUICK, 2),
)
