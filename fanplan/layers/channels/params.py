"""What can be asked of channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import Command, Options, option, required
from fanplan.core.prices import Prices, Weights, price, priced

METHODS = (
    *("kmodes", "broadcast", "round-robin", "random", "tock", "lloyd", "bmd", "interior-point"),
    *("flow-merge", "user-merge", "genetic", "genetic-atomic", "reverse", "exact", "unicast"),
)
DESIGNED = "design"
"""The method of channels that were planned together with all other layers."""

BASELINES = "unicast,broadcast,round-robin"


@dataclass(frozen=True)
class ChannelPrices(Prices):
    """What messages cost."""

    received: float = price("received", positive=True)
    sent: float = price("sent", positive=True)
    unicast: float = price("unicast", positive=True)

    @property
    def weights(self) -> Weights:
        """The same as formulas write them."""
        return Weights(self.received, self.sent, self.unicast)


def number_or_file(text: str) -> int | Path:
    """A limit for all subscribers or switches, or the file that has one for each."""
    with suppress(ValueError):
        return int(text)
    return Path(text)


def read_further(words: list[str]) -> dict[str, Any]:
    """Parameters as NAME=VALUE: a value is a number, true, false, or else text."""
    found = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not (sign and name.isidentifier()):
            raise InputError(Problem("options", f"{word!r} is not NAME=VALUE", "Use starts=4"))
        found[name] = as_value(text)
    return found


def as_value(text: str) -> int | float | bool | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


@dataclass(frozen=True)
class ChannelsParams(Options):
    """How many channels there are, by which method they are filled, and within which limits."""

    channels: int = required("Number of channels; several, such as 10,20,50, give a curve.")
    method: str = option("kmodes", f"{', '.join(METHODS[:-1])} or {METHODS[-1]}.")
    unicast: str | None = option(
        None,
        "Second step after a method that leaves all on channels: greedy-flow, greedy-user, "
        "greedy-pair, lightest-flow, heaviest-flow, lightest-user or heaviest-user, each also "
        "with -iterative.",
    )
    unicast_limit: float | None = option(
        None,
        "Upper limit on the share sent by unicast though several want it, 0 to 1.",
        at_least=0,
        at_most=1,
        also=("unicast limit",),
    )
    max_channels_per_subscriber: int | Mapping[str, int] | Path | str | list[int] | None = option(
        None,
        "Limit on the channels that a subscriber joins: one number, or a file with the columns "
        "subscriber and channels.",
        read=number_or_file,
    )
    max_channel_rate: float | None = option(
        None, "Limit on the messages per second on a channel.", unit="messages/s", at_least=0
    )
    max_switch_entries: int | Mapping[str, int] | Path | str | None = option(
        None,
        "Most channels in the table of a switch, a node of links that is no broker: a number for "
        "all, or a file with columns switch and entries. The plan is then that of the least "
        "traffic on links.",
        read=number_or_file,
    )
    pinned: Sequence[str] = option(
        (),
        "Flow or topic that must go by multicast; repeatable.",
        flag="--pin",
        many=True,
        read=tuple,
        shown="",
    )
    off_multicast: Sequence[str] = option(
        (),
        "Flow or topic that must go by unicast; repeatable.",
        many=True,
        read=tuple,
        shown="",
    )
    start: Path | str | None = option(
        None, "Start from this older plan.", flag="--from", metavar="PLAN", kept="whether"
    )
    max_changes: int | None = option(
        None, "With --from: limit on the changes of members and flows.", flag="--churn", at_least=0
    )
    change_price: float | None = option(
        None, "With --from: price of each change, in units of the plan's cost.", at_least=0
    )
    options: Mapping[str, Any] = option(
        {},
        "Further parameter of the method, such as starts=4; repeatable.",
        flag="--option",
        metavar="NAME=VALUE",
        many=True,
        read=read_further,
        shown="",
    )
    restarts: int = option(
        1, "Number of searches, each a Spark task; the best is kept.", at_least=1, kept=False
    )
    on_spark: bool = option(
        False, "Plan on Spark, for problems too large for one machine.", kept=False
    )
    prices: ChannelPrices = priced(ChannelPrices())

    @classmethod
    def given(cls, values: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> Self:
        """Keywords that are no options here are further parameters of the method."""
        known = {item.name for item in fields(cls)}
        own = {name: value for name, value in values.items() if name in known}
        more = {n: v for n, v in values.items() if n not in known and v is not None}
        if more:
            own["options"] = {**own.get("options", {}), **more}
        return super().given(own, renamed)

    def relations(self) -> Iterator[Problem]:
        if self.channels < 0:
            yield Problem(
                "channels", f"{self.channels} is not a number of channels", "Use 0 or more"
            )
        elif not self.channels and self.method not in ("unicast", DESIGNED):
            what = "0 channels cannot carry a flow"
            yield Problem("channels", what, "Use at least 1, or the method unicast")
        if self.method not in (*METHODS, DESIGNED):
            remedy = f"Use one of: {', '.join(METHODS)}"
            yield Problem("method", f"{self.method!r} is not known", remedy)
        for name in ("change_price", "max_changes"):
            if getattr(self, name) is not None and not self.start:
                what = "there is no older plan to change"
                yield Problem(name, what, "Give the plan to start from, or leave it out")
        if self.max_switch_entries is not None:
            yield from self.beside_switches()
        if self.on_spark and self.restarts > 1:
            what = "restarts hold the whole problem in each task"
            yield Problem("restarts", what, "Leave out one of restarts and on_spark")

    def beside_switches(self) -> Iterator[Problem]:
        """What cannot be asked for together with tables of switches."""
        most = self.max_switch_entries
        if isinstance(most, int) and most < 0:
            yield Problem("max_switch_entries", f"{most} is too few", "Use 0 or more")
        if self.method not in ("kmodes", DESIGNED):
            what = f"the method {self.method} knows no switches"
            yield Problem("max_switch_entries", what, "Use the method kmodes, or leave it out")
        others = ["on_spark", *(name for name in self.limits if name not in self.options)]
        others += ["restarts"] if self.restarts > 1 else []
        for name in others if self.on_spark else others[1:]:
            what = "does not go together with max_switch_entries"
            yield Problem(name, what, "Leave out one of the two")

    @property
    def full_method(self) -> str:
        """The method, and its second step if it has one."""
        return f"{self.method}+{self.unicast}" if self.unicast else self.method

    @property
    def limits(self) -> dict[str, Any]:
        """Options of the method that were given, by name."""
        names = (
            *("unicast_limit", "max_channels_per_subscriber", "max_channel_rate", "pinned"),
            *("off_multicast", "start", "max_changes", "change_price"),
        )
        asked = {name: getattr(self, name) for name in names}
        given = {n: v for n, v in asked.items() if v is not None and v not in ((), [])}
        return given | dict(self.options)


def require_methods(names: list[str]) -> None:
    """Every name must be that of a method, or of one with a second step."""
    for name in names:
        first = name.split("+", 1)[0]
        if first not in METHODS:
            remedy = f"Use one of: {', '.join(METHODS)}"
            raise InputError(Problem("compare", f"{first!r} is not known", remedy))


COMMANDS = (
    Command(
        "channels",
        ChannelsParams,
        "Decide which flows share which channels and what goes by unicast.",
        seeded=True,
        timed=True,
        compare=BASELINES,
        compare_help="Methods to compare the plan with, such as tock+greedy-flow",
        comparable=require_methods,
        explains="Flow, topic or subscriber to explain; repeatable.",
        swept="channels",
    ),
)
