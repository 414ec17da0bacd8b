"""The experiments of Tajuddin (2011), chapters 4 to 6, with our trees and allocations as lines.

Table 5.2 is published in numbers. The figures are pictures only, so what the text says of them is
what is checked.
"""

from __future__ import annotations

from fanplan.papers.experiment import Experiment, Study
from fanplan.papers.overlay.client_figures import client_items
from fanplan.papers.overlay.examples import topology_examples
from fanplan.papers.overlay.samples import sample_overlay
from fanplan.papers.overlay.settings import FULL, QUICK, OverlaySizes, overlay_settings
from fanplan.papers.overlay.tree_figures import tree_items


def overlay_study(sizes: OverlaySizes, runs: int) -> Study:
    """The worked examples, Table 5.2 and Figures 5.3 to 6.8 at these sizes."""
    items = (*topology_examples(), *tree_items(sizes), *client_items(sizes))
    return Study(overlay_settings(sizes), items, runs)


EXPERIMENT = Experiment(
    "overlay", "Tajuddin 2011", sample_overlay, overlay_study(FULL, 5), overlay_study(QUICK, 2)
)
