"""What an experiment leaves behind: rows, tables and pictures, and a section of docs/papers.md."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import Kind, whole_folder
from fanplan.papers.experiment import (
    Experiment,
    Item,
    PaperRow,
    Samples,
    Study,
    item_rows,
    judge_statement,
)

RESULTS = Kind("results of a paper", "rows.json")
COLUMNS = ("setting", "published", "mean", "sd", "z", "runs")
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
    return rows


def rows_json(rows: Sequence[PaperRow]) -> str:
    """One row a line, so that two results can be compared line by line."""
    lines = ",\n".join(json.dumps(row.json(), allow_nan=False) for row in rows)
    return f"[\n{lines}\n]\n"


def write_item(item: Item, rows: Sequence[PaperRow], samples: Samples, folder: Path) -> None:
    name = file_name(item)
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([safe_cell(getattr(row, column)) for column in COLUMNS] for row in rows)
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


def written_number(value: float | str | None) -> str:
    """A number with few digits, nothing for none."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def paper_section(
    experiment: Experiment, study: Study, samples: Samples, pictures: str
) -> Iterator[str]:
    """What was published beside what is measured, item by item."""
    runs = len(next(iter(samples.values())))
    yield f"## {experiment.paper}: `fanplan papers {experiment.name}`"
    yield ""
    yield f"Number of runs: {runs}. {statements_held(study, samples)}"
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


def statements_held(study: Study, samples: Samples) -> str:
    """How many checks of the paper's statements hold; a sentence may be checked in two ways."""
    theirs = [(item, s) for item in study.items for s in item.statements if not s.ours]
    holding = sum(judge_statement(item, statement, samples).holds for item, statement in theirs)
    return f"Of {len(theirs)} checks of what the paper says, {holding} hold."


def statement_table(item: Item, samples: Samples) -> Iterator[str]:
    """Statements with the means of both sides, over all the pairs compared."""
    if not item.statements:
        return
    verdicts = [judge_statement(item, statement, samples) for statement in item.statements]
    header = ("statement", "measured", "runs that agree", "holds")
    yield from markdown_table(
        header,
        [
            (
                verdict.text,
                f"{written_number(verdict.lower)} against {written_number(verdict.higher)}",
                f"{verdict.agree} of {verdict.runs}",
                "yes" if verdict.holds else "**no**",
            )
            for verdict in verdicts
        ],
    )


def published_table(experiment: Experiment, item: Item, samples: Samples) -> Iterator[str]:
    """The rows with a published number, or all if the item wants them; statements left out."""
    count = sum(len(line.points) for line in item.lines)
    rows = item_rows(experiment.paper, item, samples)[:count]
    known = [row for row in rows if item.numbers or row.published is not None]
    if known:
        table = [[written_number(getattr(row, column)) for column in COLUMNS] for row in known]
        yield from markdown_table(COLUMNS, table)
        yield ""


def write_docs(
    experiment: Experiment, study: Study, samples: Samples, results: Path, page: Path
) -> None:
    """Put the section between its markers on the page; pictures and rows go beside it."""
    beside = page.parent / "papers" / experiment.name
    beside.mkdir(parents=True, exist_ok=True)
    for file in (results / "rows.json", *sorted(results.glob("*.svg"))):
        shutil.copyfile(file, beside / file.name)
    text = "\n".join(paper_section(experiment, study, samples, f"papers/{experiment.name}"))
    page.write_text(with_section(page, experiment.name, text))


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
