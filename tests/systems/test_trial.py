"""Predicted beside measured: every difference shows, and what nobody predicted is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fanplan.core.errors import InputError
from fanplan.systems.system import load_system
from fanplan.systems.trial import Tried, compared
from fanplan.systems.ways import Figures

PREDICTED: Figures = {
    ("link", "a", "b", "leafnode"): 3,
    ("link", "b", "a", "leafnode"): 2,
    ("channel", "0", "a"): 5,
    ("subscriber", "s", "missed"): 0,
}


def tried(measured: Figures) -> Tried:
    return Tried("nats", "plan", compared(PREDICTED, measured))


def test_all_that_agrees_is_summed() -> None:
    result = tried(PREDICTED)
    assert result.ok
    assert result.verdict() == "All 4 figures are as predicted."
    assert result.totals() == [
        {"of": "channel", "predicted": 5, "measured": 5, "agree": 1, "rows": 1},
        {"of": "link leafnode", "predicted": 5, "measured": 5, "agree": 2, "rows": 2},
        {"of": "subscriber missed", "predicted": 0, "measured": 0, "agree": 1, "rows": 1},
    ]


@pytest.mark.parametrize(
    "measured",
    [
        PREDICTED | {("link", "a", "b", "leafnode"): 2, ("link", "b", "a", "leafnode"): 3},
        {key: count for key, count in PREDICTED.items() if key[0] != "channel"},
        PREDICTED | {("channel", "1", "a"): 1},
        PREDICTED | {("subscriber", "s", "missed"): 1},
    ],
)
def test_every_difference_counts_also_where_sums_agree(measured: Figures) -> None:
    result = tried(measured)
    assert not result.ok
    assert "differ" in result.verdict()


def test_a_result_is_stored_whole(tmp_path: Path) -> None:
    result = tried(PREDICTED)
    result.save(tmp_path / "trial")
    told = json.loads((tmp_path / "trial" / "trial.json").read_text())
    assert told == json.loads(json.dumps(result.json()))
    assert len(told["rows"]) == 4
    with pytest.raises(InputError, match="is a trial already"):
        result.save(tmp_path / "trial")


@pytest.mark.parametrize("name", ["nats", "multicast", "cyclonedds", "mosquitto"])
def test_systems_are_found_by_name(name: str) -> None:
    assert load_system(name).name == name


def test_an_unknown_system_is_refused() -> None:
    with pytest.raises(InputError, match=r"'pigeons' is unknown\. Use one of: nats, multicast"):
        load_system("pigeons")
