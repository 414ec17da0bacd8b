"""`fanplan design` from generated tables to a checked plan, with and without brokers."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import answer, run
from pyspark.sql import SparkSession
from sealing import amend, seal_dataset

import fanplan
from fanplan.page.numbers import number
from fanplan.workload.generators import load_kind
from fanplan.workload.generators.enterprise import EnterpriseParams
from fanplan.workload.generators.generated import write_workload

HERE = ("--master", "local[2]")


@pytest.fixture(scope="module")
def enterprise(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with brokers on three sites."""
    folder = tmp_path_factory.mktemp("enterprise")
    params = EnterpriseParams(flows=40, users=30, sites=3, brokers_per_site=2, markets=6)
    made = load_kind("enterprise").generate(params, 1)
    tables = {**made.tables, "links": with_odd_links(made.tables["links"])}
    write_workload(replace(made, tables=tables), folder / "workload")
    assert run("ingest", folder / "workload", "--out", folder / "dataset", *HERE) == 0
    return folder / "dataset"


def with_odd_links(links: pa.Table) -> pa.Table:
    """Three more: two parallel to the first, one of them the other way round, and a loop."""
    first = links.slice(0, 1).to_pylist()[0]
    turned = first | {"a": first["b"], "b": first["a"], "latency_ms": None}
    odd = [first | {"latency_ms": 1e6}, turned, first | {"b": first["a"]}]
    return pa.concat_tables([links, pa.Table.from_pylist(odd, links.schema)])


def test_parallel_links_are_counted_and_loops_set_aside(
    enterprise: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = fanplan.open_dataset(enterprise).manifest.summary()
    links = told["tables"]["links"]
    assert (links["kept"], links["quarantined"]) == (links["rows"] - 1, 1)
    assert told["notes"][0].startswith(f"links: 2 of {links['kept']} rows are parallel to others")
    again = ("ingest", enterprise.parent / "workload", "--out", enterprise, *HERE)
    assert run(*again) == 0
    assert f"Note: {told['notes'][0]}" in capsys.readouterr().err


def test_all_layers_in_one_plan(
    enterprise: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan"
    words = ("--channels", 4, "--entries", 30, "--out", plan, *HERE)
    code, told = answer(capsys, "design", enterprise, *words)
    assert code == 0
    assert told["layers"] == ["overlay", "channels", "groups", "marking", "delivery"]
    costs = [step["cost"] for step in told["steps"]]
    assert told["bound"] <= told["cost"] <= told["layered"] < costs[0]
    assert told["cost"] == pytest.approx(sum(told["parts"].values()))
    assert run("check", plan, enterprise, *HERE) == 0
    domains = pq.read_table(plan / "channel_domains.parquet")["domain"].to_pylist()
    assert max(domains.count(site) for site in set(domains)) <= 4
    assert [own["domain"] for own in told["multicast"]] == told["domains"]
    assert {own["brokers"] for own in told["multicast"]} == {2}
    assert sum(own["subscribers"] for own in told["multicast"]) == 30
    assert "domains are by site (brokers: 6)" in told["assumed"]


def with_domains(dataset: Path, out: Path, site: list[str | None], own: list[str | None]) -> Path:
    """The dataset with other sites and multicast domains of its six brokers."""
    shutil.copytree(dataset, out)
    (file,) = (out / "brokers").glob("*.parquet")
    table = pq.read_table(file).sort_by("broker")
    for name, values in (("site", site), ("multicast_domain", own)):
        column = pa.array(values, pa.string())
        table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, file)
    return seal_dataset(out)


def test_a_column_says_who_shares_multicast_and_who_has_none(
    enterprise: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Domains cut across sites here, and the last broker has neither."""
    site = ["here", "here", "here", "there", "there", None]
    dataset = with_domains(
        enterprise, tmp_path / "dataset", site, ["x", None, None, "x", "x", None]
    )
    plan = tmp_path / "plan"
    code, told = answer(capsys, "design", dataset, "--channels", 3, "--out", plan, *HERE)
    assert (code, told["domains"]) == (0, ["here", "x"])
    assert [(own["domain"], own["brokers"]) for own in told["multicast"]] == [
        ("here", 2), ("x", 3), (None, 1),
    ]  # fmt: skip
    assert told["assumed"].endswith(
        "by multicast_domain (brokers: 3) and site (brokers: 2); "
        "no multicast where there is neither (brokers: 1)"
    )
    brokers = pq.read_table(dataset / "brokers").sort_by("broker")["broker"].to_pylist()
    domain = dict(zip(brokers, ["x", "here", "here", "x", "x", None], strict=True))
    rows = [r for r in pq.read_table(plan / "clients.parquet").to_pylist()
            if r["role"] == "subscriber"]  # fmt: skip
    home = {row["client"]: row["broker"] for row in rows}
    members = pq.read_table(plan / "channel_subscribers.parquet").to_pylist()
    of = dict(
        zip(*pq.read_table(plan / "channel_domains.parquet").to_pydict().values(), strict=True)
    )
    assert members
    assert all(domain[home[row["subscriber"]]] == of[row["channel"]] for row in members)
    assert run("check", plan, dataset, *HERE) == 0
    assert run("check", plan, enterprise, *HERE) == 1, "its channels leave the sites there"
    assert run("report", plan, "--out", tmp_path / "report", "--no-curve", *HERE) == 0
    page = (tmp_path / "report" / "index.html").read_text()
    assert "Multicast domains" in page
    assert "no multicast where there is neither (brokers: 1)" in page


def test_without_a_site_there_is_no_multicast(
    enterprise: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = with_domains(enterprise, tmp_path / "dataset", [None] * 6, [None] * 6)
    plan = tmp_path / "plan"
    assert run("design", dataset, "--channels", 3, "--out", plan, *HERE) == 2
    assert "--multicast: no broker has a site or a multicast_domain" in capsys.readouterr().err
    assert run("design", dataset, "--out", plan, *HERE) == 0
    said = capsys.readouterr().out
    assert "there is no multicast: no broker has a site or a multicast_domain" in said
    assert run("check", plan, dataset, *HERE) == 0
    words = ("--multicast", "everywhere", "--out", tmp_path / "other", *HERE)
    code, told = answer(capsys, "design", dataset, "--channels", 2, *words)
    assert (code, [own["domain"] for own in told["multicast"]]) == (0, [""])


@pytest.fixture(scope="module")
def designed(enterprise: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of all layers, with four channels on each site."""
    plan = tmp_path_factory.mktemp("designed") / "plan"
    assert run("design", enterprise, "--channels", 4, "--out", plan, *HERE) == 0
    return plan


def test_layers_are_fixed_to_those_of_a_plan(
    enterprise: Path, designed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layers = ("overlay", "channels", "groups", "marking")
    fixed = [word for layer in layers for word in ("--fix", f"{layer}={designed}")]
    again = tmp_path / "again"
    code, told = answer(capsys, "design", enterprise, *fixed, "--out", again, *HERE)
    assert (code, list(told["params"]["fixed"])) == (0, sorted(layers))
    tables = ("links", "channel_flows", "channel_subscribers", "channel_domains", "marks")
    for name in (*tables, "virtual_groups", "group_members"):
        one, other = (pq.read_table(plan / f"{name}.parquet") for plan in (designed, again))
        assert one.equals(other), name
    before = json.loads((designed / "plan.json").read_text())["delivery"]
    assert told["cost"] == pytest.approx(before["cost"])
    assert run("check", again, enterprise, *HERE) == 0


def test_layers_are_left_out(
    enterprise: Path, designed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words: tuple[Any, ...] = ("design", enterprise, "--fix", f"overlay={designed}")
    words += ("--out", tmp_path / "plan", "--without", "channels,marking,direct")
    code, told = answer(capsys, *words, *HERE)
    assert (code, told["direct"], told["parts"]["multicast"]) == (0, 0, 0)
    assert told["layers"] == ["overlay", "channels", "groups", "delivery"]
    words = ("design", enterprise, "--without", "overlay", "--channels", 4)
    code, told = answer(capsys, *words, "--out", tmp_path / "flat", *HERE)
    assert (code, told["layers"]) == (0, ["channels", "delivery"])
    assert run("check", tmp_path / "flat", enterprise, *HERE) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fix", "trees={}"), "--fix: 'trees' cannot be fixed"),
        (("--fix", "overlay"), "--fix: 'overlay' names no plan"),
        (("--fix", "groups={}", "--without", "groups"), "groups cannot be left out and fixed"),
        (("--fix", "channels={}", "--channels", 3), "--channels: 3 are given"),
        (("--fix", "channels={}", "--unicast-limit", 0.01), "--unicast-limit: the channels of"),
        (("--without", "overlay"), "there are no brokers, and no multicast is allowed"),
        (("--without", "tea"), "--without: 'tea' cannot be left out"),
        (("--without", "overlay", "--fix", "marking={}"), "cannot be fixed without an overlay"),
        (("--without", "overlay", "--channels", 2, "--multicast", "site"), "there are no sites"),
        (("--multicast", "moon"), "--multicast: 'moon' is unknown"),
        (("--price", "tea=1"), "--price: 'tea' has none"),
        (("--channels", -1), "--channels: -1 is out of range"),
        (("--unicast-limit", 2), "--unicast-limit: 2.0 is out of range"),
    ],
)
def test_wrong_wishes_are_named(
    enterprise: Path,
    designed: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [str(word).format(designed) for word in words]
    out = tmp_path / "plan"
    assert run("design", enterprise, *given, "--out", out, *HERE) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_channels_across_sites_cannot_be_fixed_on_sites(
    enterprise: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = tmp_path / "wide"
    assert run("channels", enterprise, "--channels", 2, "--out", wide) == 0
    words = ("design", enterprise, "--fix", f"channels={wide}", "--out", tmp_path / "plan", *HERE)
    assert run(*words) == 2
    assert "is outside the multicast domain of channel" in capsys.readouterr().err
    code, told = answer(capsys, *words, "--multicast", "everywhere")
    assert (code, told["channels"], told["domains"]) == (0, 2, [""])


def test_one_total_in_the_answer_the_table_the_page_and_beside_others(
    enterprise: Path, designed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, page = tmp_path / "plain", tmp_path / "page"
    words = ("--channels", 4, "--entries", 30, "--out", plain, "--without", "marking", *HERE)
    code, told = answer(capsys, "design", enterprise, *words)
    assert (code, told["total"]) == (0, told["cost"]), "without marks delivery is all"
    assert told["total"] == pytest.approx(sum(told["total_parts"].values()))
    assert run("report", designed, "--out", page) == 0
    record = json.loads((designed / "plan.json").read_text())["delivery"]
    steps = json.loads((page / "report.json").read_text())["savings"][0]["steps"]
    assert record["steps"][-1]["cost"] > record["cost"], "subscriptions travel"
    assert steps[-1]["value"] == record["steps"][-1]["cost"]
    text = (page / "index.html").read_text()
    for name, value in (("total cost", steps[-1]["value"]), ("of it delivery", record["cost"])):
        assert re.search(rf"{name}\s*</[^>]*>\s*<[^>]*>\s*{re.escape(number(value))}", text), name
    capsys.readouterr()
    code, beside = answer(capsys, "compare", designed, plain)
    total = beside["figures"]["delivery"]["total_cost"]
    assert total == {"values": [steps[-1]["value"], told["total"]], "best": []}
    assert "delivery: the total cost is not of the same" in " ".join(beside["notes"])
    below = [line["best"] for line in beside["figures"]["channels"].values()]
    assert not any(below), "no best of a layer that was not planned for itself"


def test_designs_compare_and_become_each_other(
    enterprise: Path, designed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, alone = designed, tmp_path / "new", tmp_path / "alone"
    words = ("--channels", 1, "--without", "direct", "--out", new)
    assert run("design", enterprise, *words, *HERE) == 0
    assert run("channels", enterprise, "--channels", 4, "--out", alone, *HERE) == 0
    code, told = answer(capsys, "compare", old, new, alone)
    first, cost = next(iter(told["figures"])), told["figures"]["delivery"]["cost_of_delivery"]
    assert (code, first, cost["values"][2]) == (0, "delivery", None)
    assert cost["best"] == ["plan"], "with more channels, and direct unicast, it costs less"
    assert told["notes"][0] == "no layer delivery in alone"
    workloads: tuple[tuple[Path, ...], ...] = ((), (enterprise,))
    for workload in workloads:
        code, way = answer(capsys, "diff", old, new, *workload, "--steps-of", 40)
        assert (code, way["ok"], list(way["layers"])) == (0, True, ["delivery", "marking"])
        assert max(step["changes"] for step in way["steps"]) <= 40
    states = [way["layers"]["delivery"]["before"], way["steps"][-1]["after"]]
    assert [state["cost"] for state in states] == pytest.approx(cost["values"][:2])
    modes = way["layers"]["delivery"]["modes"]
    assert sum(m["flows"] for m in modes if m["from"] == "direct") == states[0]["direct_flows"]


def test_a_design_on_a_workload_that_drifted(
    enterprise: Path, designed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, later = designed, tmp_path / "later"
    assert run("apply-check", plan, enterprise, *HERE) == 0
    shutil.copytree(enterprise, later)
    amend(later, key="another")
    code, same = answer(capsys, "apply-check", plan, later, "--was", enterprise, *HERE)
    figures = same["layers"]["delivery"]["figures"]
    assert (code, same["reached"], same["rows"]["audiences of flows"]["changed"]) == (1, True, 0)
    assert all(now == pytest.approx(then) for then, now in figures.values()), "only the key differs"
    assert all(not any(moved.values()) for moved in same["layers"]["delivery"]["moved"].values())
    (file,) = (later / "brokers").glob("*.parquet")
    table = pq.read_table(file)
    elsewhere = table["site"].take(np.roll(np.arange(len(table)), 2))
    pq.write_table(table.set_column(table.column_names.index("site"), "site", elsewhere), file)
    seal_dataset(later)
    words = ("apply-check", plan, later, "--allow-drift", "a fire drill", *HERE)
    code, moved = answer(capsys, *words)
    layer = moved["layers"]["delivery"]
    members = pq.read_table(plan / "channel_subscribers.parquet").num_rows
    assert (code, moved["allowed_because"]) == (0, "a fire drill")
    assert layer["moved"]["channel members"]["changed"] == members, "all sites are others"
    assert layer["missed"] > 0


def test_what_was_edited_does_not_hold(
    enterprise: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan"
    assert run("design", enterprise, "--channels", 2, "--out", plan, *HERE) == 0
    record = json.loads((plan / "plan.json").read_text())
    record["delivery"]["parts"]["forwarding"] *= 0.9
    (plan / "plan.json").write_text(json.dumps(record))
    table = pq.read_table(plan / "channel_domains.parquet")
    turned = table.set_column(1, "domain", table["domain"].take(np.arange(len(table))[::-1]))
    pq.write_table(turned, plan / "channel_domains.parquet")
    assert run("check", plan, enterprise, *HERE) == 1
    said = capsys.readouterr().out
    assert "delivery.parts.forwarding" in said
    assert "a member is in another domain" in said


def test_how_clients_are_allocated_is_for_those_without_brokers(
    enterprise: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, told in (
        (("--ranking", "cram"), "--ranking: clients are at brokers that the workload gives"),
        (("--publishers", "cut", "--without", "overlay"), "--publishers: the overlay is left out"),
    ):
        assert run("design", enterprise, *words, "--out", tmp_path / "plan", *HERE) == 2
        assert told in capsys.readouterr().err


def test_clients_are_allocated_as_asked(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd = ("--advertisements", 10, "--brokers", 12, "--capacity", 40, "--publications", 300)
    assert run("generate", "clients", *crowd, "--out", tmp_path / "crowd", *HERE) == 0
    assert run("ingest", tmp_path / "crowd", "--out", tmp_path / "dataset", *HERE) == 0
    words = ("--ranking", "cram", "--publishers", "cut", "--out", tmp_path / "plan", *HERE)
    assert run("design", tmp_path / "dataset", *words) == 0
    asked = json.loads((tmp_path / "plan" / "plan.json").read_text())["overlay"]["params"]
    assert (asked["ranking"], asked["publishers"]) == ("cram", "cut")
    assert run("check", tmp_path / "plan", tmp_path / "dataset") == 0
