"""What the methods of Bickson et al. (2010) are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from fanplan.core.errors import InputError, Problem
from fanplan.layers.channels.method_params import MethodParams


@dataclass(frozen=True)
class FirstStepParams(MethodParams):
    """``iterations`` is the paper's t: passes over all rows, "typically five" (section 4.1)."""

    iterations: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least_one("iterations", self.iterations)


BmdFirst = Literal["rows", "memberships"]
Towards = Literal["any", "tock"]


@dataclass(frozen=True)
class BmdParams(FirstStepParams):
    """``first`` is what is drawn before the first round of BMD, which the paper does not tell.

    *rows*: members, who are the audiences of some flows. *memberships*: a channel for each flow; on
    sparse interest nobody wants most of a channel, so it has no members and nothing ever moves.
    """

    first: BmdFirst = "rows"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("first", self.first, get_args(BmdFirst))


@dataclass(frozen=True)
class HybridParams(FirstStepParams):
    """The two-step framework and its reverse, section 4.

    ``unicast_limit`` is the largest share of the messages sent that may be sent by unicast, 0 to
    1, as in ``unicast_fraction`` of the ledger. ``forced`` goes on to that share even while the
    cost rises (Figure 9). The iterative second steps solve the first step again after every
    ``batch`` removals (the paper: 1; None: a hundredth of the flows or users) and end after
    ``patience`` solutions without a lower cost.
    """

    unicast_limit: float = 1.0
    forced: bool = False
    batch: int | None = None
    patience: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch is not None:
            require_at_least_one("batch", self.batch)
        require_at_least_one("patience", self.patience)
        if not 0 <= self.unicast_limit <= 1:
            what = f"{self.unicast_limit} is not a share of the messages sent"
            raise InputError(Problem("unicast limit", what, "Use a number from 0 to 1"))


@dataclass(frozen=True)
class ReverseParams(HybridParams):
    """``towards`` is where the reverse framework may move a flow, which the paper does not tell.

    *any*: to whichever channel is cheapest then. *tock*: to the one that K-means gives it.
    """

    towards: Towards = "any"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("towards", self.towards, get_args(Towards))


def require_one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(Problem(name, f"{value!r} is not known", f"Use {' or '.join(known)}"))


def require_at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise InputError(Problem(name, f"{value} is too few", "Use at least 1"))
