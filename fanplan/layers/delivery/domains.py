"""Multicast domains of a design: who is in which, and what is taken for granted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fanplan.layers.delivery.record import DomainRecord

if TYPE_CHECKING:
    from fanplan.layers.delivery.problem import DeliveryProblem

EVERYBODY = "a channel reaches all subscribers: {}"
ASKED = EVERYBODY.format("multicast is said to reach everywhere")
NO_BROKERS = EVERYBODY.format("there are no brokers")
NOBODY = "there is no multicast: no broker has a site or a multicast_domain"
INSIDE = "a channel reaches all subscribers at the brokers of its domain, and no others"


def domain_records(problem: DeliveryProblem, names: tuple[str, ...]) -> tuple[DomainRecord, ...]:
    """Every domain with its brokers and subscribers; last those in none, without a name."""
    own = problem.domain[problem.home]
    counts: list[tuple[str | None, int, int]] = [
        (name, int((problem.domain == i).sum()), int((own == i).sum()))
        for i, name in enumerate(names)
    ]
    if (problem.domain < 0).any():
        counts.append((None, int((problem.domain < 0).sum()), int(np.sum(own < 0))))
    return tuple(DomainRecord(domain=n, brokers=b, subscribers=s) for n, b, s in counts)


def told_domain(name: str | None) -> str:
    """A domain as a person reads it; None is no domain."""
    return "no multicast" if name is None else name or "everywhere"


def assumed(columns: Mapping[str, int], brokers: int) -> str:
    """What domains are taken from, where brokers have them: how many by each column."""
    named = [f"{column} (brokers: {number})" for column, number in columns.items() if number]
    if not named:
        return NOBODY
    rest = brokers - sum(columns.values())
    without = f"; no multicast where there is neither (brokers: {rest})" if rest else ""
    return f"{INSIDE}; domains are by {' and '.join(named)}{without}"
