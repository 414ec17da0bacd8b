"""The experiments of Zhang & Hu (2005), section 5, with our choice of groups beside theirs.

Tables 1 to 4 are published in numbers, each probably of a single run. The figures are pictures.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.hyper.figures import hyper_items
from fanplan.papers.hyper.samples import hyper_settings, sample_hyper

EXPERIMENT = Experiment(
    "hyper",
    "Zhang & Hu 2005",
    sample_hyper,
    Study(hyper_settings(), hyper_items(), runs=200),
    Study(hyper_settings(), hyper_items(), runs=20),
)
