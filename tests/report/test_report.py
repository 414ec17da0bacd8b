"""A report shows the plans' own figures, does no harm, stays small, and refuses what is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import answer, run
from ready import stages_are_there
from report_worlds import HOSTILE, Elements, ReportWorld, write_report_world
from sealing import amend

import fanplan
from fanplan.core.errors import CheckError, InputError
from fanplan.layers.channels.check.evidence import read_channel_truth, read_decisions
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.channels.report.section import channel_listing, plain_listing, with_heaviest
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.marking.report import rows_of_marks
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.layers.overlay.report import spreads
from fanplan.layers.registry import load_plan
from fanplan.plan.findings import Findings
from fanplan.plan.seal import write_plan_record

FLOW_WORDS = ("flow", "rate", "description")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ReportWorld:
    return write_report_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def _no_spark() -> Iterator[None]:
    with stages_are_there():
        yield


def test_one_page_has_a_section_for_every_layer(world: ReportWorld, tmp_path: Path) -> None:
    made = fanplan.report(world.plans, tmp_path / "out", workload=world.dataset)
    text = made.page.read_text()
    for name in (
        "savings",
        "channels",
        "overlay",
        "groups",
        "marking",
        "input",
        "origin",
        "glossary",
    ):
        assert f'<section id="{name}" data-plan=' in text
    for name in ("channels-curve", "channels-before", "overlay-tree", "marking-network"):
        assert f'id="{name}"' in text
    assert [saving["layer"] for saving in made.savings] == [
        "Channels",
        "Overlay",
        "Groups",
        "Marking",
    ]
    assert json.loads((tmp_path / "out" / "report.json").read_text())["savings"] == made.savings


def test_nothing_is_fetched_and_names_do_nothing(world: ReportWorld, tmp_path: Path) -> None:
    text = fanplan.report(world.plans, tmp_path / "out", workload=world.dataset, curve=False).page
    page = Elements(text.read_text())
    assert page.tags.count("script") == 2, "what opens on a click, and the program"
    assert HOSTILE in page.words, "the name of the workload is shown as it is"
    assert all(a.startswith(("#", "data:")) for a in page.addresses)


def test_savings_are_those_of_the_plans(world: ReportWorld, tmp_path: Path) -> None:
    made = fanplan.report(world.plans, tmp_path / "out", workload=world.dataset, curve=False)
    channels, overlay, groups, marking = (load_plan(plan) for plan in world.plans)
    steps = [{step["system"]: step["value"] for step in s["steps"]} for s in made.savings]
    assert steps[0]["this plan"] == channels.section(ChannelsRecord).cost
    wanted = channels.section(ChannelsRecord).ledger["received_wanted"]
    assert steps[0]["sending all by unicast"] == 2 * wanted, "one sent, one received"
    assert steps[1]["this plan"] == overlay.section(OverlayRecord).ledger["link_messages"]
    assert (
        steps[1]["flooding every broker"]
        == 6 * overlay.section(OverlayRecord).ledger["publications"]
    )
    assert steps[1]["a random tree"] >= overlay.section(OverlayRecord).bound
    assert steps[2] == {
        "matching at every broker": groups.section(GroupsRecord).default["matches_total"],
        "this plan": groups.section(GroupsRecord).ledger["matches_total"],
    }
    assert steps[3] == {
        "subscriptions everywhere": marking.section(MarkingRecord).sub_everywhere,
        "this plan": marking.section(MarkingRecord).cost,
    }
    share = 1 - marking.section(MarkingRecord).cost / marking.section(MarkingRecord).sub_everywhere
    assert made.savings[3]["saved_percent"] == pytest.approx(100 * share)


def test_channels_add_up_to_the_ledger(world: ReportWorld) -> None:
    plan = load_plan(world.plans[0])
    truth = read_channel_truth(world.dataset)
    decisions = read_decisions(plan, truth, Findings())
    rows = channel_listing("channels", truth, decisions).rows
    ledger, seconds = plan.section(ChannelsRecord).ledger, truth.manifest.seconds
    assert len(rows) == plan.section(ChannelsRecord).channels
    assert sum(row[3] for row in rows) * seconds == pytest.approx(ledger["sent_multicast"])
    wanted = sum(row[4] for row in rows) * seconds + ledger["sent_unicast"]
    assert wanted == pytest.approx(ledger["received_wanted"])
    assert sum(row[5] for row in rows) * seconds == pytest.approx(ledger["received_unwanted"])
    assert [row[:4] for row in rows] == [pytest.approx(r) for r in plain_listing("c", plan).rows]


def test_channels_are_told_by_their_heaviest_flows(world: ReportWorld) -> None:
    plan = load_plan(world.plans[0])
    listing = with_heaviest(plain_listing("c", plan), plan)
    flows = {row["flow"]: row for row in plan.read("flows", FLOW_WORDS).to_pylist()}
    carried = plan.read("channel_flows", ("channel", "flow")).to_pylist()
    for row in listing.rows:
        own = [flows[pair["flow"]] for pair in carried if pair["channel"] == row[0]]
        own.sort(key=lambda flow: -flow["rate"])
        assert row[-1].count(" · ") == max(min(len(own), 2) - 1, 0)
        assert not own or f": {own[0]['description'].split('; ')[0]}" in row[-1]
        assert "subscribers:" not in row[-1]
        assert len(row[-1]) < 500


def test_loads_and_delays_are_those_of_the_ledger(world: ReportWorld) -> None:
    plan = load_plan(world.plans[1])
    found = spreads(plan, world.dataset)
    own, random = found.own, found.random
    ledger = plan.section(OverlayRecord).ledger
    assert own.ledger.link_messages == ledger["link_messages"]
    assert (own.delay @ own.arrivals, own.arrivals.sum()) == pytest.approx(
        (ledger["delay"], ledger["arrivals"])
    )
    assert random.delay @ random.arrivals == pytest.approx(random.ledger.delay)
    loads = plan.read("brokers", ("load",))["load"].to_pylist()
    assert sorted(own.load) == pytest.approx(sorted(loads))


def test_marks_add_up_to_the_cost(world: ReportWorld) -> None:
    plan = load_plan(world.plans[3])
    assert sum(row["cost"] for row in rows_of_marks(plan)) == pytest.approx(
        plan.section(MarkingRecord).cost
    )


def test_a_report_needs_no_dataset(
    world: ReportWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = answer(capsys, "report", *world.plans, "--out", tmp_path / "out")
    assert (code, len(told["savings"])) == (0, 4)
    text = Path(told["report"]).read_text()
    assert "with --workload to see the interest matrix" in text
    assert run("report", *world.plans, "--out", tmp_path / "out") == 2
    assert "is a report already. Name another folder" in capsys.readouterr().err
    assert run("report", *world.plans, "--out", tmp_path / "out", "--replace") == 0
    assert "% saved" in capsys.readouterr().out


def test_two_plans_of_a_layer_have_a_section_each(world: ReportWorld, tmp_path: Path) -> None:
    dataset = fanplan.open_dataset(world.dataset)
    other = fanplan.channels(dataset, 2, method="random").save(tmp_path / "other.plan")
    text = fanplan.report([world.plans[0], other], tmp_path / "out").page.read_text()
    assert "Channels: channels.plan" in text
    assert "Channels: other.plan" in text


def test_a_stored_curve_is_drawn_without_the_dataset(world: ReportWorld, tmp_path: Path) -> None:
    dataset = fanplan.open_dataset(world.dataset)
    curve = fanplan.curve(dataset, [2, 4, 8], method="round-robin").save(tmp_path / "curve")
    text = fanplan.report(curve / "4", tmp_path / "out").page.read_text()
    assert 'data-tip="this plan: 4 channels' in text
    assert 'data-tip="8 channels' in text


@pytest.mark.parametrize("method", ["unicast", "broadcast"])
def test_extreme_plans_are_reported(world: ReportWorld, tmp_path: Path, method: str) -> None:
    """No channels at all, and one channel for everybody."""
    dataset = fanplan.open_dataset(world.dataset)
    plan = fanplan.channels(dataset, 1, method=method).save(tmp_path / "plan")
    (saving,) = fanplan.report(plan, tmp_path / "out", workload=world.dataset).savings
    assert saving["saved_percent"] == 0 if method == "unicast" else saving["saved_percent"] != 0


def test_several_trees_are_reported(world: ReportWorld, tmp_path: Path) -> None:
    plan = fanplan.overlay(fanplan.open_dataset(world.dataset), trees=2).save(tmp_path / "plan")
    own = spreads(load_plan(plan), world.dataset).own
    ledger = load_plan(plan).section(OverlayRecord).ledger
    assert own.delay @ own.arrivals == pytest.approx(ledger["delay"])
    assert fanplan.report(plan, tmp_path / "out").savings[0]["layer"] == "Overlay"


def test_the_same_plans_give_the_same_page(world: ReportWorld, tmp_path: Path) -> None:
    one, two = (
        fanplan.report(world.plans, tmp_path / name, workload=world.dataset, curve=False)
        for name in ("one", "two")
    )
    assert one.page.read_bytes() == two.page.read_bytes()


@pytest.fixture
def copy(world: ReportWorld, tmp_path: Path) -> Path:
    return Path(shutil.copytree(world.plans[0], tmp_path / "copy"))


def test_an_edited_plan_is_refused_by_the_file(copy: Path, tmp_path: Path) -> None:
    table = pq.read_table(copy / "channel_flows.parquet")
    pq.write_table(table.slice(1), copy / "channel_flows.parquet")
    with pytest.raises(InputError, match=r"channel_flows\.parquet was edited after the check"):
        fanplan.report(copy, tmp_path / "out")
    content = json.loads((copy / "plan.json").read_text())
    content["channels"]["cost"] = 1.0
    (copy / "plan.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"channel_flows\.parquet, plan\.json were edited"):
        fanplan.report(copy, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_plan_that_does_not_hold_is_refused(
    world: ReportWorld, copy: Path, tmp_path: Path
) -> None:
    """Sealed again after the edit, it is the check against the dataset that finds it out."""
    record = load_plan(copy).record
    wrong = record.sections["channels"].model_copy(update={"cost": 1.0})
    write_plan_record(record.model_copy(update={"sections": {"channels": wrong}}), copy)
    fanplan.report(copy, tmp_path / "trusting")
    with pytest.raises(CheckError, match=r"is not reported: .*cost"):
        fanplan.report(copy, tmp_path / "out", workload=world.dataset)


def test_other_input_is_refused(world: ReportWorld, copy: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(world.dataset, tmp_path / "changed"))
    amend(changed, key="another")
    with pytest.raises(InputError, match=r"has changed since .* was planned"):
        fanplan.report(copy, tmp_path / "out", workload=changed)
    record = load_plan(copy).record
    elsewhere = record.input.model_copy(update={"key": "another"})
    write_plan_record(record.model_copy(update={"input": elsewhere}), copy)
    with pytest.raises(InputError, match="was planned for other input than"):
        fanplan.report([world.plans[1], copy], tmp_path / "out")


WRONG = {
    "no plan": (("{tmp}",), "no plan.json here, so this is not a plan"),
    "curve": (("{plan}", "--curve"), "--curve: other numbers of channels cannot be planned"),
    "version": (("{old}",), "format 1 is not the format"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_answered_and_nothing_is_written(
    world: ReportWorld, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: Any
) -> None:
    words, said = wrong
    content = json.loads((copy / "plan.json").read_text())
    (copy / "plan.json").write_text(json.dumps(content | {"format": 1}))
    given = [w.format(tmp=tmp_path, plan=world.plans[0], old=copy) for w in words]
    assert run("report", *given, "--out", tmp_path / "out") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="plans: there are none"):
        fanplan.report([], tmp_path / "out")


def test_other_folders_are_left_alone(
    world: ReportWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("mine")
    assert run("report", world.plans[0], "--out", tmp_path / "site", "--replace") == 2
    assert "is not a report" in capsys.readouterr().err
    assert (tmp_path / "site" / "index.html").read_text() == "mine"
