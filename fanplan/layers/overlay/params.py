"""What can be asked of the trees between brokers, and of an allocation of clients to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, get_args

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import Command, Options, option
from fanplan.core.prices import Prices, price, priced

Tree = Literal["improved", "overlap", "cover", "hybrid", "interest", "random"]
Similar = Literal["overlap", "cover", "interest", "hybrid"]
Ranking = Literal["best", "gli", "gi", "gig", "baseline", "cram"]
Closeness = Literal["intersect", "xor", "ios", "iou"]
Publishers = Literal["ranked", "cut"]
Fewest = Literal["brokers", "messages"]
LoadKind = Literal["exact", "estimate"]
InterestKind = Literal["overlap", "cover"]
Scale = Literal["all", "own"]
Within = tuple[str, Sequence[str], int]

METRICS: tuple[str, ...] = get_args(Tree)
RANKINGS: tuple[str, ...] = get_args(Ranking)
CLOSENESS: tuple[str, ...] = get_args(Closeness)

HOP_MS = 100.0
"""What a hop is in milliseconds where delays are weighed (Tajuddin 2011, section 5.4.2)."""

ALPHA = 0.15
"""The best mix for Tajuddin at a bias of 0.75 (2011, Table 5.2)."""


def named_limit(option: str, word: str, example: str) -> tuple[str, int]:
    """NAME=N, where the name may have signs of equality too."""
    name, _, number = word.rpartition("=")
    if not name or not number.isdigit():
        raise InputError(Problem(option, f"{word!r} is not understood", f"Use such as {example}"))
    return name, int(number)


def read_degrees(words: list[str]) -> dict[str, int]:
    """Limits such as hub=12."""
    return dict(named_limit("degrees", word, "hub=12") for word in words)


def read_within(words: list[str]) -> tuple[Within, ...]:
    """Limits such as X:A,B,C=3."""
    found: list[Within] = []
    for word in words:
        names, most = named_limit("within", word, "X:A,B,C=3")
        near, sign, far = names.partition(":")
        if not (sign and near and far):
            raise InputError(Problem("within", f"{word!r} is not understood", "Use X:A,B,C=3"))
        found.append((near, far.split(","), most))
    return tuple(found)


@dataclass(frozen=True)
class LinkPrices(Prices):
    """What improvement of a tree minimises."""

    forwarded: float = price("forwarded")
    delayed: float = price("delayed", 0.1)
    linked: float = price("linked", 0.0)


@dataclass(frozen=True)
class OverlayParams(Options):
    """How brokers are linked."""

    metric: Tree = option(
        "improved",
        "improved (against the predicted ledger), overlap, cover, hybrid, interest or random.",
    )
    alpha: float | None = option(
        None,
        "With --metric hybrid: weight of interest, 0 to 1.",
        at_least=0,
        at_most=1,
        shown=f"{ALPHA}",
    )
    interest: InterestKind = option(
        "overlap",
        "With --metric hybrid or interest: count advertisements that subscriptions overlap, or "
        "only those that they cover.",
    )
    scale: Scale = option(
        "all",
        "With --metric hybrid: divide interest by the largest of all brokers, or of each "
        "advertising broker's own.",
    )
    degree: int | None = option(None, "Limit on the links of any broker.", at_least=1)
    degrees: Mapping[str, int] = option(
        {},
        "Limit on the links of one broker; repeatable.",
        flag="--broker-degree",
        metavar="BROKER=N",
        many=True,
        read=read_degrees,
        shown="",
    )
    diameter: int | None = option(None, "Limit on the hops between any two brokers.", at_least=1)
    within: Sequence[Within] = option(
        (),
        "Keep the first within N hops of each of the others; brokers or clients; repeatable.",
        metavar="NAME:NAME,…=N",
        many=True,
        read=read_within,
        shown="",
        also=("hops",),
    )
    trees: int = option(
        1, "Limit on the number of trees; several are used only if they cost less.", at_least=1
    )
    start: Path | str | None = option(
        None, "Stay close to this older plan.", flag="--from", metavar="PLAN", kept="whether"
    )
    changes: int | None = option(None, "With --from: limit on the links that change.", at_least=0)
    change_price: float = option(0.0, "With --from: price of each link that changes.", at_least=0)
    traffic: bool = option(
        False, "Measure similarity by actual traffic instead of by subscribed space."
    )
    rates: bool = option(False, "Weigh each advertisement by how often it is published on.")
    prices: LinkPrices = priced(LinkPrices())

    def relations(self) -> Iterator[Problem]:
        if self.metric != "hybrid" and self.alpha is not None:
            yield Problem("alpha", "is for the metric hybrid", "Leave one of them out")
        if self.metric != "hybrid" and self.scale != "all":
            yield Problem("scale", "is for the metric hybrid", "Leave one of them out")
        if self.metric not in ("hybrid", "interest") and self.interest != "overlap":
            what = "is for the metrics hybrid and interest"
            yield Problem("interest", what, "Leave one of them out")
        yield from self._improved_alone()
        if not self.start and (self.changes is not None or self.change_price):
            what = "there is no older plan to change"
            yield Problem("changes", what, "Give the plan to start from")
        if self.start and self.trees > 1:
            what = "several trees are always planned afresh"
            yield Problem("start", what, "Leave out one of start and trees")
        limits = [("within", most) for _, _, most in self.within]
        for name, most in [*limits, *(("degrees", most) for most in self.degrees.values())]:
            if most < 1:
                yield Problem(name, f"{most} is no limit a tree can meet", "Use 1 or more")

    def _improved_alone(self) -> Iterator[Problem]:
        """Trees by similarity are what they are: they cannot obey, nor start anywhere."""
        if self.metric == "improved":
            return
        for name in ("degree", "degrees", "diameter", "within", "start"):
            if getattr(self, name):
                what = f"cannot be asked of the metric {self.metric}"
                yield Problem(name, what, "Use the metric improved")
        if self.trees > 1:
            what = f"the metric {self.metric} gives one tree"
            yield Problem("trees", what, "Use the metric improved")

    @property
    def weighed_by(self) -> Similar:
        """The similarity that links are weighed by: overlap where the tree has no own."""
        similar: dict[str, Similar] = {"cover": "cover", "hybrid": "hybrid", "interest": "interest"}
        return similar.get(self.metric, "overlap")

    @property
    def mix(self) -> float:
        """The α of the hybrid metric."""
        return ALPHA if self.alpha is None else self.alpha

    @classmethod
    def _from_record(cls, value: Any) -> Self:
        """A plan of allocated clients recorded what was asked of the allocation too."""
        if cls is OverlayParams and isinstance(value, Mapping) and "ranking" in value:
            return AllocateParams._from_record(value)  # type: ignore[return-value]
        return super()._from_record(value)


@dataclass(frozen=True)
class AllocateParams(OverlayParams):
    """How clients are placed, and how the brokers that have some are linked."""

    ranking: Ranking = option("best", "best, cram, or the thesis' gli, gi, gig or baseline.")
    closeness: Closeness | None = option(
        None, "With --ranking cram: how profiles are compared.", shown="`ios`"
    )
    publishers: Publishers = option(
        "ranked",
        "Where publishers are: as the ranking has it, or where most messages are cut on the tree.",
    )
    lcf: float | None = option(
        None,
        "Largest share of a broker's capacity that its clients may use.",
        above=0,
        at_most=1,
        shown="0.75, or 1 with --stable",
    )
    load: LoadKind = option("exact", "How load is measured: exact, or by the thesis' estimate.")
    brokers: int | None = option(
        None, "Check whether this many brokers suffice; if not, report how many do.", at_least=1
    )
    fewest: Fewest = option(
        "brokers",
        "Fewest of what: brokers; or messages on links, with no more brokers than --brokers "
        "allows, or than are needed.",
    )
    stable: bool = option(False, "Repeat until what each broker forwards fits its capacity, too.")
    moves: int | None = option(
        None,
        "With --from: limit on the clients that move to another broker.",
        at_least=0,
        also=("most_moves",),
    )

    def relations(self) -> Iterator[Problem]:
        yield from super().relations()
        if self.metric == "cover":
            what = "covering is not known of clients that may go anywhere"
            yield Problem("metric", what, "Use another metric")
        if self.interest == "cover":
            what = "covering is not known of clients that may go anywhere"
            yield Problem("interest", what, "Leave it out")
        if self.rates:
            yield Problem("rates", "the load of clients counts rates already", "Leave it out")
        if self.moves is not None and not self.start:
            what = "there is no older plan to move clients of"
            yield Problem("moves", what, "Give the plan to start from, or leave it out")
        if self.start and self.ranking != "best":
            what = f"the ranking {self.ranking} always allocates afresh"
            yield Problem("start", what, "Use the ranking best")
        if self.closeness and self.ranking != "cram":
            yield Problem("closeness", "is for the ranking cram", "Leave one of them out")
        if self.publishers == "cut" and (self.trees > 1 or self.start):
            what = "publishers are moved on one tree, and clients afresh"
            yield Problem("publishers", what, "Leave out trees, or the plan to start from")
        yield from self._messages_alone()
        if self.stable and self.trees > 1:
            what = "phases are repeated with one tree"
            yield Problem("trees", what, "Leave out one of stable and trees")

    def _messages_alone(self) -> Iterator[Problem]:
        """What clients that move for the sake of messages cannot obey."""
        if self.fewest == "brokers":
            return
        if self.ranking != "best":
            what = f"the ranking {self.ranking} does not look at messages"
            yield Problem("fewest", what, "Use the ranking best")
        if self.trees > 1 or self.start:
            what = "clients are moved on one tree, and afresh"
            yield Problem("fewest", what, "Leave out trees, or the plan to start from")

    @property
    def share(self) -> float:
        """Share of a broker's capacity that its clients may use."""
        return self.lcf if self.lcf is not None else (1.0 if self.stable else 0.75)


def require_some(names: list[str], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            remedy = f"Use some of: {', '.join(known)}"
            raise InputError(Problem("compare", f"{name!r} is unknown", remedy))


RENAMED = {
    "messages": "prices.forwarded",
    "delay": "prices.delayed",
    "cost": "prices.linked",
}

COMMANDS = (
    Command(
        "overlay",
        OverlayParams,
        "Connect the brokers of a workload; clients stay where they are.",
        seeded=True,
        timed=True,
        compare="overlap,random",
        compare_help="Trees to compare the plan with, such as overlap,hybrid",
        comparable=partial(require_some, known=METRICS),
        renamed=RENAMED,
    ),
    Command(
        "allocate",
        AllocateParams,
        "Decide how many brokers are needed and which client goes where, and connect them.",
        seeded=True,
        timed=True,
        compare="gli,gi,gig,baseline",
        compare_help="Rankings to compare the plan with, such as gli,gi",
        comparable=partial(require_some, known=RANKINGS[1:]),
        renamed=RENAMED,
    ),
)
