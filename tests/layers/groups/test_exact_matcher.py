"""A publication gets the exact group of the brokers that want it, and default routing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from overlays import routes_of

from fanplan.core.arrays import NONE
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.matchers import exact_matcher, match_exact
from fanplan.layers.groups.problem.regions import regions_of
from fanplan.layers.groups.problem.trees import hung_at

AXES = (2, 1, 0)
"""Of three topics; the last is plain."""
BROKERS = 5


def random_regions(rng: np.random.Generator) -> list[dict[Any, Any]]:
    """Boxes that often share end points and overlap, also those of one broker."""
    found = []
    for _ in range(rng.integers(1, 25)):
        topic = int(rng.integers(3))
        ends = [sorted(rng.choice(9, 2, replace=False) / 2) for _ in range(AXES[topic])]
        lo, hi = [end[0] for end in ends], [end[1] for end in ends]
        found.append({"topic_id": topic, "broker": int(rng.integers(BROKERS)), "lo": lo, "hi": hi})
    return found


def wanted(regions: list[dict[Any, Any]], topic: int, point: np.ndarray) -> tuple[int, ...]:
    def holds(box: dict[Any, Any]) -> bool:
        return all(a <= x < b for a, b, x in zip(box["lo"], box["hi"], point, strict=False))

    return tuple(sorted({r["broker"] for r in regions if r["topic_id"] == topic and holds(r)}))


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), least=st.sampled_from([0.0, 1.0]))
def test_members_are_those_who_want_the_publication(seed: int, least: float) -> None:
    rng = np.random.default_rng(seed)
    regions = random_regions(rng)
    topic = rng.integers(3, size=60).astype(np.int32)
    point = rng.integers(-1, 9, (60, 2)) / 2 + rng.choice([0.0, 0.2], (60, 2))
    point[np.arange(2) >= np.take(AXES, topic)[:, None]] = np.nan
    sets = [wanted(regions, t, x) for t, x in zip(topic, point, strict=True)]
    tree = rng.integers(2, size=60).astype(np.int32)
    sent: dict[tuple[Any, ...], float] = {}
    for i in range(30):
        sent[int(tree[i]), sets[i]] = sent.get((int(tree[i]), sets[i]), 0.0) + 1.0
    trees = hung_at(np.array([(i, i + 1) for i in range(BROKERS - 1)]), np.array([0, 1]), BROKERS)
    names = pa.array([f"b{i}" for i in range(BROKERS)])
    problem = exact_groups(names, trees, routes_of(sent), least)
    kinds = {"lo": pa.list_(pa.float64()), "hi": pa.list_(pa.float64())}
    table = pa.table(
        {name: pa.array([r[name] for r in regions], kinds.get(name)) for name in regions[0]}
    )
    matcher = exact_matcher(regions_of(table, 2), problem)
    for i, group in enumerate(match_exact(matcher, topic, point, tree).tolist()):
        observed = bool(sets[i]) and sent.get((int(tree[i]), sets[i]), 0.0) > least
        assert (group != NONE) == observed
        if observed:
            members = problem.members[problem.starts[group] : problem.starts[group + 1]]
            assert tuple(members.tolist()) == sets[i]
            assert problem.span[group] == tree[i]
