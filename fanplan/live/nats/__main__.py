"""``python -m fanplan.live.nats EXPORT BROKER``: the agent of a broker, until it is stopped."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from fanplan.core.errors import InputError, Problem
from fanplan.live.nats.agent import Agent
from fanplan.live.nats.plan import load_plan


async def run(folder: Path, broker: str) -> None:
    plan = load_plan(folder)
    numbers = [n for n in plan.agents if plan.servers[n].broker == broker]
    if not numbers:
        known = ", ".join(plan.servers[n].broker for n in plan.agents) or "none"
        raise InputError(Problem(f"broker {broker!r}", "needs no agent", f"These do: {known}"))
    agent = await Agent(plan, numbers[0]).open()
    print(f"The agent of {broker} is at work.", flush=True)
    try:
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
