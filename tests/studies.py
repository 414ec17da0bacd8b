"""What holds for every study of a paper, whatever it measures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from fanplan.papers.experiment import Samples, Study, judge_statement


def samples_of(
    settings: Iterable[Mapping[str, Any]],
    sample: Callable[[dict[str, Any], int], dict[str, float]],
    *seeds: int,
) -> Samples:
    """Runs of settings, each of which comes as a Spark task would have it."""
    found: dict[tuple[str, str], list[float]] = {}
    for setting in json.loads(json.dumps([*settings])):
        for seed in seeds:
            for key, value in sample(setting, seed).items():
                found.setdefault((setting["name"], key), []).append(value)
    return {key: np.array(values) for key, values in found.items()}


def settings_are_named_and_used(study: Study) -> None:
    names = [setting["name"] for setting in study.settings]
    assert len(set(names)) == len(names)
    assert json.loads(json.dumps(study.settings))
    used = {p.setting for item in study.items for line in item.lines for p in line.points}
    assert used == set(names)


def all_is_measured(study: Study, samples: Samples) -> None:
    """Every point, and what every statement compares."""
    for item in study.items:
        assert all((p.setting, p.key) in samples for line in item.lines for p in line.points)
        found = [judge_statement(item, text, samples) for text in item.statements]
        assert all(each.margins.size == 1 for each in found)
