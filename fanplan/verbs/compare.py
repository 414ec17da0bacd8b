"""Plans side by side, in the words of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.result import Result, snake
from fanplan.layers.layer import Layer
from fanplan.layers.registry import all_layers, layers_of, load_plan
from fanplan.plan.figures import Figure
from fanplan.plan.seal import require_untouched
from fanplan.plan.stored import StoredPlan
from fanplan.verbs.given import AnyPlan, plan_at


@dataclass(frozen=True)
class Line:
    """A figure of all plans; ``best`` are the places of the best, none where none can be told."""

    layer: str
    name: str
    values: tuple[float | None, ...]
    best: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Plans side by side. ``differing`` has parameters that are not the same in all plans."""

    plans: tuple[str, ...]
    lines: tuple[Line, ...]
    differing: dict[str, tuple[Any, ...]]
    notes: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """The best plans by each figure that tells one."""
        return {
            f"{line.layer}.{snake(line.name)}": ", ".join(self.plans[i] for i in line.best)
            for line in self.lines
            if line.best
        }

    def notes_shown(self) -> tuple[str, ...]:
        return self.notes

    def json(self) -> dict[str, Any]:
        figures: dict[str, dict[str, Any]] = {}
        for line in self.lines:
            told = {"values": list(line.values), "best": [self.plans[i] for i in line.best]}
            figures.setdefault(line.layer, {})[snake(line.name)] = told
        differing = {snake(name): list(values) for name, values in self.differing.items()}
        return {
            "plans": list(self.plans),
            "figures": figures,
            "differing": differing,
            "notes": list(self.notes),
        }


def compare(*plans: AnyPlan) -> Comparison:
    """Stored plans side by side in the words of the ledger, with what differs in parameters."""
    return compare_plans([load_plan(plan_at(plan)) for plan in plans])


def compare_plans(plans: Sequence[StoredPlan]) -> Comparison:
    """Set plans side by side; where they are not comparable that is said, and no best is named."""
    if len(plans) < 2:
        raise InputError(Problem("plans", f"{len(plans)} is too few", "Name two or more"))
    for plan in plans:
        require_untouched(plan)
    alike = same(plan.record.input.key for plan in plans)
    layers = all_layers()
    weighed = {layer.name: weighed_alike(plans, layer) for layer in layers}
    # A layer that another binds is not planned for its own figures: less of one is no aim there.
    within = {kind for plan in plans for layer in layers_of(plan) for kind in layer.binds}
    judged = {layer.name: alike and layer.record not in within for layer in layers}
    lines = [
        line_for(
            layer, figure, plans, judged[layer.name] and (not figure.weighed or weighed[layer.name])
        )
        for layer in layers
        for figure in layer.figures
        if any(plan.has(layer.record) for plan in plans)
    ]
    return Comparison(
        names_of(plans), tuple(lines), unlike(plans), tuple(caveats(plans, alike, weighed))
    )


def line_for(layer: Layer, figure: Figure, plans: Sequence[StoredPlan], comparable: bool) -> Line:
    values = tuple(figure.read(plan) if plan.has(layer.record) else None for plan in plans)
    known = [value for value in values if value is not None]
    if not (comparable and figure.better) or len(known) < 2 or same(known):
        return Line(layer.name, figure.name, values, ())
    if len(scopes(layer, figure, plans)) > 1:
        return Line(layer.name, figure.name, values, ())
    best = min(known) if figure.better == "less" else max(known)
    places = tuple(i for i, value in enumerate(values) if value == best)
    return Line(layer.name, figure.name, values, places)


def scopes(layer: Layer, figure: Figure, plans: Sequence[StoredPlan]) -> dict[str, list[str]]:
    """What a figure counts, and the plans in which it does."""
    found: dict[str, list[str]] = {}
    for name, plan in zip(names_of(plans), plans, strict=True):
        if plan.has(layer.record):
            found.setdefault(figure.scope(plan), []).append(name)
    return found


def same(values: Any) -> bool:
    """Whether all of some values are equal."""
    first, *others = values
    return all(value == first for value in others)


def weighed_alike(plans: Sequence[StoredPlan], layer: Layer) -> bool:
    """Whether all plans that have a layer weigh its costs in the same way."""
    found = [plan.section(layer.record) for plan in plans if plan.has(layer.record)]
    weights = [tuple(getattr(section.params, name) for name in layer.weights) for section in found]
    return not weights or same(weights)


def names_of(plans: Sequence[StoredPlan]) -> tuple[str, ...]:
    """Names of folders; whole paths where names are equal."""
    short = [plan.folder.name for plan in plans]
    return tuple(short if len(set(short)) == len(short) else [str(p.folder) for p in plans])


def caveats(plans: Sequence[StoredPlan], alike: bool, weighed: dict[str, bool]) -> Iterator[str]:
    if not alike:
        yield "the plans are for other input, so that no best is marked"
    if not same(plan.record.input.seconds for plan in plans):
        windows = ", ".join(f"{plan.record.input.seconds:g}" for plan in plans)
        yield f"the windows differ ({windows} seconds), so that totals do too"
    for layer, equal in weighed.items():
        if not equal:
            yield f"costs of {layer} are weighed differently, so that no best is marked there"
    for one in all_layers():
        for figure in one.figures:
            counted = scopes(one, figure, plans)
            if len(counted) > 1:
                told = "; ".join(f"{', '.join(names)}: {what}" for what, names in counted.items())
                yield f"{one.name}: the {figure.name} is not of the same ({told})"
    for layer in weighed:
        named = zip(names_of(plans), plans, strict=True)
        missing = [name for name, plan in named if layer not in plan.record.layers]
        if 0 < len(missing) < len(plans):
            yield f"no layer {layer} in {', '.join(missing)}"


def unlike(plans: Sequence[StoredPlan]) -> dict[str, tuple[Any, ...]]:
    """Parameters that several plans have and that are not the same in all that have them."""
    said = [dict(parameters(plan)) for plan in plans]
    rows = {}
    for name in dict.fromkeys(name for found in said for name in found):
        if not same(found[name] for found in said if name in found):
            rows[name] = tuple(found.get(name) for found in said)
    return rows


def parameters(plan: StoredPlan) -> Iterator[tuple[str, Any]]:
    record = plan.record
    yield from {"version": record.version, "seed": record.seed, "input": record.input.key}.items()
    yield from (("window seconds", record.input.seconds), ("grid", record.input.grid))
    for layer in record.layers:
        for name, value in record.sections[layer].params.recorded().items():
            if isinstance(value, dict):
                yield from ((f"{layer}.{name}.{own}", value[own]) for own in value)
            else:
                yield f"{layer}.{name}", value
