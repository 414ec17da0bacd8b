"""Plans side by side, in the words of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow.parquet as pq

from fanplan.core.errors import InputError, Problem
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.plan.seal import require_untouched
from fanplan.plan.stored import StoredPlan

Better = Literal["less", "more", ""]


@dataclass(frozen=True)
class Figure:
    """One line of a comparison. ``weighed``: it means something else under other weights."""

    layer: str
    name: str
    read: Callable[[StoredPlan], float | None]
    better: Better = ""
    weighed: bool = False


@dataclass(frozen=True)
class Line:
    """A figure of all plans; ``best`` are the places of the best, none where none can be told."""

    layer: str
    name: str
    values: tuple[float | None, ...]
    best: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """Plans side by side. ``differing`` has parameters that are not the same in all plans."""

    plans: tuple[str, ...]
    lines: tuple[Line, ...]
    differing: dict[str, tuple[Any, ...]]
    notes: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        figures: dict[str, dict[str, Any]] = {}
        for line in self.lines:
            told = {"values": list(line.values), "best": [self.plans[i] for i in line.best]}
            figures.setdefault(line.layer, {})[line.name] = told
        differing = {name: list(values) for name, values in self.differing.items()}
        return {
            "plans": list(self.plans),
            "figures": figures,
            "differing": differing,
            "notes": list(self.notes),
        }


def recorded(layer: str, *keys: str) -> Callable[[StoredPlan], float | None]:
    """Reads a number of a layer's section of plan.json."""

    def read(plan: StoredPlan) -> float | None:
        found: Any = plan.record.sections[layer]
        for key in keys:
            found = found[key] if isinstance(found, dict) else getattr(found, key)
        return float(found)

    return read


def rows_of(table: str) -> Callable[[StoredPlan], float | None]:
    """Counts the rows of a table."""
    return lambda plan: float(pq.read_metadata(plan.path(table)).num_rows)


def mean_delay(plan: StoredPlan) -> float | None:
    ledger = plan.section(OverlayRecord).ledger
    return ledger["delay"] / ledger["arrivals"] if ledger["arrivals"] else None


def greatest_load(plan: StoredPlan) -> float | None:
    loads = plan.read("brokers", ("load",))["load"].to_pylist()
    return max(loads, default=None)


def broker_cost(plan: StoredPlan) -> float | None:
    """Price of running the brokers of an allocation."""
    allocation = plan.section(OverlayRecord).allocation
    return None if allocation is None else allocation.cost


def ledger_of(layer: str, better: dict[str, Better]) -> Iterator[Figure]:
    for name, which in better.items():
        yield Figure(layer, name, recorded(layer, "ledger", name), which)


def naive(plan: StoredPlan) -> float | None:
    """What the naive system costs: the first step on the way to the plan."""
    steps = plan.section(DeliveryRecord).steps
    return steps[0].cost if steps else None


def with_marking(plan: StoredPlan) -> float | None:
    """What the plan costs where the naive system does: delivery, and descriptors that travel."""
    steps = plan.section(DeliveryRecord).steps
    return steps[-1].cost if steps else None


def saved_percent(plan: StoredPlan) -> float | None:
    """What the plan saves of the naive system."""
    first, last = naive(plan), with_marking(plan)
    return 100.0 * (1.0 - last / first) if first and last is not None else None


def delivery_figures() -> Iterator[Figure]:
    """The cost of all layers together first, then what it is made of."""
    yield Figure("delivery", "cost", recorded("delivery", "cost"), "less", weighed=True)
    yield Figure("delivery", "cost with marking", with_marking, "less", weighed=True)
    yield Figure("delivery", "saved percent", saved_percent, "more", weighed=True)
    yield Figure("delivery", "naive system", naive, "", weighed=True)
    yield Figure("delivery", "layer by layer", recorded("delivery", "layered"), "", weighed=True)
    yield Figure("delivery", "bound", recorded("delivery", "bound"), "", weighed=True)
    for part in PARTS:
        read = recorded("delivery", "parts", part)
        yield Figure("delivery", f"cost of {part}", read, "less", weighed=True)
    yield Figure("delivery", "unicast_fraction", recorded("delivery", "unicast_fraction"), "less")
    yield Figure("delivery", "classes", recorded("delivery", "classes"))
    yield Figure("delivery", "classes sent directly", recorded("delivery", "direct"))


PARTS = ("multicast", "last hop", "direct unicast", "forwarding", "matching", "state", "control")
"""What the cost of a delivery is made of."""

FIGURES: tuple[Figure, ...] = (
    *delivery_figures(),
    Figure("channels", "cost", recorded("channels", "cost"), "less", weighed=True),
    Figure("channels", "excess_percent", recorded("channels", "excess_percent"), "less", True),
    Figure("channels", "bound_percent", recorded("channels", "bound_percent"), "", True),
    *ledger_of(
        "channels",
        {
            "sent_multicast": "less",
            "sent_unicast": "less",
            "received_wanted": "more",
            "received_unwanted": "less",
            "missed": "less",
            "sent_bytes": "less",
            "received_bytes": "less",
        },
    ),
    Figure("channels", "unicast_fraction", recorded("channels", "unicast_fraction"), "less"),
    Figure("channels", "channels", recorded("channels", "channels"), "less"),
    Figure("channels", "memberships", rows_of("channel_subscribers"), "less"),
    Figure("channels", "flows on channels", rows_of("channel_flows")),
    Figure("channels", "unicasts", rows_of("unicast"), "less"),
    Figure("overlay", "brokers", recorded("overlay", "brokers"), "less"),
    Figure("overlay", "broker cost", broker_cost, "less"),
    Figure("overlay", "links", recorded("overlay", "links"), "less"),
    Figure("overlay", "trees", recorded("overlay", "trees"), "less"),
    *ledger_of("overlay", {"link_messages": "less", "processed": "less", "forwarded": "less"}),
    Figure("overlay", "bound", recorded("overlay", "bound")),
    Figure("overlay", "mean delay", mean_delay, "less"),
    Figure("overlay", "greatest load", greatest_load, "less"),
    Figure("groups", "selected", recorded("groups", "selected")),
    Figure("groups", "covered", recorded("groups", "covered"), "more"),
    Figure("groups", "value", recorded("groups", "value"), "more", weighed=True),
    Figure("groups", "links", rows_of("group_links"), "less"),
    Figure("groups", "shortcuts", rows_of("shortcuts")),
    Figure("marking", "cost", recorded("marking", "cost"), "less", weighed=True),
    Figure("marking", "pub_everywhere", recorded("marking", "pub_everywhere"), "", True),
    Figure("marking", "sub_everywhere", recorded("marking", "sub_everywhere"), "", True),
    Figure("marking", "published", recorded("marking", "published")),
    Figure("marking", "subscribed", recorded("marking", "subscribed")),
    Figure("marking", "p_links", recorded("marking", "p_links")),
    Figure("marking", "s_links", recorded("marking", "s_links")),
)
"""All that is set side by side."""

WEIGHTS = {
    "delivery": ("prices",),
    "channels": ("weights",),
    "groups": ("prices", "rank"),
    "marking": ("raw", "sending", "storing"),
}
"""Fields of a layer that its costs are weighed by."""


def compare_plans(plans: Sequence[StoredPlan]) -> Comparison:
    """Set plans side by side; where they are not comparable that is said, and no best is named."""
    if len(plans) < 2:
        raise InputError(Problem("plans", f"{len(plans)} is too few", "Name two or more"))
    for plan in plans:
        require_untouched(plan)
    alike = same(plan.record.input.key for plan in plans)
    weighed = {layer: weighed_alike(plans, layer) for layer in WEIGHTS}
    lines = [
        line_of(figure, plans, alike and (not figure.weighed or weighed[figure.layer]))
        for figure in FIGURES
        if any(figure.layer in plan.record.layers for plan in plans)
    ]
    return Comparison(
        names_of(plans), tuple(lines), differing(plans), tuple(notes(plans, alike, weighed))
    )


def line_of(figure: Figure, plans: Sequence[StoredPlan], comparable: bool) -> Line:
    values = tuple(
        figure.read(plan) if figure.layer in plan.record.layers else None for plan in plans
    )
    known = [value for value in values if value is not None]
    if not (comparable and figure.better) or len(known) < 2 or same(known):
        return Line(figure.layer, figure.name, values, ())
    best = min(known) if figure.better == "less" else max(known)
    places = tuple(i for i, value in enumerate(values) if value == best)
    return Line(figure.layer, figure.name, values, places)


def same(values: Any) -> bool:
    """Whether all of some values are equal."""
    first, *others = values
    return all(value == first for value in others)


def weighed_alike(plans: Sequence[StoredPlan], layer: str) -> bool:
    """Whether all plans that have a layer weigh its costs in the same way."""
    found = [plan.record.sections[layer] for plan in plans if layer in plan.record.layers]
    weights = [tuple(getattr(section, name) for name in WEIGHTS[layer]) for section in found]
    return not weights or same(weights)


def names_of(plans: Sequence[StoredPlan]) -> tuple[str, ...]:
    """Names of folders; whole paths where names are equal."""
    short = [plan.folder.name for plan in plans]
    return tuple(short if len(set(short)) == len(short) else [str(p.folder) for p in plans])


def notes(plans: Sequence[StoredPlan], alike: bool, weighed: dict[str, bool]) -> Iterator[str]:
    if not alike:
        yield "the plans are for other input, so that no best is marked"
    if not same(plan.record.input.seconds for plan in plans):
        windows = ", ".join(f"{plan.record.input.seconds:g}" for plan in plans)
        yield f"the windows differ ({windows} seconds), so that totals do too"
    for layer, equal in weighed.items():
        if not equal:
            yield f"costs of {layer} are weighed differently, so that no best is marked there"
    for layer in dict.fromkeys(figure.layer for figure in FIGURES):
        named = zip(names_of(plans), plans, strict=True)
        missing = [name for name, plan in named if layer not in plan.record.layers]
        if 0 < len(missing) < len(plans):
            yield f"no layer {layer} in {', '.join(missing)}"


def differing(plans: Sequence[StoredPlan]) -> dict[str, tuple[Any, ...]]:
    """Parameters that several plans have and that are not the same in all that have them."""
    said = [dict(parameters(plan)) for plan in plans]
    rows = {}
    for name in dict.fromkeys(name for found in said for name in found):
        if not same(found[name] for found in said if name in found):
            rows[name] = tuple(found.get(name) for found in said)
    return rows


NAMED = (
    *("method", "trees", "raw", "sending", "storing", "clients", "metric", "rank"),
    *("domains", "fixed"),
)
"""Parameters that a section has by themselves."""


def parameters(plan: StoredPlan) -> Iterator[tuple[str, Any]]:
    record = plan.record
    yield from {"version": record.version, "seed": record.seed, "input": record.input.key}.items()
    yield from (("window seconds", record.input.seconds), ("grid", record.input.grid))
    for layer in record.layers:
        section = record.sections[layer].model_dump(mode="json")
        for name in NAMED:
            if name in section:
                yield f"{layer}.{name}", section[name]
        for part in ("weights", "params", "limits", "allocation", "select", "prices"):
            found = section.get(part) or {}
            yield from ((f"{layer}.{part}.{name}", found[name]) for name in found if name != "cost")
