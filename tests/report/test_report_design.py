"""The report of a plan of all layers: one cost, counted anew, and how traffic reaches people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from ready import stages_are_there
from report_worlds import write_design, write_report_dataset

import fanplan
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.channels.report import curve
from fanplan.layers.delivery.bound import BoundOverlay
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.delivery.report.curve import delivery_curve
from fanplan.layers.delivery.report.section import class_listing, domain_listing, stacks_of
from fanplan.layers.delivery.report.ways import (
    CHANNEL,
    DIRECT,
    GROUP,
    HOP,
    TrafficWays,
    count_ways,
    delivering,
)
from fanplan.layers.delivery.simulated import planned_delays
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.overlay.report import spreads
from fanplan.layers.registry import load_plan
from fanplan.plan.stored import StoredPlan

SITES = ("east", "east", "west", "west", "east", None, "west")


class DesignWorld(NamedTuple):
    """A plan of all layers and its dataset, read."""

    dataset: Path
    plan: StoredPlan
    ways: TrafficWays


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> DesignWorld:
    folder = tmp_path_factory.mktemp("design")
    dataset = write_report_dataset(folder / "dataset", SITES)
    plan = load_plan(write_design(dataset, folder / "plan", channels=3, prices={"direct": 1.0}))
    return DesignWorld(dataset, plan, count_ways(plan, dataset))


@pytest.fixture(autouse=True)
def _no_spark() -> Iterator[None]:
    with stages_are_there():
        yield


def test_all_layers_have_one_headline(
    world: DesignWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve, "FACTORS", (0.5,))
    made = fanplan.report(world.plan.folder, tmp_path / "out", workload=world.dataset)
    (saving,) = made.savings
    record = world.plan.section(DeliveryRecord)
    assert saving["layer"] == "All layers"
    assert [step["value"] for step in saving["steps"]] == [step.cost for step in record.steps]
    assert saving["least"] == record.bound
    text = made.page.read_text()
    order = ("savings", "delivery", "channels", "overlay", "groups", "marking", "input")
    places = [text.index(f'<section id="{name}" data-plan=') for name in order]
    assert places == sorted(places)
    assert "saved by multicast channels" in text
    assert 'data-tip="this plan: 3 channels' in text, "the curve has the plan marked"
    assert "east, 3 channels inside" in text


def test_every_step_has_its_parts(world: DesignWorld) -> None:
    found = stacks_of(world.plan.section(DeliveryRecord))
    assert [stack.total for stack in found] == pytest.approx(
        [step.cost for step in world.plan.section(DeliveryRecord).steps]
    )
    assert found[-1].words == "this plan"
    own = {name: cost for name, cost in found[-1].parts.items() if name != "subscriptions"}
    assert own == pytest.approx(world.plan.section(DeliveryRecord).parts)


def test_ways_add_up_to_the_ledger(world: DesignWorld) -> None:
    ledger, ways = world.plan.section(ChannelsRecord).ledger, world.ways
    people = ways.by_domain()
    assert ways.names == ("east", "west", "no multicast")
    assert people[2, CHANNEL] == 0, "there is no channel outside sites"
    assert people.sum() == pytest.approx(ledger["received_wanted"])
    alone = people[:, HOP].sum() + people[:, DIRECT].sum()
    assert alone == pytest.approx(ledger["sent_unicast"])
    assert people[:, DIRECT].sum() > 0
    np.testing.assert_allclose(ways.by_class().sum(axis=0), people.sum(axis=0))
    entering = ways.by_entry()
    total = ways.stored.problem.interest.messages.sum()
    assert entering.sum() == pytest.approx(total)
    assert ways.class_between().sum() == pytest.approx(total)
    covered = (
        world.plan.section(GroupsRecord).covered
        * world.plan.section(GroupsRecord).ledger["publications"]
    )
    assert entering[:, GROUP].sum() == pytest.approx(covered)


def test_tables_add_up_to_the_ledger(world: DesignWorld) -> None:
    ledger = world.plan.section(ChannelsRecord).ledger
    sites = domain_listing("d", world.ways)
    total = {name: sum(row[i] for row in sites.rows) for i, name in enumerate(sites.header) if i}
    assert (total["brokers"], total["channels"]) == (
        len(SITES),
        world.plan.section(ChannelsRecord).channels,
    )
    assert total["sent on channels"] == pytest.approx(ledger["sent_multicast"])
    assert total["unwanted"] == pytest.approx(ledger["received_unwanted"])
    classes = class_listing("d", world.ways, world.plan)
    columns = [i for i, name in enumerate(classes.header) if name.startswith(("by ", "direct"))]
    wanted = sum(row[i] for row in classes.rows for i in columns)
    assert wanted == pytest.approx(ledger["received_wanted"])


def test_brokers_carry_what_channels_leave(world: DesignWorld) -> None:
    found = spreads(world.plan, world.dataset, BoundOverlay(world.plan))
    assert found.left
    assert found.left.rates.sum() * world.plan.record.input.seconds == pytest.approx(
        world.plan.section(GroupsRecord).default["link_messages"]
    )


def test_every_delivery_has_a_delay(world: DesignWorld) -> None:
    wanted = world.plan.section(ChannelsRecord).ledger["received_wanted"]
    assert planned_delays(world.plan, world.dataset).count.sum() == pytest.approx(wanted)
    passing = delivering(world.ways)
    assert passing.arrivals.sum() == pytest.approx(wanted)
    found: dict[tuple[int, int], float] = defaultdict(float)
    for source, target, amount in zip(*vars(passing).values(), strict=True):
        found[source, target] += amount
    assert found == pytest.approx(one_by_one(world.ways))


def one_by_one(ways: TrafficWays) -> dict[tuple[int, int], float]:
    """Deliveries from broker to broker, a subscriber and a parcel at a time."""
    problem = ways.stored.problem
    interest = problem.interest
    total: dict[tuple[int, int], float] = defaultdict(float)
    rows = np.repeat(np.arange(interest.size), interest.audience_sizes)
    for row, person in zip(rows, interest.audience, strict=True):
        for parcel in np.flatnonzero(problem.row == row):
            root = problem.trees.root[problem.tree[parcel]]
            total[root, problem.home[person]] += problem.messages[parcel]
    return total


def test_the_curve_passes_through_the_plan(world: DesignWorld) -> None:
    problem = world.ways.stored.problem
    one, own = delivery_curve(world.plan, problem, [1, 3])
    record = world.plan.section(DeliveryRecord)
    assert own.cost == pytest.approx(record.steps[-1].cost)
    assert own.beside[0] - own.cost == pytest.approx(record.layered - record.cost)
    assert one.cost > own.cost


def test_a_design_is_reported_without_its_dataset(world: DesignWorld, tmp_path: Path) -> None:
    text = fanplan.report(world.plan.folder, tmp_path / "out").page.read_text()
    assert "with --workload to see how traffic reaches people" in text
    assert 'id="delivery-parts"' in text


EXTREMES = {
    "no brokers": {"channels": 3, "without": ("overlay",)},
    "no channels": {"without": ("groups",)},
    "multicast everywhere": {"channels": 2, "multicast": "everywhere", "without": ("marking",)},
}


@pytest.mark.parametrize("wishes", EXTREMES.values(), ids=EXTREMES.keys())
def test_designs_with_less_are_reported(
    world: DesignWorld, tmp_path: Path, wishes: dict[Any, Any]
) -> None:
    plan = load_plan(write_design(world.dataset, tmp_path / "plan", **wishes))
    made = fanplan.report(plan.folder, tmp_path / "out", workload=world.dataset, curve=False)
    assert made.savings[0]["steps"][-1]["value"] == plan.section(DeliveryRecord).steps[-1].cost
    assert stacks_of(plan.section(DeliveryRecord))[-1].total == pytest.approx(
        plan.section(DeliveryRecord).steps[-1].cost
    )
