"""The page itself: all sections through one template, with style and script inside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from fanplan.core.folder import REPORT, whole_folder
from fanplan.data.reader import read_manifest
from fanplan.layers.channels.report.section import tell_channels
from fanplan.layers.delivery.report.section import tell_delivery
from fanplan.layers.groups.report import tell_groups
from fanplan.layers.marking.report import tell_marking
from fanplan.layers.overlay.report.section import tell_overlay
from fanplan.report.content import Section
from fanplan.report.glossary import glossary_section
from fanplan.report.inputs import inputs_section
from fanplan.report.material import Material, Planned, Told
from fanplan.report.numbers import number
from fanplan.report.origin import origin_section
from fanplan.report.saving import Saving
from fanplan.report.savings import savings_section
from fanplan.report.waterfall import waterfall

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
    return planned.layer == "delivery" or planned.plan.record.delivery is None


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
        loader=PackageLoader("fanplan.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    page = environment.get_template("page.html")
    return page.render(title=title, plans=plans, savings=savings, sections=sections)
