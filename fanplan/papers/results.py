"""What an experiment leaves behind: rows, tables and pictures, and a section of docs/papers.md."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fanplan.core.errors import InputError, Problem
from fanplan.core.files import write_csv
from fanplan.core.folder import Kind, whole_folder
from fanplan.papers.experiment import (
    CAUSES,
    Experiment,
    Item,
    Judgement,
    PaperRow,
    PaperVerdict,
    Point,
    Samples,
    Score,
    Study,
    half_interval,
    item_rows,
    judged,
    point_rows,
    score_study,
)

RESULTS = Kind("results of a paper", "rows.json")
COLUMNS = ("setting", "published", "mean", "sd", "z", "runs", "met", "verdict")
SUMMARY = "summary"
"""The table at the top of the page; a row for each paper."""
SAMPLES = "samples.parquet"
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def require_plots() -> None:
    """Pictures need matplotlib, which is an extra; say so before anything is measured."""
    if find_spec("matplotlib") is None:
        remedy = "Install it: pip install 'fanplan[papers]'"
        raise InputError(Problem("matplotlib", "is not there to draw the figures", remedy))


def write_results(
    experiment: Experiment, study: Study, samples: Samples, folder: Path, replace: bool = False
) -> list[PaperRow]:
    """All rows as JSON, and for each item a CSV table, a Markdown table and an SVG picture."""
    rows = []
    with whole_folder(folder.absolute(), RESULTS, replace) as aside:
        for item in study.items:
            own = item_rows(experiment.paper, item, samples)
            rows.extend(own)
            write_item(item, own, samples, aside)
        text = "\n".join(paper_section(experiment, study, samples, "."))
        (aside / "report.md").write_text(text + "\n")
        (aside / "rows.json").write_text(rows_json(rows))
        write_samples(samples, aside / SAMPLES)
    return rows


def write_samples(samples: Samples, path: Path) -> None:
    """All that was measured, so that it can be judged and drawn again."""
    settings, keys = zip(*samples, strict=True)
    values = [own.tolist() for own in samples.values()]
    pq.write_table(pa.table({"setting": settings, "key": keys, "values": values}), path)


def read_samples(folder: Path) -> Samples:
    """What an earlier run measured."""
    path = folder / SAMPLES
    if not path.is_file():
        remedy = "Measure first, without --again"
        raise InputError(Problem(str(folder), f"has no {SAMPLES}", remedy))
    table = pq.read_table(path).to_pydict()
    places = zip(table["setting"], table["key"], strict=True)
    return {place: np.array(own) for place, own in zip(places, table["values"], strict=True)}


def require_measured(study: Study, samples: Samples, folder: Path) -> None:
    """Samples must have all that the study shows: another version may have measured less."""
    sides = [p for item in study.items for line in item.lines for p in line.points]
    pairs = [pair for item in study.items for s in item.statements for pair in s.pairs]
    sides += [side for pair in pairs for side in pair if isinstance(side, Point)]
    missing = next((p for p in sides if (p.setting, p.key) not in samples), None)
    if missing:
        what = f"has no {missing.key} of {missing.setting}"
        raise InputError(Problem(str(folder / SAMPLES), what, "Measure anew, without --again"))


def rows_json(rows: Sequence[PaperRow]) -> str:
    """One row a line, so that two results can be compared line by line."""
    lines = ",\n".join(json.dumps(row.json(), allow_nan=False) for row in rows)
    return f"[\n{lines}\n]\n"


def write_item(item: Item, rows: Sequence[PaperRow], samples: Samples, folder: Path) -> None:
    name = file_name(item)
    cells = ([safe_cell(getattr(row, column)) for column in COLUMNS] for row in rows)
    write_csv(folder / f"{name}.csv", COLUMNS, cells)
    table = [[written_number(getattr(row, column)) for column in COLUMNS] for row in rows]
    (folder / f"{name}.md").write_text("\n".join(markdown_table(COLUMNS, table)) + "\n")
    if item.lines:
        from fanplan.papers.plots import draw_item  # matplotlib is optional, and slow to import

        draw_item(item, samples, folder / f"{name}.svg")


def safe_cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula, with the quote that says it is none."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def file_name(item: Item) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", item.name.lower()).strip("-")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"| {' | '.join('---' for _ in header)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def written_number(value: object) -> str:
    """A number with few digits, nothing for none, and the rest as it is."""
    if not isinstance(value, int | float):
        return "" if value is None else str(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def paper_section(
    experiment: Experiment, study: Study, samples: Samples, pictures: str
) -> Iterator[str]:
    """What was published beside what is measured, item by item."""
    runs = len(next(iter(samples.values())))
    yield f"## {experiment.paper}: `fanplan papers {experiment.name}`"
    yield ""
    yield f"Number of runs: {runs}. {told_score(score_study(study, samples))}"
    for item in study.items:
        yield ""
        yield f"### {item.name}: {item.title}"
        yield ""
        if item.reading:
            yield f"{item.reading}"
            yield ""
        if item.lines:
            yield f"![{item.name}]({pictures}/{file_name(item)}.svg)"
            yield ""
        yield from published_table(experiment, item, samples)
        yield from statement_table(item, samples)


def told_score(score: Score) -> str:
    """The headline: statements and numbers apart."""
    held, unsure = score.statements["yes"], score.statements["undecided"]
    told = [f"Of {score.statements.total()} statements of the paper, {held} hold"]
    if unsure:
        told.append(f"{unsure} are undecided by the runs")
    sentence = " and ".join(told) + "."
    if score.numbers:
        within = f"{score.numbers['yes']} of {score.numbers.total()}"
        sentence += f" Of its numbers, {within} are within |z| ≤ 3."
    causes = [f"{cause} {score.causes[cause]}" for cause in CAUSES if score.causes[cause]]
    return f"{sentence} Of the rest: {', '.join(causes)}." if causes else sentence


HEADER = (
    "paper", "runs", "statements", "hold", "do not", "undecided", "numbers", "z within ±3",
    *CAUSES,
)  # fmt: skip


def summary_row(experiment: Experiment, study: Study, samples: Samples) -> tuple[str, ...]:
    """A paper's row of the table at the top of the page."""
    score = score_study(study, samples)
    held, numbers = score.statements, score.numbers
    counts = (
        len(next(iter(samples.values()))), held.total(), held["yes"], held["no"],
        held["undecided"], numbers.total(), numbers["yes"],
        *(score.causes[cause] for cause in CAUSES),
    )  # fmt: skip
    return experiment.paper, *map(str, counts)


def with_summary(page: Path, row: Sequence[str]) -> str:
    """The page with a paper's row of the table at its top replaced, or added."""
    require_section(page, SUMMARY)
    begin, end = markers(SUMMARY)
    lines = page.read_text().partition(begin)[2].partition(end)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[3:]]
    known = {own[0]: own for own in rows} | {row[0]: list(row)}
    return with_section(page, SUMMARY, "\n".join(markdown_table(HEADER, [*known.values()])))


def met_words(met: str | None, verdict: PaperVerdict | None, told: set[PaperVerdict]) -> str:
    """Whether something is met; the evidence of a verdict is told once."""
    if met != "no":
        return met or ""
    if verdict is None:
        return "**no**"
    words = f"{verdict.cause}, as above" if verdict in told else str(verdict)
    told.add(verdict)
    return f"**no**, {words}"


def written_margin(found: Judgement) -> str:
    """The margin of a statement's worst comparison, in percent, with its interval."""
    half = half_interval(found.margins)
    spread = "" if half is None else f" ± {written_number(100 * half)}"
    return f"{written_number(100 * found.margin)}{spread} %"


def statement_table(item: Item, samples: Samples) -> Iterator[str]:
    """Statements with the means of both sides, over all the pairs compared."""
    if not item.statements:
        return
    told: set[PaperVerdict] = set()
    yield from markdown_table(
        ("statement", "measured", "margin", "holds"),
        [
            (
                found.text,
                f"{written_number(found.lower)} against {written_number(found.higher)}",
                written_margin(found),
                met_words(found.met, found.verdict, told),
            )
            for found in judged(item, samples)
        ],
    )


def published_table(experiment: Experiment, item: Item, samples: Samples) -> Iterator[str]:
    """The rows with a published number, or all if the item wants them; statements left out."""
    rows = point_rows(experiment.paper, item, samples)
    known = [row for row in rows if item.numbers or row.published is not None]
    if known:
        told: set[PaperVerdict] = set()
        numbers = ("setting", "published", "mean", "sd", "z")
        table = [
            [*(written_number(getattr(row, column)) for column in numbers),
             met_words(row.met, row.verdict, told)]
            for row in known
        ]  # fmt: skip
        yield from markdown_table((*numbers, "within"), table)
        yield ""


def write_docs(
    experiment: Experiment, study: Study, samples: Samples, results: Path, page: Path
) -> None:
    """Put the section between its markers on the page; pictures and rows go beside it.

    What is not met needs a verdict before it is told.
    """
    require_verdicts(study, samples)
    beside = page.parent / "papers" / experiment.name
    beside.mkdir(parents=True, exist_ok=True)
    for file in (results / "rows.json", *sorted(results.glob("*.svg"))):
        shutil.copyfile(file, beside / file.name)
    text = "\n".join(paper_section(experiment, study, samples, f"papers/{experiment.name}"))
    page.write_text(with_section(page, experiment.name, text))
    page.write_text(with_summary(page, summary_row(experiment, study, samples)))


def require_verdicts(study: Study, samples: Samples) -> None:
    """Everything that is not met must say why."""
    remedy = f"Give it a verdict with if_not(…), one of: {', '.join(CAUSES)}"
    missed = score_study(study, samples).open
    if missed:
        what = "is not met and has no verdict"
        raise InputError([Problem(name, what, remedy) for name in missed])


def with_section(page: Path, name: str, text: str) -> str:
    """The page with what is between the markers of that name replaced."""
    require_section(page, name)
    begin, end = markers(name)
    before, _, rest = page.read_text().partition(begin)
    after = rest.partition(end)[2]
    return f"{before}{begin}\n{text}\n{end}{after}"


def markers(name: str) -> tuple[str, str]:
    """The lines between which a paper's section stands."""
    return f"<!-- {name}: generated -->", f"<!-- {name}: end -->"


def require_section(page: Path, name: str) -> None:
    """The page must be there and have a place for the section."""
    begin, end = markers(name)
    text = page.read_text() if page.is_file() else ""
    if end not in text.partition(begin)[2]:
        remedy = f"Write the lines {begin} and {end} where it belongs"
        raise InputError(Problem(str(page), f"has no section for {name}", remedy))
