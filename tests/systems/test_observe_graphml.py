"""Topologies in GraphML as brokers and links."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from commands import answer

import fanplan
from fanplan.core.errors import InputError

HEAD = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="Latitude" attr.type="double" for="node" id="d1" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d2" />
  <key attr.name="label" attr.type="string" for="node" id="d3" />
  <key attr.name="delay" attr.type="double" for="edge" id="d4" />
"""


def node(name: str, label: str = "", place: tuple[float, float] | None = None) -> str:
    data = f'<data key="d3">{label}</data>' if label else ""
    if place:
        data += f'<data key="d1">{place[0]}</data><data key="d2">{place[1]}</data>'
    return f'<node id="{name}">{data}</node>'


def written(path: Path, *parts: str, head: str = HEAD) -> Path:
    text = head + '<graph edgedefault="undirected">' + "".join(parts) + "</graph></graphml>"
    path.write_text(text, encoding="utf-8")
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def test_coordinates_become_delays_and_parallel_links_stay(tmp_path: Path) -> None:
    file = written(
        tmp_path / "net.graphml",
        node("0", "Zürich", (47.37, 8.54)), node("1", "東京", (35.68, 139.69)),
        node("2", "Nowhere"), node("3", "Nowhere"), node("3", "again"), node("4"),
        '<edge source="0" target="1"/><edge source="1" target="0"/>',
        '<edge source="0" target="2"/><edge source="2" target="2"/>',
        '<edge source="3" target="4"><data key="d4">7.5</data></edge>',
        '<edge source="4" target="missing"/>',
    )  # fmt: skip
    found = fanplan.observe_graphml(file, tmp_path / "out")
    assert found.counts == {"brokers": 5, "links": 4}
    assert found.notes == (
        "1 links without a delay",
        "1 loops",
        "1 edges to unknown nodes",
        "1 nodes with an id that was there already",
    )
    names = [row["broker"] for row in rows(tmp_path / "out" / "brokers.csv")]
    assert names == ["Zürich", "東京", "Nowhere 2", "Nowhere 3", "4"]
    links = rows(tmp_path / "out" / "links.csv")
    assert [(row["a"], row["b"]) for row in links[:2]] == [("Zürich", "東京"), ("東京", "Zürich")]
    # 9,590 km along the great circle.
    assert float(links[0]["latency_ms"]) == pytest.approx(9590 * 0.0049, rel=0.01)
    assert [row["latency_ms"] for row in links[2:]] == ["", "7.5"]


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><graphml>'
    file = written(tmp_path / "bomb.graphml", node("0", "&b;"), head=bomb)
    with pytest.raises(InputError, match="declares a document type"):
        fanplan.observe_graphml(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<graphml><graph>", "is not XML"),
        ("<svg/>", "is no GraphML"),
        ("<graphml/>", "has no nodes"),
        ("", "is not XML"),
    ],
)
def test_other_files_are_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        fanplan.observe_graphml(file, tmp_path / "out")
    with pytest.raises(InputError, match="cannot be read"):
        fanplan.observe_graphml(tmp_path / "nowhere", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_tells_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "net.graphml", node("a"), node("b"), '<edge source="a" target="b"/>')
    code, told = answer(capsys, "observe", "graphml", file, "--out", tmp_path / "out")
    assert code == 0
    assert told["counts"] == {"brokers": 2, "links": 1}
    assert told["notes"] == ["1 links without a delay"]
