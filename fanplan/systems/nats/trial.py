"""A plan on real NATS servers of this machine: one for each broker, fed with its publications.

Readiness: before the first message a probe goes on every parcel's way, again and again, until all
subscribers have it. Counters are read at rest, before and after. So what is counted in between is
what the publications caused.
"""

from __future__ import annotations

from pathlib import Path

from fanplan.core.coroutines import run_to_end
from fanplan.core.errors import InputError, Problem
from fanplan.core.owned import scratch
from fanplan.core.progress import Progress
from fanplan.core.stop import ended_by_term
from fanplan.live.nats.config import write_configs
from fanplan.live.nats.plan import NatsPlan
from fanplan.plan.stored import StoredPlan
from fanplan.systems.nats.disturbed import disturbed
from fanplan.systems.nats.enact import enacted
from fanplan.systems.nats.run import Run
from fanplan.systems.nats.servers import Servers, free_servers, require_resources, server_program
from fanplan.systems.params import TrialParams
from fanplan.systems.traffic import Traffic, read_traffic
from fanplan.systems.trial import Tried


def trial(plan: StoredPlan, dataset: Path, params: TrialParams, progress: Progress) -> Tried:
    """Start servers, send publications of the dataset, and compare."""
    program = server_program()
    traffic = read_traffic(plan, dataset, params.publications)
    require_broker(traffic, params)
    if not traffic.size:
        what = "nobody wants any of its publications"
        raise InputError(Problem(str(dataset), what, "Send more of them"))
    return run_trial(plan, dataset, traffic, params, progress, program)


def run_trial(
    plan: StoredPlan,
    dataset: Path,
    traffic: Traffic,
    params: TrialParams,
    progress: Progress,
    program: str,
    enacting: Traffic | None = None,
) -> Tried:
    """The same of given traffic; servers and clients may follow another's ways, as a control."""
    ways = (enacting or traffic).ways
    servers = free_servers(ways.brokers, params.port)
    made = enacted(plan, dataset, ways, servers)
    require_resources(len(servers), connections_of(made))
    with ended_by_term(), scratch("trial") as folder:
        write_configs(made, folder, folder / "streams" if params.durable else None)
        running = Servers(servers, folder, program)
        try:
            with progress.stage(f"start {len(servers)} servers"):
                for broker in range(len(servers)):
                    running.start(broker)
                running.await_ready()
            run = Run(plan, made, traffic, running, params, progress)
            return run_to_end(whole_trial(run))
        finally:
            running.stop()


def require_broker(traffic: Traffic, params: TrialParams) -> None:
    if params.kill is not None and params.kill not in traffic.ways.brokers:
        what, some = f"{params.kill!r} is not a broker of the plan", traffic.ways.brokers[:10]
        raise InputError(Problem("kill", what, f"Name one of {', '.join(some)}"))


def connections_of(plan: NatsPlan) -> int:
    people = sum(
        len({(each.broker, each.account) for each in heard}) for heard in plan.listens.values()
    )
    between = sum(len(agent.forward) + 3 for agent in plan.agents.values())
    return people + between + len(plan.servers) * (len(plan.accounts) + 1)


async def whole_trial(run: Run) -> Tried:
    """From the first connection to the result."""
    async with run.connected():
        with run.progress.stage("wait until everybody is ready"):
            await run.barrier()
        if run.params.kill is None:
            return await run.measured()
        return await disturbed(run, run.params.kill)
