"""What is sampled: the workloads of Tajuddin (2011), Tables 5.1 and 6.2, in full and in small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ALPHAS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
"""Advertisement priorities of Table 5.2."""

VARIANTS = (0.1, 0.2, 0.3, 0.4)
"""Priorities at which other readings of interest are tried."""

MIXED = (0.75, 1.0)
"""Biases of Table 5.2."""

LCF = 0.75
"""The load compensation factor of Table 6.2."""

RANKINGS = ("gli", "gi", "gig", "baseline")
"""Those of section 6.3.1."""

OURS = ("best", "exact", "bound")
"""Our allocations by the thesis' estimate and by exact load, and a bound of the first."""

EXAMPLES = "examples"


@dataclass(frozen=True)
class OverlaySizes:
    """How large the workloads are."""

    brokers: int
    subscriptions: int
    advertisements: int
    publications: int
    biases: tuple[float, ...]
    """The horizontal axis of Figures 5.3, 5.5 and 5.6; those of Table 5.2 among them."""
    publishers: tuple[int, ...]
    """Of chapter 6, each with three subscribers: the axis of Figures 6.3 to 6.7."""
    middle: int
    """The publishers of Figure 6.8."""
    factors: tuple[float, ...]
    """Load compensation factors of Figure 6.8, ``LCF`` among them."""


FULL = OverlaySizes(
    brokers=450,
    subscriptions=4_500,
    advertisements=1_500,
    publications=10_000,
    biases=(0.0, 0.25, 0.5, 0.75, 0.9, 1.0),
    publishers=(200, 400, 600, 800, 1_000),
    middle=600,
    factors=(0.5, 0.75, 1.0),
)
QUICK = OverlaySizes(
    brokers=90,
    subscriptions=900,
    advertisements=300,
    publications=1_000,
    biases=(0.0, 0.5, 0.75, 0.9, 1.0),
    publishers=(100, 150, 200),
    middle=150,
    factors=(0.5, 0.75, 1.0),
)


def overlay_settings(sizes: OverlaySizes) -> tuple[dict[str, Any], ...]:
    """All settings, the longest first."""
    return (*client_settings(sizes), *bias_settings(sizes), {"name": EXAMPLES, "task": EXAMPLES})


def bias_settings(sizes: OverlaySizes) -> Iterator[dict[str, Any]]:
    """Chapter 5: one setting per bias; the advertisement priority is varied at two of them."""
    for bias in sizes.biases:
        yield {
            "name": bias_name(bias),
            "task": "trees",
            "brokers": sizes.brokers,
            "subscriptions": sizes.subscriptions,
            "advertisements": sizes.advertisements,
            "publications": sizes.publications,
            "bias": bias,
            "alphas": list(ALPHAS) if bias in MIXED else [],
            "variants": list(VARIANTS) if bias in MIXED else [],
        }


def client_settings(sizes: OverlaySizes) -> Iterator[dict[str, Any]]:
    """Chapter 6: by number of clients, and in the middle by factor, of which ours need none."""
    for publishers in reversed(sizes.publishers):
        for factor in sizes.factors if publishers == sizes.middle else (LCF,):
            yield {
                "name": clients_name(publishers, factor),
                "task": "allocations",
                "publishers": publishers,
                "lcf": factor,
                "methods": [*RANKINGS, *(OURS if factor == LCF else ())],
            }


def bias_name(bias: float) -> str:
    return f"bias {bias:g}"


def clients_name(publishers: int, factor: float) -> str:
    return f"{4 * publishers} clients, LCF {factor:g}"
