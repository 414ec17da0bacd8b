"""The section on a mesh: how many links subscribers have, and all links as a table."""

from __future__ import annotations

from collections import Counter

from fanplan.layers.mesh.record import MeshRecord
from fanplan.page.content import Listing, Section
from fanplan.page.material import Told, ToldLayer
from fanplan.page.saving import Saving, Step

LEAD = (
    "Subscribers are linked without brokers: those who want a topic reach each other over links "
    "among themselves, so that a message stays with those who want it."
)


def tell_mesh(planned: ToldLayer) -> Told:
    record, name = planned.plan.section(MeshRecord), planned.name
    saving = Saving(
        name,
        planned.title,
        planned.folder,
        "links",
        (Step("a tree for each topic alone", record.separate), Step("this plan", record.links)),
        ("links that serve several topics",),
        least=Step("no mesh has fewer", record.bound),
    )
    section = Section(
        name,
        planned.title,
        LEAD,
        [
            ("method", record.params.method),
            ("connected are those of each", record.params.connect.removesuffix("s")),
            ("subscribers that share something", record.nodes),
            ("topics or classes of flows that several want", record.topics),
            ("links", record.links),
            ("no mesh has fewer links than", record.bound),
            ("mean links of a subscriber", record.degree_mean),
            ("most links of a subscriber", record.degree_max),
            ("in every mesh one has at least", record.degree_bound),
        ],
        listings=listings(planned),
    )
    return Told(saving, section)


def listings(planned: ToldLayer) -> list[Listing]:
    """Subscribers by their links, and links by the topics that they serve."""
    a, b, topics = planned.plan.read("mesh_links", ("a", "b", "topics")).to_pydict().values()
    links = sorted(zip(a, b, topics, strict=True), key=lambda row: (-row[2], row))
    degrees = sorted(Counter([*a, *b]).items(), key=lambda row: (-row[1], row[0]))
    name = planned.name
    return [
        Listing(f"{name}-links", "Links", ("subscriber", "and", "topics of both"), links),
        Listing(f"{name}-degrees", "Links of subscribers", ("subscriber", "links"), degrees),
    ]
