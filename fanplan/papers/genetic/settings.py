"""What is sampled: the scenarios of Guimarães & Rodrigues (2003), section 5, full and small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

KINDS = ("subjects", "content")
SCENARIOS = {"a": (1, 0), "b": (5, 0), "c": (1, 2), "d": (5, 2)}
"""The four parts of Figures 6 and 7: categories c and relative throughput p."""

RICH = SCENARIOS["d"]
"""The scenario of Figures 8 to 11."""

GROUPS = 16
TABLE_4 = {
    (20, 16, 160, 100): 0.113,
    (20, 32, 160, 100): 0.106,
    (20, 16, 320, 100): 0.220,
    (20, 16, 160, 300): 0.640,
    (40, 16, 160, 100): 0.251,
}
"""Population, groups, receivers and subscriptions, with the published seconds."""

FITNESS = "fitness"
VARIED: dict[str, tuple[float, ...]] = {
    "tournament": (0.0, 0.2, 0.4, 0.5, 0.7, 1.0),
    "better": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "iterations": (125, 250, 500),
}
"""Parameters of the search that sections 5.3 and 5.4 speak of, and what is tried."""

SEARCHES = {"subjects": 5, "content": 1}
"""Searches that a number is the mean of: one alone tells less than two settings differ."""


@dataclass(frozen=True)
class Sizes:
    """The horizontal axes: subscribers, also beyond the paper's 160, and numbers of groups."""

    subscribers: tuple[int, ...]
    many: tuple[int, ...]
    groups: tuple[int, ...]

    @property
    def most(self) -> int:
        return self.subscribers[-1]


FULL = Sizes((20, 40, 80, 120, 160), (240, 320), (8, 16, 32))
QUICK = Sizes((20, 80), (160,), (8, 16))


def scenario(
    kind: str, cp: tuple[int, int], subscribers: int, subjects: int = 100, percent: int = 10
) -> str:
    """The name of a setting: the paper's caption and what else tells settings apart."""
    choice = f"{percent} % of {subjects}"
    return f"{kind} c{cp[0]} p{cp[1]}, {choice}, {subscribers} subscribers"


def settings(sizes: Sizes) -> tuple[dict[str, Any], ...]:
    """All settings, the longest first."""
    rest = fitness(), {"name": "tables 1 to 3", "task": "tables"}
    made = [*scenarios(sizes), *(tuning(kind, sizes.most) for kind in KINDS), *rest]
    return tuple(sorted(made, key=effort, reverse=True))


def effort(setting: dict[str, Any]) -> int:
    """Roughly proportional to the time of a sample."""
    per = 40 if setting.get("kind") == "content" else 1
    maps = len(setting.get("groups", ())) + setting.get("searches", 0)
    return per * setting.get("subscribers", 0) * maps


def scenarios(sizes: Sizes) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        for cp in SCENARIOS.values():
            for n in sizes.subscribers:
                yield efficiency(kind, cp, n, sizes.groups if cp == RICH else (GROUPS,))
        for n in sizes.many:
            yield efficiency(kind, RICH, n, (GROUPS,))
        for subjects, percent in ((200, 10), (200, 5)):
            for n in sizes.subscribers:
                yield efficiency(kind, RICH, n, (GROUPS,), subjects, percent)


def efficiency(
    kind: str,
    cp: tuple[int, int],
    subscribers: int,
    groups: tuple[int, ...],
    subjects: int = 100,
    percent: int = 10,
) -> dict[str, Any]:
    """A workload mapped by all methods to each number of groups."""
    return {
        "name": scenario(kind, cp, subscribers, subjects, percent),
        "task": "efficiency",
        "kind": kind,
        "categories": cp[0],
        "p": cp[1],
        "subscribers": subscribers,
        "subjects": subjects,
        "chosen": subjects * percent // 100,
        "groups": groups,
    }


def tuned(kind: str, subscribers: int) -> str:
    """The name of a setting in which parameters vary."""
    return f"{scenario(kind, RICH, subscribers)}, varied"


def tuning(kind: str, subscribers: int) -> dict[str, Any]:
    """The rich scenario mapped with other parameters; content-based with other iterations only."""
    own = VARIED if kind == "subjects" else {"iterations": VARIED["iterations"]}
    return efficiency(kind, RICH, subscribers, (GROUPS,)) | {
        "name": tuned(kind, subscribers),
        "task": "tuning",
        "varied": own,
        "searches": SEARCHES[kind],
    }


def fitness() -> dict[str, Any]:
    """The lines of Table 4, in one setting: they compare with each other."""
    return {"name": FITNESS, "task": "fitness", "sizes": tuple(TABLE_4)}


def size_name(size: Sequence[int]) -> str:
    """A line of Table 4: population, groups, receivers, subscriptions."""
    return "/".join(map(str, size))
