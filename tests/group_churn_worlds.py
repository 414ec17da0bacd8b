"""Small systems of brokers under churn, with messages of one kind slowed down."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from overlays import routes_of

from fanplan.layers.groups.params import GroupChoice, Top
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.problem.matchers import DEFAULT
from fanplan.layers.groups.problem.trees import hung_at
from fanplan.layers.groups.protocol.churn import GroupSystem, stir
from fanplan.layers.groups.protocol.links import TreeLink
from fanplan.layers.groups.protocol.messages import KINDS, Message, Numbered
from fanplan.layers.groups.protocol.params import GroupsChurn
from fanplan.layers.groups.search.choose import choose_groups

LATE_MS = 100.0


def choose(problem: GroupsProblem) -> np.ndarray:
    """Most groups, so that they come and go."""
    return choose_groups(problem, GroupChoice(Top(0.7), rank="nc")).selected


def world_of(seed: int, roots: int = 1) -> tuple[GroupsProblem, np.ndarray]:
    """A deep tree and few routes, so that much happens at once to each; and cells of the routes."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    links = np.array([(i, max(0, i - rng.integers(1, 3))) for i in range(1, size)])
    found = {}
    for _ in range(rng.integers(1, 7)):
        ends = np.flatnonzero(rng.random(size) < 0.4).tolist()
        found[int(rng.integers(min(roots, size))), tuple(ends)] = float(rng.integers(1, 5))
    routes = routes_of(found)
    trees = hung_at(links, np.unique(routes.source), size)
    names = pa.array([f"b{i}" for i in range(size)])
    return exact_groups(names, trees, routes), rng.integers(3, size=len(routes)).astype(np.int32)


def churned(seed: int, churn: GroupsChurn, slow: str, overlap: bool, roots: int = 1) -> GroupSystem:
    """A system after churn; a CheckError if a publication did not arrive exactly once."""
    problem, cell = world_of(seed, roots)
    system = GroupSystem(problem, churn, choose, cell if overlap else None)
    system.start()
    slow_down(system, slow)
    stir(system, churn)
    return system


def slow_down(system: GroupSystem, kind: str) -> None:
    """Send messages of a kind late; what follows on the same link must wait, all else overtakes."""
    send = system.links.send

    def send_late(link: TreeLink, message: Message, after_ms: float) -> None:
        in_group = isinstance(message, Numbered) and message.group != DEFAULT
        late = in_group if kind == "in groups" else KINDS.get(type(message)) == kind
        send(link, message, after_ms + LATE_MS * late)

    system.links.send = send_late  # type: ignore[method-assign]
