"""Whether a plan still fits: what drifted is named, and the plan is counted anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Flow, World, plan_dataset, save_plan, write_dataset
from marking_datasets import write_marking_dataset
from marking_worlds import links
from overlay_worlds import OverlayWorld, write_overlay_dataset
from ready import stages_are_there
from sealing import amend, seal_dataset

import fanplan
from fanplan import api
from fanplan.core.errors import InputError
from fanplan.layers.marking.problem.marking import MarkedNetwork
from fanplan.plan.drift import Moved


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


def tables(**keys: str) -> dict[str, dict[Any, Any]]:
    return {n: {"rows": 9, "kept": 8, "quarantined": 1, "key": key} for n, key in keys.items()}


FLOWS = (Flow(frozenset({0, 1}), 4.0), Flow(frozenset({1, 2}), 6.0), Flow(frozenset({2}), 1.0))


@pytest.fixture
def planned(tmp_path: Path) -> Any:
    dataset = write_dataset(tmp_path / "dataset", World(FLOWS, 3))
    amend(dataset, tables=tables(subscriptions="one", publications="two"), inputs="all")
    plan = save_plan(plan_dataset(dataset, "unicast"), dataset, tmp_path / "plan").folder
    return plan, dataset


def test_a_plan_of_this_workload_holds(planned: Any) -> None:
    plan, dataset = planned
    found = fanplan.apply_check(plan, api.Dataset(dataset))
    assert (found.ok, found.drift, found.refusals) == (True, (), ())


def test_what_drifted_is_counted(planned: Any, tmp_path: Path) -> None:
    plan, _ = planned
    now = (Flow(frozenset({0, 1, 3}), 8.0), FLOWS[1], Flow(frozenset(), 1.0), Flow(frozenset({0})))
    later = write_dataset(tmp_path / "later", World(now, 4, key="key-2"))
    amend(later, tables=tables(subscriptions="other", publications="two"), inputs="others")
    found = fanplan.apply_check(plan, api.Dataset(later))
    assert (found.ok, found.reached) == (False, False)
    assert found.drift == ("changed tables: subscriptions",)
    layer = found.layers["channels"]
    assert layer.moved == {"flows": Moved(1, 1, 1), "subscribers": Moved(1, 0)}
    assert layer.missed == 2, "t0 for s3, and t3 for s0"
    assert layer.figures["traffic/s"] == (5.5, 7.5)
    assert layer.figures["missed/s"] == (0.0, 4.5)
    assert layer.figures["cost/s"] == (21.0, 28.0)
    allowed = fanplan.apply_check(plan, api.Dataset(later), allow_drift="a fire drill")
    assert (allowed.ok, allowed.json()["allowed_because"]) == (True, "a fire drill")


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ({"inputs": "others"}, "workload.toml says something else"),
        ({"key": "key-9"}, "the input has the key key-9, not key-1"),
        ({"grid": "uniform"}, "grid was atomic and is uniform"),
        ({"tables": tables(subscriptions="one", links="a")}, "changed tables: links, publications"),
    ],
)
def test_every_drift_is_named(planned: Any, facts: Any, named: str) -> None:
    plan, dataset = planned
    amend(dataset, **facts)
    found = fanplan.apply_check(plan, api.Dataset(dataset))
    assert (found.ok, found.drift) == (False, (named,))


def test_another_version_is_drift(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, dataset = planned
    monkeypatch.setattr("fanplan.verbs.drift.__version__", "9.9")
    found = fanplan.apply_check(plan, api.Dataset(dataset))
    assert not found.ok
    assert "this is 9.9" in found.drift[0]


def test_an_edited_plan_cannot_be_allowed(planned: Any) -> None:
    plan, dataset = planned
    content = json.loads((plan / "plan.json").read_text())
    (plan / "plan.json").write_text(json.dumps(content | {"seed": 77}))
    amend(dataset, key="key-9")
    found = fanplan.apply_check(plan, api.Dataset(dataset), allow_drift="never mind")
    assert (found.ok, found.refusals) == (
        False,
        ("edited since it was written: plan.json (hash differs)",),
    )


def overlay_world(subscribers: tuple[int, ...], messages: float, brokers: int = 3) -> OverlayWorld:
    wanting = tuple(range(len(subscribers)))
    return OverlayWorld((1000.0,) * brokers, (0, 1), subscribers, ((0, wanting, messages),))


def test_an_overlay_that_drifted(tmp_path: Path) -> None:
    first = write_overlay_dataset(tmp_path / "first", overlay_world((1, 2), 4.0))
    plan = fanplan.overlay(fanplan.Dataset(first), metric="overlap").save(tmp_path / "plan")
    later = write_overlay_dataset(tmp_path / "later", overlay_world((1, 1, 2), 8.0))
    amend(later, key="key-2")
    layer = fanplan.apply_check(plan, fanplan.Dataset(later)).layers["overlay"]
    nothing = Moved(0, 0)
    assert layer.moved == {"brokers": nothing, "publishers": nothing, "subscribers": Moved(1, 0, 1)}
    then, now = layer.figures["link_messages/s"]
    assert (now, layer.missed) == (2 * then, 0)
    more = write_overlay_dataset(tmp_path / "more", overlay_world((1, 3), 4.0, brokers=4))
    amend(more, key="key-3")
    layer = fanplan.apply_check(plan, fanplan.Dataset(more)).layers["overlay"]
    assert (layer.moved["brokers"], layer.missed) == (Moved(1, 0), 1)
    assert layer.figures["link_messages/s"] == (then, None)


def test_rows_that_came_and_went(tmp_path: Path) -> None:
    first = write_overlay_dataset(tmp_path / "first", overlay_world((1, 2), 4.0))
    plan = fanplan.overlay(fanplan.Dataset(first), metric="overlap").save(tmp_path / "plan")
    later = write_overlay_dataset(tmp_path / "later", overlay_world((1, 2, 0), 4.0, brokers=4))
    amend(later, key="key-2")
    for stage in ("subscriptions", "advertisements"):
        for folder in (first, later):
            file = folder / stage / "part.parquet"
            table = pq.read_table(file)
            for name in ("topic", "filter"):
                table = table.append_column(name, pa.nulls(len(table), pa.string()))
            pq.write_table(table, file)
            seal_dataset(folder)
    found = fanplan.apply_check(plan, fanplan.Dataset(later), was=fanplan.Dataset(first))
    nothing = Moved(0, 0)
    assert found.rows == {
        "subscriptions": Moved(1, 0),
        "advertisements": nothing,
        "publishers": nothing,
        "brokers": Moved(1, 0),
    }
    with pytest.raises(InputError, match="was planned for other input"):
        fanplan.apply_check(plan, fanplan.Dataset(first), was=fanplan.Dataset(later))


def test_an_allocation_that_drifted(tmp_path: Path) -> None:
    first = write_overlay_dataset(tmp_path / "first", overlay_world((1, 2), 4.0))
    plan = fanplan.allocate(fanplan.Dataset(first), load="exact").save(tmp_path / "plan")
    later = write_overlay_dataset(tmp_path / "later", overlay_world((1, 2, 2), 4.0))
    amend(later, key="key-2")
    layer = fanplan.apply_check(plan, fanplan.Dataset(later)).layers["overlay"]
    assert (layer.moved["brokers"], layer.moved["subscribers"]) == (Moved(0, 0), Moved(1, 0))
    assert layer.missed == 1, "nobody gave the new one a broker"


def test_a_marking_that_drifted(tmp_path: Path) -> None:
    def dataset(name: str, published: list[int], subscribed: list[int]) -> fanplan.Dataset:
        ends = links([(0, 1), (1, 2), (1, 3)])
        counts = np.array(published), np.array(subscribed)
        network = MarkedNetwork(pa.array(list("ABCD")), *counts, links=ends)
        return fanplan.Dataset(write_marking_dataset(tmp_path / name, network))

    plan = fanplan.mark(dataset("first", [2, 0, 0, 0], [0, 0, 1, 3]), "per-source")
    folder = plan.save(tmp_path / "plan")
    for name, subscribed in (("more", [0, 0, 9, 3]), ("elsewhere", [9, 0, 9, 3])):
        later = dataset(name, [2, 0, 5 if name == "elsewhere" else 0, 0], subscribed)
        amend(later.path, key=name)
        layer = fanplan.apply_check(folder, later).layers["marking"]
        if name == "more":
            assert (layer.missed, layer.moved) == (0, {"links": Moved(0, 0)})
            assert layer.figures["cost"] == (5.0, 13.0)
        else:
            assert (layer.missed, layer.figures["cost"]) == (2, (5.0, None)), "from C, and to A"
