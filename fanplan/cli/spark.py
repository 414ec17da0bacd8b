"""`fanplan spark`: a Spark that stays between commands."""

from __future__ import annotations

import typer

from fanplan.cli import options
from fanplan.cli.grouped import PlainGroup
from fanplan.cli.show import say, show_json

app = typer.Typer(
    cls=PlainGroup,
    help="Keep Spark running between commands, so that each one starts at once.",
    no_args_is_help=True,
)


@app.command()
def start(json: options.Json = False) -> None:
    """Start a Spark that stays; your later commands find it, and nobody else can use it."""
    from fanplan.data.serving import start

    found = start()
    tell(f"Spark runs as process {found.pid}. To end it: fanplan spark stop", found.pid, json)


@app.command()
def stop(json: options.Json = False) -> None:
    """Stop the Spark that `fanplan spark start` started."""
    from fanplan.data.server import stop

    found = stop()
    tell(f"Spark (process {found.pid}) has ended." if found else "No Spark runs.", None, json)


@app.command()
def status(json: options.Json = False) -> None:
    """Say whether a Spark is running that commands would use."""
    from fanplan.data.server import known

    found = known()
    if found is None:
        tell("No Spark runs: each command starts its own.", None, json)
    elif not found.current:
        tell(
            f"Spark runs as process {found.pid}, with other sources of Fanplan: commands do not "
            "use it. Stop it and start it again.",
            found.pid,
            json,
            used=False,
        )
    else:
        answer = "commands use it" if found.answers else "but it does not answer"
        tell(f"Spark runs as process {found.pid}: {answer}.", found.pid, json, used=found.answers)


def tell(words: str, pid: int | None, json: bool, used: bool | None = None) -> None:
    """For a person or a program; the token is for neither."""
    use = pid is not None if used is None else used
    show_json({"running": pid is not None, "used": use, "process": pid}) if json else say(words)
