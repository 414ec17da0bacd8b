"""The marking protocol at work while clients of a stored plan come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.marking.params import OVERLAY
from fanplan.layers.marking.problem.dataset import load_network
from fanplan.layers.marking.problem.marking import MarkedNetwork
from fanplan.layers.marking.problem.trees import only_tree
from fanplan.layers.marking.read import overlay_to_mark
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.marking.stages.make import make_marking_stages
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.simulated import Churned, ChurnListing, require_fields

SCHEME_WORDS = {"best": "best", "pub_everywhere": "p everywhere", "sub_everywhere": "s everywhere"}
CHURN_COLUMNS = {
    "messages_per_event": "per event",
    "stored_mean": "stored",
    "stored_peak": "most",
    "cost": "cost",
    "optimum": "lowest",
    "converged_ms_mean": "settled, ms",
    "wrong_rests": "wrong",
}


def churn_marking(
    plan: StoredPlan, dataset: Dataset, options: Mapping[str, Any], engine: Engine
) -> Churned:
    """Publishers and subscribers come and go, and nodes keep the marking right by themselves."""
    from fanplan.layers.marking.protocol.churn import MarkingChurn, marking_churn

    require_fields(MarkingChurn, options, "marking")
    params = plan.section(MarkingRecord).params
    make_marking_stages(plan, dataset, engine)
    with engine.progress.stage("churn of the marking") as stage:
        overlay = overlay_to_mark(plan) if params.trees == OVERLAY else None
        network, given = load_network(dataset.path, params, overlay and overlay.clients)
        given = overlay.tree if overlay else given
        kind, network = routed_trees(params.trees, network, given)
        churn = MarkingChurn(**{"trees": kind} | dict(options))
        run = marking_churn(network, churn, given)
        stage.rows(churn.events)
    return churned_marking(run.summary(), run.right)


def churned_marking(figures: dict[str, Any], ok: bool) -> Churned:
    """What happened, and the marking beside both ways of broadcasting."""
    names = ("trees", "events", "joins", "leaves", "restarts", "loss", "rests", "seed")
    always = "at every rest: valid, best, every pair found once" if ok else "NOT always right"
    facts = {name: figures[name] for name in names} | {"checked": always}
    rows = [
        [SCHEME_WORDS[scheme], *(found[name] for name in CHURN_COLUMNS)]
        for scheme, found in figures["schemes"].items()
    ]
    what = "Messages per event, descriptors stored on average and at most, cost at the end"
    listing = ChurnListing(what, ("marking", *CHURN_COLUMNS.values()), rows)
    return Churned("marking", ok, figures, "Churn of the marking", facts, listing)


def routed_trees(
    kind: str, network: MarkedNetwork, given: pa.Table | None
) -> tuple[str, MarkedNetwork]:
    """Trees as the protocol knows them: a given shared tree, or an overlay, is its own links."""
    if kind not in ("given-shared", OVERLAY) or given is None:
        return kind, network
    return f"shared:{given['root'][0].as_py()}", only_tree(network, given)
