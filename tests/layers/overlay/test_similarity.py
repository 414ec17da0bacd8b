"""Similarity and routes of an ingested workload against loops over its tables."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from commands import answer, run
from pyspark.sql import SparkSession
from sealing import seal_dataset

from fanplan.boxes.extents import Extents, make_extents
from fanplan.core.errors import InputError
from fanplan.core.progress import quiet
from fanplan.data.ingest import extents
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.extents import Measure
from fanplan.data.ingest.ingest import ingest_workload
from fanplan.data.reader import read_stage
from fanplan.data.subscription_cells import padded
from fanplan.layers.overlay.problem import (
    both_ways,
    broker_similarity,
    client_similarity,
    covered_interest,
    different_owners,
    owner_cover,
    owner_interest,
    owner_matrix,
    owner_overlap,
)
from fanplan.layers.overlay.stages import routes, similarity
from fanplan.network.brokers import Routes
from fanplan.network.dataset import load_clients, load_overlay, read_brokers

TOML = """
topic_syntax = "nats"
seconds = 10.0

[attributes]
price = { type = "number", min = 0.0, max = 100.0 }
venue = { type = "category", values = ["N", "Q", "Z"] }

[topics."q.*"]
attributes = ["price", "venue"]

[topics.alerts]
"""
BROKERS = ["b0", "b1", "b2", "b3"]
TOPICS = ["q.a", "q.b"]
PUBLICATIONS = 300


def some_filter(draw: Random) -> str:
    low = draw.randrange(0, 80, 10)
    price = f"price >= {low} AND price < {low + draw.randrange(10, 60, 10)}"
    return draw.choice([price, f"{price} AND venue = 'Q'", f"NOT ({price})", "venue <> 'N'"])


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    pa.csv.write_csv(pa.Table.from_pylist(rows), folder / f"{name}.csv")


def write_workload(folder: Path) -> Path:
    """Clients of four brokers; subscribers are at one broker, or at two."""
    draw = Random(7)
    folder.mkdir()
    (folder / "workload.toml").write_text(TOML)
    subscriptions = [
        {
            "subscriber": f"s{draw.randrange(12):02}",
            "topic": draw.choice([*TOPICS, "q.*"]),
            "filter": some_filter(draw),
            "broker": draw.choice(BROKERS),
        }
        for _ in range(40)
    ]
    subscriptions += subscriptions[:5]
    subscriptions.append({**subscriptions[0], "topic": "alerts", "filter": ""})
    write(folder, "subscriptions", subscriptions)
    advertisements = [
        {
            "publisher": f"p{i % 5}",
            "topic": draw.choice(TOPICS),
            "filter": some_filter(draw),
            "rate": float(draw.randint(1, 4)),
            "broker": BROKERS[i % 5 % 4],
        }
        for i in range(9)
    ]
    write(folder, "advertisements", advertisements)
    write(folder, "brokers", [{"broker": b, "capacity": 28.0, "cost": 2.0} for b in BROKERS])
    write(folder, "links", [{"a": "b2", "b": "b1", "latency_ms": 3.0}])
    sent = [
        {
            "time": i / 10,
            "publisher": f"p{draw.randrange(5)}",
            "topic": draw.choice([*TOPICS, "alerts"]),
            "bytes": 10,
            "price": draw.randrange(0, 100, 5),
            "venue": draw.choice("NQZ"),
        }
        for i in range(PUBLICATIONS)
    ]
    write(folder, "publications", sent)
    return folder


@pytest.fixture(scope="module")
def measured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Derived:
    folder = tmp_path_factory.mktemp("measured")
    workload, out = write_workload(folder / "workload"), folder / "dataset"
    ingest_workload(lambda _: spark, workload, out, {"grid": "atomic"}, quiet())
    return Derived(lambda: spark, out, quiet())


def linked(source: Derived, folder: Path, *without: str) -> Path:
    """A copy of a dataset, without some of its parts."""
    shutil.copytree(source.dataset, folder, ignore=shutil.ignore_patterns(*without))
    return folder


@pytest.fixture
def advertised(measured: Derived, tmp_path: Path) -> Derived:
    """The same as if rates were taken from advertisements."""
    folder = linked(measured, tmp_path / "advertised", "manifest.json", "routes", "client_routes")
    manifest = json.loads((measured.dataset / "manifest.json").read_text())
    del manifest["stages"]["publications"]
    (folder / "manifest.json").write_text(json.dumps({**manifest, "rates": "advertised"}))
    seal_dataset(folder)
    return Derived(measured.session, folder, quiet())


# ---- the same from the tables, in memory


def position(names: Any) -> dict[str, int]:
    return {name: i for i, name in enumerate(sorted(set(names)))}


def of_subscriptions(source: Derived, owner: str) -> Extents:
    rows = read_stage(source.dataset, "subscriptions").to_pylist()
    number = {row["subscription"]: i for i, row in enumerate(rows)}
    names = position(row[owner] for row in rows)
    boxes = read_stage(source.dataset, "regions").combine_chunks()
    return make_extents(
        [names[row[owner]] for row in rows],
        [number[s] for s in boxes["subscription"].to_pylist()],
        boxes["topic_id"].to_numpy(),
        padded(boxes["lo"], 2, 0.0),
        padded(boxes["hi"], 2, 1.0),
    )


def of_advertisements(source: Derived, owner: str) -> Extents:
    """Each with its boxes; a broker's count one, a publisher's by their share of the rate."""
    rows = read_stage(source.dataset, "advertisements").to_pylist()
    topics = {r["topic"]: r for r in read_stage(source.dataset, "topics").to_pylist()}
    meaning = read_stage(source.dataset, "filters").to_pylist()
    boxes = {(r["filter"], r["space"]): r["boxes"] for r in meaning}
    flat = [
        (i, topics[row["topic"]]["topic_id"], box["lo"], box["hi"])
        for i, row in enumerate(rows)
        for box in boxes[row["filter"], topics[row["topic"]]["space"]]
    ]
    names = position(row[owner] for row in rows)
    total: dict[str, float] = defaultdict(float)
    for row in rows:
        total[row["publisher"]] += row["rate"]
    share = [row["rate"] / total[row["publisher"]] for row in rows]
    number, topic, lo, hi = map(np.array, zip(*flat, strict=True))
    weight = share if owner == "publisher" else None
    return make_extents([names[row[owner]] for row in rows], number, topic, lo, hi, weight)


def as_dict(found: Routes) -> dict[tuple[int, tuple[int, ...]], tuple[float, float]]:
    return {
        (int(found.source[i]), tuple(found.destinations(i).tolist())): (
            float(found.messages[i]),
            float(found.deliveries[i]),
        )
        for i in range(len(found))
    }


def matching(source: Derived, topic: int, point: list[float]) -> list[dict[str, Any]]:
    """The subscriptions that want a point."""
    own = {r["subscription"]: r for r in read_stage(source.dataset, "subscriptions").to_pylist()}
    found = {}
    for box in read_stage(source.dataset, "regions").to_pylist():
        ends = zip(box["lo"], point, box["hi"], strict=False)
        if box["topic_id"] == topic and all(lo <= x < hi for lo, x, hi in ends):
            found[box["subscription"]] = own[box["subscription"]]
    return list(found.values())


def routed(source: Derived) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Routes of brokers and of clients, publication by publication."""
    topics = {r["topic"]: r["topic_id"] for r in read_stage(source.dataset, "topics").to_pylist()}
    brokers: dict[Any, Any] = defaultdict(lambda: np.zeros(2))
    clients: dict[Any, Any] = defaultdict(lambda: np.zeros(2))
    for sent in read_stage(source.dataset, "publications").to_pylist():
        wanted = matching(source, topics[sent["topic"]], [sent["x0"], sent["x1"]])
        publisher = int(sent["publisher"][1:])
        homes = {(r["subscriber_id"], r["broker"]) for r in wanted}
        reached = tuple(sorted({BROKERS.index(broker) for _, broker in homes}))
        subscribers = tuple(sorted({subscriber for subscriber, _ in homes}))
        brokers[publisher % 4, reached] += [1, len(homes)]
        clients[publisher, subscribers] += [1, len(subscribers)]
    return _tuples(brokers), _tuples(clients)


def _tuples(found: dict[Any, Any]) -> dict[Any, Any]:
    return {key: tuple(value) for key, value in found.items()}


# ---- tests


def test_brokers(measured: Derived, monkeypatch: pytest.MonkeyPatch) -> None:
    """All metrics and routes, with owners in several chunks, and some that are split."""
    monkeypatch.setattr(extents, "CHUNK", 9)
    similarity.broker_pairs(measured)
    routes.stage_broker_routes(measured)
    problem = load_overlay(measured.dataset)
    subscriptions = of_subscriptions(measured, "broker")
    wanted = broker_similarity(subscriptions, of_advertisements(measured, "broker"), 4)
    for name in ("overlap", "cover", "interest"):
        found = getattr(problem.similarity, name).toarray()
        assert found.any()
        assert found == pytest.approx(getattr(wanted, name).toarray()), name
    assert as_dict(problem.routes) == routed(measured)[0]
    assert problem.brokers.to_pylist() == BROKERS
    assert problem.capacity.tolist() == [28.0] * 4
    assert problem.cost.tolist() == [2.0] * 4
    assert problem.links is not None
    assert (problem.links.a[0], problem.links.b[0]) == (1, 2)


def test_clients(measured: Derived) -> None:
    similarity.client_pairs(measured)
    routes.stage_client_routes(measured)
    problem = load_clients(measured.dataset)
    subscriptions = of_subscriptions(measured, "subscriber")
    advertisements = of_advertisements(measured, "publisher")
    interest, common = client_similarity(subscriptions, advertisements, len(problem.subscribers), 5)
    assert problem.interest.toarray() == pytest.approx(interest.toarray())
    assert problem.common.toarray() == pytest.approx(common.toarray())
    assert as_dict(problem.routes) == routed(measured)[1]
    assert problem.rates.sum() == pytest.approx(30.0)


def test_volumes_by_traffic(measured: Derived, tmp_path: Path) -> None:
    """On an atomic grid the volume of an extent is its number of publications."""
    topics = {r["topic"]: r["topic_id"] for r in read_stage(measured.dataset, "topics").to_pylist()}
    subscriptions = read_stage(measured.dataset, "subscriptions").to_pylist()
    wants = np.zeros((len(subscriptions), PUBLICATIONS))
    place = {row["subscription"]: i for i, row in enumerate(subscriptions)}
    for k, sent in enumerate(read_stage(measured.dataset, "publications").to_pylist()):
        for row in matching(measured, topics[sent["topic"]], [sent["x0"], sent["x1"]]):
            wants[place[row["subscription"]], k] = 1
    volume = np.maximum(wants.sum(axis=1), 1e-9)
    values = (wants @ wants.T) ** 2 / np.outer(volume, volume)
    at = np.array([BROKERS.index(row["broker"]) for row in subscriptions])
    member = np.eye(4)[:, at]
    wanted = member @ values @ member.T * (1 - np.eye(4))
    other = Derived(measured.session, linked(measured, tmp_path / "other", "similarity"), quiet())
    similarity.broker_pairs(other, Measure(traffic=True))
    found = load_similarity(other)
    assert found["overlap"] == pytest.approx(wanted)
    assert found["cover"].any()


def test_interest_by_covering(measured: Derived, tmp_path: Path) -> None:
    """Section 5.3.2: less than interest by overlap, and nothing where nothing is covered."""
    other = Derived(measured.session, linked(measured, tmp_path / "other", "similarity"), quiet())
    similarity.broker_pairs(other, with_cover=False, interest="cover")
    pairs = covered_interest(
        of_advertisements(measured, "broker"), of_subscriptions(measured, "broker")
    )
    wanted = owner_matrix(different_owners(pairs), (4, 4)).toarray()
    assert load_similarity(other)["interest"] == pytest.approx(wanted)


def test_only_covered_advertisements_count() -> None:
    """Broker 0 advertises; broker 1 covers that, broker 2 only meets it."""
    offered = make_extents([0], [0], [0], np.array([[2.0, 2.0]]), np.array([[4.0, 4.0]]))
    lo, hi = np.array([[1.0, 1.0], [3.0, 3.0]]), np.array([[5.0, 5.0], [9.0, 9.0]])
    wanted = make_extents([1, 2], [0, 1], [0, 0], lo, hi)
    i, j, value = covered_interest(offered, wanted)
    assert [pair for pair, one in zip(zip(i, j, strict=True), value, strict=True) if one] == [
        (0, 1)
    ]
    assert {int(broker) for broker in owner_interest(offered, wanted)[1]} == {1, 2}


def load_similarity(source: Derived) -> dict[str, np.ndarray]:
    pairs = read_stage(source.dataset, "similarity").to_pylist()
    found = {name: np.zeros((4, 4)) for name in ("overlap", "cover", "interest")}
    for row in pairs:
        for name, values in found.items():
            values[row["i"], row["j"]] = row[name]
    return found


def test_advertised_rates(advertised: Derived) -> None:
    """Without publications the rates are spread by volume; nothing of them is lost."""
    routes.stage_broker_routes(advertised)
    routes.stage_client_routes(advertised)
    rows = read_stage(advertised.dataset, "advertisements").to_pylist()
    routes_of_clients = load_routes(advertised, "client_routes")
    for publisher in range(5):
        rate = sum(row["rate"] for row in rows if row["publisher"] == f"p{publisher}")
        own = [m for (source, _), (m, _) in routes_of_clients.items() if source == publisher]
        assert sum(own) == pytest.approx(rate)
    between = load_routes(advertised, "routes")
    assert sum(m for m, _ in between.values()) == pytest.approx(sum(r["rate"] for r in rows))
    # Expected deliveries to a subscriber are its regions' share of each advertisement.
    assert all(d >= m * len(reached) - 1e-9 for (_, reached), (m, d) in between.items())


def load_routes(source: Derived, stage: str) -> dict[Any, Any]:
    table = read_stage(source.dataset, stage).to_pylist()
    return {
        (r["source"], tuple(r["destinations"])): (r["messages"], r["deliveries"]) for r in table
    }


def test_a_stage_is_made_once(measured: Derived) -> None:
    similarity.broker_pairs(measured)
    before = {p.name: p.stat().st_mtime_ns for p in (measured.dataset / "similarity").iterdir()}
    similarity.broker_pairs(measured)
    after = {p.name: p.stat().st_mtime_ns for p in (measured.dataset / "similarity").iterdir()}
    assert before == after
    left = (".*.tmp", "*.partial-*", ".*.replaced")
    assert not [path for name in left for path in measured.dataset.glob(name)]


def test_an_unknown_broker_is_named(measured: Derived, tmp_path: Path) -> None:
    folder = linked(measured, tmp_path / "dataset", "brokers")
    (folder / "brokers").mkdir()
    table = read_stage(measured.dataset, "brokers")
    pa.parquet.write_table(table.slice(1), folder / "brokers" / "part.parquet")
    seal_dataset(folder)
    missing = table["broker"][0].as_py()
    with pytest.raises(InputError, match=f"broker '{missing}'.*not in the table brokers"):
        read_brokers(folder)


MADE = ("similarity", "routes", "client_overlap", "client_interest", "client_routes")


def marked_where_clients_are(plan: Path, dataset: Path) -> None:
    """All regions count, each at the broker that its client was allocated to."""
    regions = read_stage(dataset, "client_descriptors", ("client", "role", "regions")).to_pylist()
    at = {
        (row["client"], row["role"]): row["broker"]
        for row in pa.parquet.read_table(plan / "clients.parquet").to_pylist()
    }
    record = json.loads((plan / "plan.json").read_text())["marking"]
    for role, count in (("publisher", "published"), ("subscriber", "subscribed")):
        own = [row for row in regions if row["role"] == role]
        assert record[count] == sum(row["regions"] for row in own)
        assert record[f"{role}s"] == len({at[row["client"], role] for row in own})
    assert record["subscribed"] == len(read_stage(dataset, "regions", ("subscription",)))


def test_commands_make_the_stages_that_they_need(
    measured: Derived, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Link, allocate, check and simulate, from a dataset as ingest leaves it."""
    dataset = linked(measured, tmp_path / "free", "manifest.json", *MADE)
    manifest = json.loads((measured.dataset / "manifest.json").read_text())
    del manifest["stages"]["links"]
    (dataset / "manifest.json").write_text(json.dumps(manifest))
    seal_dataset(dataset)
    mesh, fewer = tmp_path / "mesh", tmp_path / "fewer"
    spark = ("--master", "local[2]")
    code, told = answer(capsys, "overlay", dataset, "--out", mesh, "--traffic", "--rates", *spark)
    assert (code, told["links"]) == (0, 3)
    share = ("--lcf", 1, "--stable")
    code, told = answer(capsys, "allocate", dataset, "--out", fewer, *share, *spark)
    assert (code, told["clients"]) == (0, 16)
    whole = tmp_path / "whole"
    fixed = ("--fix", f"overlay={fewer}", "--without", "direct")
    code, told = answer(capsys, "design", dataset, *fixed, "--out", whole, *spark)
    assert (code, told["layers"][3]) == (0, "marking")
    marked_where_clients_are(whole, dataset)
    for plan in (mesh, fewer, whole):
        assert run("check", plan, dataset, *spark) == 0
    for plan in (mesh, fewer):
        code, told = answer(capsys, "simulate", plan, dataset, *spark)
        assert (code, told["publications"], told["agrees"]) == (0, PUBLICATIONS, True)
    (dataset / "manifest.json").write_text((measured.dataset / "manifest.json").read_text())
    seal_dataset(dataset)
    assert run("overlay", dataset, "--out", tmp_path / "apart", *spark) == 2
    assert "no links lead from broker 'b0'" in capsys.readouterr().err
    assert run("mark", dataset, "--trees", "per-source", "--out", tmp_path / "apart", *spark) == 2
    assert "that of 'b1' does not reach 'b0'" in capsys.readouterr().err


def test_a_large_broker_is_split(spark: SparkSession, tmp_path: Path) -> None:
    """No chunk and no task has much more than others, and values are those of one task."""
    chance, count = np.random.default_rng(1), 400
    owner = np.where(np.arange(count) < 250, 2, chance.integers(0, 5, count))
    lo = chance.integers(0, 8, (count, 2)).astype(float)
    hi = lo + chance.integers(1, 8, (count, 2))
    wanted = make_extents(owner, np.arange(count), np.arange(count) % 2, lo, hi)
    rows = pa.table({"subscription": np.arange(count), "owner": owner.astype(np.int32)})
    boxes = rows.append_column("topic_id", pa.array(np.arange(count) % 2, pa.int32()))
    for name, side in (("lo", lo), ("hi", hi)):
        boxes = boxes.append_column(name, pa.array(list(side)))
    owned, regions = (spark.createDataFrame(table) for table in (rows, boxes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extents, "CHUNK", 40)
        weighted = owned.selectExpr("*", "1.0D AS weight")
        chunks = extents.write_chunks(weighted, regions.drop("owner"), 2, tmp_path / "chunks")
    held = [len(chunks.load((number,))) for number in chunks.numbers]
    assert max(held) < 80
    assert len(chunks.numbers) == len(chunks.whole) + len(chunks.whole[-1]) - 1
    shape = (5, 5)
    for found, expected in (
        (similarity.overlaps_of_owners(spark, chunks), both_ways(owner_overlap(wanted, wanted))),
        (similarity.interests_of_owners(spark, chunks, chunks), owner_interest(wanted, wanted)),
        (
            similarity.covers_of_owners(spark, chunks, chunks).filter("i != j"),
            different_owners(owner_cover(wanted, wanted)),
        ),
    ):
        values = [found.toArrow()[name].to_numpy() for name in ("i", "j", "value")]
        assert len(set(zip(*values[:2], strict=True))) == len(values[0])
        apart = owner_matrix((values[0], values[1], values[2]), shape).toarray()
        assert apart == pytest.approx(owner_matrix(expected, shape).toarray())
