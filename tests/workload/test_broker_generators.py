"""Generators of overlays: the thesis' laws come back from what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from fanplan.core.errors import InputError
from fanplan.network.generated import broker_routes, client_routes
from fanplan.workload.description import parse_description, to_toml
from fanplan.workload.generators import clients
from fanplan.workload.generators.clients import BrokersParams, ClientsParams
from fanplan.workload.generators.draws import streams
from fanplan.workload.generators.generated import WorkloadKind
from fanplan.workload.generators.population import DrawnPublications, Population, Regions
from fanplan.workload.selector import compile_selector

SMALL = BrokersParams(brokers=12, subscriptions=80, advertisements=30)
THESIS = clients.populate_brokers(BrokersParams(bias=0.6), 1)
PREFERENCE = streams(1, 4)[1].integers(0, 4, 450)


def share_at_home(regions: Regions) -> float:
    return float((PREFERENCE[regions.broker] == regions.topic).mean())


@pytest.mark.parametrize(
    ("kind", "populate", "params"),
    [
        (clients.BROKERS, clients.populate_brokers, SMALL),
        (clients.CLIENTS, clients.populate_clients, ClientsParams(advertisements=20)),
    ],
)
def test_filters_are_the_boxes_and_the_description_reads_back(
    kind: WorkloadKind, populate: Any, params: Any
) -> None:
    population, made = populate(params, 7), kind.generate(params, 7)
    assert parse_description(to_toml(made.description), "workload.toml") == made.description
    for name in ("subscriptions", "advertisements"):
        regions, table = getattr(population, name), made.tables[name].to_pylist()
        for i, row in enumerate(table):
            (box,) = compile_selector(row["filter"], made.description.spaces[1], max_boxes=1)
            assert (box.lo, box.hi) == (tuple(regions.lo[i]), tuple(regions.hi[i]))
            assert row["topic"] == population.topics[regions.topic[i]].as_py()
    assert made.tables["advertisements"]["rate"].to_pylist() == population.rates.tolist()
    assert made.law.rates.tolist() == population.rates.tolist()


@pytest.mark.parametrize(
    ("kind", "params"), [(clients.BROKERS, SMALL), (clients.CLIENTS, ClientsParams())]
)
def test_same_seed_same_tables(kind: WorkloadKind, params: Any) -> None:
    first, again, other = (kind.generate(params, seed) for seed in (1, 1, 2))
    assert first.tables == again.tables
    assert first.tables["subscriptions"] != other.tables["subscriptions"]


def test_sizes_are_those_of_table_5_1() -> None:
    tables = clients.generate_brokers(BrokersParams(), 0).tables
    assert {name: table.num_rows for name, table in tables.items()} == {
        "subscriptions": 4500,
        "advertisements": 1500,
        "brokers": 450,
    }
    assert set(tables["subscriptions"]["topic"].to_pylist()) == {f"class{i}" for i in range(4)}
    assert set(tables["advertisements"]["broker"].to_pylist()) == set(
        tables["brokers"]["broker"].to_pylist()
    )


def test_every_subscription_has_one_to_four_ranges_by_even_chances() -> None:
    lo, hi = THESIS.subscriptions.lo, THESIS.subscriptions.hi
    ranged = ((lo > 0) | (hi < 1000)).sum(axis=1)
    # 15 subsets that are not empty; a range of the whole domain is too rare to matter.
    expected = np.array([4, 6, 4, 1]) / 15 * len(lo)
    assert stats.chisquare(np.bincount(ranged, minlength=5)[1:], expected).pvalue > 0.001


def test_ranges_lie_around_one_centre_per_attribute_and_are_zipf() -> None:
    lo, hi = THESIS.advertisements.lo, THESIS.advertisements.hi
    for axis in range(4):
        free = (lo[:, axis] > 0) & (hi[:, axis] < 1000)
        centre = (lo[free, axis] + hi[free, axis]) / 2
        assert 2.5 < centre.std() < 3.5
        width = np.round(hi[free, axis] - lo[free, axis])
        assert width.min() == 10
        assert set(width % 10) == {0}
        ones, twos = (width == 10).sum(), (width == 20).sum()
        assert ones / twos == pytest.approx(2**0.8, rel=0.5)


@pytest.mark.parametrize("bias", [0.0, 0.6, 1.0])
def test_the_bias_is_the_share_of_clients_at_brokers_that_prefer_their_class(bias: float) -> None:
    population = clients.populate_brokers(BrokersParams(bias=bias), 1)
    assert share_at_home(population.subscriptions) == pytest.approx(bias, abs=0.03)
    offered = population.advertisements
    first, rest = (one_of(offered, rows) for rows in (slice(0, 450), slice(450, None)))
    assert share_at_home(rest) == pytest.approx(bias, abs=0.05)
    # "A minimum of one advertisement was assigned to each broker": outside of the bias.
    assert share_at_home(first) == pytest.approx(0.25, abs=0.06)


def one_of(regions: Regions, rows: slice) -> Regions:
    return Regions(regions.topic[rows], regions.lo[rows], regions.hi[rows], regions.broker[rows])


def test_advertisements_may_prefer_another_class() -> None:
    """The appendix's pref_class_same: at a bias of 1 nothing is offered where it is wanted."""
    population = clients.populate_brokers(BrokersParams(bias=1.0, same_class=False), 1)
    assert share_at_home(population.subscriptions) == 1.0
    assert share_at_home(one_of(population.advertisements, slice(450, None))) == 0.0
    same = clients.populate_brokers(BrokersParams(bias=1.0), 1)
    assert (same.subscriptions.broker == population.subscriptions.broker).all()


def test_publishers_crowd_at_one_third_of_the_brokers() -> None:
    sent = clients.publications_by_rate(THESIS, 10_000, 3)
    broker = THESIS.advertisements.broker[sent.advertisement]
    assert (broker.mean(), broker.std()) == (
        pytest.approx(150, abs=0.2),
        pytest.approx(3.0, abs=0.2),
    )
    busiest = 145 + np.bincount(THESIS.advertisements.broker)[145:156].argmax()
    of_one = np.bincount(sent.advertisement, minlength=1500)[
        THESIS.advertisements.broker == busiest
    ]
    assert len(of_one) > 1
    assert stats.chisquare(of_one).pvalue > 0.001


@pytest.mark.parametrize(
    ("population", "sent"),
    [
        (THESIS, clients.publications_by_rate(THESIS, 500, 3)),
        (
            made := clients.populate_clients(ClientsParams(), 1),
            clients.publications_at_pace(made, 1.0, 3),
        ),
    ],
)
def test_publications_lie_in_their_advertisements(
    population: Population, sent: DrawnPublications
) -> None:
    boxes = population.advertisements
    lo, hi = boxes.lo[sent.advertisement], boxes.hi[sent.advertisement]
    assert ((lo <= sent.point) & (sent.point < hi)).all()
    where = (sent.point - lo) / (hi - lo)
    assert stats.kstest(where.ravel(), "uniform").pvalue > 0.001
    assert (np.diff(sent.time) >= 0).all()


def test_clients_publish_up_to_10_messages_a_second_at_an_even_pace() -> None:
    population = clients.populate_clients(ClientsParams(advertisements=1000), 1)
    assert set(population.rates) == set(range(1, 11))
    assert (population.rates == 1).sum() / (population.rates == 2).sum() == pytest.approx(
        2**2.0, rel=0.3
    )
    sent = clients.publications_at_pace(population, 10.0, 2)
    assert np.bincount(sent.advertisement).tolist() == (10 * population.rates).tolist()
    fast = int(np.argmax(population.rates))
    assert np.diff(sent.time[sent.advertisement == fast]) == pytest.approx(0.1)
    assert 0 <= sent.time.min() < sent.time.max() < 10


def test_clients_have_no_broker_yet() -> None:
    tables = clients.generate_clients(ClientsParams(advertisements=200), 1).tables
    assert tables["subscriptions"].num_rows == 600
    assert "broker" not in tables["subscriptions"].column_names
    assert "broker" not in tables["advertisements"].column_names
    assert set(tables["brokers"]["capacity"].to_pylist()) == {1000.0}


def test_clients_lie_around_the_means_of_their_class() -> None:
    """Section 5.4.2: four classes; centres are 3 from the mean of their class."""
    wanted = clients.populate_clients(ClientsParams(advertisements=2000), 3).subscriptions
    assert np.bincount(wanted.topic) == pytest.approx([1500] * 4, rel=0.1)
    means = []
    for topic in range(4):
        for axis in range(2):
            lo, hi = (ends[wanted.topic == topic, axis] for ends in (wanted.lo, wanted.hi))
            free = (lo > 0) & (hi < 1000)
            centre = (lo[free] + hi[free]) / 2
            assert 2.5 < centre.std() < 3.5
            means.append(centre.mean())
    assert np.std(means) > 30


def test_brokers_may_differ_in_capacity() -> None:
    """The appendix's diff_broker_cap: uniform from 0 to the largest."""
    params = ClientsParams(advertisements=10, equal_capacity=False)
    capacity = clients.generate_clients(params, 1).tables["brokers"]["capacity"].to_numpy()
    assert stats.kstest(capacity / 1000.0, "uniform").pvalue > 0.001
    assert capacity.min() > 0
    again = clients.generate_clients(params, 1).tables["brokers"]["capacity"].to_numpy()
    assert (capacity == again).all()


def test_routes_reach_the_brokers_of_matching_subscriptions_and_no_others() -> None:
    population = clients.populate_brokers(SMALL, 5)
    sent = clients.publications_by_rate(population, 300, 6)
    table, route = broker_routes(population, sent)
    wanted = population.subscriptions
    topic = population.advertisements.topic[sent.advertisement]
    hits = np.zeros(len(table))
    for i in range(len(sent)):
        inside = (wanted.lo <= sent.point[i]) & (sent.point[i] < wanted.hi)
        match = inside.all(axis=1) & (wanted.topic == topic[i])
        assert table.destinations(route[i]).tolist() == sorted(set(wanted.broker[match].tolist()))
        assert table.source[route[i]] == population.advertisements.broker[sent.advertisement[i]]
        hits[route[i]] += match.sum()
    assert table.messages.tolist() == np.bincount(route).tolist()
    assert table.deliveries.tolist() == hits.tolist()
    assert len({(table.source[r], *table.destinations(r)) for r in range(len(table))}) == len(table)


def test_client_routes_go_from_publishers_to_subscribers() -> None:
    population = clients.populate_clients(ClientsParams(advertisements=30), 5)
    table, route = client_routes(population, clients.publications_at_pace(population, 2.0, 6))
    assert (np.diff(table.starts) * table.messages).tolist() == table.deliveries.tolist()
    assert np.bincount(table.source, table.messages).tolist() == (2 * population.rates).tolist()
    assert table.brokers.max() < 90
    assert len(route) == table.messages.sum()


@pytest.mark.parametrize(
    ("kind", "options", "name"),
    [
        (BrokersParams, {"advertisements": 100}, "advertisements"),
        (BrokersParams, {"bias": 1.5}, "bias"),
        (BrokersParams, {"range_min": 2000.0}, "range_min"),
        (ClientsParams, {"range_min": 2000.0}, "range_min"),
        (ClientsParams, {"rate_ranks": 0}, "rate_ranks"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(
    kind: Any, options: dict[Any, Any], name: str
) -> None:
    with pytest.raises(InputError, match=name):
        kind(**options)
