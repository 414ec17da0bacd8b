"""`fanplan simulate`: send the traffic of a workload through a plan, event by event."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.flags import flags_named
from fanplan.cli.run import dataset_of, engine, named_by_flag
from fanplan.cli.show import say, show_facts, show_json, show_table
from fanplan.core.folder import SIMULATION, claimed
from fanplan.core.options import option
from fanplan.simulation.params import SimulationParams

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.api import Simulated

SHOWN = 5
"""Brokers and links that are shown."""

WORDS: dict[str, str] = {
    "latency_ms": "latency of a link if none is known, ms",
    "match_ms": "matching a message takes, ms",
    "forward_ms": "forwarding a copy takes, ms",
    "unit_ms": "load is counted per, ms",
    "client_ms": "from a broker to its clients, ms",
    "times": "times of messages",
    "ended_ms": "ended after, ms",
    "arrivals": "publications at brokers that want them",
    "link_messages": "messages on links",
    "messages_per_publication": "per publication",
    "messages_per_arrival": "per destination broker",
    "brokers_per_publication": "brokers that a publication visits",
    "brokers_max": "most brokers that one visits",
    "delay_mean_ms": "mean delay, ms",
    "delay_p50_ms": "50 % arrive within, ms",
    "delay_p90_ms": "90 % arrive within, ms",
    "delay_p99_ms": "99 % arrive within, ms",
    "delay_max_ms": "longest delay, ms",
    "deliveries": "deliveries to subscribers",
    "delivered_mean_ms": "mean delay of a delivery, ms",
    "delivered_p50_ms": "50 % are delivered within, ms",
    "delivered_p90_ms": "90 % are delivered within, ms",
    "delivered_p99_ms": "99 % are delivered within, ms",
    "delivered_max_ms": "longest delay of a delivery, ms",
    "processed_mean": "publications that a broker takes up",
    "processed_max": "most that one takes up",
    "degree_max": "most links of a broker",
    "forwarding_ratio": "share that is only forwarded",
    "peak_mean": "mean peak load per time unit",
    "processing_delay_ms": "congestion costs per visit, ms",
}
"""How a person reads the figures of a run."""

BESIDE = (
    *("deliveries", "delivered_mean_ms", "delivered_p50_ms", "delivered_p90_ms"),
    *("delivered_p99_ms", "delivered_max_ms", "link_messages", "processed_max"),
    "processing_delay_ms",
)
"""What is shown of a naive system."""


ASSUMED = ("ways_assumed", "latency_assumed_ms")
"""What is said in a sentence."""


@dataclass(frozen=True)
class SimulateOptions(SimulationParams):
    """How the messages enter, beside what the simulation is told."""

    times: str | None = option(
        None,
        "measured (as the publications say) or drawn (evenly, by the seed).",
        shown="measured where known",
    )
    speed: float = option(1.0, "Speed-up factor for arriving messages.", above=0)


def simulate(
    plan: options.PlanFolder,
    workload: options.Workload,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and figures; it appears whole or not at all."),
    ] = None,
    replace: options.Replace = False,
    seed: options.Seed = 0,
    lost_limit: options.LostLimit = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
    **given: Any,
) -> None:
    """Send the traffic of a workload through the brokers of a plan, event by event."""
    from fanplan import api
    from fanplan.verbs.simulate import simulating

    run = engine(master, remote, json)
    with claimed(out, SIMULATION, replace), named_by_flag(flags_named(SimulateOptions)):
        SimulateOptions.given(given)  # Refused before a workload is ingested.
        with dataset_of(plan, workload, run, lost_limit, simulating) as dataset:
            made = api.simulate(plan, dataset, seed=seed, engine=run, **given)
        if out is not None:
            made.save(out, replace)
    brokers = busiest(made.broker_table, "processed")
    links = busiest(with_both_ways(made.link_table), "messages")
    if json:
        show_json(made.summary() | {"busiest_brokers": brokers, "busiest_links": links})
    else:
        show_simulated(made, brokers, links, out)
    raise typer.Exit(1 if made.agrees is False else 0)


def busiest(table: pa.Table, column: str) -> list[dict[str, Any]]:
    """The first rows by a column, descending; equal ones by name."""
    by_name = table.column_names[0]
    rows: list[dict[str, Any]] = (
        table.sort_by([(column, "descending"), (by_name, "ascending")]).slice(0, SHOWN).to_pylist()
    )
    return rows


def with_both_ways(links: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    return links.append_column("messages", pc.add(links["a_to_b"], links["b_to_a"]))


def show_simulated(
    made: Simulated, brokers: list[dict[str, Any]], links: list[dict[str, Any]], out: Path | None
) -> None:
    """For a person: figures, the busiest brokers and links, and what the plan says."""
    # Only other layers send control messages.
    hidden = {"agrees", "compared", "differences", "control_messages", "naive", *ASSUMED}
    hidden |= {"client_ms"} if made.delivered is None else set()
    facts = {WORDS.get(k, k): v for k, v in made.summary().items() if k not in hidden}
    show_facts("Simulation", facts | ({} if out is None else {"tables": str(out)}))
    names = ("broker", "degree", "processed", "forwarded", "peak", "capacity", "waited_ms")
    show_rows("Busiest brokers", names, brokers)
    show_rows("Busiest links", ("a", "b", "messages", "a_to_b", "b_to_a"), links)
    show_beside(made)
    say("")
    for line in (*made.notes, *made.assumed.notes, *verdict(made)):
        say(line)


def show_beside(made: Simulated) -> None:
    """The run beside content-based routing of everything, if there is one."""
    if made.naive is None:
        return
    own = made.summary()
    rows = [(WORDS[name], own[name], own["naive"][name]) for name in BESIDE]
    say("")
    show_table("Beside content-based routing of everything", ("", "plan", "naive"), rows)


def show_rows(title: str, names: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    if rows:
        say("")
        show_table(title, names, [[shown(row[name]) for name in names] for row in rows])


def shown(value: Any) -> Any:
    return "any" if value is None else value


def verdict(made: Simulated) -> list[str]:
    """How the run and the plan's ledger compare."""
    if made.agrees is None:
        return ["Rates are no whole numbers of messages, so the plan's ledger was not compared."]
    what = "messages and delays" if "delay" in made.agreement.compared else "messages"
    if made.agrees:
        return [f"It agrees with the plan's ledger: {what}."]
    return ["It does not agree with the plan's ledger:", *made.agreement.differences]
