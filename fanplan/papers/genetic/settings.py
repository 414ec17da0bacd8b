"""What is sampled: the scenarios of Guimarães & Rodrigues (2003), section 5, full and small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

KINDS = ("subjects", "content")
GROUPS = 16


@dataclass(frozen=True)
class Scenario:
    """What subscribers want and publishers send: ``p`` is the relative throughput."""

    kind: str
    categories: int
    p: int
    subjects: int = 100
    percent: int = 10
    """Of the subjects, which a subscriber chooses."""

    @property
    def caption(self) -> str:
        """As in the paper."""
        return f"c{self.categories} p{self.p}"

    def setting(self, subscribers: int) -> str:
        """The name of the setting with this many subscribers."""
        choice = f"{self.percent} % of {self.subjects}"
        return f"{self.kind} {self.caption}, {choice}, {subscribers} subscribers"


SCENARIOS = {
    kind: {
        part: Scenario(kind, c, p)
        for part, (c, p) in {"a": (1, 0), "b": (5, 0), "c": (1, 2), "d": (5, 2)}.items()
    }
    for kind in KINDS
}
"""The four parts of Figures 6 and 7."""

FIGURE_6C = {p: Scenario("subjects", 1, p) for p in (2, 3, 4)}
"""Figure 6c by p, which is not printed."""

RICH = {kind: parts["d"] for kind, parts in SCENARIOS.items()}
"""The scenarios of Figures 8 to 11."""

TABLE_4 = {
    (20, 16, 160, 100): 0.113,
    (20, 32, 160, 100): 0.106,
    (20, 16, 320, 100): 0.220,
    (20, 16, 160, 300): 0.640,
    (40, 16, 160, 100): 0.251,
}
"""Population, groups, receivers and subscriptions, with the published seconds."""

FITNESS, EXAMPLE = "fitness", "tables 1 to 3"
VARIED: dict[str, tuple[float, ...]] = {
    "tournament": (0.0, 0.2, 0.4, 0.5, 0.7, 1.0),
    "better": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "permutation": (0.0, 0.05, 0.2, 0.5, 1.0),
    "population": (10, 20, 40),
    "crossover": (0.5, 0.7, 0.9, 1.0),
    "mutation": (0.05, 0.1, 0.2, 0.5),
    "elitism": (1, 5, 10),
    "iterations": (125, 250, 500),
}
"""Parameters of the search that sections 5.2 to 5.4 speak of, and what is tried."""

COMBINATION = {"population": 20, "crossover": 0.9, "mutation": 0.2, "elitism": 5}
"""The "good combination" of section 5.2."""

SEARCHES = {"subjects": 5, "content": 3}
"""Searches that a number is the mean of: one alone tells less than two settings differ."""


@dataclass(frozen=True)
class GeneticSizes:
    """The horizontal axes: subscribers, also beyond the paper's 160, and numbers of groups."""

    subscribers: tuple[int, ...]
    many: tuple[int, ...]
    groups: tuple[int, ...]

    @property
    def most(self) -> int:
        return self.subscribers[-1]


FULL = GeneticSizes((20, 40, 80, 120, 160), (240, 320), (8, 16, 32))
QUICK = GeneticSizes((20, 80), (160,), (8, 16))


def genetic_settings(sizes: GeneticSizes) -> tuple[dict[str, Any], ...]:
    """All settings, the longest first."""
    # The lines of Table 4 are one setting: they compare with each other.
    fitness = {"name": FITNESS, "task": "fitness", "sizes": tuple(TABLE_4)}
    tables = {"name": EXAMPLE, "task": "tables"}
    made = [*mapped_settings(sizes), *(varied_setting(kind, sizes.most) for kind in KINDS)]
    return tuple(sorted([*made, fitness, tables], key=effort, reverse=True))


def effort(setting: dict[str, Any]) -> int:
    """Roughly proportional to the time of a sample."""
    per = 3 if setting.get("kind") == "content" else 1
    maps = len(setting.get("groups", ())) + setting.get("searches", 0)
    result: int = per * setting.get("subscribers", 0) * maps
    return result


def mapped_settings(sizes: GeneticSizes) -> Iterator[dict[str, Any]]:
    """Figures 6 to 11."""
    for kind, rich in RICH.items():
        for scenario in SCENARIOS[kind].values():
            groups = sizes.groups if scenario == rich else (GROUPS,)
            for n in sizes.subscribers:
                yield mapped_setting(scenario, n, groups)
        for n in sizes.many:
            yield mapped_setting(rich, n)
    for scenario in list(FIGURE_6C.values())[1:]:
        for n in sizes.subscribers:
            yield mapped_setting(scenario, n)
    for rich in RICH.values():
        for percent in (10, 5):
            for n in sizes.subscribers:
                yield mapped_setting(replace(rich, subjects=200, percent=percent), n)


def mapped_setting(
    scenario: Scenario, subscribers: int, groups: tuple[int, ...] = (GROUPS,)
) -> dict[str, Any]:
    """A workload mapped by all methods to each number of groups."""
    return {
        "name": scenario.setting(subscribers),
        "task": "efficiency",
        "kind": scenario.kind,
        "categories": scenario.categories,
        "p": scenario.p,
        "subscribers": subscribers,
        "subjects": scenario.subjects,
        "chosen": scenario.subjects * scenario.percent // 100,
        "groups": groups,
    }


def varied_setting(kind: str, subscribers: int) -> dict[str, Any]:
    """The rich scenario mapped with other parameters; content-based with other iterations only."""
    own = VARIED if kind == "subjects" else {"iterations": VARIED["iterations"]}
    return mapped_setting(RICH[kind], subscribers) | {
        "name": varied_name(kind, subscribers),
        "task": "tuning",
        "varied": own,
        "searches": SEARCHES[kind],
    }


def varied_name(kind: str, subscribers: int) -> str:
    """The name of a setting in which parameters vary."""
    return f"{RICH[kind].setting(subscribers)}, varied"


def size_name(size: Sequence[int]) -> str:
    """A line of Table 4: population, groups, receivers, subscriptions."""
    return "/".join(map(str, size))
