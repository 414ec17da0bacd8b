"""Parameters of a generator: every size an option, checked once on construction."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import InputError, Problem

if TYPE_CHECKING:
    pass


def option(
    default: float,
    help: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
) -> Any:
    """A field with its meaning and its range; the type of the default is the field's type."""
    limits = {"at least": at_least, "more than": above, "at most": at_most}
    return field(default=default, metadata={"help": help, "limits": limits})


@dataclass(frozen=True)
class Params:
    """What all kinds have in common. A subclass adds its own options and relations."""

    rate: float = option(1.0, "mean rate of a topic, messages/s", above=0)
    message_bytes: int = option(200, "mean size of a message, bytes", at_least=1)

    def __post_init__(self) -> None:
        values = [(item, getattr(self, item.name)) for item in fields(self)]
        mistyped = [item for item, value in values if not _fits(item, value)]
        problems = [_mistyped(item, getattr(self, item.name)) for item in mistyped]
        for item, value in values:
            if item not in mistyped:
                problems.extend(_out_of_range(item, value))
        if not mistyped:
            problems.extend(self.relations())
        if problems:
            raise InputError(problems)

    def relations(self) -> Iterator[Problem]:
        """Problems between options; it meets numbers of the right type, in range or not."""
        return iter(())


def _fits(item: Field[Any], value: object) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(item.default, int):
        return isinstance(value, Integral)
    return isinstance(value, Real) and math.isfinite(value)


def _mistyped(item: Field[Any], value: object) -> Problem:
    kind = "a whole number" if isinstance(item.default, int) else "a finite number"
    return Problem(item.name, f"{value!r} is not {kind}", f"Give {kind}")


def _out_of_range(item: Field[Any], value: float) -> Iterator[Problem]:
    for limit, bound in item.metadata["limits"].items():
        if bound is not None and not _HOLDS[limit](value, bound):
            yield Problem(item.name, f"{value} is out of range", f"Give {limit} {bound}")


_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "at least": operator.ge,
    "more than": operator.gt,
    "at most": operator.le,
}
