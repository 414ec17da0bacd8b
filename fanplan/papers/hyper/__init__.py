"""The experiments of Zhang & Hu (2005), section 5, with our choice of groups beside theirs.

Tables 1 to 4 are published in numbers, each probably of a single run. The figures are pictures.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.hyper.figures import figures
from fanplan.papers.hyper.samples import sample, settings
from fanplan.papers.hyper.tables import tables


def study(runs: int) -> Study:
    """Tables 1 to 4 and Figures 8 to 25."""
    return Study(settings(), (*tables(), *figures()), runs)


EXPERIMENT = Experiment("hyper", "Zhang & Hu 2005", sample, study(200), study(20))
