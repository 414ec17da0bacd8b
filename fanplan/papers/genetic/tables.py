"""Tables 1 to 3 of Guimarães & Rodrigues (2003): a subscription set, two maps, and their costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.data.build import from_pairs
from fanplan.layers.channels.published.genetic.genes import (
    map_costs,
    subscription_genes,
    used_channels,
)
from fanplan.layers.channels.published.genetic.problem import (
    SubscriptionProblem,
    lists,
    one_per_subscriber,
)

SUBSCRIPTIONS = {
    "a": "ABG",
    "b": "A",
    "c": "BG",
    "d": "A",
    "e": "D",
    "g": "C",
    "h": "C",
    "i": "CD",
    "t": "EHI",
    "u": "FJK",
    "v": "BG",
    "x": "FJK",
    "z": "EHI",
}
"""Table 1: the subscribers of each subject."""

MAPS = {
    "a": (
        ("a", "ABG"),
        ("bd", "A"),
        ("cv", "BG"),
        ("gh", "C"),
        ("ei", "CD"),
        ("ux", "FJK"),
        ("tz", "EHI"),
    ),
    "b": (
        ("acv", "BG"),
        ("abd", "A"),
        ("ghi", "C"),
        ("ei", "D"),
        ("ux", "FJK"),
        ("tz", "EHI"),
    ),
}
"""Table 2: the subjects and the members of each group."""

SUBSCRIBERS = "ABCDEFGHIJK"
SUBJECTS = "".join(SUBSCRIPTIONS)


def table_costs(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Table 3: the cost of both maps in units of W(e), and the groups that they use."""
    weights = np.exp2(np.arange(len(SUBJECTS), dtype=np.float64))
    problem = one_per_subscriber(subscription_set())
    genes = subscription_genes(problem, np.arange(problem.size), weights)
    result = {}
    for name, groups in MAPS.items():
        map = np.array([[*group_numbers(problem, groups)]], dtype=np.int32)
        cost = map_costs(genes, map, len(groups)).sum()
        result[f"map {name}, cost"] = float(cost / weights[SUBJECTS.index("e")])
        result[f"map {name}, groups"] = float(used_channels(map, len(groups))[0])
    return result


def subscription_set() -> SubscriptionProblem:
    """Table 1; every subject sends the same."""
    pairs = [(s, SUBSCRIBERS.index(w)) for s, own in enumerate(SUBSCRIPTIONS.values()) for w in own]
    subject, who = np.array(pairs, dtype=np.int32).T
    numbers, ones = np.arange(len(SUBJECTS)), np.ones(len(SUBJECTS))
    single = lists(numbers, numbers, len(SUBJECTS))
    return SubscriptionProblem(
        topic=numbers.astype(np.int32),
        boxes=single,
        lo=np.zeros((len(SUBJECTS), 1)),
        hi=np.ones((len(SUBJECTS), 1)),
        subscribers=lists(subject, who, len(SUBJECTS)),
        rows=single,
        hits=np.ones(len(SUBJECTS), dtype=np.int64),
        interest=from_pairs(subject, who, ones, names=pa.array(SUBSCRIBERS), kind="flow"),
        row_topic=numbers,
        row_volume=ones,
        topic_messages=ones,
        topic_volume=ones,
        root_hits=ones,
    )


def group_numbers(problem: SubscriptionProblem, groups: Sequence[tuple[str, str]]) -> Iterator[int]:
    """Which group has both the subject and the subscriber of each single subscription."""
    for subject, who in zip(problem.topic, problem.subscribers.values, strict=True):
        names = SUBJECTS[subject], SUBSCRIBERS[who]
        found = (names[0] in subjects and names[1] in members for subjects, members in groups)
        yield list(found).index(True)
