"""Subscriptions to subjects and to their content, after section 5 of Guimarães and Rodrigues.

*subjects*: they fall into categories of equal size. A subscriber chooses one category and, in it, a
number of different subjects. Rates are log-uniform: the largest is at most 10^p times the smallest.

*content*: subjects and subscribers of the same seed. Each subject's space is a row of atomic
volumes of different sizes. A subscription takes the volumes within a radius of a random one, cut
off at the ends of the row. All who want a subject issue the same few subscriptions, or each their
own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import starts_of
from fanplan.core.errors import Problem
from fanplan.core.options import option
from fanplan.workload.generators.draws import (
    choose_by_weight,
    grouped_names,
    names,
    streams,
    with_mean,
)
from fanplan.workload.generators.generated import (
    AxisLaw,
    Generated,
    GeneratorParams,
    InterestPairs,
    PublicationLaw,
    WorkloadKind,
    describe,
    subscribed,
)
from fanplan.workload.space import NumberAttribute


@dataclass(frozen=True)
class SubjectsParams(GeneratorParams):
    """The paper's scenarios are 1 or 5 categories, p = 0 or 2, and 20 to 160 subscribers."""

    subjects: int = option(100, "number of subjects, each a topic", at_least=1)
    categories: int = option(5, "number of categories of subjects", at_least=1)
    subscribers: int = option(160, "number of subscribers", at_least=1)
    subjects_per_subscriber: int = option(10, "subjects each subscriber wants", at_least=1)
    p: float = option(2.0, "relative throughput: rates span a factor of 10^p", at_least=0)

    def relations(self) -> Iterator[Problem]:
        if self.subjects % max(self.categories, 1):
            what = f"{self.subjects} subjects do not fall into {self.categories} equal categories"
            yield Problem("subjects", what, "Give a multiple of the number of categories")
        if self.subjects_per_subscriber * self.categories > self.subjects:
            what = f"a category has fewer than {self.subjects_per_subscriber} subjects"
            remedy = "Give more subjects, fewer categories or fewer subjects per subscriber"
            yield Problem("subjects_per_subscriber", what, remedy)


def generate_subjects(params: SubjectsParams, seed: int) -> Generated:
    """A subject-based workload; O(subscribers × subjects in a category)."""
    law, who = subject_law(params, seed), names("u", params.subscribers)
    return subscribed(describe("subjects"), law, who, draw_subjects(params, seed))


def subject_law(
    params: SubjectsParams, seed: int, axes: tuple[AxisLaw, ...] = ()
) -> PublicationLaw:
    """Log-uniform rates, one publisher per subject; subject i is in category i mod c."""
    rates = 10 ** (params.p * streams(seed, 3)[0].random(params.subjects))
    subject = np.arange(params.subjects)
    return PublicationLaw(
        grouped_names("c", subject % params.categories, "s", subject),
        with_mean(rates, params.rate),
        names("p", params.subjects),
        params.message_bytes,
        axes,
    )


def draw_subjects(params: SubjectsParams, seed: int) -> InterestPairs:
    """Who wants which subjects, ordered by subscriber and subject."""
    _, choosing, wanting = streams(seed, 3)
    category = choosing.integers(0, params.categories, params.subscribers)
    weights = np.ones(params.subjects // params.categories)
    each = params.subjects_per_subscriber
    within = choose_by_weight(wanting, params.subscribers, weights, each)
    what = within * params.categories + category[:, None]
    return np.repeat(np.arange(params.subscribers), each), what.ravel()


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
    shared: bool = option(True, "whether all who want a subject issue the same subscriptions")
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


def generate_content(params: ContentParams, seed: int) -> Generated:
    """A content-based workload; O(subscriptions × log subscriptions)."""
    position = NumberAttribute("position", 0.0, float(params.domain))
    law = subject_law(params, seed, (AxisLaw(position),))
    sizes, counts, intervals = streams(seed, 6)[3:]
    pairs = np.stack(draw_subjects(params, seed))
    # What is drawn once for each owner: a subject, or a subscriber who wants one.
    owner = pairs[1] if params.shared else np.arange(pairs.shape[1])
    issued = draw_issued(params, params.subjects if params.shared else len(owner), counts)
    first, last = draw_intervals(params, np.repeat(np.arange(len(issued)), issued), intervals)
    each = issued[owner]
    who, what = np.repeat(pairs, each, axis=1)
    own = np.repeat(starts_of(issued)[owner] - starts_of(each)[:-1], each) + np.arange(each.sum())
    edges = draw_edges(params, sizes)
    filters = interval_filters(edges[what, first[own]], edges[what, last[own] + 1], params.domain)
    # The grid has the subscriptions' own end points; cells are for those who ask for a uniform one.
    description = describe("content", (position,), (params.volumes,), "atomic")
    return subscribed(description, law, names("u", params.subscribers), (who, what), filters)


def draw_issued(params: ContentParams, owners: int, rng: np.random.Generator) -> np.ndarray:
    """How many subscriptions each owner has."""
    return rng.integers(params.subscriptions_min, params.subscriptions_max, owners, endpoint=True)


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


def interval_filters(low: np.ndarray, high: np.ndarray, domain: int) -> list[str]:
    """Half-open intervals as text; only the one that ends with the domain includes its end."""
    return [
        f"position >= {a} AND position {'<=' if b == domain else '<'} {b}"
        for a, b in zip(low, high, strict=True)
    ]


SUBJECTS = WorkloadKind(
    "subjects", "subscribers choose subjects in a category", SubjectsParams, generate_subjects
)
CONTENT = WorkloadKind(
    "content", "subscriptions to intervals of a subject", ContentParams, generate_content
)
