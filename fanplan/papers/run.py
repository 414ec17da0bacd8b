"""Running an experiment: one Spark task per sample."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fanplan.data.tasks import run_tasks
from fanplan.papers.experiment import Experiment, Sample, Samples, Study


def draw(sample: Sample, item: dict[str, Any]) -> dict[str, Any]:
    """One task: a sample of a setting with a seed of its own."""
    return sample(item["setting"], item["seed"])


def run_study(
    spark: Any,
    experiment: Experiment,
    study: Study,
    runs: int,
    seed: int = 0,
    finished: Callable[[int], None] = lambda done: None,
) -> Samples:
    """All settings with the seeds from ``seed`` on; run *i* has seed + i whatever else is run."""
    items: list[dict[str, Any]] = [
        {"setting": dict(setting), "seed": seed + run}
        for setting in study.settings
        for run in range(runs)
    ]
    results = run_tasks(spark, partial(draw, experiment.sample), items, finished)
    samples: dict[tuple[str, str], list[float]] = {}
    for item, result in zip(items, results, strict=True):
        for key, value in result.items():
            samples.setdefault((item["setting"]["name"], key), []).append(value)
    return {place: np.array(values, dtype=np.float64) for place, values in samples.items()}
