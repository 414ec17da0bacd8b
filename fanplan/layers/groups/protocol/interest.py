"""What a broker's own clients want, and from which publication on."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from fanplan.layers.groups.protocol.messages import Update


class Interest:
    """Since when each route is wanted, or no longer: the first change turns interest on.

    Publications of groups take other ways than acceptances and may come late. So old changes are
    kept, and the number of a publication says which of them were in force.
    """

    def __init__(self) -> None:
        self._changes: dict[int, list[int]] = defaultdict(list)

    def change(self, update: Update, since: int) -> None:
        for route in update.added | update.dropped:
            self._changes[route].append(since)

    def wanted(self, route: int, number: int) -> bool:
        """Whether publication ``number`` is wanted, by what was in force when the root sent it."""
        return bisect_right(self._changes.get(route, ()), number) % 2 == 1
