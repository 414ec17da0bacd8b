"""``python -m fanplan.live.nats EXPORT BROKER``: the agent of a broker, until it is stopped.

It follows switches to other plans; where a plan needs no agent it waits for one that does.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from fanplan.core.errors import InputError, Problem
from fanplan.live.nats.follow import AgentFollower
from fanplan.live.nats.plan import load_plan


async def run(folder: Path, broker: str) -> None:
    plan = load_plan(folder)
    if broker not in plan.number:
        raise InputError(
            Problem(
                f"broker {broker!r}", "is not in the plan", f"Name one of {', '.join(plan.number)}"
            )
        )
    agent = AgentFollower(plan, broker)
    try:
        await agent.open()
        needed = "is at work" if plan.number[broker] in plan.agents else "has nothing to do yet"
        print(f"The agent of {broker} {needed}.", flush=True)
        await asyncio.Event().wait()
    finally:
        await agent.close()


def main() -> int:
    if len(sys.argv) != 3:
        print("python -m fanplan.live.nats EXPORT BROKER", file=sys.stderr)
        return 2
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(run(Path(sys.argv[1]), sys.argv[2]))
    except InputError as error:
        print(f"fanplan: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"fanplan: no server answers ({error}). Start those of the export", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
