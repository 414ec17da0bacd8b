"""Generators: draws from known parameters must give the parameters back; folders are whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fanplan.core.errors import InputError
from fanplan.core.options import about
from fanplan.workload.description import parse_description
from fanplan.workload.generators import KINDS, generated, load_kind
from fanplan.workload.generators.clients import BrokersParams, ClientsParams
from fanplan.workload.generators.cloud import CloudParams
from fanplan.workload.generators.draws import choose_by_weight, keep, streams, zipf
from fanplan.workload.generators.enterprise import EnterpriseParams
from fanplan.workload.generators.generated import (
    AxisLaw,
    GeneratorParams,
    PublicationLaw,
    write_workload,
)
from fanplan.workload.generators.listed_options import OptionsParams
from fanplan.workload.generators.networks import TransitStubParams, TreeGridParams
from fanplan.workload.generators.plain_topics import (
    MarketParams,
    RandomParams,
    StructuredParams,
    WebsphereParams,
    draw_pool,
    draw_roles,
)
from fanplan.workload.generators.plain_topics import draw_role_interest as websphere_interest
from fanplan.workload.generators.subjects import (
    ContentParams,
    SubjectsParams,
    draw_edges,
    draw_intervals,
    intervals_of,
)
from fanplan.workload.selector import compile_selector
from fanplan.workload.space import CategoryAttribute, NumberAttribute

SMALL: dict[str, GeneratorParams] = {
    "market": MarketParams(flows=200, users=20),
    "random": RandomParams(flows=100, users=20),
    "websphere": WebsphereParams(topics=80, processes=12, pool=10),
    "structured": StructuredParams(topics=80, processes=12, pool=10),
    "subjects": SubjectsParams(subscribers=20),
    "content": ContentParams(subscribers=20),
    "brokers": BrokersParams(brokers=12, subscriptions=80, advertisements=30),
    "clients": ClientsParams(advertisements=20),
    "transit-stub": TransitStubParams(),
    "tree-grid": TreeGridParams(cells=8),
    "enterprise": EnterpriseParams(flows=60, users=30),
    "options": OptionsParams(symbols=400, underlyings=6, users=20),
    "cloud": CloudParams(
        pods=2, leaves=3, hosts=4, planes=2, cores=1, tenants=3, groups=30, largest=20
    ),
}
READERS: dict[generated.TableFormat, Callable[[Path], pa.Table]] = {
    "parquet": pa.parquet.read_table,
    "csv": pa.csv.read_csv,
    "jsonl": pa.json.read_json,
}


def make(kind: str, params: GeneratorParams | None = None, seed: int = 1) -> generated.Generated:
    return load_kind(kind).generate(params or SMALL[kind], seed)


def interest(made: generated.Generated) -> tuple[np.ndarray, np.ndarray]:
    """Subscriptions as positions of subscribers and of topics."""
    table = made.tables["subscriptions"].unify_dictionaries().combine_chunks()
    return tuple(table[name].chunk(0).indices.to_numpy() for name in ("subscriber", "topic"))


# All kinds


def test_every_kind_is_registered_by_its_name_with_a_meaning_for_every_option() -> None:
    for name in KINDS:
        kind = load_kind(name)
        assert kind.name == name
        assert all(about(field).help for field in dataclasses.fields(kind.params))


def test_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="market, random, websphere, structured, subjects"):
        load_kind("weather")


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_workload(kind: str) -> None:
    first, again, other = make(kind), make(kind), make(kind, seed=2)
    assert first.tables == again.tables
    assert first.tables["subscriptions"] != other.tables["subscriptions"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_subscription_is_there_twice(kind: str) -> None:
    table = make(kind).tables["subscriptions"]
    assert len(set(map(tuple, map(dict.values, table.to_pylist())))) == table.num_rows


# The rate of `clients` is that of the slowest publisher, as the thesis gives it.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "clients"])
def test_advertised_rates_are_those_of_the_law_and_have_the_mean_asked_for(kind: str) -> None:
    made = make(kind, dataclasses.replace(SMALL[kind], rate=3.0))
    table = made.tables["advertisements"]
    assert table["topic"].to_pylist() == made.law.topics.to_pylist()
    assert table["rate"].to_numpy() == pytest.approx(made.law.rates)
    assert made.law.rates.mean() == pytest.approx(3.0)


@pytest.mark.parametrize("format", READERS)
@pytest.mark.parametrize("kind", ["market", "content"])
def test_written_tables_read_back_the_same(
    kind: str, format: generated.TableFormat, tmp_path: Path
) -> None:
    made = make(kind)
    write_workload(made, tmp_path / "w", format)
    assert {path.name for path in tmp_path.iterdir()} == {"w"}
    for name, table in made.tables.items():
        assert READERS[format](tmp_path / f"w/{name}.{format}").to_pylist() == table.to_pylist()


@pytest.mark.parametrize("kind", KINDS)
def test_written_description_reads_back_the_same(kind: str, tmp_path: Path) -> None:
    made = make(kind)
    write_workload(made, tmp_path / "w")
    text = (tmp_path / "w/workload.toml").read_text()
    assert parse_description(text, "workload.toml") == made.description


def test_long_tables_are_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanplan.workload.generators.generated.ROWS_AT_A_TIME", 7)
    made = make("random")
    for format, read in READERS.items():
        write_workload(made, tmp_path / format, format)
        table = read(tmp_path / f"{format}/subscriptions.{format}")
        assert table.to_pylist() == made.tables["subscriptions"].to_pylist()


# Folders


def failing(path: Path, schema: pa.Schema) -> None:
    path.write_text("half")
    raise OSError("no space left")


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "_writer", failing)
    with pytest.raises(OSError, match="no space"):
        write_workload(make("random"), tmp_path / "w")
    assert not list(tmp_path.iterdir())


def test_a_failed_replacement_leaves_the_old_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_workload(make("random"), tmp_path / "w")
    before = {path.name: path.read_bytes() for path in (tmp_path / "w").iterdir()}
    monkeypatch.setattr(generated, "_writer", failing)
    with pytest.raises(OSError, match="no space"):
        write_workload(make("random", seed=2), tmp_path / "w", replace=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "w").iterdir()} == before


def test_a_workload_is_replaced_only_when_asked(tmp_path: Path) -> None:
    write_workload(make("random"), tmp_path / "w")
    with pytest.raises(InputError, match="is a workload already"):
        write_workload(make("market"), tmp_path / "w")
    write_workload(make("market"), tmp_path / "w", "csv", replace=True)
    assert {path.name for path in (tmp_path / "w").iterdir()} == {
        "workload.toml",
        "subscriptions.csv",
        "advertisements.csv",
    }


def test_other_peoples_files_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="not a workload"):
        write_workload(make("random"), tmp_path, replace=True)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


# Parameters


def test_all_problems_of_parameters_are_reported_together() -> None:
    with pytest.raises(InputError) as caught:
        MarketParams(flows=0, users=-1, markets_per_user=11, want_decay=0.0, rate=float("nan"))
    assert {problem.where for problem in caught.value.problems} == {
        "flows",
        "users",
        "want_decay",
        "rate",
    }
    with pytest.raises(InputError) as caught:
        MarketParams(users=-1, markets_per_user=11)
    assert {problem.where for problem in caught.value.problems} == {"users", "markets_per_user"}


@pytest.mark.parametrize(
    ("kind", "options", "where"),
    [
        ("market", {"flows": 2.5}, "flows"),
        ("market", {"users": True}, "users"),
        ("market", {"zipf": "steep"}, "zipf"),
        ("market", {"flows": 5}, "markets"),
        ("random", {"interest": 1.01}, "interest"),
        ("random", {"interest": 0.0}, "interest"),
        ("websphere", {"noisy": -0.1}, "noisy"),
        ("subjects", {"categories": 0}, "categories"),
        ("subjects", {"categories": 7}, "subjects"),
        ("subjects", {"subjects_per_subscriber": 21}, "subjects_per_subscriber"),
        ("content", {"radius_min": 21}, "radius_min"),
        ("content", {"domain": 64 * 255 - 1}, "domain"),
        ("content", {"volumes": 3}, "subscriptions_max"),
        ("content", {"subjects_per_subscriber": 21}, "subjects_per_subscriber"),
    ],
)
def test_a_wrong_parameter_is_named(kind: str, options: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as caught:
        load_kind(kind).params(**options)
    assert [problem.where for problem in caught.value.problems] == [where]


@pytest.mark.parametrize(
    "rates", [np.array([1.0]), np.array([1.0, -1.0]), np.array([0.0, 0.0]), np.array([1, np.nan])]
)
def test_a_law_needs_a_rate_per_topic(rates: np.ndarray) -> None:
    with pytest.raises(InputError, match="law"):
        PublicationLaw(pa.array(["a", "b"]), rates, pa.array(["p", "p"]), 100)


@pytest.mark.parametrize(
    "attribute", [NumberAttribute("x", 0, 1), CategoryAttribute("x", ("a", "b", "c"))]
)
def test_weights_belong_to_the_values_of_a_category(
    attribute: NumberAttribute | CategoryAttribute,
) -> None:
    with pytest.raises(InputError, match="weights"):
        AxisLaw(attribute, np.array([1.0, 2.0]))


# Draws


def test_keep_follows_its_chances() -> None:
    chance, factor, rounds = 0.7 * np.exp(-np.arange(60) / 9), 2.0, 4000
    (rng,) = streams(3, 1)
    counts = np.zeros(60)
    for _ in range(rounds):
        counts[keep(rng, chance, factor)] += 1
    expected = np.minimum(1.0, factor * chance)
    deviation = np.sqrt(rounds * expected * (1 - expected)) + 1e-9
    assert np.abs(counts - rounds * expected)[expected == 1].max() == 0
    assert (np.abs(counts - rounds * expected) < 5 * deviation).all()


@given(
    chance=st.lists(st.floats(0, 1), min_size=1, max_size=50),
    factor=st.floats(0, 10),
    seed=st.integers(0, 2**32),
)
def test_keep_gives_different_positions_with_a_chance(
    chance: list[float], factor: float, seed: int
) -> None:
    falling = np.sort(chance)[::-1].copy()
    kept = keep(streams(seed, 1)[0], falling, factor)
    assert (np.diff(kept) > 0).all()
    assert set(np.flatnonzero(factor * falling >= 1)) <= set(kept)
    assert (factor * falling[kept] > 0).all()


def test_choose_draws_the_first_by_weight() -> None:
    weights = zipf(4, 1.0)
    counts = np.bincount(
        choose_by_weight(streams(5, 1)[0], 20_000, weights, 1).ravel(), minlength=4
    )
    assert stats.chisquare(counts, 20_000 * weights).pvalue > 0.001


# Market


def test_market_has_the_rates_of_its_ranks() -> None:
    law = make("market", MarketParams(flows=1000)).law
    rates = law.rates.reshape(10, 100)
    decay = 0.01 + np.exp(-np.arange(100) / 20)
    assert rates[:, 0] / rates[0, 0] == pytest.approx(1 / np.arange(1, 11))
    assert rates[3] / rates[3, 0] == pytest.approx(decay / decay[0])
    assert law.topics[315].as_py() == "m3.s15"


def test_market_interest_decays_with_rank_in_the_markets_chosen() -> None:
    params = MarketParams(flows=5000, users=400, activity_sigma=0.0)
    user, topic = interest(make("market", params))
    market, rank = np.divmod(topic, 500)
    assert (np.bincount(np.unique(user * 10 + market) // 10) == 4).all()
    chance = 0.8 * np.exp(-np.arange(500) / 75)
    counts, trials = np.bincount(rank, minlength=500), 400 * 4
    deviation = np.sqrt(trials * chance * (1 - chance))
    assert (np.abs(counts - trials * chance) < 5 * deviation + 1).all()
    assert user.size / 5000 == pytest.approx(trials * chance.sum() / 5000, rel=0.02)


def test_market_users_prefer_heavy_markets() -> None:
    params = MarketParams(flows=1000, users=2000, markets_per_user=1, activity_sigma=0.0)
    user, topic = interest(make("market", params))
    users = np.bincount(np.unique(user * 10 + topic // 100) % 10, minlength=10)
    share = zipf(10, 1.0)
    assert (np.abs(users - 2000 * share) < 5 * np.sqrt(2000 * share)).all()


def test_market_activity_has_the_sigma_asked_for() -> None:
    params = MarketParams(flows=50_000, users=300, want=0.05, activity_sigma=0.8)
    user, _ = interest(make("market", params))
    wanted = np.log(np.bincount(user, minlength=300))
    assert wanted.std() == pytest.approx(0.8, rel=0.15)


def test_markets_of_unequal_division_differ_by_one() -> None:
    topics = make("market", MarketParams(flows=103, markets=10)).law.topics.to_pylist()
    sizes = np.unique([topic.split(".")[0] for topic in topics], return_counts=True)[1]
    assert set(sizes) == {10, 11}


# Random


def test_random_interest_is_the_fraction_asked_for() -> None:
    user, topic = interest(make("random", RandomParams()))
    cells = 10_000 * 250
    assert abs(user.size - 0.03 * cells) < 5 * np.sqrt(0.03 * 0.97 * cells)
    assert stats.chisquare(np.bincount(topic, minlength=10_000)).pvalue > 0.001


def test_random_interest_of_one_is_everything() -> None:
    assert interest(make("random", RandomParams(flows=30, users=4, interest=1.0)))[0].size == 120


# WebSphere


def test_websphere_audiences_come_from_the_pool_but_for_noisy_topics() -> None:
    params = WebsphereParams()
    pool = {row.tobytes() for row in draw_pool(params, streams(1, 3)[0])}
    rows = [row.tobytes() for row in websphere_interest(params, 1)]
    strangers = sum(row not in pool for row in rows)
    untouched = (1 - params.noise) ** params.processes
    expected = params.topics * params.noisy * (1 - untouched)
    assert len(pool) <= 300
    assert abs(strangers - expected) < 5 * np.sqrt(expected)


def test_websphere_noise_changes_as_many_minds_as_asked_for() -> None:
    params = WebsphereParams()
    calm = websphere_interest(dataclasses.replace(params, noisy=0.0), 1)
    changed = int((calm != websphere_interest(params, 1)).sum())
    topics = params.topics * params.noisy
    expected = topics * params.processes * params.noise
    assert abs(changed - expected) < 5 * expected * np.sqrt(1 / expected + 1 / topics)


def test_websphere_audiences_are_chosen_by_zipf_weight() -> None:
    params = WebsphereParams(noisy=0.0, deviation=0.5)
    pool = [row.tobytes() for row in draw_pool(params, streams(1, 3)[0])]
    rows = [row.tobytes() for row in websphere_interest(params, 1)]
    expected = params.topics * zipf(300, 1.0)
    counts = [rows.count(audience) for audience in pool]
    assert stats.chisquare(counts, expected).pvalue > 0.001


def test_websphere_without_deviation_has_whole_roles() -> None:
    params = WebsphereParams(deviation=0.0, roles=3)
    pool = draw_pool(params, streams(1, 3)[0])
    assert len(np.unique(pool.T, axis=0)) <= 3
    assert pool.any(axis=1).all()


def test_structured_roles_are_of_very_different_size() -> None:
    params = StructuredParams(processes=20_000)
    sizes = np.bincount(draw_roles(params, streams(1, 3)[0]), minlength=params.roles)
    assert stats.chisquare(sizes, params.processes * zipf(20, 1.0)).pvalue > 0.001
    assert make("structured").description.name == "structured"


def test_websphere_table_is_its_matrix() -> None:
    params = WebsphereParams(topics=50, processes=9, pool=5)
    process, topic = interest(make("websphere", params))
    matrix = np.zeros((50, 9), bool)
    matrix[topic, process] = True
    assert (matrix == websphere_interest(params, 1)).all()


# Subjects


@pytest.mark.parametrize("categories", [1, 5])
def test_subscribers_choose_different_subjects_of_one_category(categories: int) -> None:
    subscriber, subject = interest(make("subjects", SubjectsParams(categories=categories)))
    chosen = subject.reshape(160, 10)
    assert (subscriber.reshape(160, 10) == np.arange(160)[:, None]).all()
    assert (np.diff(chosen) > 0).all()
    assert (np.ptp(chosen % categories, axis=1) == 0).all()
    assert set(chosen[:, 0] % categories) == set(range(categories))


def test_every_subject_is_chosen_alike() -> None:
    _, subject = interest(make("subjects", SubjectsParams(subscribers=5000)))
    counts = np.bincount(subject, minlength=100)
    assert stats.chisquare(counts).pvalue > 0.001


def test_relative_throughput_is_log_uniform_over_p_decades() -> None:
    rates = make("subjects", SubjectsParams(subjects=2000, p=2.0)).law.rates
    decades = np.log10(rates / rates.min())
    assert decades.max() <= 2.0
    assert stats.kstest(decades, stats.uniform(0, 2).cdf).pvalue > 0.001


def test_throughput_is_equal_for_p_zero() -> None:
    assert np.ptp(make("subjects", SubjectsParams(p=0.0)).law.rates) == 0


# Content


def test_content_has_the_subjects_of_the_subject_based_scenario() -> None:
    by_subject, by_content = make("subjects"), make("content")
    pairs = [set(zip(*interest(made), strict=True)) for made in (by_subject, by_content)]
    assert pairs[0] == pairs[1]
    assert (by_subject.law.rates == by_content.law.rates).all()


def test_content_subscriptions_per_subject_are_in_range() -> None:
    subscriber, subject = interest(make("content", ContentParams()))
    counts = np.unique(subscriber * 100 + subject, return_counts=True)[1]
    assert set(counts) == {4, 5, 6, 7, 8}


def test_content_subscriptions_are_shared_by_all_who_want_a_subject_or_by_nobody() -> None:
    """About 600 different ones, however many subscribers there are, as the paper needs."""
    for shared in (True, False):
        made = make("content", ContentParams(shared=shared))
        filters = np.array(made.tables["subscriptions"]["filter"].to_pylist())
        subscriber, subject = interest(made)
        own = {
            (who, what): frozenset(filters[(subscriber == who) & (subject == what)])
            for who, what in {*zip(subscriber, subject, strict=True)}
        }
        pools = [{sets for (_, what), sets in own.items() if what == s} for s in range(100)]
        assert all(len(pool) == 1 for pool in pools) == shared
        different = sum(len(frozenset().union(*pool)) for pool in pools)
        assert (560 < different < 640) == shared


def test_content_intervals_have_the_radius_asked_for_unless_cut_off() -> None:
    first, last = draw_intervals(ContentParams(), np.arange(20_000), streams(1, 1)[0])
    inside = (first > 0) & (last < 63)
    width = (last - first)[inside]
    assert set(width) == set(range(20, 41, 2))
    assert first.min() == 0
    assert last.max() == 63
    assert (last - first).min() == 10


def test_content_filters_are_boxes_between_the_subjects_own_edges() -> None:
    made = make("content")
    space = made.description.spaces[1]
    edges = draw_edges(ContentParams(subscribers=20), streams(1, 6)[3]).astype(float)
    edges[:, -1] = space.whole().hi[0]
    filters = made.tables["subscriptions"]["filter"].to_pylist()
    for text, own in zip(filters, edges[interest(made)[1]], strict=True):
        (box,) = compile_selector(text, space, max_boxes=1)
        assert box.lo[0] in own
        assert box.hi[0] in own


@given(
    volumes=st.integers(1, 40),
    smallest=st.integers(1, 50),
    more=st.integers(0, 50),
    spare=st.integers(0, 1000),
    seed=st.integers(0, 2**32),
)
def test_volumes_keep_their_share_of_the_domain(
    volumes: int, smallest: int, more: int, spare: int, seed: int
) -> None:
    params = ContentParams(
        subjects=3,
        categories=1,
        subjects_per_subscriber=1,
        volumes=volumes,
        volume_min=smallest,
        volume_max=smallest + more,
        radius_min=0,
        radius_max=0,
        subscriptions_min=1,
        subscriptions_max=1,
        domain=volumes * (smallest + more) + spare,
    )
    edges = draw_edges(params, streams(seed, 1)[0])
    again = streams(seed, 1)[0]
    sizes = again.integers(smallest, smallest + more, (3, volumes), endpoint=True)
    share = sizes * params.domain / sizes.sum(axis=1, keepdims=True)
    assert (edges[:, 0] == 0).all()
    assert (edges[:, -1] == params.domain).all()
    assert (np.abs(np.diff(edges, axis=1) - share) < 1).all()
    assert (np.diff(edges, axis=1) > 0).all()


@settings(max_examples=50)
@given(volumes=st.integers(1, 12), radius=st.integers(0, 14))
def test_as_many_intervals_as_are_counted(volumes: int, radius: int) -> None:
    centre = np.arange(volumes)
    first, last = np.maximum(centre - radius, 0), np.minimum(centre + radius, volumes - 1)
    assert intervals_of(volumes, radius) == len(set(zip(first, last, strict=True)))
