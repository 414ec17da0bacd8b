"""The traffic of a dataset on the groups of a stored plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fanplan.core.arrays import NONE, Ints, Longs, places_among, starts_of
from fanplan.data.reader import read_stage
from fanplan.layers.groups.cells import on_grid, read_stored_cells, topic_names
from fanplan.layers.groups.problem.build import require_entering
from fanplan.layers.groups.problem.grid import read_group_grid
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.read import StoredGroups, read_groups, stored_keys
from fanplan.layers.groups.record import GroupsRecord
from fanplan.network.brokers import Routes, end_keys
from fanplan.network.dataset import ordered_routes, read_brokers, read_routes, routes_of
from fanplan.plan.stored import StoredPlan

COLUMNS = ("cell", "source", "destinations", "messages", "deliveries")


@dataclass(frozen=True, eq=False)
class CarriedGroups:
    """The plan's groups with the traffic they carry, as far as it arrives, and all that is wanted.

    A group misses brokers only if subscriptions are others than were planned for, and cells decide.
    """

    problem: GroupsProblem
    wanted: Routes


def carried_groups(plan: StoredPlan, dataset: Path) -> CarriedGroups:
    """The plan's groups, all of them set up, with a dataset's traffic, which may be other traffic.

    The pipeline must have made the stages for the plan's grouping.
    """
    stored = read_groups(plan, read_brokers(dataset).names)
    cells = plan.section(GroupsRecord).params.grouping.cells is not None
    wanted, group = by_cells(plan, stored, dataset) if cells else by_members(stored, dataset)
    routes = without_lost(wanted, outside(stored, wanted, group))
    return CarriedGroups(
        GroupsProblem(
            brokers=stored.brokers,
            trees=stored.trees,
            routes=routes,
            tree=stored.trees.of(routes.source),
            group=group.astype(np.int32),
            span=stored.tree,
            starts=stored.starts,
            members=stored.member.astype(np.int32),
        ),
        wanted,
    )


def by_members(stored: StoredGroups, dataset: Path) -> tuple[Routes, Longs]:
    """Routes, and the exact group of each: that with its root and just its destinations."""
    routes = read_routes(dataset, "routes")
    tree = route_trees(stored, routes)
    known = {key: group for group, key in enumerate(stored_keys(stored))}
    own = end_keys(tree, routes.starts, routes.brokers)
    return routes, np.array([known.get(key, NONE) for key in own], np.int64)


def by_cells(plan: StoredPlan, stored: StoredGroups, dataset: Path) -> tuple[Routes, Longs]:
    """Routes of cells, and the group of each by the plan's own table of cells."""
    topics = topic_names(dataset)
    grid = read_group_grid(dataset / "group_grid", len(topics))
    rows = ordered_routes(read_stage(dataset, "cell_routes", COLUMNS), "cell")
    routes, total = routes_of(rows), int(grid.cells[-1])
    cells = read_stored_cells(plan)
    key = stored.tree[cells.group].astype(np.int64) * total + on_grid(cells, grid, topics)
    wanted = route_trees(stored, routes).astype(np.int64) * total + rows["cell"].to_numpy()
    # A route in no cell of a group has the place -1, which is that of the last entry.
    return routes, np.append(cells.group, NONE)[places_among(key, wanted)]


def route_trees(stored: StoredGroups, routes: Routes) -> Ints:
    """The tree of each route; everything must enter at a root."""
    tree = stored.trees.of(routes.source)
    require_entering(stored.brokers, stored.trees, routes, tree)
    return tree


# ---- who is missed


def outside(stored: StoredGroups, routes: Routes, group: Longs) -> np.ndarray:
    """Destinations that the group of their route does not have."""
    size = len(stored.brokers)
    carrier = np.repeat(group, np.diff(routes.starts))
    members = stored.member_group * size + stored.member
    lost: np.ndarray = (carrier >= 0) & ~np.isin(carrier * size + routes.brokers, members)
    return lost


def without_lost(routes: Routes, lost: np.ndarray) -> Routes:
    """Routes with fewer destinations."""
    before = starts_of(~lost)
    return Routes(
        routes.source,
        before[routes.starts].astype(np.int64),
        routes.brokers[~lost],
        routes.messages,
        routes.deliveries,
    )
