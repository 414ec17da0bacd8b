"""The transit-stub generator: the paper's network and law of counts come back from the tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy import stats

from fanplan.core.errors import InputError
from fanplan.workload.description import parse_description, to_toml
from fanplan.workload.generators import networks
from fanplan.workload.generators.networks import (
    TransitStub,
    TransitStubParams,
    draw_transit_stub,
    generate_transit_stub,
)
from fanplan.workload.selector import compile_selector

PAPER = [draw_transit_stub(TransitStubParams(), seed) for seed in range(30)]


def parts(world: TransitStub, kept: np.ndarray) -> int:
    """Components of the network with these links only."""
    size = len(world.nodes)
    ends = (world.a[kept], world.b[kept])
    graph = scipy.sparse.coo_array((np.ones(len(ends[0])), ends), shape=(size, size))
    return int(scipy.sparse.csgraph.connected_components(graph, directed=False)[0])


def test_the_paper_has_100_nodes_4_of_them_transit() -> None:
    for world in PAPER:
        assert len(world.nodes) == 100
        backbone = world.b < 4
        access = (world.a < 4) & ~backbone
        assert Counter(world.a[access].tolist()) == dict.fromkeys(range(4), 3)
        assert parts(world, np.ones(len(world.a), bool)) == 1
        stub = ~backbone & ~access
        assert parts(world, stub) == 4 + 12
        assert ((world.a[stub] - 4) // 8 == (world.b[stub] - 4) // 8).all()
        assert len(set(zip(world.a.tolist(), world.b.tolist(), strict=True))) == len(world.a)


def test_links_have_the_chances_asked_for_but_for_those_that_do_not_hang_together() -> None:
    in_stubs = np.mean([(world.a >= 4).sum() / (12 * 28) for world in PAPER])
    # Drawn anew until connected, a graph has more links: 12.3 of 28 instead of 11.8.
    assert 0.42 < in_stubs < 0.46


def test_publishers_and_subscribers_are_stub_nodes_and_may_share_one() -> None:
    for world in PAPER:
        for counts in (world.published, world.subscribed):
            assert (counts[:4] == 0).all()
            assert (counts > 0).sum() == 10
    assert any((world.published * world.subscribed).any() for world in PAPER)


@pytest.mark.parametrize(("floor", "edge"), [(0, 1.5), (1, 2.0)])
def test_counts_are_bounded_pareto(floor: int, edge: float) -> None:
    params = TransitStubParams(floor=floor, stubs=100, publishers=3000)
    counts = draw_transit_stub(params, 1).published
    counts = counts[counts > 0]
    assert 1 <= counts.min() <= counts.max() <= 100
    # The law of the paper: P(n < x) = (1 − 1/x) / (1 − 1/100).
    ends = np.array([edge, edge + 1, edge + 2, edge + 6, edge + 30])
    shares = np.diff([0.0, *(1 - 1 / ends) / 0.99, 1.0])
    found = np.histogram(counts, [0, *np.ceil(ends), 101])[0]
    assert stats.chisquare(found, shares * counts.size).pvalue > 0.001


def test_latencies_lie_around_the_mean_of_their_kind() -> None:
    latency = np.concatenate([world.latency_ms[world.a >= 4] for world in PAPER])
    assert 1.0 <= latency.min() < 1.1
    assert 2.9 < latency.max() <= 3.0
    assert latency.mean() == pytest.approx(2.0, rel=0.02)
    transit = np.concatenate([world.latency_ms[world.b < 4] for world in PAPER])
    assert 10.0 <= transit.min() < transit.max() <= 30.0


def test_tables_have_a_client_for_each_descriptor_and_read_back() -> None:
    params = TransitStubParams()
    made, world = generate_transit_stub(params, 7), draw_transit_stub(params, 7)
    assert parse_description(to_toml(made.description), "workload.toml") == made.description
    assert made.tables["brokers"]["broker"].to_pylist() == world.nodes.to_pylist()
    for name, counts in (("subscriptions", world.subscribed), ("advertisements", world.published)):
        at = Counter(made.tables[name]["broker"].to_pylist())
        assert at == {world.nodes[i].as_py(): counts[i] for i in np.flatnonzero(counts)}
    link = made.tables["links"].to_pylist()[-1]
    ends = world.nodes[world.a[-1]].as_py(), world.nodes[world.b[-1]].as_py()
    assert tuple(link.values()) == (*ends, world.latency_ms[-1])


def test_no_region_of_a_node_covers_another() -> None:
    made = generate_transit_stub(TransitStubParams(count_min=50), 3)
    boxes = [
        compile_selector(row["filter"], made.description.spaces[1], max_boxes=1)[0]
        for row in made.tables["subscriptions"].to_pylist()
    ]
    assert len({box.lo for box in boxes}) == len(boxes) >= 500
    for box in boxes:
        assert [hi - lo for lo, hi in zip(box.lo, box.hi, strict=True)] == pytest.approx([50, 50])
        assert min(box.lo) >= 0.0
        assert max(box.hi) <= 1000.0


def test_same_seed_same_tables() -> None:
    first, again, other = (generate_transit_stub(TransitStubParams(), seed) for seed in (1, 1, 2))
    assert first.tables == again.tables
    assert first.tables["links"] != other.tables["links"]


def test_any_size_hangs_together() -> None:
    params = TransitStubParams(domains=7, transit=5, stubs=2, stub_nodes=3, publishers=100)
    world = draw_transit_stub(params, 1)
    assert len(world.nodes) == 7 * 5 * 7
    assert parts(world, np.ones(len(world.a), bool)) == 1
    single = draw_transit_stub(
        TransitStubParams(transit=1, stubs=1, stub_nodes=1, publishers=1, subscribers=1), 1
    )
    assert (single.a.tolist(), single.b.tolist()) == ([0], [1])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"publishers": 97}, "publishers: 97 do not fit into 96 nodes"),
        ({"subscribers": 97}, "subscribers: 97 do not fit"),
        ({"count_min": 101}, "count_min: 101 is more than count_max"),
        ({"side": 1000.0}, "side: 1000.0 does not fit"),
        ({"stub_edge": 0.0}, "stub_edge: 0.0 is out of range"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(options: dict[Any, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        TransitStubParams(**options)


def test_networks_too_sparse_to_hang_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "DRAWS", 5)
    with pytest.raises(InputError, match="hardly ever connected"):
        draw_transit_stub(TransitStubParams(stub_edge=0.01), 1)
