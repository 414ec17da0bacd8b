"""Two plans with a delivery: channels, brokers and groups of both, and who changes domain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Longs
from fanplan.layers.channels.changes.world import ChannelWorld, channel_world
from fanplan.layers.delivery.changes.cost import Senders, Sites, read_senders
from fanplan.layers.delivery.read import ChannelReach, domains_of
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.groups.changes import GroupWorld
from fanplan.layers.overlay.changes.shape import Shape, matched_trees, renumbered, shape_of
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.dataset import read_brokers
from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True, eq=False)
class Brokers:
    """Brokers of both plans with their trees, clients and groups, under running numbers.

    ``sites`` has the domains of brokers by each plan. ``senders`` are known with a dataset only.
    """

    old: Shape
    new: Shape
    trees: dict[int, int]
    groups: GroupWorld
    sites: tuple[Sites, Sites]
    senders: Senders | None

    def domains(self, subscriber: str) -> tuple[str | None, str | None]:
        """The domain of a subscriber by each plan; None where it is not known to have one."""
        homes = home_of(self.old, subscriber), home_of(self.new, subscriber)
        before, after = (
            None if home is None else sites.get(home)
            for home, sites in zip(homes, self.sites, strict=True)
        )
        return before, after


@dataclass(frozen=True, eq=False)
class DeliveryWorld:
    """All that two plans deliver by; without brokers channels reach everybody."""

    channels: ChannelWorld
    brokers: Brokers | None
    movers: Longs
    """subscribers who go to another multicast domain"""


def delivery_world(old: StoredPlan, new: StoredPlan, dataset: Path | None) -> DeliveryWorld:
    channels = channel_world(old, new, dataset, (ChannelReach(old), ChannelReach(new)))
    if not old.has(OverlayRecord):
        return DeliveryWorld(channels, None, np.zeros(0, np.int64))
    before, after = shape_of(old), shape_of(new)
    running = matched_trees(before, after)
    known = sites_of(new, dataset) if dataset else {}
    sites = sites_in(old, before, known), sites_in(new, after, known)
    senders = read_senders(dataset, channels.truth) if dataset else None
    brokers = Brokers(
        before, renumbered(after, running), running, GroupWorld.of(old, new), sites, senders
    )
    return DeliveryWorld(channels, brokers, movers(brokers, channels.truth.subscribers))


def sites_of(plan: StoredPlan, dataset: Path) -> Sites:
    """The domains of brokers as the dataset has them."""
    names = read_brokers(dataset).names
    domain, sites = domains_of(plan, dataset, names)
    return {b: sites[d] for b, d in zip(names.to_pylist(), domain, strict=True) if d >= 0}


def sites_in(plan: StoredPlan, shape: Shape, known: Sites) -> Sites:
    """The domains of a plan's brokers: as known, or else where members of its channels are."""
    if plan.section(DeliveryRecord).domains == ("",):
        return dict.fromkeys(shape.brokers, "")
    table = plan.read("channel_domains", ("channel", "domain"))
    domain = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
    members = plan.read("channel_subscribers", ("channel", "subscriber")).to_pylist()
    found = {home_of(shape, row["subscriber"]): domain[row["channel"]] for row in members}
    return known | {broker: site for broker, site in found.items() if broker is not None}


def home_of(shape: Shape, subscriber: str) -> str | None:
    """The broker of a subscriber; of several the first by name."""
    return min(shape.clients.get((subscriber, "subscriber"), ()), default=None)


def state_sites(brokers: Brokers, used: set[str]) -> Sites:
    """The domains of brokers while channels of some domains are in use.

    Where the plans have other domains, those of the old one count until none is used any more:
    then what is fed to channels may be counted too high on the way, but not too low.
    """
    old, new = brokers.sites
    apart = set(old.values()).isdisjoint(new.values())
    return old if apart and used & set(old.values()) else old | new


def movers(brokers: Brokers, subscribers: pa.Array) -> Longs:
    """Subscribers whose domain changes; one that comes or goes has nothing to leave or to join.

    Where multicast reaches everywhere nobody gets out of its reach.
    """
    if "" in {*brokers.sites[0].values(), *brokers.sites[1].values()}:
        return np.zeros(0, np.int64)
    found = []
    for number, name in enumerate(subscribers.to_pylist()):
        before, after = brokers.domains(name)
        if before != after and home_of(brokers.old, name) and home_of(brokers.new, name):
            found.append(number)
    return np.array(found, np.int64)
