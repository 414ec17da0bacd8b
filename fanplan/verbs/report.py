"""Reports: one offline page about one or more plans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fanplan.core.errors import CheckError, InputError, Problem
from fanplan.core.folder import REPORT, whole_folder
from fanplan.core.result import Result
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.data.reader import read_manifest
from fanplan.layers.layer import Curves, Layer
from fanplan.layers.registry import all_layers, bounds_of, layers_of, load_plan
from fanplan.page.bars import waterfall
from fanplan.page.content import Section
from fanplan.page.details import packed, plan_things
from fanplan.page.material import CurvePoint, Material, Now, Told, ToldLayer
from fanplan.page.numbers import number
from fanplan.page.saving import Saving
from fanplan.page.sections import glossary_section, inputs_section, origin_section, savings_section
from fanplan.plan.signature import unsigned
from fanplan.plan.stored import StoredPlan
from fanplan.systems.report import read_trial, trial_section
from fanplan.verbs.check import check
from fanplan.verbs.compare import names_of
from fanplan.verbs.datasets import dataset_of_plan
from fanplan.verbs.given import AnyDataset, AnyPlan, in_our_words, plan_at
from fanplan.verbs.report_compared import change_sections, compared_section
from fanplan.verbs.report_passing import passing_shelves


@dataclass(frozen=True, repr=False)
class Report(Result):
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


@in_our_words
def report(
    plans: AnyPlan | Sequence[AnyPlan],
    out: PathLike,
    *,
    workload: AnyDataset | None = None,
    curve: bool | None = None,
    trials: Sequence[PathLike] = (),
    replace: bool = False,
    lost_limit: float | None = None,
    key: PathLike | None = None,
    engine: Engine = EMBEDDED,
) -> Report:
    """Write a page about plans of one dataset: whole, unedited and checked ones only.

    With ``workload``, a folder or dataset, every plan is checked against it again, and the page
    shows what only the dataset knows: interest, loads and delays beside baselines, quarantine.
    ``curve`` plans for other numbers of channels too; None does so where the workload is given.
    ``trials`` are folders of trials of these plans, which the page then shows.
    Spark starts only for a workload folder, or if the dataset lacks stages of a plan.
    ``lost_limit`` is that of `ingest`. With the public ``key`` of whoever approved them, all plans
    must be signed with it.
    """
    from fanplan.core.folder import REPORT, claimed
    from fanplan.page.material import Material

    several = isinstance(plans, Sequence) and not isinstance(plans, str)
    stored = open_plans(plans if several else [plans])  # type: ignore[arg-type,list-item]
    for plan in stored if key is not None else ():
        require_signed(plan, Path(key or ""))
    if curve and workload is None:
        what = "other numbers of channels cannot be planned without the workload"
        raise InputError(Problem("curve", what, "Name the workload, or leave it out"))
    tried = [read_trial(Path(folder), stored) for folder in trials]
    shown = [trial_section(told, number) for number, told in enumerate(tried)]
    with (
        claimed(Path(out), REPORT, replace),
        planned_for(stored, workload, lost_limit, engine) as (dataset, warnings),
    ):
        again = dataset if curve is not False else None
        curves = {plan.folder: curve_points(plan, again, engine) for plan in stored}
        with engine.progress.stage("report"):
            path = None if dataset is None else dataset.path
            material = Material(stored, path, curves, warnings)
            savings = write_report(material, Path(out), replace, shown)
    return Report(Path(out), [saving.json() for saving in savings])


def open_plans(folders: Sequence[AnyPlan]) -> list[StoredPlan]:
    """The plans, if they are as they were written and were made for one input."""

    if not folders:
        raise InputError(Problem("plans", "there are none", "Name a plan's folder"))
    plans = [load_plan(plan_at(folder)) for folder in folders]
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
        were = "was" if len(names) == 1 else "were"
        what = f"{', '.join(names)} {were} edited after the check (hash differs)"
        raise InputError(Problem(str(plan.folder), what, "Write the plan again"))


def require_signed(plan: StoredPlan, key: Path) -> None:
    why = unsigned(plan.folder, key)
    if why:
        raise CheckError(f"{plan.folder} is not reported: signature: {why}")


@contextmanager
def planned_for(
    plans: Sequence[StoredPlan],
    workload: AnyDataset | None,
    lost_limit: float | None,
    engine: Engine,
) -> Iterator[tuple[Dataset | None, list[str]]]:
    """The dataset of the plans, against which each is checked again, and what the check warns of.

    Without a workload there is neither.
    """
    if workload is None:
        yield None, []
        return
    first, asked = plans[0], {"lost_limit": lost_limit}
    with dataset_of_plan(first.folder, workload, engine, asked) as dataset:
        if dataset.manifest.key != first.record.input.key:
            what = f"has changed since {first.folder} was planned, or is another one"
            raise InputError(Problem(str(workload), what, "Plan again, or name the right one"))
        yield dataset, [w for plan in plans for w in warnings_of(plan, dataset, engine)]


def warnings_of(plan: StoredPlan, dataset: Dataset, engine: Engine) -> list[str]:
    """What the check warns of, by the name of the plan; an error if the plan does not hold."""
    found = check(plan.folder, dataset, engine=engine)
    if not found.ok:
        raise CheckError(f"{plan.folder} is not reported: {'; '.join(found.violations)}")
    return [f"{plan.folder.name}: {warning}" for warning in found.warnings]


def curve_points(plan: StoredPlan, dataset: Dataset | None, engine: Engine) -> list[CurvePoint]:
    """Costs with other numbers of channels, as stored, or planned anew if there is a dataset."""
    curves = curves_of(plan)
    if curves is None:
        return []
    points = curves.stored(plan)
    if points or dataset is None or not curves.wanted(plan):
        return points
    return curves.planned(plan, dataset, engine)


def curves_of(plan: StoredPlan) -> Curves | None:
    """How the plan is planned with other numbers of channels: by the layer that binds, if any."""
    return next((one.curves for one in all_layers() if one.curves and plan.has(one.record)), None)


def write_report(
    material: Material, out: Path, over: bool = False, trials: Sequence[Section] = ()
) -> list[Saving]:
    """Write index.html and report.json into a folder, whole or not at all."""
    layers = [
        (planned, layer, told_layer(planned, layer)) for planned, layer in planned_layers(material)
    ]
    first = [own for planned, layer, own in layers if leads(planned, layer)]
    savings = [own.saving for own in first]
    sections = [section_of(*parts) for parts in layers]
    compared = [compared_section(material.plans)] if len(material.plans) > 1 else []
    changed = change_sections(material.plans, told_now(material, layers))
    sections = [savings_section(first), *compared, *changed, *trials, *sections, *others(material)]
    with whole_folder(out, REPORT, over) as folder:
        things = packed_things(material, layers)
        page = render(title_of(material), plan_names(material), savings, sections, things)
        (folder / "index.html").write_text(page, encoding="utf-8")
        figures = {"savings": [saving.json() for saving in savings]}
        (folder / "report.json").write_text(json.dumps(figures, indent=2) + "\n")
    return savings


Layers = Sequence[tuple[ToldLayer, Layer, Told]]
"""Every layer of every plan, with what it has to tell."""


def told_now(material: Material, layers: Layers) -> dict[int, list[Now]]:
    """By plan what its layers say of brokers and subscribers."""
    found: dict[int, list[Now]] = {}
    for planned, _, told in layers:
        found.setdefault(place_of_plan(material, planned.plan), []).extend(told.now)
    return found


def packed_things(material: Material, layers: Layers) -> str:
    """What opens on a click, of every plan."""
    found = []
    for plan, name in zip(material.plans, names_of(material.plans), strict=True):
        shelves = [
            one for planned, _, told in layers if planned.plan is plan for one in told.shelves
        ]
        if material.dataset is not None:
            shelves += passing_shelves(plan, material.dataset)
        found.append((name, plan_things(shelves)))
    return packed(found)


def place_of_plan(material: Material, plan: StoredPlan) -> int:
    return next(i for i, one in enumerate(material.plans) if one is plan)


def told_layer(planned: ToldLayer, layer: Layer) -> Told:
    return layer.tell(planned, bounds_of(planned.plan)[layer.name])


def leads(planned: ToldLayer, layer: Layer) -> bool:
    """Whether a layer has a headline: one that binds others has it for all of the plan."""
    return layer.bind is not None or all(one.bind is None for one in layers_of(planned.plan))


def section_of(planned: ToldLayer, layer: Layer, told: Told) -> Section:
    """The section of a layer, with what it saves by itself if it has no headline for that."""
    section = replace(told.section, plan=place_of_plan(planned.material, planned.plan))
    if leads(planned, layer) or not layer.own_unit:
        return section
    return replace(section, pictures=[waterfall(told.saving), *section.pictures])


def planned_layers(material: Material) -> list[tuple[ToldLayer, Layer]]:
    """Every layer of every plan, layer by layer; a plan is named where there are several."""
    found = []
    for layer in all_layers():
        having = [(i, plan) for i, plan in enumerate(material.plans) if plan.has(layer.record)]
        for i, plan in having:
            several = len(having) > 1
            title = f"{layer.title}: {plan.folder.name}" if several else layer.title
            name = f"{layer.name}-{i}" if several else layer.name
            found.append((ToldLayer(name, layer.name, title, plan, material), layer))
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


def render(
    title: str, plans: str, savings: list[Saving], sections: list[Section], things: str = ""
) -> str:
    environment = Environment(
        loader=PackageLoader("fanplan.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    page = environment.get_template("page.html")
    told = {"title": title, "plans": plans, "savings": savings, "sections": sections}
    return page.render(told, things=things)
