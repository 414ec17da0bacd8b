"""Content-based subscriptions, after section 5.1 of Guimarães and Rodrigues.

Subjects and subscribers are those of the subject-based scenario with the same seed. Each subject's
space is a row of atomic volumes of different sizes. A subscription takes the volumes within a
radius of a random one, cut off at the ends of the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fanplan.core.errors import Problem
from fanplan.core.options import option
from fanplan.workload.description import Description, TopicEntry
from fanplan.workload.generators.draws import names, streams
from fanplan.workload.generators.generated import Generated, Kind, advertisements, subscriptions
from fanplan.workload.generators.law import Axis
from fanplan.workload.generators.subjects import SubjectsParams, draw_subjects, subject_law
from fanplan.workload.space import PLAIN, NumberAttribute, Space


@dataclass(frozen=True)
class ContentParams(SubjectsParams):
    """Sizes of the paper; ``domain`` is only the scale that positions are written in."""

    volumes: int = option(64, "atomic volumes of each subject", at_least=1)
    volume_min: int = option(1, "smallest atomic volume", at_least=1)
    volume_max: int = option(255, "largest atomic volume", at_least=1)
    radius_min: int = option(10, "smallest radius of a subscription, volumes", at_least=0)
    radius_max: int = option(20, "largest radius of a subscription, volumes", at_least=0)
    subscriptions_min: int = option(4, "fewest subscriptions to a subject wanted", at_least=1)
    subscriptions_max: int = option(8, "most subscriptions to a subject wanted", at_least=1)
    domain: int = option(1_000_000, "positions run from 0 to this", at_least=1, at_most=10**9)

    def relations(self) -> Iterator[Problem]:
        yield from super().relations()
        for name in ("volume", "radius", "subscriptions"):
            low, high = getattr(self, f"{name}_min"), getattr(self, f"{name}_max")
            if low > high:
                what = f"{low} is more than {name}_max, which is {high}"
                yield Problem(f"{name}_min", what, "Give the smaller number first")
        if self.volumes * self.volume_max > self.domain:
            what = f"too small for {self.volumes} volumes of up to {self.volume_max}"
            yield Problem("domain", what, f"Give at least {self.volumes * self.volume_max}")
        if self.subscriptions_max > intervals_of(self.volumes, self.radius_min):
            what = f"a subject may lack {self.subscriptions_max} different intervals"
            yield Problem("subscriptions_max", what, "Give fewer, or more volumes")


def intervals_of(volumes: int, radius: int) -> int:
    """Different intervals of one radius: one per centre, but all that reach both ends are one."""
    reach_both = min(2 * radius + 2 - volumes, volumes)
    return volumes - max(0, reach_both - 1)


def generate(params: ContentParams, seed: int) -> Generated:
    """A content-based workload; O(subscriptions × log subscriptions)."""
    position = NumberAttribute("position", 0.0, float(params.domain))
    law = subject_law(params, seed, (Axis(position),))
    sizes, counts, intervals = streams(seed, 6)[3:]
    pairs = np.stack(draw_subjects(params, seed))
    spread = counts.integers(
        params.subscriptions_min, params.subscriptions_max, pairs.shape[1], endpoint=True
    )
    who, what = np.repeat(pairs, spread, axis=1)
    owner = np.repeat(np.arange(pairs.shape[1]), spread)
    first, last = draw_intervals(params, owner, intervals)
    edges = draw_edges(params, sizes)
    filters = selectors(edges[what, first], edges[what, last + 1], params.domain)
    tables = {
        "subscriptions": subscriptions(
            names("u", params.subscribers), law.topics, (who, what), filters
        ),
        "advertisements": advertisements(law),
    }
    return Generated(describe(position, params.volumes), tables, law)


def describe(position: NumberAttribute, cells: int) -> Description:
    """Every subject has the one attribute, on a grid of the subscriptions' own end points.

    ``cells`` is for those who ask for a uniform grid instead.
    """
    return Description(
        name="content",
        topic_syntax="nats",
        grid="atomic",
        attributes={position.name: position},
        topics=(TopicEntry(">", 1),),
        spaces=(PLAIN, Space((position,), (cells,))),
    )


def draw_edges(params: ContentParams, rng: np.random.Generator) -> np.ndarray:
    """End points of the atomic volumes, subjects × (volumes + 1), as whole numbers in the domain.

    A volume's share of the domain is its share of the subject, to within one part in ``domain``.
    """
    shape = (params.subjects, params.volumes)
    sizes = rng.integers(params.volume_min, params.volume_max, shape, endpoint=True)
    ends = np.cumsum(np.pad(sizes, ((0, 0), (1, 0))), axis=1)
    return ends * params.domain // ends[:, -1:]


def draw_intervals(
    params: ContentParams, owner: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """First and last volume of each subscription; no owner has the same interval twice."""
    first, last = np.zeros((2, owner.size), np.int64)
    again = np.arange(owner.size)
    while again.size:
        centre = rng.integers(0, params.volumes, again.size)
        radius = rng.integers(params.radius_min, params.radius_max, again.size, endpoint=True)
        first[again] = np.maximum(centre - radius, 0)
        last[again] = np.minimum(centre + radius, params.volumes - 1)
        key = (owner * params.volumes + first) * params.volumes + last
        again = np.delete(np.arange(owner.size), np.unique(key, return_index=True)[1])
    return first, last


def selectors(low: np.ndarray, high: np.ndarray, domain: int) -> list[str]:
    """Half-open intervals as text; only the one that ends with the domain includes its end."""
    return [
        f"position >= {a} AND position {'<=' if b == domain else '<'} {b}"
        for a, b in zip(low, high, strict=True)
    ]


KIND = Kind("content", "subscriptions to intervals of a subject", ContentParams, generate)
