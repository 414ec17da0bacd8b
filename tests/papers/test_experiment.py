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
    DIFFER,
    ERRS,
    Experiment,
    Item,
    PaperLine,
    PaperRow,
    Point,
    Samples,
    Study,
    alike,
    all_below,
    each_pair,
    everywhere,
    half_interval,
    item_rows,
    judge_statement,
    pointwise,
    rising,
    run_study,
    score_study,
    summarise,
)
from fanplan.papers.results import (
    SUMMARY,
    published_table,
    read_samples,
    require_measured,
    require_section,
    with_section,
    write_docs,
    write_item,
    write_results,
)

FIELDS = (
    "paper", "item", "setting", "published", "mean", "sd", "z", "runs", "met", "verdict"
)  # fmt: skip
A, B = Point("s", "a", 1.0, published=2.0), Point("s", "b", 2.0)
ITEM = Item(
    "Figure 1",
    "Two points",
    (PaperLine("line", (A, B)), PaperLine("ours", (Point("t", "a", 1.0),), ours=True)),
    "cost",
    "x",
    "Read so.",
    (
        each_pair("a is below b", [(A, B)]),
        each_pair("b is almost a", [(B, A)], 1.1).if_not(ERRS, "it is the reverse"),
    ),
)
SAMPLES: Samples = {
    ("s", "a"): np.array([1.0, 2.0, 3.0]),
    ("s", "b"): np.array([2.0, 3.1, 4.0]),
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
    row = summarise("p", "i", "s", Point("s", "a", published=published), np.array(values))
    sd = np.std(values, ddof=1) if len(set(values)) > 1 else 0.0
    assert row.mean == np.mean(values)
    assert row.sd == sd
    assert row.runs == len(values)
    if sd == 0:
        assert row.z is None
    else:
        assert row.z == pytest.approx((published - np.mean(values)) / sd)


def test_one_run_has_no_spread_and_no_published_number_no_z() -> None:
    one = summarise("p", "i", "s", Point("s", "a", published=1.0), np.array([2.0]))
    assert one == PaperRow("p", "i", "s", 1.0, 2, None, None, 1, "undecided")
    assert summarise("p", "i", "s", Point("s", "a"), np.array([2.0, 3.0])).z is None


@pytest.mark.parametrize(
    ("published", "about", "values", "met"),
    [
        (5.0, 0.0, [1.0, 2.0, 3.0], "yes"),
        (5.6, 0.0, [1.0, 2.0, 3.0], "no"),
        (5.6, 0.6, [1.0, 2.0, 3.0], "yes"),
        (0.31, 0.0, [0.3149, 0.3149], "yes"),
        (0.31, 0.0, [0.3151, 0.3151], "no"),
        (800.0, 50.0, [850.0, 850.0], "yes"),
    ],
)
def test_a_number_is_met_within_three_deviations_as_printed(
    published: float, about: float, values: list[float], met: str
) -> None:
    point = Point("s", "a", published=published, about=about).if_not(DIFFER, "so")
    row = summarise("p", "i", "s", point, np.array(values))
    assert row.met == met
    assert (row.verdict is None) == (met == "yes")


def test_rows_have_the_named_fields_and_say_where_they_are() -> None:
    rows = item_rows("Nobody 2000", ITEM, SAMPLES)
    assert {tuple(row.json()) for row in rows} == {FIELDS}
    assert [row.setting for row in rows[:3]] == ["line, x 1", "line, x 2", "ours, x 1"]
    assert [row.published for row in rows[:3]] == [2.0, None, None]
    assert [row.met for row in rows] == ["yes", None, None, "yes", "no"]
    statement = rows[3]
    assert (statement.setting, statement.published) == ("a is below b", None)
    assert statement.mean == pytest.approx((3.1 / 3 * 3 - 2) / ((3.1 + 2) / 2), rel=0.05)


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


def measured(**runs: list[float]) -> Samples:
    return {("s", key): np.array(values) for key, values in runs.items()}


def met(statement: Any, samples: Samples) -> str:
    return judge_statement(ITEM, statement, samples).met


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1.0, 2.0, 3.0], [2.0, 3.1, 4.0], "yes"),
        ([2.0, 3.1, 4.0], [1.0, 2.0, 3.0], "no"),
        ([1.0, 2.0, 6.0], [2.0, 3.0, 4.0], "undecided"),
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], "no"),
        ([1.0], [2.0], "undecided"),
    ],
)
def test_a_statement_is_judged_on_the_interval_of_its_mean_margin(
    a: list[float], b: list[float], expected: str
) -> None:
    """Two of three runs agree in the third case, but their mean says nothing."""
    assert met(each_pair("", [(A, B)]), measured(a=a, b=b)) == expected


def test_the_interval_is_student_s() -> None:
    assert half_interval(np.array([1.0, 2.0, 3.0])) == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)
    assert half_interval(np.array([1.0])) is None


def test_a_curve_is_judged_on_its_mean_and_every_point_if_the_text_says_so() -> None:
    """The curve a, c is below b, d though its second point is not."""
    points = {key: Point("s", key) for key in "abcd"}
    samples = measured(
        a=[1.0, 1.1, 0.9], b=[2.0, 2.1, 2.2], c=[1.0, 1.02, 1.01], d=[0.95, 0.96, 0.97]
    )
    low, high = ([points[key] for key in keys] for keys in ("ac", "bd"))
    assert met(pointwise("", low, high), samples) == "yes"
    assert met(everywhere(pointwise("", low, high)), samples) == "no"
    assert met(alike("", [low, high], 1.1), samples) == "no"
    assert met(all_below("", [low], [high, low[:1] * 2]), samples) == "undecided"


def test_a_rising_line_may_fall_a_little_on_its_way() -> None:
    samples = measured(a=[1.0, 1.0, 1.1], b=[2.0, 2.1, 2.1], c=[1.9, 2.0, 2.05])
    line = [Point("s", key) for key in "abc"]
    assert met(rising("", [line]), samples) == "yes"
    assert met(rising("", [line[::-1]]), samples) == "no"
    assert met(rising("", [line, line[::-1]]), samples) == "no"


def test_a_statement_may_name_a_number() -> None:
    assert met(each_pair("", [(B, 3.5)]), measured(b=[2.0, 3.1, 3.0])) == "undecided"
    assert met(each_pair("", [(B, 3.5)]), measured(b=[2.0, 2.1, 2.2])) == "yes"


def test_the_score_counts_statements_and_numbers_apart_and_nothing_of_ours() -> None:
    ours = each_pair("Ours: b is below a", [(B, A)])
    study = Study((), (replace(ITEM, statements=(*ITEM.statements, ours)),), 3)
    score = score_study(study, SAMPLES)
    assert score.statements == {"yes": 1, "no": 1}
    assert score.numbers == {"yes": 1}
    assert score.causes == {ERRS: 1}
    assert score.open == ()


def test_what_is_not_met_must_say_why_before_a_page_is_written(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    before = page.read_text()
    bare = replace(ITEM, statements=(each_pair("b is below a", [(B, A)]),))
    study = Study((), (bare,), 3)
    write_results(tiny(numbers), study, SAMPLES, tmp_path / "out")
    with pytest.raises(InputError, match=r"Figure 1: b is below a.*no verdict"):
        write_docs(tiny(numbers), study, SAMPLES, tmp_path / "out", page)
    assert page.read_text() == before


def test_samples_can_be_judged_again(tmp_path: Path) -> None:
    experiment = tiny(numbers)
    write_results(experiment, experiment.full, SAMPLES, tmp_path / "out")
    found = read_samples(tmp_path / "out")
    assert {place: own.tolist() for place, own in found.items()} == {
        place: own.tolist() for place, own in SAMPLES.items()
    }
    require_measured(experiment.full, found, tmp_path)
    with pytest.raises(InputError, match="has no b of s"):
        require_measured(experiment.full, {("s", "a"): found["s", "a"]}, tmp_path)
    with pytest.raises(InputError, match=r"has no samples\.parquet"):
        read_samples(tmp_path)


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
        "samples.parquet",
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


def page_of(folder: Path) -> Path:
    page = folder / "papers.md"
    page.write_text(
        f"<!-- {SUMMARY}: generated -->\n| paper |\n| --- |\n| Other 1999 | 5 | 1 |\n"
        f"<!-- {SUMMARY}: end -->\nBefore\n<!-- tiny: generated -->\nstale\n<!-- tiny: end -->\n"
        "After\n"
    )
    return page


def test_the_section_of_a_page_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    experiment = tiny(numbers)
    write_results(experiment, experiment.full, SAMPLES, tmp_path / "out")
    write_docs(experiment, experiment.full, SAMPLES, tmp_path / "out", page)
    once = page.read_text()
    write_docs(experiment, experiment.full, SAMPLES, tmp_path / "out", page)
    assert page.read_text() == once
    assert "\nBefore\n<!-- tiny: generated -->\n## Nobody 2000" in once
    assert once.endswith("<!-- tiny: end -->\nAfter\n")
    assert "stale" not in once
    assert (
        "\n| Other 1999 | 5 | 1 |\n| Nobody 2000 | 3 | 2 | 1 | 1 | 0 | 1 | 1 | 1 | 0 | 0 |\n"
        in once
    )
    assert "Of 2 statements of the paper, 1 hold. Of its numbers, 1 of 1 are within |z| ≤ 3" in once
    assert "| a is below b | 2 against 3.03 | 41.1 ± 5.7 % | yes |" in once
    assert "| **no**, the paper errs: it is the reverse |" in once
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
