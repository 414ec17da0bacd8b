"""Design: every layer that a workload allows, planned together, in one plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Watch
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.delivery.design import Designing
from fanplan.layers.delivery.fixed import fixed_plans
from fanplan.layers.delivery.steps import step_savings

if TYPE_CHECKING:
    from fanplan.core.stop import Stop
    from fanplan.layers.delivery.params import DeliveryParams
    from fanplan.layers.delivery.record import DeliverySection
    from fanplan.plan.section import PlannedSection
    from fanplan.plan.stored import StoredPlan

OPTIONAL = ("overlay", "channels", "groups", "direct", "marking")
"""What can be left out."""


@dataclass(frozen=True)
class Design:
    """All layers of a plan together with the dataset they are for."""

    layers: tuple[PlannedSection, ...]
    delivery: DeliverySection
    dataset: Dataset
    ended: str | None = None

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""
        record = self.delivery.record
        told = record.model_dump() | {"layers": [layer.layer for layer in self.layers]}
        early = {"ended_early_by": self.ended} if self.ended else {}
        return told | {"steps": step_savings(record.steps), **early}

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.verbs.save import save_layers

        return save_layers(self.layers, self.dataset.path, Path(out), replace).folder


def design(
    dataset: Dataset,
    *,
    channels: int = 0,
    entries: int | None = None,
    unicast_limit: float | None = None,
    multicast: str | None = None,
    without: Iterable[str] = (),
    fixed: Mapping[str, PathLike] | None = None,
    prices: Mapping[str, float] | None = None,
    seed: int = 0,
    time: float | None = None,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
) -> Design:
    """Plan every layer that the workload allows, each knowing what the others cost.

    ``channels`` is how many multicast groups there are: on each site if brokers have sites and
    ``multicast`` is not ``everywhere``. ``entries`` limits forwarding entries of groups,
    ``unicast_limit`` the share of messages that are sent to one subscriber alone. ``without`` names
    layers to leave out: overlay, channels, groups, direct, marking. ``fixed`` has stored plans by
    layer, of overlay, channels, groups and marking: these layers are taken from there. ``prices``
    are those of `LedgerPrices`.
    """
    plans, left_out = fixed_plans(dataset, fixed or {}), tuple(without)
    require_consistent(channels, entries, left_out, plans)
    params = params_of(channels, entries, unicast_limit, left_out, prices or {})
    watch = Watch(time, stop)
    run = Designing(dataset, params, multicast, left_out, plans, seed, watch, engine)
    layers, delivery = run.design()
    return Design(layers, delivery, dataset, watch.ended)


def require_consistent(
    channels: int, entries: int | None, without: tuple[str, ...], fixed: Mapping[str, StoredPlan]
) -> None:
    """Nothing may be both left out and given."""
    for name in without:
        if name not in OPTIONAL:
            remedy = f"Use some of: {', '.join(OPTIONAL)}"
            raise InputError(Problem("without", f"{name!r} cannot be left out", remedy))
        if name in fixed:
            what = f"{name} cannot be left out and fixed to {fixed[name].folder}"
            raise InputError(Problem("without", what, "Do one of both"))
    for name, amount, layer in (("channels", channels, "channels"), ("entries", entries, "groups")):
        if amount and (layer in without or layer in fixed):
            what = f"{amount} are given, but {layer} are left out or fixed"
            raise InputError(Problem(name, what, "Give one of both"))
    brokers = [name for name in ("groups", "marking", "overlay") if name in fixed]
    if "overlay" in without and brokers:
        what = f"{brokers[0]} cannot be fixed without an overlay"
        raise InputError(Problem("without", what, "Leave in the overlay"))


def params_of(
    channels: int,
    entries: int | None,
    unicast_limit: float | None,
    without: tuple[str, ...],
    prices: Mapping[str, float],
) -> DeliveryParams:
    """Limits and prices, or what is wrong with them."""
    from fanplan.core.prices import LedgerPrices
    from fanplan.layers.delivery.params import DeliveryParams

    known = [field.name for field in fields(LedgerPrices)]
    for name in prices:
        if name not in known:
            remedy = f"Use some of: {', '.join(known)}"
            raise InputError(Problem("prices", f"{name!r} has none", remedy))
    return DeliveryParams(
        channels=channels,
        entries=0 if "groups" in without else entries,
        unicast_limit=unicast_limit,
        direct="direct" not in without,
        prices=LedgerPrices(**prices),
    )
