"""Are so many brokers enough? If not, why, and what would do."""

from __future__ import annotations

from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.layers.overlay.allocation.allocation import Allocation, AllocationParams
from fanplan.layers.overlay.allocation.bound import least_impact
from fanplan.layers.overlay.allocation.loads import clients_of
from fanplan.network.brokers import ClientProblem


def require_possible(
    problem: ClientProblem, params: AllocationParams, brokers: int, bound: int
) -> None:
    """Raise if it can be proved that clients do not fit on so many of the brokers.

    Either no allocation has so few, or a client is too big for every broker, and then no number is
    enough.
    """
    if brokers < 1:
        raise InputError(Problem("brokers", f"{brokers} hold nobody", "Ask for at least 1"))
    least = least_impact(problem, params, clients_of(problem))
    if least.max(initial=0.0) > params.room(problem).max() * (1 + 1e-9):
        people = problem.publishers.to_pylist() + problem.subscribers.to_pylist()
        capacity = float(least.max()) / params.lcf
        what = f"client {people[int(least.argmax())]!r} is too big for every broker"
        remedy = f"Give a broker a capacity of {capacity:.6g} messages/s"
        raise InfeasibleError("capacity", capacity, Problem("brokers", what, remedy))
    if bound > brokers:
        what = f"{brokers} are not enough: no allocation has fewer than {bound}"
        remedy = f"Allow {bound} or more, or give brokers more capacity"
        raise InfeasibleError("brokers", bound, Problem("brokers", what, remedy))


def require_enough(found: Allocation, brokers: int, bound: int) -> None:
    """Raise if an allocation takes more brokers than were asked about; it says how many do."""
    if found.brokers > brokers:
        what = f"no allocation to {brokers} was found; {found.brokers} are enough"
        what += f", and it is proved that {bound} are needed"
        remedy = f"Allow {found.brokers}, search longer, or give brokers more capacity"
        raise InfeasibleError("brokers", found.brokers, Problem("brokers", what, remedy))
