"""What is not as it was written is named, whichever file and byte it is, by every command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pyarrow.parquet as pq
import pytest
from commands import run
from overlays import write_stage
from ready import stages_are_there
from report_worlds import ReportWorld, write_report_world
from sealing import amend

import fanplan
from fanplan.core.errors import InputError
from fanplan.core.hashes import file_hash
from fanplan.data.engine import Engine
from fanplan.data.reader import damage, read_manifest, read_stage, verified
from fanplan.layers.registry import load_plan
from fanplan.plan.seal import require_untouched


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ReportWorld:
    return write_report_world(tmp_path_factory.mktemp("made"))


@pytest.fixture
def world(made: ReportWorld, tmp_path: Path) -> Iterator[ReportWorld]:
    """A copy to damage; stages are there, as nothing must ask Spark for them."""
    plans = (shutil.copytree(plan, tmp_path / plan.name) for plan in made.plans)
    dataset = shutil.copytree(made.dataset, tmp_path / "dataset")
    with stages_are_there():
        yield ReportWorld(dataset, tuple(plans))


def flip(path: Path, at: int) -> bytes:
    """Change a byte of a file; returns what it was."""
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
    return whole


def places(path: Path, count: int = 8) -> set[int]:
    """Some places of a file, with both ends."""
    last = path.stat().st_size - 1
    return {last * i // (count - 1) for i in range(count)}


def test_every_byte_of_a_dataset_counts(world: ReportWorld) -> None:
    """Of every file, at several places, by whoever reads the stage."""
    dataset, tried = world.dataset, 0
    assert damage(dataset) == {}
    for path in sorted(p for p in dataset.rglob("*") if p.is_file()):
        for at in places(path):
            whole = flip(path, at)
            with pytest.raises(InputError, match="hash differs") as caught:
                read_stage(dataset, "flows" if path.parent == dataset else path.parent.name)
            assert str(dataset) in str(caught.value)
            assert f"{path.name}: hash differs" in str(caught.value)
            assert "fanplan ingest" in str(caught.value)
            path.write_bytes(whole)
            tried += 1
    assert damage(dataset) == {}
    assert tried > 200


def test_every_byte_of_a_plan_counts(world: ReportWorld) -> None:
    """Tables and plan.json, whether it can be read afterwards or not."""
    for plan in world.plans:
        for path in sorted(plan.iterdir()):
            for at in places(path, 40 if path.suffix == ".json" else 8):
                whole = flip(path, at)
                with pytest.raises(InputError, match="hash differs"):
                    require_untouched(load_plan(plan))
                path.write_bytes(whole)
        require_untouched(load_plan(plan))


def drop(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def add(path: Path) -> None:
    shutil.copyfile(path, path.with_name("part-9.parquet"))


def drop_stage(path: Path) -> None:
    shutil.rmtree(path.parent)


def drop_record(path: Path) -> None:
    (path.parent / "_stage.json").unlink()


def exchange(path: Path) -> None:
    """The stage of another dataset, whole in itself."""
    other = shutil.copytree(path.parents[1], path.parents[2] / "other")
    amend(other, name="another")
    pq.write_table(pq.read_table(path).slice(1), other / path.parent.name / path.name)
    amend(other)
    shutil.rmtree(path.parent)
    shutil.copytree(other / path.parent.name, path.parent)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (drop, r"part\.parquet: missing"),
        (truncate, r"part\.parquet: hash differs"),
        (add, r"part-9\.parquet: unknown"),
        (drop_record, r"_stage\.json: missing"),
        (drop_stage, "missing"),
        (exchange, "_stage.json: hash differs, it is another's"),
    ],
)
@pytest.mark.parametrize("stage", ["brokers", "descriptors"])
def test_all_that_can_happen_to_a_stage(
    world: ReportWorld, harm: Callable[[Path], None], said: str, stage: str
) -> None:
    """One that ingest made, and one that was made later, which may be missing."""
    assert ("brokers" in read_manifest(world.dataset).seals) is True
    harm(world.dataset / stage / "part.parquet")
    if (stage, harm) == ("descriptors", drop_stage):
        said = "no Parquet files here"
    with pytest.raises(InputError, match=said):
        read_stage(world.dataset, stage)


def test_a_subscriber_who_was_removed_is_missed(
    world: ReportWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the manifest and in the plan all is as it was."""
    (path,) = (world.dataset / "classes").glob("*.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[0]["subscribers"] = rows[0]["subscribers"][1:]
    pq.write_table(table.from_pylist(rows, table.schema), path)
    for command in ("check", "apply-check"):
        assert run(command, world.plans[0], world.dataset) == 2
        assert f"stage classes: {path.name}: hash differs" in capsys.readouterr().err


def test_numbers_of_a_manifest_cannot_be_edited(world: ReportWorld) -> None:
    path = world.dataset / "manifest.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told, indent=4))
    assert read_manifest(world.dataset).seconds == told["seconds"], "spaces do not matter"
    path.write_text(json.dumps(told | {"seconds": told["seconds"] * 2}))
    with pytest.raises(InputError, match=r"manifest\.json: hash differs"):
        fanplan.open_dataset(world.dataset)


COMMANDS = {
    "channels": ("channels", "{dataset}", "--channels", "3", "--out", "{out}"),
    "overlay": ("overlay", "{dataset}", "--out", "{out}"),
    "allocate": ("allocate", "{dataset}", "--out", "{out}"),
    "groups": ("groups", "{dataset}", "--out", "{out}"),
    "mark": ("mark", "{dataset}", "--trees", "per-source", "--out", "{out}"),
    "mesh": ("mesh", "{dataset}", "--out", "{out}"),
    "design": ("design", "{dataset}", "--channels", "3", "--out", "{out}"),
    "check": ("check", "{plan}", "{dataset}"),
    "replay": ("replay", "{plan}", "{dataset}"),
    "simulate": ("simulate", "{overlay}", "{dataset}"),
    "churn": ("churn", "{groups}", "{dataset}"),
    "report": ("report", "{plan}", "--workload", "{dataset}", "--out", "{out}"),
    "export": ("export", "{plan}", "{dataset}", "--to", "multicast", "--out", "{out}"),
    "trial": ("trial", "{plan}", "{dataset}", "--on", "multicast"),
    "diff": ("diff", "{plan}", "{plan}", "{dataset}"),
    "apply-check": ("apply-check", "{plan}", "{dataset}"),
    "quarantine": ("quarantine", "{dataset}"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_verifies_what_it_reads(
    world: ReportWorld,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.setattr(Engine, "session", MagicMock())
    rows = {"time": [1.0], "publisher": ["p0"], "topic": ["t0"]}
    write_stage(world.dataset, "publications", rows)
    amend(world.dataset, stages=read_stages(world.dataset) | {"publications": {"rows": 1}})
    for path in world.dataset.glob("*/*.parquet"):
        flip(path, path.stat().st_size // 2)
    channels, overlay, groups, _ = world.plans
    named = {"dataset": world.dataset, "out": tmp_path / "out", "plan": channels}
    named |= {"overlay": overlay, "groups": groups}
    assert run(*(word.format(**named) for word in COMMANDS[command])) == 2
    said = capsys.readouterr().err
    assert "hash differs" in said
    assert str(world.dataset) in said
    assert not (tmp_path / "out").exists()


def read_stages(dataset: Path) -> dict[str, object]:
    stages: dict[str, object] = json.loads((dataset / "manifest.json").read_text())["stages"]
    return stages


@pytest.mark.parametrize("number", range(4))
def test_a_check_ends_in_a_named_file_or_did_not_need_it(world: ReportWorld, number: int) -> None:
    """Stage by stage: no other error, and those that matter are among them."""
    plan, refused = world.plans[number], set()
    for path in sorted(world.dataset.glob("*/*.parquet")):
        whole = flip(path, path.stat().st_size // 3)
        said = checked(plan, world.dataset)
        assert said in ("holds", f"stage {path.parent.name}: {path.name}: hash differs")
        refused |= {path.parent.name} if said != "holds" else set()
        path.write_bytes(whole)
    needed = ({"flows", "classes", "subscribers"}, {"brokers", "routes"}, {"brokers"}, {"brokers"})
    assert needed[number] <= refused


def checked(plan: Path, dataset: Path) -> str:
    """What the check says: that it holds, or what is wrong with the dataset."""
    try:
        return "holds" if fanplan.check(plan, fanplan.open_dataset(dataset)).ok else "does not"
    except InputError as error:
        return error.problems[0].what


CHANGED = """
import sys
from pathlib import Path
from fanplan.data.reader import read_stage
read_stage(Path(sys.argv[1]), "flows")
"""


def test_what_is_remembered_hides_no_change(
    world: ReportWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a process an unchanged file is hashed once; a changed one is found here and anew."""
    (path,) = (world.dataset / "flows").glob("*.parquet")
    monkeypatch.setattr("fanplan.core.hashes.RECENT_NS", -1)
    verified(world.dataset, "flows")
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.file_digest", lambda *_: pytest.fail("it was read again"))
        file_hash(path)
    flip(path, 99)
    with pytest.raises(InputError, match=r"stage flows: .*: hash differs"):
        verified(world.dataset, "flows")
    words = [sys.executable, "-c", CHANGED, str(world.dataset)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "stage flows" in done.stderr
    assert "hash differs" in done.stderr
