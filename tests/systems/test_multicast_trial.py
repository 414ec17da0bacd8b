"""Plans on IP multicast in network namespaces: what links and sockets count is as predicted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ready import stages_are_there
from system_worlds import crowd, design, overlay

from fanplan.core.errors import InputError
from fanplan.core.progress import quiet
from fanplan.live.multicast.plan import MulticastPlan, load_plan
from fanplan.plan.stored import StoredPlan
from fanplan.systems.multicast.export import export, lacks
from fanplan.systems.multicast.network import (
    NAMESPACES,
    PREFIX,
    Snooping,
    network,
    sweep_namespaces,
)
from fanplan.systems.multicast.trial import run_trial, trial
from fanplan.systems.params import ExportParams, TrialParams
from fanplan.systems.traffic import Traffic
from fanplan.systems.trial import Tried

root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")


@pytest.fixture(autouse=True)
def ready() -> Iterator[None]:
    with stages_are_there():
        yield


def left_behind(pid: int) -> list[str]:
    return sorted(path.name for path in NAMESPACES.glob(f"{PREFIX}-{pid}-*"))


def exported(folder: Path, made: tuple[StoredPlan, Path, Traffic]) -> MulticastPlan:
    plan, dataset, traffic = made
    folder.mkdir()
    export(plan, dataset, traffic.ways, ExportParams(), folder)
    return load_plan(folder)


def rows_of(found: Tried, *want: str) -> dict[tuple[str, ...], tuple[int, int | None]]:
    rows = ((row.key, (row.predicted, row.measured)) for row in found.rows)
    return {key: both for key, both in rows if {*want} <= {*key}}


@root
@pytest.mark.parametrize("brokers", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_predicted_is_measured(seed: int, brokers: bool, tmp_path: Path) -> None:
    plan, dataset, traffic = design(tmp_path, seed, brokers)
    found = trial(plan, dataset, TrialParams(), quiet())
    assert found.differences == ()
    assert found.ok
    assert sum(n for n, _ in rows_of(found, "channel").values()) > 0
    assert sum(n for n, _ in rows_of(found, "port").values()) == found.facts["deliveries"]
    wanted = sum(n for n, _ in rows_of(found, "subscriber", "wanted").values())
    assert wanted == len(traffic.wanted)
    assert found.delays_ms["p50"] > 0
    assert not [note for note in found.notes if "not ready" in note or "probe" in note]
    assert left_behind(os.getpid()) == []


@root
def test_a_membership_that_was_removed_shows(tmp_path: Path) -> None:
    made = design(tmp_path / "world", brokers=False)
    own = exported(tmp_path / "export", made)
    who, channels = max(own.members.items(), key=lambda item: len(item[1]))
    fewer = replace(own, members={**own.members, who: channels[1:]})
    found = run_trial(made[0], fewer, made[2], TrialParams(), quiet(), patience=2.0)
    assert not found.ok
    (planned, measured), *_ = rows_of(found, "switch").values()
    assert measured == planned - 1
    assert "1 of" in found.notes[0]
    different = {row.key for row in found.differences}
    assert ("member", str(channels[0]), who) in different
    assert ("port", who, "datagrams") in different
    others = {row.key for row in found.differences if who not in row.key}
    assert others == {("switch", "memberships")}


SLOW = Snooping(response=200, startup=3125)
"""A switch that, as most do, asks again only after half a minute."""


@root
@pytest.mark.parametrize("version", [2, 3])
def test_joins_that_igmp_2_loses_show(version: int, tmp_path: Path) -> None:
    """Hosts that speak IGMPv2 are silent when they hear another; the switch then knows too few."""
    made = crowd(tmp_path / "world")
    own = exported(tmp_path / "export", made)
    snooping = replace(SLOW, version=version)
    found = run_trial(made[0], own, made[2], TrialParams(), quiet(), snooping, 4.0)
    (planned, measured), *_ = rows_of(found, "switch").values()
    assert measured is not None
    if version == 3:
        assert found.differences == ()
        return
    assert not found.ok
    assert measured < planned
    assert f"{planned - measured} of {planned} memberships are not in its table" in found.notes[0]
    lost = rows_of(found, "subscriber", "missed")
    assert sum(n or 0 for _, n in lost.values()) > 0


@root
def test_an_overlay_has_last_hops_alone(tmp_path: Path) -> None:
    plan, dataset, _ = overlay(tmp_path)
    found = trial(plan, dataset, TrialParams(publications=100), quiet())
    assert found.differences == ()
    assert found.facts["publications"] + found.facts["wanted_by_nobody"] == 100
    assert found.unmeasured[0].startswith("hops between brokers")
    assert lacks(plan)[0].startswith("hops between brokers")


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    told = "needs root, to make network namespaces"
    with pytest.raises(InputError, match=told) as error, network(["a"], 1):
        pass
    assert error.value.exit_code == 2


def test_a_server_cannot_be_killed(tmp_path: Path) -> None:
    plan, dataset, _ = design(tmp_path)
    told = "multicast has no servers" if os.geteuid() == 0 else "needs root"
    with pytest.raises(InputError, match=told):
        trial(plan, dataset, TrialParams(kill="b0"), quiet())


@root
def test_more_hosts_than_a_switch_takes() -> None:
    with pytest.raises(InputError, match="1,001 hosts are more"), network(map(str, range(1001)), 1):
        pass


HOLD = """
import sys, time
from fanplan.systems.multicast.network import network
with network(["a", "b"], 1):
    print("ready", flush=True)
    time.sleep(60)
"""


@root
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(end: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(left_behind(process.pid)) == 3
    assert not [name for name in sweep_namespaces() if name in left_behind(process.pid)]
    process.send_signal(end)
    process.communicate()
    # The next run removes what one that was killed has left.
    assert len(left_behind(process.pid)) == (3 if end == signal.SIGKILL else 0)
    with network(["c"], 1):
        assert left_behind(process.pid) == []
    assert left_behind(os.getpid()) == []
