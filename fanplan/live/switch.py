"""From one plan to another while applications run: no message is missed, none is delivered twice.

An operator calls `switch`; publishers, subscribers and agents of the library follow. A record in
the new export says how far it came: called again after a crash, it goes on from there.
"""

from __future__ import annotations

from pathlib import Path

from fanplan.core.coroutines import run_to_end
from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import locked
from fanplan.core.progress import Progress, quiet
from fanplan.live.nats.operator import Operator
from fanplan.live.nats.plan import FILE, load_plan
from fanplan.live.nats.record import SwitchReport, servers_of, switch_record

__all__ = ["SwitchReport", "switch"]

PathLike = str | Path


def switch(
    old_export: PathLike,
    new_export: PathLike,
    *,
    servers: PathLike | None = None,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> SwitchReport:
    """Take all running applications and servers from one export for NATS to another.

    ``servers`` has the files ``BROKER.conf`` that the servers run with, and ``BROKER.pid`` of each:
    by default where the last switch found them, and at first the folder of the old export.
    ``timeout`` is how long, in seconds, whoever does not answer is waited for in each step. If the
    new plan cannot be reached by all, the old one stays in force and an error says why.
    """
    old, new = Path(old_export).absolute(), Path(new_export).absolute()
    for folder in (old, new):
        if not (folder / FILE).is_file():
            what, remedy = "is not an export for NATS", "Only plans on NATS change while they run"
            raise InputError(Problem(str(folder), what, remedy))
    own = Path(servers).absolute() if servers is not None else servers_of(old)
    plans = load_plan(old), load_plan(new)
    with locked(own / "switch"):
        record = switch_record(new, old, (plans[0].epoch, plans[1].epoch), own)
        operator = Operator(*plans, record, timeout, progress or quiet())
        return run_to_end(operator.run())
