"""Groups of a dataset found by Spark, against points and sets."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from overlays import write_manifest, write_stage
from pyspark.sql import SparkSession

from fanplan.core.arrays import NONE
from fanplan.core.errors import InputError
from fanplan.core.progress import quiet
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.ingest import ingest_workload
from fanplan.layers.groups.params import Grouping, Mark
from fanplan.layers.groups.problem.dataset import FoundGroups, load_groups
from fanplan.layers.groups.problem.trees import hung_at
from fanplan.layers.groups.stages.groups import group_stages
from fanplan.network.dataset import read_brokers
from fanplan.workload.generators.draws import names
from fanplan.workload.generators.generated import write_workload
from fanplan.workload.generators.networks import TreeGridParams, draw_tree_grid, generate_tree_grid

AXES = (2, 1, 0)
"""Of three topics. The first axis of topic 0 is a list of two values, the others go from 0 to 8."""
VALUES, END, CELLS = 2, 8, 4
BROKERS = 6
LINES = pa.list_(pa.float64())


def spans(topic: int) -> list[int]:
    return [VALUES if (topic, axis) == (0, 0) else END for axis in range(AXES[topic])]


class World:
    """Regions and publications at whole numbers. A publication is (topic, source, x, y)."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.regions = []
        for _ in range(40):
            topic = int(rng.integers(3))
            ends = [np.sort(rng.choice(n + 1, 2, replace=False)) for n in spans(topic)]
            lo, hi = ([float(end[side]) for end in ends] for side in (0, 1))
            # As the domain of a number holds its upper end, so do regions up to there.
            hi = [float(np.nextafter(end, 9)) if end == END else end for end in hi]
            self.regions.append((topic, int(rng.integers(2, BROKERS)), lo, hi))
        self.sent = [
            (topic, int(rng.integers(2)), *(rng.integers([*spans(topic), 1, 1][:2]) + 0.0))
            for topic in rng.integers(3, size=200).tolist()
        ]

    def wanted(self, topic: int, *point: float) -> tuple[int, ...]:
        def holds(lo: list[float], hi: list[float]) -> bool:
            return all(a <= x < b for a, b, x in zip(lo, hi, point, strict=False))

        return tuple(sorted({b for t, b, lo, hi in self.regions if t == topic and holds(lo, hi)}))

    def cell(self, topic: int, *point: float) -> tuple[int, ...]:
        wide = [1 if n == VALUES else END // CELLS for n in spans(topic)]
        return (topic, *(int(x // w) for x, w in zip(point, wide, strict=False)))

    def marked(self, topic: int, *point: float) -> tuple[tuple[int, ...], bool]:
        """Who wants any of the cell of a point, and whether each of them wants all of it."""
        places = product(*(range(n) for n in [*spans(topic), 1, 1][:2]))
        inside = [p for p in places if self.cell(topic, *p) == self.cell(topic, *point)]
        sets = [set(self.wanted(topic, *p)) for p in inside]
        some = set.union(*sets)
        return tuple(sorted(some)), some == set.intersection(*sets)

    def write(self, folder: Path) -> Path:
        folder.mkdir()
        number, whole = pa.int32(), np.nextafter(float(END), 9)
        topics = [0, 1, 2]
        edges = [(0, 0, [0.0, 1.0, 2.0]), (0, 1, [0.0, whole]), (1, 0, [0.0, 3.0, whole])]
        topic, _, lo, hi = zip(*self.regions, strict=True)
        own = pa.array(range(len(topic)), pa.int64())
        sources, points = [s for _, s, *_ in self.sent], [p for _, _, *p in self.sent]
        missing = [[i < AXES[t] for i in range(2)] for t, *_ in self.sent]
        x = np.where(missing, points, np.nan)
        brokers = [f"b{i}" for i in range(BROKERS)]
        tables = {
            "topics": {"topic": ["t0", "t1", "t2"], "topic_id": pa.array(topics, number)},
            "grid": {
                "topic_id": pa.array([e[0] for e in edges], number),
                "axis": pa.array([e[1] for e in edges], number),
                "edges": pa.array([e[2] for e in edges], LINES),
            },
            "brokers": {"broker": brokers}
            | dict.fromkeys(("capacity", "cost"), pa.nulls(BROKERS, pa.float64())),
            "regions": {
                "topic_id": pa.array(topic, number),
                "subscription": own,
                "subscriber_id": own.cast(number),
                "lo": pa.array(lo, LINES),
                "hi": pa.array(hi, LINES),
            },
            "subscriptions": {
                "subscription": own,
                "subscriber_id": own.cast(number),
                "broker": [brokers[b] for _, b, *_ in self.regions],
            },
            "publications": {
                "publisher": [brokers[s] for s in sources],
                "topic": [f"t{t}" for t, *_ in self.sent],
                "x0": x[:, 0],
                "x1": x[:, 1],
            },
        }
        rows = {name: write_stage(folder, name, columns) for name, columns in tables.items()}
        write_manifest(folder, 1.0, rows, dimensions=2, exact=False, rates="measured")
        return folder


CHAIN = hung_at(np.array([(i, i + 1) for i in range(BROKERS - 1)]), np.array([0, 1]), BROKERS)


def found_in(source: Derived, grouping: Grouping) -> FoundGroups:
    group_stages(source, grouping)
    return load_groups(source.dataset, CHAIN, grouping)


def members(found: FoundGroups, group: int) -> tuple[int, ...]:
    starts = found.problem.starts
    return tuple(found.problem.members[starts[group] : starts[group + 1]].tolist())


def matched(found: FoundGroups, world: World, tree: int) -> dict[tuple[Any, ...], int]:
    """The group of every point of the space, at whole numbers."""
    points = [(t, *p) for t in range(3) for p in product(*map(range, [*spans(t), 1, 1][:2]))]
    topic = np.array([t for t, *_ in points], np.int32)
    groups = found.match(topic, np.array([p for _, *p in points], float), tree)
    return dict(zip(points, groups.tolist(), strict=True))


def default_messages(found: FoundGroups) -> float:
    return float(found.problem.routes.messages[found.problem.group == NONE].sum())


def test_groups_are_what_points_say(spark: SparkSession, tmp_path: Path) -> None:
    world = World(0)
    source = Derived(lambda: spark, world.write(tmp_path / "dataset"), quiet())
    cells = Counter(world.cell(t, *point) for t, _, *point in world.sent)
    kinds: list[tuple[Mark, float]] = [("cover", 0.0), ("overlap", 3.0)]
    for mark, least in kinds:
        found = found_in(source, Grouping(CELLS, mark, least))
        assert found.problem.routes.messages.sum() == len(world.sent)
        senders = {
            (tree, who)
            for topic, tree, *point in world.sent
            for who, whole in [world.marked(topic, *point)]
            if who
            and (whole or mark == "overlap")
            and (not least or cells[world.cell(topic, *point)] > least)
        }
        assert found.problem.size == len(senders)
        for tree in (0, 1):
            for (topic, *point), group in matched(found, world, tree).items():
                who, whole = world.marked(topic, *point)
                dense = not least or cells[world.cell(topic, *point)] > least
                grouped = (whole or mark == "overlap") and dense and (tree, who) in senders
                assert (group != NONE) == grouped
                assert group == NONE or (members(found, group), found.problem.span[group]) == (
                    who,
                    tree,
                )
        expected = sum(
            int(found.match(topic, np.array([point]), tree)[0] == NONE)
            for topic, tree, *point in world.sent
        )
        assert default_messages(found) == expected
    exact_groups_are_sets(found_in(source, Grouping()), world)
    with pytest.raises(InputError, match=r"topic 't0': 40000000 cells per axis .* Use at most"):
        group_stages(source, Grouping(40_000_000))


def exact_groups_are_sets(found: FoundGroups, world: World) -> None:
    sent = {(tree, world.wanted(topic, *point)) for topic, tree, *point in world.sent}
    assert {(int(t), members(found, g)) for g, t in enumerate(found.problem.span)} == {
        (tree, who) for tree, who in sent if who
    }
    for tree in (0, 1):
        for (topic, *point), group in matched(found, world, tree).items():
            who = world.wanted(topic, *point)
            assert (group != NONE) == (bool(who) and (tree, who) in sent)
            assert group == NONE or members(found, group) == who


def test_the_papers_workload_from_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    params = TreeGridParams(arity=3, levels=3, cells=20)
    world = draw_tree_grid(params, 3)
    write_workload(generate_tree_grid(params, 3), tmp_path / "workload")
    dataset = tmp_path / "dataset"
    ingest_workload(lambda _: spark, tmp_path / "workload", dataset, {}, quiet())
    source = Derived(lambda: spark, dataset, quiet())
    links = np.stack([world.parent[1:], np.arange(1, params.brokers)], axis=1)
    known = read_brokers(dataset).names.to_pylist()
    place = np.array([known.index(name) for name in names("b", params.brokers).to_pylist()])
    trees = hung_at(place[links], place[:1], params.brokers)
    sets: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for cell in range(params.cells):
        own = world.leaves[world.starts[cell] : world.starts[cell + 1]]
        sets[tuple(sorted(place[own].tolist()))] += float(world.messages[cell])
    share = params.rate * params.cells / world.messages.sum()
    for grouping in (Grouping(), Grouping(2 * params.cells)):
        group_stages(source, grouping)
        found = load_groups(dataset, trees, grouping)
        assert {members(found, g) for g in range(found.problem.size)} == set(sets)
        for group, messages in enumerate(found.problem.messages):
            assert messages == pytest.approx(share * sets[members(found, group)])
        for cell in range(params.cells):
            own = world.leaves[world.starts[cell] : world.starts[cell + 1]]
            (group,) = found.match(0, np.array([[cell + 0.3]]))
            assert members(found, group) == tuple(sorted(place[own].tolist()))
