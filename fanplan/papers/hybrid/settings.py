"""What is sampled: the systems of Bickson et al. (2010), section 5, in full and in small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SHARES = (0, 1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)
"""Percent of the wanted deliveries that go by unicast: the axis of Figures 5, 6, 8 and 9."""

LIMIT = 20
"""The limit of unicast of Figure 7 in percent; the paper does not tell its own."""

FIRST_STEPS = ("random", "tock", "lloyd", "bmd", "interior-point", "flow-merge", "user-merge")
ONE_SHOT = (
    "lightest-flow",
    "heaviest-flow",
    "lightest-user",
    "heaviest-user",
    "greedy-flow",
    "greedy-user",
    "greedy-pair",
)
SECOND_STEPS = (*ONE_SHOT, *(f"{name}-iterative" for name in ONE_SHOT[:4]), "greedy-flow-iterative")
DRAWN = ("lightest-flow", "heaviest-user", "greedy-flow", "greedy-user")
"""The second steps of Figures 5, 7 and 8."""


@dataclass(frozen=True)
class Sizes:
    """How large the systems are: flows × users × channels."""

    market: tuple[int, int, int]
    small: tuple[int, int, int]
    """The small system of section 4.1, on which BMD does well."""
    websphere: tuple[int, int, int]
    channels: tuple[int, ...]
    """The horizontal axis of Figure 4."""
    scales: tuple[tuple[int, int, int], ...]
    """The systems of Figure 7."""


FULL = Sizes(
    market=(10_000, 250, 100),
    small=(200, 100, 10),
    websphere=(6_100, 79, 50),
    channels=(10, 20, 50, 100, 200),
    scales=tuple((4_000 + 1_000 * i, 50 * i, 50) for i in range(1, 7)),
)
QUICK = Sizes(
    market=(2_000, 100, 40),
    small=(200, 100, 10),
    websphere=(1_500, 40, 20),
    channels=(10, 20, 40),
    scales=tuple((800 + 200 * i, 20 * i, 20) for i in range(1, 4)),
)


def settings(sizes: Sizes) -> tuple[dict[str, Any], ...]:
    """All settings, the longest first."""
    market = named("market", sizes.market)
    websphere = named("websphere", sizes.websphere, "websphere")
    random = named("random", sizes.market, "random")
    equal = {**named("market, equal rate", sizes.market), "equal_rate": True}
    return (
        *first_steps(sizes),
        *({**s, "name": f"{s['name']}, ends", "task": "ends"} for s in (market, websphere)),
        *(
            {**setting, "task": "second steps", "kmodes": targets}
            for setting, targets in (
                (equal, (0, 5, 10, 20)),
                (market, (0, 5, 10, 20)),
                (random, (0, 20, 40)),
                (websphere, (0, 1, 2, 5)),
            )
        ),
        *scales(sizes),
    )


def named(name: str, size: tuple[int, int, int], workload: str = "market") -> dict[str, Any]:
    """A setting: a workload of that many flows and users, and a number of channels."""
    flows, users, channels = size
    sizes = {"flows": flows, "users": users, "channels": channels}
    return {"name": name, "workload": workload, **sizes}


def scales(sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Figure 7: one setting per system, the largest first."""
    for i, size in reversed(list(enumerate(sizes.scales, start=1))):
        task = {"task": "second steps", "kmodes": (0, 5, LIMIT)}
        yield {**named(f"scale {i}", size), **task}


def first_steps(sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Table 1 on a large and a small system, and Figure 4 at equal and at the market's rates."""
    task = {"task": "first steps"}
    large = [name for name in FIRST_STEPS if name != "interior-point"]
    for rates in ("equal", "market"):
        setting = named(f"figure 4, {rates} rate", sizes.market)
        setting |= {"equal_rate": rates == "equal", "methods": ["random", "tock", "lloyd"]}
        yield setting | task | {"channels": list(sizes.channels)}
    for name, size, methods in (
        ("table 1, large", sizes.market, large),
        ("table 1, small", sizes.small, FIRST_STEPS),
    ):
        yield named(name, size) | task | {"channels": [size[2]], "methods": list(methods)}
