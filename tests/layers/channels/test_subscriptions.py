"""The subscription problem, from a dataset and from generators, against loops over its tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Flow, World, save_plan, write_dataset
from pyspark.sql import SparkSession
from sealing import amend, seal_dataset

from fanplan.core.errors import InputError
from fanplan.core.progress import quiet
from fanplan.core.stop import Stop
from fanplan.core.tables import arrow_schema
from fanplan.data.ingest.ingest import ingest_workload
from fanplan.data.tables import REGIONS
from fanplan.layers.channels.methods import Method, channels_by_method
from fanplan.layers.channels.published.genetic.params import AtomicParams, GeneticParams
from fanplan.layers.channels.published.genetic.plan import genetic, genetic_atomic
from fanplan.layers.channels.published.genetic.problem import (
    SubscriptionProblem,
    generated_subscriptions,
    load_subscriptions,
    one_per_subscriber,
)
from fanplan.verbs.check import check_plan
from fanplan.workload.generators import subjects
from fanplan.workload.generators.generated import Generated

SMALL = subjects.ContentParams(
    shared=False,
    subjects=6, categories=2, subscribers=9, subjects_per_subscriber=2, volumes=12,
    radius_min=1, radius_max=3, subscriptions_min=1, subscriptions_max=3,
)  # fmt: skip

TOML = """
topic_syntax = "nats"
seconds = 10.0
grid = "atomic"

[attributes]
price = { type = "number", min = 0.0, max = 100.0 }
venue = { type = "category", values = ["N", "Q", "Z"] }

[topics."q.*"]
attributes = ["venue", "price"]

[topics.alerts]
"""
SUBSCRIPTIONS = """subscriber,topic,filter
ann,q.*,price < 20 OR price >= 80
bob,q.a,price >= 80 OR price < 20
bob,alerts,
cid,alerts,
cid,q.b,venue = 'N'
dan,>,
dan,q.b,price < 50
"""
PUBLICATIONS = "topic,price,venue\n" + "\n".join(
    ["q.a,10,N"] * 3
    + ["q.a,90,Q"] * 2
    + ["q.a,50,Z"] * 4
    + ["q.b,10,N"]
    + ["q.b,60,N"] * 2
    + ["q.b,20,Q"] * 5
    + ["alerts,,"] * 6
)


def listed(
    problem: SubscriptionProblem,
) -> dict[tuple[Any, ...], tuple[frozenset[int], frozenset[int]]]:
    """Subscribers and rows of each subscription, by topic and boxes."""
    result = {}
    for s in range(problem.size):
        boxes = [(*problem.lo[i], *problem.hi[i]) for i in problem.boxes[s]]
        sets = frozenset(problem.subscribers[s].tolist()), frozenset(problem.rows[s].tolist())
        result[int(problem.topic[s]), frozenset(boxes)] = sets
    assert len(result) == problem.size
    return result


def require_same_interest(problem: SubscriptionProblem) -> None:
    """A row's audience must be the subscribers of the subscriptions that cover it."""
    interest = problem.interest
    wanted: list[set[int]] = [set() for _ in range(interest.size)]
    for s in range(problem.size):
        for row in problem.rows[s]:
            wanted[row] |= set(problem.subscribers[s].tolist())
    ends = zip(interest.indptr, interest.indptr[1:], strict=False)
    found = [interest.audience[a:b] for a, b in ends]
    assert wanted == [set(audience.tolist()) for audience in found]


@pytest.fixture(scope="module")
def dataset(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workload with a pattern, filters of several boxes, equal filters and a plain topic."""
    folder = tmp_path_factory.mktemp("subscriptions") / "workload"
    folder.mkdir()
    (folder / "workload.toml").write_text(TOML)
    (folder / "subscriptions.csv").write_text(SUBSCRIPTIONS)
    (folder / "publications.csv").write_text(PUBLICATIONS)
    made = folder.parent / "dataset"
    ingest_workload(lambda _: spark, folder, made, {}, quiet())
    return made


def test_a_dataset_has_each_filter_once_per_topic(dataset: Path) -> None:
    problem = load_subscriptions(dataset)
    require_same_interest(problem)
    topics = {"alerts": 0, "q.a": 1, "q.b": 2}
    who = {name: i for i, name in enumerate(("ann", "bob", "cid", "dan"))}
    tails = {(0.0, 0.0, 3.0, 20.0), (0.0, 80.0, 3.0, np.nextafter(100, 200))}
    whole = {(0.0, 0.0, 3.0, np.nextafter(100, 200))}
    expected = {
        (topics["q.a"], frozenset(tails)): {"ann", "bob"},
        (topics["q.b"], frozenset(tails)): {"ann"},
        (topics["alerts"], frozenset({(0.0, 0.0, 1.0, 1.0)})): {"bob", "cid", "dan"},
        (topics["q.b"], frozenset({(0.0, 0.0, 1.0, np.nextafter(100, 200))})): {"cid"},
        (topics["q.a"], frozenset(whole)): {"dan"},
        (topics["q.b"], frozenset(whole)): {"dan"},
        (topics["q.b"], frozenset({(0.0, 0.0, 3.0, 50.0)})): {"dan"},
    }
    found = {key: sets[0] for key, sets in listed(problem).items()}
    assert found == {key: frozenset(who[n] for n in names) for key, names in expected.items()}


def test_a_dataset_has_hits_volumes_and_totals(dataset: Path) -> None:
    problem = load_subscriptions(dataset)
    hits = {
        (t, len(problem.boxes[s]), len(problem.subscribers[s]), n)
        for s, (t, n) in enumerate(zip(problem.topic.tolist(), problem.hits.tolist(), strict=True))
    }
    # (topic, boxes, subscribers, hits); a pattern's hits are told apart by topic.
    assert hits == {(1, 2, 2, 5), (2, 2, 1, 1), (0, 1, 3, 6), (2, 1, 1, 3), (1, 1, 1, 9),
                    (2, 1, 1, 8), (2, 1, 1, 6)}  # fmt: skip
    assert problem.topic_messages.tolist() == [6.0, 9.0, 8.0]
    assert problem.root_hits.tolist() == [6.0, 9.0, 8.0]
    assert problem.topic_volume == pytest.approx([1.0, 300.0, 300.0])
    assert np.bincount(problem.row_topic, problem.row_volume)[0] == 1.0


@pytest.mark.parametrize("method", ["genetic", "genetic-atomic"])
def test_plans_of_a_dataset_pass_the_check(dataset: Path, tmp_path: Path, method: str) -> None:
    problem = load_subscriptions(dataset)

    def over_subscriptions(_: Any, params: Any, seed: int, stop: Stop) -> Any:
        return genetic(problem, params, seed, stop)

    made = {
        "genetic": Method(method, over_subscriptions, GeneticParams, "flow", ""),
        "genetic-atomic": Method(method, genetic_atomic, AtomicParams, "flow", ""),
    }[method]
    plan = channels_by_method(problem.interest, made, made.params(3))
    result = check_plan(save_plan(plan, dataset, tmp_path / "plan").folder, dataset)
    assert (result.missed, result.violations) == (0, ())


def test_without_measured_rates_nothing_is_counted(dataset: Path, tmp_path: Path) -> None:
    copy = tmp_path / "dataset"
    shutil.copytree(dataset, copy)
    amend(copy, rates="advertised")
    shutil.rmtree(copy / "hits")
    problem = load_subscriptions(copy)
    assert set(problem.hits.tolist()) == {0}
    assert listed(problem) == listed(load_subscriptions(dataset))


def test_a_dataset_of_plain_topics_needs_no_grid(tmp_path: Path) -> None:
    audiences: tuple[frozenset[int], ...] = (frozenset({0, 1}), frozenset({1}), frozenset())
    world = World(tuple(Flow(audience, 5.0) for audience in audiences), subscribers=2)
    made = write_dataset(tmp_path / "dataset", world)
    whole = [(0, 10, 0), (0, 20, 1), (1, 21, 1)]
    boxes = pa.table(
        {"topic_id": [t for t, _, _ in whole], "subscription": [s for _, s, _ in whole],
         "subscriber_id": [u for _, _, u in whole], "lo": [[]] * 3, "hi": [[]] * 3},
        schema=arrow_schema(REGIONS),
    )  # fmt: skip
    stages = {
        "regions": boxes,
        "cover": boxes,
        "topics": pa.table({"topic_id": [0, 1, 2]}),
        "hits": pa.table({"subscription": [20, 10], "hits": [5, 5]}),
        "subscriptions": pa.table({"subscriber_id": [0, 1, 1], "broker": ["b2", None, "b1"]}),
    }
    for name, table in stages.items():
        (made / name).mkdir()
        pq.write_table(table, made / name / "part-0.parquet")
    seal_dataset(made)
    problem = load_subscriptions(made)
    assert problem.place is not None
    assert sorted(problem.place.tolist()) == [0, 1]
    require_same_interest(problem)
    assert [own.tolist() for own in map(problem.subscribers.__getitem__, (0, 1))] == [[0, 1], [1]]
    # Subscription 21 is not among the hits, so it has none.
    assert problem.hits.tolist() == [5, 0]
    assert problem.topic_messages.tolist() == [5.0, 5.0, 5.0]
    assert problem.root_hits.tolist() == [5.0, 5.0, 0.0]


def generated_intervals(generated: Generated) -> set[tuple[str, str, str]]:
    return {
        (row["subscriber"], row["topic"], row["filter"])
        for row in generated.tables["subscriptions"].to_pylist()
    }


def test_generated_content_covers_its_share_of_the_traffic() -> None:
    generated = subjects.generate_content(SMALL, 1)
    problem = generated_subscriptions(generated, seconds=1000.0)
    require_same_interest(problem)
    assert problem.content_based
    rates = dict(zip(generated.law.topics.to_pylist(), generated.law.rates, strict=True))
    names = problem.interest.subscribers.to_pylist()
    topics = generated.law.topics.to_pylist()
    asked: dict[Any, Any] = {}
    for who, topic, filter_ in generated_intervals(generated):
        words = filter_.split()
        ends = float(words[2]), float(words[6])
        asked.setdefault((topic, ends), set()).add(who)
    assert len(asked) == problem.size
    for s in range(problem.size):
        topic, line = topics[problem.topic[s]], problem.boxes[s][0]
        ends = problem.lo[line, 0], np.round(problem.hi[line, 0])
        assert asked[topic, ends] == {names[i] for i in problem.subscribers[s]}
        expected = 1000.0 * rates[topic] * (ends[1] - ends[0]) / SMALL.domain
        assert problem.interest.messages[problem.rows[s]].sum() == pytest.approx(expected)
        assert problem.hits[s] == pytest.approx(expected, abs=1.01)


def test_generated_subjects_are_one_subscription_each() -> None:
    params = subjects.SubjectsParams(subjects=12, categories=2, subscribers=8,
                                     subjects_per_subscriber=3)  # fmt: skip
    problem = generated_subscriptions(subjects.generate_subjects(params, 0))
    require_same_interest(problem)
    assert not problem.content_based
    assert problem.size == problem.interest.size == len(np.unique(problem.topic))


def test_drawn_hits_come_from_the_seed() -> None:
    generated = subjects.generate_content(SMALL, 1)
    one, same, other = (generated_subscriptions(generated, 50.0, seed) for seed in (1, 1, 2))
    assert one.hits.tolist() == same.hits.tolist() != other.hits.tolist()
    for s in range(one.size):
        assert one.hits[s] == one.interest.messages[one.rows[s]].sum()


def test_one_per_subscriber_splits_the_shared() -> None:
    problem = generated_subscriptions(
        subjects.generate_subjects(subjects.SubjectsParams(subscribers=30), 0)
    )
    single = one_per_subscriber(problem)
    require_same_interest(single)
    assert single.size == len(problem.subscribers.values)
    assert set(np.diff(single.subscribers.starts)) == {1}


def test_a_topic_that_is_not_known_is_named() -> None:
    generated = subjects.generate_subjects(subjects.SubjectsParams(), 0)
    table = generated.tables["subscriptions"]
    strange = table.set_column(1, "topic", [["c0.*"] * len(table)])
    wrong = Generated(generated.description, {"subscriptions": strange}, generated.law)
    with pytest.raises(InputError, match="not to one of its topics"):
        generated_subscriptions(wrong)
