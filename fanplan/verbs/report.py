"""Reports: one offline page about one or more plans."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fanplan.core.errors import CheckError, InputError, Problem
from fanplan.core.folder import REPORT, whole_folder
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.data.reader import read_manifest
from fanplan.layers.channels.command import channels
from fanplan.layers.channels.report.section import tell_channels
from fanplan.layers.delivery.report.section import tell_delivery
from fanplan.layers.groups.report import tell_groups
from fanplan.layers.marking.report import tell_marking
from fanplan.layers.overlay.report.section import tell_overlay
from fanplan.page.content import Section
from fanplan.page.glossary import glossary_section
from fanplan.page.inputs import inputs_section
from fanplan.page.material import Material, Planned, Told
from fanplan.page.numbers import number
from fanplan.page.origin import origin_section
from fanplan.page.saving import Saving
from fanplan.page.savings import savings_section
from fanplan.page.waterfall import waterfall
from fanplan.verbs.check import check
from fanplan.verbs.datasets import as_dataset

if TYPE_CHECKING:
    from fanplan.page.material import CurvePoint
    from fanplan.plan.stored import StoredPlan

FACTORS = (0.125, 0.25, 0.5, 2.0)
"""Numbers of channels on a curve, beside that of the plan, relative to it."""


@dataclass(frozen=True)
class Report:
    """A written page, and what its plans save."""

    folder: Path
    savings: list[dict[str, Any]]

    @property
    def page(self) -> Path:
        return self.folder / "index.html"

    def summary(self) -> dict[str, Any]:
        return {
            "report": str(self.page),
            "bytes": self.page.stat().st_size,
            "savings": self.savings,
        }


def report(
    plans: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    workload: PathLike | None = None,
    curve: bool | None = None,
    replace: bool = False,
    engine: Engine = EMBEDDED,
) -> Report:
    """Write a page about plans of one dataset: whole, unedited and checked ones only.

    With ``workload``, a folder or dataset, every plan is checked against it again, and the page
    shows what only the dataset knows: interest, loads and delays beside baselines, quarantine.
    ``curve`` plans for other numbers of channels too; None does so where the workload is given.
    Spark starts only for a workload folder, or if the dataset lacks stages of a plan.
    """
    from fanplan.core.folder import REPORT, require_free
    from fanplan.page.material import Material

    require_free(Path(out), REPORT, replace)
    stored = open_plans([plans] if isinstance(plans, str | Path) else plans)
    if curve and workload is None:
        what = "other numbers of channels cannot be planned without the workload"
        raise InputError(Problem("curve", what, "Name the workload, or leave it out"))
    with planned_for(stored, workload, engine) as (dataset, warnings):
        curves = {plan.folder: stored_curve(plan) for plan in stored}
        if dataset is not None and curve is not False:
            curves |= {
                plan.folder: planned_curve(plan, dataset, engine)
                for plan in stored
                if wants_curve(plan) and not curves[plan.folder]
            }
        with engine.progress.stage("report"):
            path = None if dataset is None else dataset.path
            material = Material(stored, path, curves, warnings)
            savings = write_report(material, Path(out), replace)
    return Report(Path(out), [saving.json() for saving in savings])


def open_plans(folders: Sequence[PathLike]) -> list[StoredPlan]:
    """The plans, if they are as they were written and were made for one input."""
    from fanplan.layers.registry import load_plan

    if not folders:
        raise InputError(Problem("plans", "there are none", "Name a plan's folder"))
    plans = [load_plan(Path(folder)) for folder in folders]
    first = plans[0]
    for plan in plans:
        require_unedited(plan)
        if plan.record.input.key != first.record.input.key:
            what = f"was planned for other input than {first.folder}"
            raise InputError(Problem(str(plan.folder), what, "Write a report for each"))
    return plans


def require_unedited(plan: StoredPlan) -> None:
    """Only what was checked when it was written may be reported."""
    from fanplan.plan.seal import edited

    names = edited(plan)
    if names:
        what = f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} edited after the check"
        raise InputError(Problem(str(plan.folder), what, "Write the plan again"))


@contextmanager
def planned_for(
    plans: Sequence[StoredPlan], workload: PathLike | None, engine: Engine
) -> Iterator[tuple[Dataset | None, list[str]]]:
    """The dataset of the plans, against which each is checked again, and what the check warns of.

    Without a workload there is neither.
    """
    if workload is None:
        yield None, []
        return
    record = plans[0].record.input
    with as_dataset(workload, engine, record.parameters) as dataset:
        if dataset.manifest.key != record.key:
            what = f"has changed since {plans[0].folder} was planned, or is another one"
            raise InputError(Problem(str(workload), what, "Plan again, or name the right one"))
        yield dataset, [w for plan in plans for w in warnings_of(plan, dataset, engine)]


def warnings_of(plan: StoredPlan, dataset: Dataset, engine: Engine) -> list[str]:
    """What the check warns of, by the name of the plan; an error if the plan does not hold."""
    found = check(plan.folder, dataset, engine=engine)
    if not found.ok:
        raise CheckError(f"{plan.folder} is not reported: {'; '.join(found.violations)}")
    return [f"{plan.folder.name}: {warning}" for warning in found.warnings]


def stored_curve(plan: StoredPlan) -> list[CurvePoint]:
    """The curve that the plan was made in, if its folder still lies in that of the curve."""
    from fanplan.layers.channels.record import ChannelsRecord
    from fanplan.layers.delivery.record import DeliveryRecord
    from fanplan.layers.registry import load_plan
    from fanplan.page.material import CurvePoint

    path = plan.folder.absolute().parent / "curve.json"
    if plan.find(ChannelsRecord) is None or plan.has(DeliveryRecord) or not path.is_file():
        return []
    points = json.loads(path.read_text(encoding="utf-8"))["points"]
    folders = [path.parent / str(point["channels"]) for point in points]
    records = [load_plan(folder).section(ChannelsRecord) for folder in folders]
    return [CurvePoint(r.channels, r.cost, (r.bound, r.single_bound)) for r in records]


def wants_curve(plan: StoredPlan) -> bool:
    """Whether the plan has channels whose number can be another."""
    from fanplan.layers.channels.record import ChannelsRecord
    from fanplan.layers.delivery.record import DeliveryRecord

    if plan.has(DeliveryRecord):
        fixed = {"channels", "groups"} & set(plan.section(DeliveryRecord).fixed)
        return plan.section(DeliveryRecord).channels > 0 and not fixed
    return bool(plan.find(ChannelsRecord) and plan.section(ChannelsRecord).channels)


def planned_curve(plan: StoredPlan, dataset: Dataset, engine: Engine) -> list[CurvePoint]:
    """Plans for other numbers of channels by the same method, weights and seed; limits do not
    apply to them unless all layers are planned together."""
    from fanplan.layers.channels.record import ChannelsRecord
    from fanplan.layers.delivery.record import DeliveryRecord
    from fanplan.page.material import CurvePoint

    if plan.has(DeliveryRecord):
        return designed_curve(plan, dataset)
    record = plan.section(ChannelsRecord)
    method, _, second = record.method.partition("+")
    points = []
    for many in other_numbers(record.channels, record.flows):
        weights = record.weights.model_dump()
        made = channels(
            dataset,
            many,
            method=method,
            unicast=second or None,
            seed=plan.record.seed,
            engine=engine,
            **weights,
        ).plan
        points.append(CurvePoint(many, made.cost, (made.bound.cost, made.single_bound.cost)))
    return points


def designed_curve(plan: StoredPlan, dataset: Dataset) -> list[CurvePoint]:
    """All layers planned together with other numbers of channels, on the plan's own trees."""
    from fanplan.layers.channels.record import ChannelsRecord
    from fanplan.layers.delivery.record import DeliveryRecord
    from fanplan.layers.delivery.report.curve import delivery_curve
    from fanplan.layers.delivery.report.ways import read_ways

    record, problem = plan.section(DeliveryRecord), read_ways(plan, dataset.path).stored.problem
    return delivery_curve(
        plan, problem, other_numbers(record.channels, plan.section(ChannelsRecord).flows)
    )


def other_numbers(channels: int, flows: int) -> list[int]:
    """Fewer and more than the plan has, but at least one and no more than flows."""
    wished = {max(1, min(round(channels * factor), flows)) for factor in FACTORS}
    return sorted(wished - {channels})


LAYERS: Mapping[str, tuple[str, Callable[[Planned], Told]]] = {
    "delivery": ("Delivery", tell_delivery),
    "channels": ("Channels", tell_channels),
    "overlay": ("Overlay", tell_overlay),
    "groups": ("Groups", tell_groups),
    "marking": ("Marking", tell_marking),
}
"""How each layer of a plan is told, in the order of the page."""


OWN_WATERFALLS = ("channels", "groups")
"""Layers of a plan of all layers that have a waterfall in their section, in their own unit."""


def write_report(material: Material, out: Path, over: bool = False) -> list[Saving]:
    """Write index.html and report.json into a folder, whole or not at all."""
    layers = [(planned, how(planned)) for planned, how in layers_of(material)]
    first = [told for planned, told in layers if leads(planned)]
    savings = [told.saving for told in first]
    own = [section_of(planned, told) for planned, told in layers]
    sections = [savings_section(first), *own, *others(material)]
    with whole_folder(out, REPORT, over) as folder:
        page = render(title_of(material), plan_names(material), savings, sections)
        (folder / "index.html").write_text(page, encoding="utf-8")
        figures = {"savings": [saving.json() for saving in savings]}
        (folder / "report.json").write_text(json.dumps(figures, indent=2) + "\n")
    return savings


def leads(planned: Planned) -> bool:
    """Whether a layer has a headline: a plan of all layers has one for all of them."""
    from fanplan.layers.delivery.record import DeliveryRecord

    return planned.layer == "delivery" or planned.plan.find(DeliveryRecord) is None


def section_of(planned: Planned, told: Told) -> Section:
    """The section of a layer, with what it saves by itself if it has no headline for that."""
    section = told.section
    if leads(planned) or planned.layer not in OWN_WATERFALLS:
        return section
    return replace(section, pictures=[waterfall(told.saving), *section.pictures])


def layers_of(material: Material) -> list[tuple[Planned, Callable[[Planned], Told]]]:
    """Every layer of every plan, layer by layer; a plan is named where there are several."""
    count = Counter(layer for plan in material.plans for layer in plan.record.layers)
    found = []
    for layer, (title, how) in LAYERS.items():
        for i, plan in enumerate(material.plans):
            if layer in plan.record.layers:
                several = count[layer] > 1
                words = f"{title}: {plan.folder.name}" if several else title
                name = f"{layer}-{i}" if several else layer
                found.append((Planned(name, layer, words, plan, material), how))
    return found


def others(material: Material) -> list[Section]:
    """What is not about a layer."""
    own = [] if material.dataset is None else [inputs_section(material.dataset)]
    return [*own, origin_section(material), glossary_section()]


def title_of(material: Material) -> str:
    """The name of the workload, if it is known and has one, else those of the plans."""
    known = material.dataset and read_manifest(material.dataset).name
    return known or plan_names(material)


def plan_names(material: Material) -> str:
    names = [plan.folder.name for plan in material.plans]
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} plans"


def render(title: str, plans: str, savings: list[Saving], sections: list[Section]) -> str:
    environment = Environment(
        loader=PackageLoader("fanplan.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    page = environment.get_template("page.html")
    return page.render(title=title, plans=plans, savings=savings, sections=sections)
