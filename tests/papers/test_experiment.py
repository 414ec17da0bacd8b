"""The harness: statistics, statements, rows, tables, and a tiny experiment on Spark."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from fanplan.core.errors import InputError
from fanplan.papers.experiment import (
    Experiment,
    Item,
    PaperLine,
    PaperRow,
    Point,
    Samples,
    Statement,
    Study,
    agreeing_runs,
    item_rows,
    judge_statement,
    run_study,
    summarise,
)
from fanplan.papers.results import (
    published_table,
    require_section,
    with_section,
    write_docs,
    write_item,
    write_results,
)

FIELDS = ("paper", "item", "setting", "published", "mean", "sd", "z", "runs")
A, B = Point("s", "a", 1.0, published=2.0), Point("s", "b", 2.0)
ITEM = Item(
    "Figure 1",
    "Two points",
    (PaperLine("line", (A, B)), PaperLine("ours", (Point("t", "a", 1.0),), ours=True)),
    "cost",
    "x",
    "Read so.",
    (Statement("a is below b", ((A, B),)), Statement("b is almost a", ((B, A),), 1.5)),
)
SAMPLES: Samples = {
    ("s", "a"): np.array([1.0, 2.0, 6.0]),
    ("s", "b"): np.array([2.0, 3.0, 4.0]),
    ("t", "a"): np.array([0.5, 0.5, 0.5]),
}


def numbers(setting: dict[str, Any], seed: int) -> dict[str, float]:
    rng = np.random.default_rng((seed, setting["salt"]))
    return {"a": float(rng.random()), "b": float(rng.random())}


def tiny(sample: Any) -> Experiment:
    study = Study(({"name": "s", "salt": 1}, {"name": "t", "salt": 2}), (ITEM,), 3)
    return Experiment("tiny", "Nobody 2000", sample, study, study)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.floats(-1e6, 1e6))
def test_mean_sd_and_z_are_those_of_numpy(values: list[float], published: float) -> None:
    row = summarise("p", "i", "s", published, np.array(values))
    sd = np.std(values, ddof=1) if len(set(values)) > 1 else 0.0
    assert row.mean == np.mean(values)
    assert row.sd == sd
    assert row.runs == len(values)
    if sd == 0:
        assert row.z is None
    else:
        assert row.z == pytest.approx((published - np.mean(values)) / sd)


def test_one_run_has_no_spread_and_no_published_number_no_z() -> None:
    assert summarise("p", "i", "s", 1.0, np.array([2.0])) == PaperRow(
        "p", "i", "s", 1.0, 2, None, None, 1
    )
    assert summarise("p", "i", "s", None, np.array([2.0, 3.0])).z is None


def test_rows_have_the_named_fields_and_say_where_they_are() -> None:
    rows = item_rows("Nobody 2000", ITEM, SAMPLES)
    assert {tuple(row.json()) for row in rows} == {FIELDS}
    assert [row.setting for row in rows[:3]] == ["line, x 1", "line, x 2", "ours, x 1"]
    assert [row.published for row in rows[:3]] == [2.0, None, None]
    statement = rows[3]
    assert (statement.setting, statement.published) == ("a is below b", 1.0)
    assert statement.mean == pytest.approx(2 / 3)


def test_a_page_has_published_numbers_or_all() -> None:
    few, many = (
        list(published_table(tiny(numbers), item, SAMPLES))
        for item in (ITEM, replace(ITEM, numbers=True))
    )
    assert [line.split(" |")[0] for line in few[2:-1]] == ["| line, x 1"]
    assert [line.split(" |")[0] for line in many[2:-1]] == [
        "| line, x 1",
        "| line, x 2",
        "| ours, x 1",
    ]


def test_a_statement_of_ours_was_not_published() -> None:
    item = replace(ITEM, statements=(Statement("Ours: a is below b", ((A, B),)),))
    assert item_rows("Nobody 2000", item, SAMPLES)[-1].published is None


def test_statements_are_judged_run_by_run() -> None:
    below, almost = (judge_statement(ITEM, statement, SAMPLES) for statement in ITEM.statements)
    assert (below.lower, below.higher, below.agree, below.runs) == (3.0, 3.0, 2, 3)
    assert below.holds
    assert almost.agree == 1
    assert not almost.holds


def test_a_statement_needs_all_of_its_pairs_and_may_name_a_number() -> None:
    both = Statement("", ((A, B), (B, 3.5)))
    assert agreeing_runs(both, SAMPLES).tolist() == [True, True, False]
    assert agreeing_runs(Statement("", ((B, 3.5),)), SAMPLES).tolist() == [True, True, False]


def test_results_are_the_same_however_the_tasks_are_spread(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sample(setting: dict[str, Any], seed: int) -> dict[str, float]:
        # Local, so that it travels by value: executors do not see the tests.
        import numpy as np

        rng = np.random.default_rng((seed, setting["salt"]))
        return {"a": float(rng.random()), "b": float(rng.random())}

    experiment = tiny(sample)
    expected = [numbers({"salt": 1}, seed)["a"] for seed in (5, 6, 7)]
    for slots in (1, 4):
        monkeypatch.setattr("fanplan.data.tasks.task_slots", lambda _, n=slots: n)
        samples = run_study(spark, experiment, experiment.full, 3, 5)
        assert samples["s", "a"].tolist() == expected
        write_results(experiment, experiment.full, samples, tmp_path / str(slots))
    one, four = (
        {file.name: file.read_bytes() for file in sorted((tmp_path / name).iterdir())}
        for name in ("1", "4")
    )
    assert set(one) == {
        "rows.json",
        "report.md",
        "figure-1.csv",
        "figure-1.md",
        "figure-1.svg",
    }
    assert one == four
    rows = json.loads(one["rows.json"])
    assert len(rows) == 5
    assert all(tuple(row) == FIELDS for row in rows)


def test_cells_of_tables_are_no_formulas(tmp_path: Path) -> None:
    evil = ["=1+1", "+1", "-cmd", "@sum", "plain"]
    rows = [PaperRow("p", "Figure 1", setting, None, -1.0, None, None, 1) for setting in evil]
    write_item(replace(ITEM, lines=()), rows, SAMPLES, tmp_path)
    with (tmp_path / "figure-1.csv").open(newline="") as file:
        told = [(row["setting"], row["mean"]) for row in csv.DictReader(file)]
    assert told == [("'" + text, "-1.0") for text in evil[:4]] + [("plain", "-1.0")]


def test_a_picture_that_fails_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr("fanplan.papers.plots.draw_item", fail)
    with pytest.raises(RuntimeError):
        write_results(tiny(numbers), tiny(numbers).full, SAMPLES, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_section_of_a_page_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "papers.md"
    page.write_text("Before\n<!-- tiny: generated -->\nstale\n<!-- tiny: end -->\nAfter\n")
    experiment = tiny(numbers)
    write_results(experiment, experiment.full, SAMPLES, tmp_path / "out")
    write_docs(experiment, experiment.full, SAMPLES, tmp_path / "out", page)
    once = page.read_text()
    write_docs(experiment, experiment.full, SAMPLES, tmp_path / "out", page)
    assert page.read_text() == once
    assert once.startswith("Before\n<!-- tiny: generated -->\n## Nobody 2000")
    assert once.endswith("<!-- tiny: end -->\nAfter\n")
    assert "stale" not in once
    assert "Of 2 checks of what the paper says, 1 hold." in once
    assert "| a is below b | 3 against 3 | 2 of 3 | yes |" in once
    assert "| b is almost a | 3 against 3 | 1 of 3 | **no** |" in once
    picture = "papers/tiny/figure-1.svg"
    assert f"]({picture})" in once
    assert (tmp_path / picture).read_bytes() == (tmp_path / "out" / "figure-1.svg").read_bytes()


def test_a_page_without_the_markers_is_refused_with_the_lines_to_add(tmp_path: Path) -> None:
    page = tmp_path / "papers.md"
    page.write_text("<!-- tiny: end -->\n<!-- tiny: generated -->\n")
    with pytest.raises(InputError, match=r"no section for tiny.*<!-- tiny: generated -->"):
        with_section(page, "tiny", "text")
    with pytest.raises(InputError, match="no section"):
        require_section(tmp_path / "none.md", "tiny")
