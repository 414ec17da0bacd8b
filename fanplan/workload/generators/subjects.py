"""Subject-based subscriptions, after section 5 of Guimarães and Rodrigues.

Subjects fall into categories of equal size. A subscriber chooses one category and, in it, a number
of different subjects. Rates are log-uniform: the largest is at most 10^p times the smallest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.errors import Problem
from fanplan.core.options import Params, option
from fanplan.workload.description import Description
from fanplan.workload.generators.draws import choose, names, streams, with_mean
from fanplan.workload.generators.generated import Generated, Kind, advertisements, subscriptions
from fanplan.workload.generators.law import Axis, PublicationLaw


@dataclass(frozen=True)
class SubjectsParams(Params):
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


def generate(params: SubjectsParams, seed: int) -> Generated:
    """A subject-based workload; O(subscribers × subjects in a category)."""
    topics = subject_names(params)
    law = subject_law(params, seed)
    who, what = draw_subjects(params, seed)
    tables = {
        "subscriptions": subscriptions(names("u", params.subscribers), topics, (who, what)),
        "advertisements": advertisements(law),
    }
    return Generated(Description(name="subjects", topic_syntax="nats"), tables, law)


def subject_names(params: SubjectsParams) -> pa.Array:
    """Names such as ``c2.s017``: category, then subject; subject i is in category i mod c."""
    wide, deep = len(str(params.categories - 1)), len(str(params.subjects - 1))
    numbers = range(params.subjects)
    return pa.array([f"c{i % params.categories:0{wide}d}.s{i:0{deep}d}" for i in numbers])


def subject_law(params: SubjectsParams, seed: int, axes: tuple[Axis, ...] = ()) -> PublicationLaw:
    """Log-uniform rates, one publisher per subject."""
    rates = 10 ** (params.p * streams(seed, 3)[0].random(params.subjects))
    return PublicationLaw(
        subject_names(params),
        with_mean(rates, params.rate),
        names("p", params.subjects),
        params.message_bytes,
        axes,
    )


def draw_subjects(params: SubjectsParams, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Who wants which subjects, as positions, ordered by subscriber and subject."""
    _, choosing, wanting = streams(seed, 3)
    category = choosing.integers(0, params.categories, params.subscribers)
    size = params.subjects // params.categories
    within = choose(wanting, params.subscribers, np.ones(size), params.subjects_per_subscriber)
    what = within * params.categories + category[:, None]
    who = np.repeat(np.arange(params.subscribers), params.subjects_per_subscriber)
    return who, what.ravel()


KIND = Kind("subjects", "subscribers choose subjects in a category", SubjectsParams, generate)
