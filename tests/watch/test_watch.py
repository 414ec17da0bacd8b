"""Watch on Spark: a growing folder is followed, and a killed run goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from streams import write_changes, write_window, write_workload

import fanplan
from fanplan.core.errors import InputError
from fanplan.data.engine import Engine
from fanplan.verbs.check import check_plan

ENGINE = Engine("local[2]")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workload with exact flows, and a plan for its first three windows."""
    folder = tmp_path_factory.mktemp("watch")
    desk = write_workload(folder / "desk", attributes=True)
    for window in range(3):
        write_window(desk, window, attributes=True)
    dataset = fanplan.ingest(desk, folder / "dataset", engine=ENGINE)
    fanplan.channels(dataset, 2, engine=ENGINE).save(folder / "plan")
    return folder


def watched(folder: Path, state: str = "state", **options: Any) -> fanplan.Watched:
    asked = {"once": True, "window": 10.0, "patience": 2, "half_life": 2.0, **options}
    return fanplan.watch(folder / "plan", folder / "desk", folder / state, engine=ENGINE, **asked)


def write_damaged(path: Path, **more: str) -> None:
    """A file that looks sound from its end, and cannot be read in the middle."""
    aside, row = path.with_name(f".{path.name}"), {"time": 45.0, "topic": "t1", **more}
    pq.write_table(pa.Table.from_pylist([row] * 1000), aside)
    content = bytearray(aside.read_bytes())
    content[4:60] = b"\xff" * 56
    aside.write_bytes(content)
    aside.rename(path)


def test_rates_are_those_of_ingest_and_drift_is_followed(planned: Path) -> None:
    first = watched(planned, half_life=1e6)
    assert (first.version, first.windows) == (0, 2)
    of_ingest = pq.read_table(planned / "dataset" / "flows").select(["flow", "audience_class"])
    assert {name for name in of_ingest["flow"].to_pylist() if "#" in name}

    state = planned / "state"
    last = max((state / "batches").iterdir(), key=lambda path: int(path.name))
    seen = pq.read_table(last / "rates.parquet")
    assert set(seen["topic"].to_pylist()) == {*(f"t{i}" for i in range(12)), "quotes"}
    third = seen.filter(pc.equal(seen["topic"], "t3"))
    assert [weight >> 12 for weight in third["messages"].to_pylist()] == [2 * 4]

    desk = planned / "desk"
    for window in range(3, 10):
        write_window(desk, window, attributes=True, swapped=True)
    change = {"time": 40, "subscriber": "u0", "topic": "t11"}
    write_changes(desk, "a", [change | {"action": "add"}, change | {"action": "odd", "time": 41}])
    lines = ['{"time": 1, "topic": "t1"}', '{"topic": "t1"}', '{"time": 9e8, "topic": "t1"}', "odd"]
    (desk / "publications" / "bad.jsonl").write_text("\n".join(lines) + "\n")
    (desk / "publications" / "bad.xyz").write_text("odd")
    write_damaged(desk / "publications" / "damaged.parquet")
    found = watched(planned, half_life=1e6, files=4)
    assert found.counts["changes"] == 1
    assert found.counts["late"] == 1
    assert found.counts["ahead"] == 1
    assert found.counts["quarantined"] == 3
    assert found.counts["files_lost"] == 2
    assert found.version > 0
    for number in range(1, found.version + 1):
        version = state / "versions" / str(number)
        assert check_plan(version / "plan", version / "dataset").ok
    newest = state / "versions" / str(found.version) / "dataset"
    people = pq.read_table(newest / "subscribers")["subscriber"].to_pylist()
    classes = pq.read_table(newest / "classes").to_pylist()
    flows = {row["flow"]: row for row in pq.read_table(newest / "flows").to_pylist()}
    audience = classes[flows["t11"]["audience_class"]]["subscribers"]
    assert "u0" in {people[number] for number in audience}
    lost = [pq.read_table(path) for path in (state / "batches").glob("*/quarantine.parquet")]
    reasons = pa.concat_tables(lost)["reason"].to_pylist()
    assert "time: a stream needs one" in reasons
    assert "action: neither add nor remove" in reasons
    assert any(reason.startswith("cannot be read") for reason in reasons)

    again = watched(planned, half_life=1e6)
    assert again.json() == found.json()

    write_damaged(desk / "changes" / "b.parquet", action="add", subscriber="u0")
    with pytest.raises(InputError, match=r"b\.parquet: cannot be read"):
        watched(planned, half_life=1e6)
    whole = pa.Table.from_pylist([change | {"action": "remove", "time": 90.0}])
    pq.write_table(whole, desk / "changes" / "b.parquet")
    assert watched(planned, half_life=1e6).counts["changes"] == 2


def test_a_plan_of_another_workload_is_refused(planned: Path, tmp_path: Path) -> None:
    other = write_workload(tmp_path / "other")
    with pytest.raises(InputError, match="was not made for the subscriptions"):
        fanplan.watch(planned / "plan", other, tmp_path / "state", engine=ENGINE)
    (planned / "desk" / "publications").rename(tmp_path / "away")
    with pytest.raises(InputError, match="has no folder publications"):
        watched(planned, "other")
    (tmp_path / "away").rename(planned / "desk" / "publications")
    with pytest.raises(InputError, match="is not a folder"):
        fanplan.watch(planned / "plan", tmp_path / "none", tmp_path / "state", engine=ENGINE)
