"""`fanplan papers NAME`: a paper's tables and figures, measured anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fanplan.cli import options
from fanplan.cli.run import engine
from fanplan.cli.show import show_facts, show_json, show_table
from fanplan.core.folder import claimed
from fanplan.papers import PAPERS, load_experiment

if TYPE_CHECKING:
    from fanplan.api import Engine
    from fanplan.papers.experiment import Experiment, Samples, Study


def papers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Paper; without one, they are listed.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write; whole or not at all.", show_default="papers-NAME"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and few runs.")] = False,
    runs: Annotated[
        int | None, typer.Option(help="Runs of each setting.", min=1, show_default="the paper's")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Page whose section on this paper is rewritten.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Judge and draw what is in --out; measure nothing.")
    ] = False,
    replace: options.Replace = False,
    seed: options.Seed = 0,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Measure a paper's tables and figures again, on Spark, beside the published values."""
    if name is None:
        show_json({"papers": PAPERS}) if json else show_facts("Papers", PAPERS)
        return
    experiment = load_experiment(name)
    from fanplan.papers.results import (
        RESULTS,
        SUMMARY,
        read_samples,
        require_measured,
        require_plots,
        require_section,
        write_docs,
        write_results,
    )

    require_plots()
    folder = out or Path(f"papers-{name}")
    if docs:
        require_section(docs, name)
        require_section(docs, SUMMARY)
    study = experiment.quick if quick else experiment.full
    with claimed(folder, RESULTS, replace or again):
        if again:
            samples = read_samples(folder)
            require_measured(study, samples, folder)
        else:
            spark = engine(master, remote, json)
            samples = take_samples(experiment, study, runs or study.runs, seed, spark)
        rows = write_results(experiment, study, samples, folder, replace or again)
    if docs:
        write_docs(experiment, study, samples, folder, docs)
    facts = {"paper": experiment.paper, "results": str(folder)}
    if json:
        show_json(facts | {"rows": [row.json() for row in rows]})
    else:
        show_verdicts(study, samples)
        show_facts("Results", facts | {"rows": len(rows)})


def take_samples(
    experiment: Experiment, study: Study, runs: int, seed: int, spark: Engine
) -> Samples:
    """Take all samples, with progress."""
    from fanplan.papers.experiment import run_study

    total = len(study.settings) * runs
    session = spark.session()
    with spark.progress.stage(f"samples of {experiment.name}") as stage:
        stage.note(f"0 of {total}")
        return run_study(
            session, experiment, study, runs, seed, lambda done: stage.note(f"{done} of {total}")
        )


def show_verdicts(study: Study, samples: Samples) -> None:
    """What the paper says, and whether it holds."""
    from fanplan.papers.experiment import judged

    header = ("item", "statement", "below", "above", "margin, %", "holds")
    rows = [
        (found.item, found.text, found.lower, found.higher, 100 * found.margin, found.met)
        for item in study.items
        for found in judged(item, samples)
    ]
    show_table("Statements", header, rows)
