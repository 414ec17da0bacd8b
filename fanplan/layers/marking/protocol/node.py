"""A node: layers on top of each other, from trees to the way of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from fanplan.core.arrays import NONE
from fanplan.layers.marking.protocol.data_path import (
    BestMarksLayer,
    DataPathLayer,
    DescriptorLayer,
    MarksLayer,
    SameMarksLayer,
)
from fanplan.layers.marking.protocol.messages import Key, Mark
from fanplan.layers.marking.protocol.node_layer import HeardFrom, LocalView, NodeLayer, Says
from fanplan.layers.marking.protocol.routing import Routing
from fanplan.layers.marking.protocol.solver import SettledLayer, SolverLayer
from fanplan.layers.marking.protocol.trees import SharedTreeLayer, SourceTreesLayer, TreeLayer

Scheme = Literal["best", "pub_everywhere", "sub_everywhere"]
SCHEMES: tuple[Scheme, ...] = ("best", "pub_everywhere", "sub_everywhere")


@dataclass(frozen=True)
class NodeRules:
    """What all nodes of a run have in common.

    ``hold_ms``: counts must not have changed for this long before marks follow them. ``arc`` is the
    length of what a client's descriptors mean, on a ring of length 1.
    """

    scheme: Scheme
    routing: Routing
    hold_ms: float
    arc: float

    @property
    def shared(self) -> bool:
        return self.routing.core != NONE


class ProtocolNode:
    """What a node has been told, and its layers. All of it but ``local`` is lost by a restart.

    ``births`` is when the neighbours that it heard of started last.
    """

    def __init__(self, local: LocalView, rules: NodeRules) -> None:
        self.local, self.rules = local, rules
        self.restart()

    def restart(self) -> None:
        """Forget everything but the own clients, who come back by themselves."""
        self.heard = HeardFrom()
        self.births: dict[int, float] = {}
        self.trees = self.tree_layer()
        settled, self.solver, self.marks = self.mark_layers()
        self.descriptors = DescriptorLayer(self.local, self.heard, self.trees, self.marks)
        self.data_path = DataPathLayer(
            self.local, self.heard, self.trees, self.descriptors, self.rules.arc
        )
        layers = (self.trees, settled, self.solver, self.marks, self.descriptors, self.data_path)
        self.layers: list[NodeLayer] = [layer for layer in layers if layer is not None]

    def tree_layer(self) -> TreeLayer:
        kind = SharedTreeLayer if self.rules.shared else SourceTreesLayer
        return kind(self.local, self.heard, self.rules.scheme == "best", self.rules.routing)

    def mark_layers(self) -> tuple[SettledLayer | None, SolverLayer | None, MarksLayer]:
        known = (self.local, self.heard, self.trees)
        if self.rules.scheme != "best":
            mark: Mark = "p" if self.rules.scheme == "pub_everywhere" else "s"
            return None, None, SameMarksLayer(*known, mark)
        settled = SettledLayer(*known, self.rules.hold_ms)
        solver = None if self.rules.shared else SolverLayer(self.local, self.heard, settled)
        return settled, solver, BestMarksLayer(*known, settled, solver)

    def work(self, kinds: set[str]) -> Iterator[tuple[int, dict[Key, Any]]]:
        """After entries of these kinds changed: what to tell which neighbour that is new."""
        for layer in self.layers:
            if not (kinds & layer.hears or layer.stale()):
                layer.changed = False
                continue
            old = layer.says
            layer.changed = layer.work()
            yield from news(old, layer.says)


def news(old: Says, new: Says) -> Iterator[tuple[int, dict[Key, Any]]]:
    """Entries that differ, None for those that are gone."""
    for n in sorted(old.keys() | new.keys()):
        before, after = old.get(n, {}), new.get(n, {})
        if before == after:
            continue
        entries = {key: value for key, value in after.items() if before.get(key) != value}
        entries |= {key: None for key in before if key not in after}
        yield n, entries
