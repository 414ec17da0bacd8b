"""From one marking to another: valid at every flip."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marking_datasets import write_marking_dataset
from marking_worlds import (
    links,
    random_counts,
    random_shared_problem,
    random_source_problem,
    random_tree,
)
from ready import stages_are_there

import fanplan
from fanplan.core.errors import InputError
from fanplan.layers.marking.changes import (
    follows,
    in_order,
    in_two,
    judged_marks,
    named_links,
    stage_marking,
)
from fanplan.layers.marking.ledger import violations
from fanplan.layers.marking.problem.dataset import load_marking
from fanplan.layers.marking.problem.marking import MarkedNetwork, MarkingProblem
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.registry import load_plan


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


def any_marking(problem: MarkingProblem, seed: int) -> np.ndarray:
    """Any valid marking: some s-links, and with each all that follow it."""
    publish = np.random.default_rng(seed).random(problem.size) < 0.8
    while len(wrong := violations(problem, publish)):
        publish[wrong] = False
    return publish


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.booleans())
def test_any_marking_becomes_any_other(seed: int, shared: bool) -> None:
    problem = random_shared_problem(seed) if shared else random_source_problem(seed)
    names = named_links(problem)
    old, new = any_marking(problem, seed), any_marking(problem, seed + 1)
    dearer = np.random.default_rng(seed).normal(size=problem.size)
    flips, units = in_order(follows(problem, names), old, new, dearer)
    now = old.copy()
    for unit in np.unique(units):
        now[flips[units == unit]] ^= True
        assert not len(violations(problem, now))
        assert judged_marks(now, now * 1.0, now * 1.0, problem, names).broken == ()
    assert (now == new).all()
    assert sorted(flips.tolist()) == np.flatnonzero(old != new).tolist()
    assert units.tolist() == sorted(units.tolist())
    flips, units = in_two(old, new)
    old[flips[units == 0]] ^= True
    assert not len(violations(problem, old)), "valid, whatever follows what"


@pytest.fixture
def stored(tmp_path: Path) -> Any:
    """Plans for other counts at the same nodes, so that they mark the same trees differently."""
    rng = np.random.default_rng(5)
    pairs = {(min(pair), max(pair)) for root in (0, 3, 5) for pair in random_tree(rng, root, 9)}
    names, counts = pa.array([f"n{i}" for i in range(9)]), random_counts(rng, 9)
    datasets = []
    for name in ("first", "second"):
        changed = {role: many * rng.integers(1, 30, 9) for role, many in counts.items()}
        world = MarkedNetwork(names, **changed, links=links(sorted(pairs)))
        datasets.append(fanplan.Dataset(write_marking_dataset(tmp_path / name, world)))
    made = [fanplan.mark(dataset, "per-source") for dataset in datasets]
    made.append(fanplan.mark(datasets[1], "shared:n2"))
    plans = [load_plan(plan.save(tmp_path / str(i))) for i, plan in enumerate(made)]
    return datasets[1].path, *plans


def test_stored_markings(stored: Any) -> None:
    dataset, old, new, _ = stored
    made = stage_marking(old, new, dataset, 1)
    assert made.steps == len(made.changes) > 1
    assert not any(state.broken for state in made.states)
    assert made.states[-1].figures["cost"] == pytest.approx(new.section(MarkingRecord).cost)
    assert made.states[-1].figures["p_links"] == new.section(MarkingRecord).p_links
    assert stage_marking(old, new, None, len(made.changes) - 1).steps == 2


def test_a_wrong_order_is_found_by_the_check_of_states(stored: Any) -> None:
    dataset, old, *_ = stored
    problem = load_marking(dataset, old.section(MarkingRecord).params)
    names = named_links(problem)
    first, _ = follows(problem, names).nonzero()
    publish = np.ones(problem.size, bool)
    publish[first[0]] = False
    assert (
        "p-link behind an s-link"
        in judged_marks(publish, publish, publish, problem, names).broken[0]
    )


def test_other_trees_change_at_once(stored: Any) -> None:
    dataset, old, _, other = stored
    made = stage_marking(old, other, dataset, 1000)
    assert made.steps == 1
    assert made.states[-1].figures == {"cost": other.section(MarkingRecord).cost}
    with pytest.raises(InputError, match="the plans mark other trees"):
        stage_marking(old, other, dataset, 2)
    with pytest.raises(InputError, match="not known which links follow which"):
        stage_marking(old, stored[2], None, 1)
