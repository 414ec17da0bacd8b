"""Simulations of stored plans: they show what the plan says, and what it cannot say."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Flow, World, plan_dataset, save_plan, write_dataset
from forging import seal
from hypothesis import given, settings
from hypothesis import strategies as st
from overlays import (
    broker_columns,
    end_columns,
    link_columns,
    problem_of,
    route_columns,
    routes_of,
    write_manifest,
    write_plan,
    write_stage,
)
from ready import stages_are_there

import fanplan
from fanplan.core.errors import InputError
from fanplan.layers.overlay.simulated import read_overlay
from fanplan.layers.registry import load_plan
from fanplan.network.brokers import Links, OverlayProblem, Routes
from fanplan.network.carried import trees_ledger
from fanplan.network.trees import Trees, trees_of


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


@dataclass
class Made:
    """A dataset and a plan for it, and what they were made from."""

    plan: Path
    dataset: fanplan.Dataset
    problem: OverlayProblem

    def simulate(self, **options: Any) -> fanplan.Simulated:
        return fanplan.simulate(self.plan, self.dataset, **options)


def make(
    folder: Path,
    routes: Routes,
    trees: Trees,
    capacity: list[float],
    sent: list[tuple[float | None, int]],
    homes: tuple[list[int], list[int]] | None = None,
    links: Links | None = None,
    **manifest: Any,
) -> Made:
    """``sent`` are times and routes. With homes the routes are of clients, who are there."""
    dataset = folder / "dataset"
    dataset.mkdir(parents=True)
    between = routes if homes is None else moved(routes, *homes)
    problem = problem_of(between, capacity, 2.0, links)
    times = pa.array([time for time, _ in sent], pa.float64())
    publishers = pa.array(["p0"] * len(sent), pa.string())
    tables = {
        "brokers": broker_columns(problem),
        "publications": {"time": times, "publisher": publishers},
        **({} if links is None else {"links": link_columns(problem)}),
        **({} if homes is None else client_tables(*homes)),
    }
    stages = {name: write_stage(dataset, name, columns) for name, columns in tables.items()}
    prefix = "" if homes is None else "client_"
    write_stage(dataset, f"{prefix}routes", route_columns(routes))
    own = [[time for time, route in sent if route == i] for i in range(len(routes))]
    timed = end_columns(routes) | {"times": pa.array(own, pa.list_(pa.float64()))}
    write_stage(dataset, f"{prefix}sendings", timed)
    write_manifest(dataset, 2.0, stages, **manifest)
    clients = None if homes is None else places(*homes)
    write_plan(folder / "plan", dataset, problem, trees, clients)
    return Made(folder / "plan", fanplan.open_dataset(dataset), problem)


def client_tables(sending: list[int], wanting: list[int]) -> dict[str, dict[str, Any]]:
    publishers = [f"p{i}" for i in range(len(sending))]
    subscribers = [f"s{i}" for i in range(len(wanting))]
    nowhere = pa.nulls(len(sending), pa.string())
    numbers = pa.array(range(len(wanting)), pa.int32())
    return {
        "advertisements": {"publisher": publishers, "broker": nowhere},
        "subscribers": {"subscriber": subscribers, "subscriber_id": numbers},
    }


def places(sending: list[int], wanting: list[int]) -> dict[str, list[str]]:
    """The plan's table of clients."""
    rows = [(f"p{i}", "publisher", f"b{home}") for i, home in enumerate(sending)]
    rows += [(f"s{i}", "subscriber", f"b{home}") for i, home in enumerate(wanting)]
    client, role, broker = (list(column) for column in zip(*rows, strict=True))
    return {"client": client, "role": role, "broker": broker}


def moved(routes: Routes, sending: list[int], wanting: list[int]) -> Routes:
    """Routes between brokers, merged, by a loop."""
    found: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for i in range(len(routes)):
        reached = tuple(sorted({wanting[s] for s in routes.destinations(i).tolist()}))
        found[sending[routes.source[i]], reached] += routes.messages[i]
    return routes_of(dict(found))


# ---- random plans


@st.composite
def spanning(draw: st.DrawFn, size: int) -> np.ndarray:
    names = draw(st.permutations(range(size)))
    links = [(names[draw(st.integers(0, i - 1))], names[i]) for i in range(1, size)]
    return np.array(links, np.int32).reshape(-1, 2)


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of `make`: one or two trees, with or without allocated clients and given links."""
    size = draw(st.integers(1, 5))
    broker = st.integers(0, size - 1)
    homes = None
    ends = size, size
    if draw(st.booleans()):
        some = st.lists(broker, min_size=1, max_size=4)
        homes = draw(some), draw(some)
        ends = len(homes[0]), len(homes[1])
    reached = st.frozensets(st.integers(0, ends[1] - 1)).map(lambda found: tuple(sorted(found)))
    keys = st.tuples(st.integers(0, ends[0] - 1), reached)
    times = st.lists(st.integers(0, 2000), min_size=1, max_size=4)
    found = draw(st.dictionaries(keys, times, min_size=1, max_size=4))
    of = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), np.int32)
    trees = trees_of((draw(spanning(size)), draw(spanning(size))), of)
    if draw(st.booleans()):
        trees = trees_of((draw(spanning(size)),), 0 * of)
    return {
        "routes": routes_of({key: len(sent) for key, sent in found.items()}),
        "trees": trees,
        "capacity": [1.0] * size,
        "sent": [(t / 1000, i) for i, key in enumerate(sorted(found)) for t in found[key]],
        "homes": homes,
        "links": draw(st.none() | st.just(all_links(size))),
    }


def all_links(size: int) -> Links:
    a, b = np.triu_indices(size, 1)
    many = np.full(len(a), np.inf)
    latency = (3 * a + b).astype(np.float64)
    return Links(a.astype(np.int32), b.astype(np.int32), latency, many, np.ones(len(a)))


@given(cases())
@settings(max_examples=20)
def test_an_idle_run_is_what_the_plan_says(case: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = make(Path(folder), **case)
        runs = [made.simulate(congestion="none", times=times) for times in ("measured", "drawn")]
    ledger = trees_ledger(made.problem, case["trees"])
    hop = 100.0 if case["links"] is None else 1.0
    for run in runs:
        assert run.agrees, run.agreement.differences
        assert "delay" in run.agreement.compared
        assert run.result.link.tolist() == ledger.link.tolist()
        assert run.result.processed.tolist() == ledger.processed.tolist()
        assert run.result.delays_ms.sum() == pytest.approx(ledger.delay * hop)
    # The same messages either way, route by route.
    assert sorted(runs[0].result.delays_ms) == pytest.approx(sorted(runs[1].result.delays_ms))


# ---- one small plan

BURST = [(1.7e9, 0), (1.7e9, 0), (1.7e9 + 0.25, 0), (1.7e9 + 1.5, 1)]
PAIR = routes_of({(0, (1,)): 3, (1, (0,)): 1})
LINKED = trees_of((np.array([(0, 1)], np.int32),), np.zeros(2, np.int32))


def pair(folder: Path, **more: Any) -> Made:
    """Two brokers, three messages one way in a burst, one message the other way later."""
    given_: dict[str, Any] = {
        "routes": PAIR,
        "trees": LINKED,
        "capacity": [10.0, 10.0],
        "sent": BURST,
    } | more
    return make(folder, **given_)


def test_messages_enter_at_their_measured_times(tmp_path: Path) -> None:
    """A message takes 100 ms at each broker and on the link, and waits for those before it."""
    made = pair(tmp_path)
    run = made.simulate(congestion="queue")
    assert run.times == run.summary()["times"] == "measured"
    assert run.result.delays_ms.tolist() == [300.0, 400.0, 300.0, 300.0]
    assert run.result.ended_ms == 1500.0 + 200.0
    fast = made.simulate(congestion="queue", speed=10.0)
    assert sorted(fast.result.delays_ms) == [300.0, 350.0, 450.0, 525.0]
    drawn = {made.simulate(times="drawn", seed=seed).result.ended_ms for seed in range(3)}
    assert len(drawn) == 3


def test_same_seed_same_events(tmp_path: Path) -> None:
    made = pair(tmp_path)
    first, again, other = (
        made.simulate(congestion="queue", times="drawn", seed=seed) for seed in (5, 5, 6)
    )
    assert first.summary() == again.summary()
    assert first.result.delays_ms.tolist() == again.result.delays_ms.tolist()
    assert first.result.ended_ms != other.result.ended_ms


@pytest.mark.parametrize(
    "more", [{"rates": "advertised"}, {"sent": [(None, 0), *BURST[1:]]}], ids=["rates", "null"]
)
def test_times_that_are_not_known_are_drawn(tmp_path: Path, more: dict[str, Any]) -> None:
    made = pair(tmp_path, **more)
    run = made.simulate(seed=3)
    assert (run.times, run.summary()["seed"], run.result.publications) == ("drawn", 3, 4)
    with pytest.raises(InputError, match="not every message has a measured time"):
        made.simulate(times="measured")


def test_parts_of_messages_are_not_compared(tmp_path: Path) -> None:
    half = replace(PAIR, messages=PAIR.messages / 2)
    assert pair(tmp_path, routes=half).simulate(times="drawn").agrees is None


def test_delays_are_compared_only_on_an_idle_network(tmp_path: Path) -> None:
    ends = np.array([0], np.int32), np.array([1], np.int32)
    slow = Links(*ends, np.ones(1), np.full(1, 5.0), np.ones(1))
    made, narrow = pair(tmp_path / "a"), pair(tmp_path / "b", links=slow)
    busy: list[dict[str, Any]] = [{"congestion": "queue"}, {"match_ms": 1.0}, {"forward_ms": 1.0}]
    runs = [made.simulate(**({"congestion": "none"} | more)) for more in busy]
    for run in (*runs, narrow.simulate(congestion="none")):
        assert run.agrees
        assert "delay" not in run.agreement.compared


def test_what_differs_from_the_plan_is_named(tmp_path: Path) -> None:
    made = pair(tmp_path)
    record = json.loads((made.plan / "plan.json").read_text())
    record["overlay"]["ledger"]["link_messages"] = 7.0
    (made.plan / "plan.json").write_text(json.dumps(record))
    links = pq.read_table(made.plan / "links.parquet")
    wrong = links.set_column(3, links.schema.field("rate"), pa.array([4.0]))
    pq.write_table(wrong, made.plan / "links.parquet")
    seal(made.plan)
    run = made.simulate()
    assert run.agrees is False
    assert run.agreement.differences == (
        "link_messages: 4 here, 7 in the plan",
        "link 'b0' and 'b1': 4 here, 8 in the plan",
    )


def test_a_run_is_saved_whole(tmp_path: Path) -> None:
    run = pair(tmp_path).simulate()
    out = run.save(tmp_path / "run")
    assert json.loads((out / "summary.json").read_text()) == run.summary()
    assert pq.read_table(out / "brokers.parquet") == run.broker_table
    assert pq.read_table(out / "links.parquet")["a_to_b"].to_pylist() == [3]
    assert run.broker_table["capacity"].to_pylist() == [10.0, 10.0]
    with pytest.raises(InputError, match="is a simulation already"):
        run.save(out)
    run.save(out, replace=True)
    with pytest.raises(InputError, match="is not a simulation"):
        run.save(tmp_path)


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        ({}, {"match_ms": -1.0}, "match_ms"),
        ({}, {"speed": 0.0}, "speed: 0.0 is not a speed"),
        ({}, {"times": "guessed"}, "'guessed' is unknown. Use measured or drawn"),
        ({}, {"congestion": "jam"}, "'jam' is unknown"),
        ({"capacity": [1.0, 0.0]}, {}, "broker 'b1': has no capacity"),
        (
            {"routes": replace(PAIR, messages=np.zeros(2)), "sent": []},
            {},
            "there is no traffic to simulate. Add publications",
        ),
        ({"sent": BURST[1:]}, {}, "does not have the publications of the dataset's routes"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, more: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        pair(tmp_path, **more).simulate(**options)


def test_a_plan_of_another_dataset_or_layer_is_refused(tmp_path: Path) -> None:
    made = pair(tmp_path)
    world = World((Flow(frozenset({0})),), 1, key="key-2")
    other = write_dataset(tmp_path / "other", world)
    with pytest.raises(InputError, match="planned for other input"):
        fanplan.simulate(made.plan, fanplan.open_dataset(other))
    save_plan(plan_dataset(other, "round-robin", 1), other, tmp_path / "channels")
    with pytest.raises(InputError, match="has no layer delivery, overlay or groups, only channels"):
        fanplan.simulate(tmp_path / "channels", fanplan.open_dataset(other))


@pytest.mark.parametrize(
    ("table", "row", "message"),
    [
        ("links", {"a": "b0", "b": "nobody"}, "broker 'nobody' is unknown"),
        ("brokers", {"broker": "nobody"}, "broker 'nobody' is unknown"),
        ("clients", {"client": "p1", "role": "publisher"}, "publisher 'p1' is unknown"),
        ("clients", {"role": "publisher", "client": "p0"}, "subscriber 's0' is at no broker"),
    ],
)
def test_a_broken_plan_is_named(
    tmp_path: Path, table: str, row: dict[str, str], message: str
) -> None:
    made = pair(tmp_path, routes=routes_of({(0, (0,)): 4}), homes=([0], [1]),
                sent=[(t, 0) for t, _ in BURST])  # fmt: skip
    path = made.plan / f"{table}.parquet"
    rows = [*pq.read_table(path).to_pylist()[:1]]
    pq.write_table(pa.Table.from_pylist([{**rows[0], **row}], pq.read_schema(path)), path)
    with pytest.raises(InputError, match=f"{message}. See what `fanplan check` says"):
        read_overlay(load_plan(made.plan), made.dataset.path)


def test_a_broker_without_a_tree_is_named(tmp_path: Path) -> None:
    links = np.array([(0, 1)], np.int32)
    made = pair(tmp_path, trees=trees_of((links, links), np.array([0, 1], np.int32)))
    path = made.plan / "tree_sources.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(InputError, match=r"tree_sources\.parquet \(hash differs\)"):
        made.simulate()
    seal(made.plan)
    with pytest.raises(InputError, match="broker 'b0' has no tree"):
        made.simulate()
