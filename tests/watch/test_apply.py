"""Versions are carried out in order, each once and whole, whatever happens in between."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from followed import Unspark, even, first_plan, follower, run, skewed

from fanplan.core.errors import InputError
from fanplan.data.engine import Engine
from fanplan.watching.apply import Switching, enact_versions

STREAM = [*({n: even()} for n in range(3)), *({n: skewed(3)} for n in range(3, 12))]


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Unspark:
    folder = tmp_path_factory.mktemp("applied")
    return run(follower(folder, first_plan(folder / "plan", even()), STREAM, {3: 4}, churn=6))


class Recorder:
    """Remembers what it was asked to do; ``broken`` breaks it once, in the middle."""

    def __init__(self, broken: int | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self.broken = broken

    def apply(self, old: Path, new: Path) -> dict[str, Any]:
        self.asked.append((old.name, new.name))
        if self.broken == int(new.name):
            self.broken = None
            raise OSError("the network is gone")
        return {"told": new.name}


def test_every_version_is_carried_out_once_and_goes_on_after_a_failure(followed: Unspark) -> None:
    state, recorder = followed.state, Recorder(broken=2)
    last = state.last().version
    assert last >= 2
    with pytest.raises(OSError, match="gone"):
        enact_versions(state, recorder)
    assert json.loads((state.folder / "applied" / "2.json").read_text())["done"] is False
    enact_versions(state, recorder)
    enact_versions(state, recorder)
    steps = [(str(n - 1), str(n)) for n in range(1, last + 1)]
    assert recorder.asked == [*steps[:2], *steps[1:]]
    told = json.loads((state.folder / "applied" / f"{last}.json").read_text())
    assert told == {"version": last, "done": True, "told": str(last)}


class Report:
    def json(self) -> dict[str, Any]:
        return {"applied": True}


def test_a_version_is_exported_like_the_running_one_and_switched_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, versions = tmp_path / "running", tmp_path / "versions"
    running.mkdir()
    (running / "export.json").write_text('{"system": "nats"}')
    done: list[tuple[str, ...]] = []

    def exported(plan: Path, dataset: Path, to: str, out: Path, *, like: str, **_: Any) -> None:
        done.append(("export", plan.name, dataset.name, to, Path(like).name))
        out.mkdir(parents=True)

    def switched(old: Path, new: Path, **_: Any) -> Report:
        done.append(("switch", str(old.relative_to(tmp_path)), str(new.relative_to(tmp_path))))
        return Report()

    module = ModuleType("fanplan.live.switch")
    module.switch = switched  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fanplan.live.switch", module)
    monkeypatch.setattr("fanplan.watching.apply.export", exported)
    applier = Switching(running, Engine())
    told = applier.apply(versions / "0", versions / "1")
    assert told == {"export": "versions/1/export", "switch": {"applied": True}}
    applier.apply(versions / "1", versions / "2")
    applier.apply(versions / "1", versions / "2")
    again = ("switch", "versions/1/export", "versions/2/export")
    assert done == [
        ("export", "plan", "dataset", "nats", "running"),
        ("switch", "running", "versions/1/export"),
        ("export", "plan", "dataset", "nats", "export"),
        again,
        again,
    ]


def test_only_running_exports_for_nats_are_switched(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not an export"):
        Switching(tmp_path, Engine())
    (tmp_path / "export.json").write_text('{"system": "multicast"}')
    with pytest.raises(InputError, match="cannot change plans as they run"):
        Switching(tmp_path, Engine())
