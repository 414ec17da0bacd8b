"""The experiments of Zhang & Hu (2005), section 5, with our choice of groups beside theirs.

Tables 1 to 4 are published in numbers, each probably of a single run. The figures are pictures.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.hyper.choice import choice
from fanplan.papers.hyper.figures import figures
from fanplan.papers.hyper.samples import sample, settings
from fanplan.papers.hyper.tables import tables


def study(runs: int) -> Study:
    """Tables 1 to 4, Figures 8 to 25, and the choice of groups."""
    return Study(settings(), (*tables(), choice(), *figures()), runs)


EXPERIMENT = Experiment("hyper", "Zhang & Hu 2005", sample, study(200), study(20))
