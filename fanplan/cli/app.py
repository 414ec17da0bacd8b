"""The command line: one short function per command; the work is done in `fanplan.api`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_command

from fanplan.cli import (
    ask,
    changes,
    churn,
    export,
    generate,
    observe,
    options,
    papers,
    quarantined,
    report,
    sign,
    simulate,
    spark,
    switch,
    trial,
    watch,
)
from fanplan.cli.failed import show_error
from fanplan.cli.flags import flags_named, with_signature
from fanplan.cli.grouped import FIRST, PlainGroup, group_by_task
from fanplan.cli.plan import add_planning
from fanplan.cli.quarantined import show_ingested
from fanplan.cli.run import dataset_of, engine, named_by_flag
from fanplan.cli.show import say, show_facts, show_json
from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Heard, ended_by_term
from fanplan.data.params import QuarantineParams, ReadParams
from fanplan.systems.params import ExportParams, TrialParams
from fanplan.watching.params import WatchParams

if TYPE_CHECKING:
    from fanplan.layers.layer import Outcome

app = typer.Typer(
    name="fanplan",
    help="Plan publish/subscribe dissemination, prove the plan and show what it saves.",
    cls=PlainGroup,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)
app.add_typer(generate.app, name="generate")
app.add_typer(observe.app, name="observe")
app.add_typer(spark.app, name="spark")


def show_version(asked: bool) -> None:
    if asked:
        from fanplan.core.version import __version__

        say(f"fanplan {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        say(*FIRST.splitlines())


@app.command()
def ingest(
    workload: options.Workload,
    out: options.Out,
    grid: options.Grid = None,
    cover: options.Cover = None,
    cells: options.Cells = None,
    rates: options.Rates = None,
    lost_limit: options.LostLimit = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Clean, check and compress a workload into a dataset, on Spark."""
    from fanplan import api

    spark = engine(master, remote, json)
    with named_by_flag(flags_named(ReadParams)):
        dataset = api.ingest(
            workload,
            out,
            grid=grid,
            cover=cover,
            cells=cells,
            rates=rates,
            lost_limit=lost_limit,
            engine=spark,
        )
    show_json(dataset.summary()) if json else show_ingested(dataset)


app.command("quarantine")(with_signature(quarantined.quarantine, QuarantineParams))
add_planning(app)
app.command("simulate")(with_signature(simulate.simulate, simulate.SimulateOptions))
app.command("churn")(with_signature(churn.churn, churn.ChurnOptions))
app.command("export")(with_signature(export.export, ExportParams))
app.command("trial")(with_signature(trial.trial, TrialParams))
app.command("switch")(switch.switch)
app.command("watch")(with_signature(watch.watch, WatchParams))
app.command("compare")(changes.compare)
app.command("diff")(changes.diff)
app.command("apply-check")(changes.apply_check)
app.command()(sign.sign)
app.command("report")(report.report)
app.command("ask")(ask.ask)
app.command("papers")(papers.papers)


@app.command()
def check(
    plan: options.PlanFolder,
    workload: options.Workload,
    key: options.Key = None,
    replan: Annotated[
        bool, typer.Option("--replan", help="Also plan again, which proves method and seed.")
    ] = False,
    lost_limit: options.LostLimit = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Prove that a plan does what it must, with code that no planner shares."""
    from fanplan import api

    spark = engine(master, remote, json)
    with dataset_of(plan, workload, spark, lost_limit) as dataset:
        result = api.check(plan, dataset, key=key, engine=spark)
        if replan:
            result = result.planned_again(api.replan(plan, dataset, engine=spark))
    if json:
        show_json(result.json())
    else:
        for line in (*result.violations, *result.warnings):
            say(line)
        if result.stated:
            say(f"Stated, not proved by tables: {', '.join(result.stated)}.")
        say("The plan holds." if result.ok else "The plan does not hold.")
    raise typer.Exit(0 if result.ok else 1)


@app.command()
def replay(
    plan: options.PlanFolder,
    workload: options.Workload,
    lost_limit: options.LostLimit = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Send every publication through a plan and count what arrives.

    Of a plan that has a marking alone, its marks are re-evaluated on this workload.
    """
    from fanplan import api
    from fanplan.verbs.replay import replaying

    spark = engine(master, remote, json)
    with dataset_of(plan, workload, spark, lost_limit, replaying) as dataset:
        result = api.replay(plan, dataset, engine=spark)
    if json:
        show_json(result.json())
    else:
        show_replay(result)
    raise typer.Exit(0 if result.ok else 1)


def show_replay(result: Outcome) -> None:
    """Facts; those of marks apart if a plan has other layers too."""
    show_facts("Replay", result.facts())
    marks = getattr(result, "marks", None)
    if marks is not None:
        say("")
        show_facts("Marks", marks.facts())


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo writes.")] = Path(
        "demo"
    ),
    sites: Annotated[int, typer.Option(help="Sites of the enterprise.", min=1)] = 4,
    users: Annotated[int, typer.Option(help="Users of the enterprise.", min=1)] = 200,
    symbols: Annotated[int, typer.Option(help="Symbols that users follow.", min=1)] = 400,
    publications: Annotated[int, typer.Option(help="Publications to draw.", min=1)] = 200_000,
    seed: options.Seed = 0,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Run the whole job on a generated firm: data, plan, proof, trial and report."""
    from fanplan.cli.demo import Size, run_demo

    size = Size(sites, users, symbols, publications)
    run_demo(out, size, seed, json, engine(master, remote, json))


group_by_task(app)


def run(words: Sequence[str]) -> int:
    """The exit code of a command, which never ends in a stack trace."""
    Heard.forget()
    try:
        with ended_by_term():
            require_text(words)
            command = get_command(app)
            command._main_shell_completion({}, "fanplan")
            with command.make_context("fanplan", list(words)) as context:
                command.invoke(context)
        return 0
    except typer.Exit as end:
        return end.exit_code
    except BaseException as error:
        return show_error(error, "--json" in words)


def require_text(words: Sequence[str]) -> None:
    """Names go into tables and to Spark, which know text alone."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            what = "is not UTF-8"
            raise InputError(Problem(repr(word), what, "Rename the file or folder")) from None


def main() -> None:
    """A command within this process; Spark stays for the next one."""
    sys.exit(run(sys.argv[1:]))
