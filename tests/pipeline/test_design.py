"""`fanplan design` from generated tables to a checked plan, with and without brokers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import answer, run
from pyspark.sql import SparkSession

from fanplan.workload.generators import load
from fanplan.workload.generators.enterprise import EnterpriseParams
from fanplan.workload.generators.generated import write
from fanplan.workload.generators.market import MarketParams

HERE = ("--master", "local[2]")


@pytest.fixture(scope="module")
def enterprise(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with brokers on three sites."""
    folder = tmp_path_factory.mktemp("enterprise")
    params = EnterpriseParams(flows=40, users=30, sites=3, brokers_per_site=2, markets=6)
    write(load("enterprise").generate(params, 1), folder / "workload")
    assert run("ingest", folder / "workload", "--out", folder / "dataset", *HERE) == 0
    return folder / "dataset"


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
    again = ("design", enterprise, "--channels", 4, "--overlay", plan, "--out", tmp_path / "again")
    code, fixed = answer(capsys, *again, "--without", "marking,direct", *HERE)
    assert (code, fixed["direct"]) == (0, 0)
    assert fixed["layers"] == ["overlay", "channels", "groups", "delivery"]


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


def test_without_brokers_it_is_channels(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = MarketParams(flows=60, users=20, markets=5, markets_per_user=2)
    write(load("market").generate(params, 1), tmp_path / "market")
    dataset = tmp_path / "dataset"
    assert run("ingest", tmp_path / "market", "--out", dataset, *HERE) == 0
    assert run("design", dataset, "--out", tmp_path / "plan", *HERE) == 2
    assert "there are no brokers, and no multicast is allowed" in capsys.readouterr().err
    words = ("design", dataset, "--channels", 8, "--out", tmp_path / "plan", *HERE)
    code, told = answer(capsys, *words)
    assert (code, told["layers"]) == (0, ["channels", "delivery"])
    assert run("check", tmp_path / "plan", dataset, *HERE) == 0
