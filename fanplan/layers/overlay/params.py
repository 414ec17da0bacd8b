"""What a user may ask of the trees between brokers, by names, and how it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import PathLike

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.layers.overlay.record import LimitsRecord, Metric

Within = tuple[str, Sequence[str], int]
Places = Callable[[str], list[int]]

METRICS = ("improved", "overlap", "cover", "hybrid", "interest", "random")
"""Ways to make a tree, by the names that users give."""

HOP_MS = 100.0
"""What a hop is in milliseconds where delays are weighed (Tajuddin 2011, section 5.4.2)."""


@dataclass(frozen=True)
class TreeWishes:
    """How brokers are linked.

    ``metric`` names the tree: improved against the predicted ledger, by similarity, or random.
    ``messages``, ``delay`` (per hop, or per 100 ms where links are given) and ``cost`` weigh what
    improvement minimises. ``within`` has (name, names, hops): the first is at most so many hops
    from each of the others; a name is a broker, a publisher or a subscriber. ``trees`` is how many
    trees there may be. ``start`` is an older plan to stay near: at most ``changes`` links differ,
    and each costs ``change_price``. ``traffic`` measures similarity by what was sent, ``rates``
    counts an advertisement as often as it is published on.
    """

    metric: str = "improved"
    alpha: float | None = None
    messages: float = 1.0
    delay: float = 0.1
    cost: float = 0.0
    degree: int | None = None
    degrees: Mapping[str, int] = field(default_factory=dict)
    diameter: int | None = None
    within: Sequence[Within] = ()
    trees: int = 1
    start: PathLike | None = None
    changes: int | None = None
    change_price: float = 0.0
    traffic: bool = False
    rates: bool = False

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            remedy = f"Use one of: {', '.join(METRICS)}"
            raise InputError(Problem("metric", f"{self.metric!r} is unknown", remedy))
        if self.metric != "hybrid" and self.alpha is not None:
            raise InputError(Problem("alpha", "is for the metric hybrid", "Leave one of them out"))
        if self.trees < 1:
            raise InputError(Problem("trees", f"{self.trees} is too few", "Use 1 or more"))
        self._require_improved()
        if self.start is None and (self.changes is not None or self.change_price):
            what = "there is no older plan to change"
            raise InputError(Problem("changes", what, "Give the plan to start from"))

    def _require_improved(self) -> None:
        """Trees by similarity are what they are: they cannot obey, nor start anywhere."""
        if self.metric == "improved":
            return
        for name in ("degree", "degrees", "diameter", "within", "start"):
            if getattr(self, name):
                what = f"cannot be asked of the metric {self.metric}"
                raise InputError(Problem(name, what, "Use the metric improved"))
        if self.trees > 1:
            what = f"the metric {self.metric} gives one tree"
            raise InputError(Problem("trees", what, "Use the metric improved"))

    @property
    def weighed_by(self) -> Metric:
        """The similarity that links are weighed by: overlap where the tree has no own."""
        similar: dict[str, Metric] = {"cover": "cover", "hybrid": "hybrid", "interest": "interest"}
        return similar.get(self.metric, "overlap")

    def recorded(self) -> dict[str, Any]:
        """What plan.json keeps, besides the limits: only what makes a difference."""
        kept: dict[str, Any] = {"traffic": self.traffic, "rates": self.rates}
        if self.metric == "improved":
            kept |= {"messages": self.messages, "delay": self.delay, "cost": self.cost}
            kept |= {"trees": self.trees, "start": self.start is not None}
            kept |= {"changes": self.changes, "change_price": self.change_price}
        if self.metric == "hybrid":
            kept["alpha"] = self.mix
        return kept

    @property
    def mix(self) -> float:
        """The α of the hybrid metric."""

        return ALPHA if self.alpha is None else self.alpha


def tree_wishes(options: Mapping[str, Any]) -> TreeWishes:
    """Wishes from options; those that are None are not wished."""
    known = {item.name for item in fields(TreeWishes)}
    for name in options:
        if name not in known:
            remedy = f"Use one of: {', '.join(sorted(known))}"
            raise InputError(Problem(name, "no such option", remedy))
    return TreeWishes(**{name: value for name, value in options.items() if value is not None})


def limits_of(wishes: TreeWishes, places: Places, brokers: pa.Array) -> LimitsRecord:
    """The limits by names of brokers: a client stands for every broker that it is at."""
    from fanplan.layers.overlay.record import LimitsRecord

    require_brokers(wishes.degrees, brokers)
    names = brokers.to_pylist()
    hops = [
        (names[one], names[other], most)
        for near, far, most in wishes.within
        for one in places(near)
        for name in far
        for other in places(name)
    ]
    for name, value in (("degree", wishes.degree), ("diameter", wishes.diameter)):
        require_positive(name, value)
    for _, _, most in wishes.within:
        require_positive("within", most)
    for most in wishes.degrees.values():
        require_positive("degrees", most)
    return LimitsRecord(
        degree=wishes.degree,
        degrees=dict(wishes.degrees),
        diameter=wishes.diameter,
        hops=tuple(hops),
    )


def require_brokers(names: Iterable[str], brokers: pa.Array) -> None:
    unknown = sorted(set(names) - set(brokers.to_pylist()))
    if unknown:
        what = f"there is no broker {unknown[0]!r} here"
        raise InputError(Problem("degrees", what, "Name a broker of the workload"))


def require_positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise InputError(Problem(name, f"{value} is no limit a tree can meet", "Use 1 or more"))


def places_in(brokers: pa.Array, clients: pa.Table) -> Places:
    """Where a name is: the broker of that name, else the brokers of that client."""
    import pyarrow.compute as pc

    def places(name: str) -> list[int]:
        at = pc.index(brokers, name).as_py()
        if at >= 0:
            return [at]
        rows = clients.filter(pc.equal(clients["client"], name))["broker"]
        if not len(rows):
            what = f"there is no broker, publisher or subscriber {name!r}"
            raise InputError(Problem("within", what, "Name one of the workload"))
        return sorted({pc.index(brokers, broker).as_py() for broker in rows})

    return places


ALPHA = 0.15
"""The best mix for Tajuddin at a bias of 0.75 (2011, Table 5.2)."""
