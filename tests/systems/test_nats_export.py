"""Exports for NATS: the server takes every file as it is, and the library delivers through them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import free_port
from commands import run
from delivery_datasets import world_of
from nats_worlds import designed, needs_nats
from ready import stages_are_there

import fanplan
from fanplan.core.errors import InputError
from fanplan.live import Publisher, Subscriber
from fanplan.live.nats.config import file_of
from fanplan.live.nats.plan import load_plan
from fanplan.systems.nats.export import export_servers, publishers_of
from fanplan.systems.nats.servers import server_program
from fanplan.systems.params import ExportParams

pytestmark = needs_nats
WORLD = world_of(1, sent=60)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, fanplan.Dataset]]:
    with stages_are_there():
        yield designed(tmp_path_factory.mktemp("made"), WORLD)


@pytest.fixture(scope="module")
def export(made: tuple[Path, fanplan.Dataset], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "nats"
    words = ("--to", "nats", "--out", out, "--port", min(free_port(), 50_000))
    assert run("export", made[0], made[1].path, *words) == 0
    return out


def test_the_server_takes_every_file(export: Path) -> None:
    files = sorted((export / "servers").iterdir())
    assert len(files) == 6
    for file in files:
        words = (server_program(), "-t", "-c", str(file))
        subprocess.run(words, check=True, capture_output=True)


def test_the_page_names_files_agents_and_what_is_not_expressed(export: Path) -> None:
    page, plan = (export / "README.md").read_text(), load_plan(export)
    for server in plan.servers:
        assert f"`servers/{file_of(server)}`" in page
    assert "python -m fanplan.live.nats" in page
    assert "- marks: NATS decides itself where interest travels" in page
    lacks = json.loads((export / "export.json").read_text())["lacks"]
    assert len(lacks) == 2


def test_a_stored_plan_is_read_back(export: Path, tmp_path: Path) -> None:
    plan = load_plan(export)
    plan.save(tmp_path)
    assert load_plan(tmp_path) == plan
    with pytest.raises(InputError, match="is not an export for NATS"):
        load_plan(tmp_path / "elsewhere")


def test_an_agent_runs_by_itself(export: Path) -> None:
    words = (sys.executable, "-m", "fanplan.live.nats", str(export), "nobody")
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert "broker 'nobody': is not in the plan. Name one of b" in said.stderr


def test_who_is_not_in_the_plan_is_told_so(export: Path) -> None:
    with pytest.raises(InputError, match="publisher 'nobody': is not in the plan"):
        Publisher(export, "nobody")
    with pytest.raises(InputError, match="subscriber 'nobody': is not in the plan"):
        Subscriber(export, "nobody")


def test_brokers_keep_their_ports_in_a_later_export(export: Path) -> None:
    known = load_plan(export).servers
    given = ExportParams(port=7000, like=export)
    names = ["new", *(server.broker for server in reversed(known[1:]))]
    first, *rest = export_servers(names, given)
    assert rest == [*reversed(known[1:])]
    assert first.client > max(server.monitor for server in known)
    assert [s.client for s in export_servers(["x", "y"], ExportParams(port=7000))] == [7000, 7003]


def test_publishers_that_were_silent_stay_in_a_later_export(export: Path) -> None:
    plan, given = load_plan(export), ExportParams(port=7000, like=export)
    name, entry = next(iter(plan.entries.items()))
    silent = replace(plan, entries={"new": 0})
    assert publishers_of(silent, given)["new"] == 0
    assert publishers_of(silent, given)[name] == entry
    assert publishers_of(silent, ExportParams(port=7000)) == {"new": 0}
    elsewhere = replace(silent, servers=plan.servers[:entry] + plan.servers[entry + 1 :])
    assert name not in publishers_of(elsewhere, given)
