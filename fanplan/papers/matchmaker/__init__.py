"""The experiments of Ge, Ji, Kurose & Towsley (2002), and the signalling that they left open.

A run is the paper's whole experiment: 1,000 networks. So its medians and shares are those of a run.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.matchmaker.figures import matchmaker_items
from fanplan.papers.matchmaker.samples import (
    FULL,
    QUICK,
    MatchmakerSizes,
    matchmaker_settings,
    sample_matchmaker,
)


def matchmaker_study(sizes: MatchmakerSizes, runs: int) -> Study:
    return Study(matchmaker_settings(sizes), tuple(matchmaker_items(sizes)), runs)


EXPERIMENT = Experiment(
    "matchmaker",
    "Ge et al. 2002",
    sample_matchmaker,
    matchmaker_study(FULL, 5),
    matchmaker_study(QUICK, 3),
)
