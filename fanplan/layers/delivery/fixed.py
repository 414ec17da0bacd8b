"""Layers of a design that are taken from stored plans instead of being planned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.network.brokers import EndKey, end_keys

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.core.arrays import Ints
    from fanplan.data.dataset import Dataset, PathLike
    from fanplan.data.interest import InterestProblem
    from fanplan.layers.channels.map import ChannelMap
    from fanplan.layers.delivery.problem import DeliveryProblem
    from fanplan.layers.groups.problem.groups import BrokerTrees
    from fanplan.layers.marking.record import MarkingSection
    from fanplan.layers.overlay.record import OverlaySection
    from fanplan.plan.stored import StoredPlan

FIXABLE = ("overlay", "channels", "groups", "marking")


def fixed_plans(dataset: Dataset, fixed: Mapping[str, PathLike]) -> dict[str, StoredPlan]:
    """The plan of each fixed layer: untouched, made for the dataset, and with that layer."""
    from fanplan.layers.registry import load_plan
    from fanplan.plan.seal import require_untouched
    from fanplan.plan.stored import require_dataset_of

    plans = {}
    for name, folder in fixed.items():
        if name not in FIXABLE:
            remedy = f"Use some of: {', '.join(FIXABLE)}"
            raise InputError(Problem("fixed", f"{name!r} cannot be fixed", remedy))
        plan = plans[name] = load_plan(Path(folder))
        if name not in plan.record.layers:
            what = f"{folder} has no {name}, only {', '.join(plan.record.layers)}"
            raise InputError(Problem("fixed", what, "Name a plan that has that layer"))
        require_untouched(plan)
        require_dataset_of(plan, dataset.path)
    return plans


def fixed_overlay(plan: StoredPlan) -> OverlaySection:
    """Brokers, clients and trees of a plan."""
    import pyarrow.parquet as pq

    from fanplan.layers.overlay.record import OverlayRecord, OverlaySection
    from fanplan.layers.overlay.simulated import read_trees
    from fanplan.plan.tables import OVERLAY_TABLES, TREE_TABLES

    record, about = plan.section(OverlayRecord), plan.record
    names = [t.name for t in OVERLAY_TABLES + (TREE_TABLES if record.trees > 1 else ())]
    tables = {name: pq.read_table(plan.path(name)) for name in names}
    brokers = tables["brokers"]["broker"].combine_chunks()
    load = tables["brokers"]["load"].to_numpy()
    return OverlaySection(
        record, tables, read_trees(plan, brokers), load, about.input.key, about.seed, about.version
    )


def fixed_channels(
    plan: StoredPlan, dataset: Path, problem: DeliveryProblem
) -> tuple[ChannelMap, Ints]:
    """The channels of a plan, and the multicast domain of each: that of its members."""
    map, where = fixed_map(plan, dataset, problem.interest), problem.domain[problem.home]
    return map, channel_domains(plan, map, where, problem.interest.subscribers)


def fixed_map(plan: StoredPlan, dataset: Path, interest: InterestProblem) -> ChannelMap:
    """The channels of a plan, with unicast to whom they leave out."""
    from fanplan.layers.channels.ledger import completed
    from fanplan.layers.channels.record import ChannelsRecord
    from fanplan.layers.delivery.read import channel_members, class_channels

    count = plan.section(ChannelsRecord).channels
    members = channel_members(plan, interest.subscribers)
    return completed(interest, count, class_channels(plan, dataset), members)


def channel_domains(plan: StoredPlan, map: ChannelMap, where: Ints, subscribers: pa.Array) -> Ints:
    """The domain of each channel; ``where`` is that of each subscriber. Members share one."""
    members, domain = map.members, np.zeros(map.channels, np.int32)
    of = where[members.right]
    domain[members.left] = of
    lost = np.flatnonzero((domain[members.left] != of) | (of < 0))
    for row in lost[:1]:
        who = subscribers[int(members.right[row])].as_py()
        what = f"{who!r} is outside the multicast domain of channel {members.left[row]}"
        remedy = "Use channels of one site each, or say that multicast reaches everywhere"
        raise InputError(Problem(str(plan.folder), what, remedy))
    return domain


def fixed_groups(plan: StoredPlan, problem: DeliveryProblem) -> frozenset[EndKey]:
    """What tells the groups of a plan apart; its trees must be those that are planned on."""
    from fanplan.layers.groups.read import read_groups

    stored = read_groups(plan, problem.brokers)
    root = stored.trees.root[stored.tree]
    require_same_trees(plan, stored.trees, problem, np.unique(root))
    return frozenset(end_keys(root, stored.starts, stored.member.astype(np.int32)))


def require_same_trees(
    plan: StoredPlan, trees: BrokerTrees, problem: DeliveryProblem, roots: Ints
) -> None:
    for root in roots:
        ours, theirs = problem.trees.of(np.array([root])), trees.of(np.array([root]))
        if ours[0] >= 0 and (problem.trees.parent[ours[0]] == trees.parent[theirs[0]]).all():
            continue
        what = f"its groups at {problem.brokers[int(root)].as_py()!r} are on another tree"
        raise InputError(Problem(str(plan.folder), what, "Fix the overlay to the same trees"))


def fixed_marking(plan: StoredPlan, tree: OverlaySection) -> MarkingSection:
    """The marks of a plan, which must be on the links of the tree."""
    from fanplan.layers.marking.record import MarkingRecord, MarkingSection
    from fanplan.plan.tables import MARKS

    marks = plan.read("marks", tuple(column.name for column in MARKS.columns))
    ends = zip(marks["from_node"].to_pylist(), marks["to_node"].to_pylist(), strict=True)
    links = tree.tables["links"]
    own = {frozenset(link) for link in zip(*(links[e].to_pylist() for e in "ab"), strict=True)}
    # Links to brokers that nobody has descriptors at have no marks.
    if not {frozenset(link) for link in ends} <= own:
        what = "its marks are on other links than those of the overlay"
        raise InputError(Problem(str(plan.folder), what, "Fix the overlay to the same tree"))
    return MarkingSection(
        plan.section(MarkingRecord), marks, plan.record.input.key, plan.record.version
    )
