"""Switch: running applications go from one export to another, and no message is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fanplan.core.progress import Progress
from fanplan.data.dataset import PathLike

if TYPE_CHECKING:
    from fanplan.live.switch import SwitchReport


def switch(
    old: PathLike,
    new: PathLike,
    *,
    servers: PathLike | None = None,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> SwitchReport:
    """Take applications and servers that run from one export for NATS to another.

    ``servers`` is the folder of the files that the servers run with; by default it is known from
    the last switch, or that of the old export. Whoever does not answer within ``timeout`` seconds
    is passed over. If the new plan cannot be reached by all, the old one stays in force.
    """
    from fanplan.live.switch import switch as switched

    return switched(old, new, servers=servers, timeout=timeout, progress=progress)
