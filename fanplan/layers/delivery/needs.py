"""What a design needs, checked and made before any search: no search is for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Ints
from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset
from fanplan.data.interest import InterestProblem, load_classes
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.delivery.fixed import channel_domains, fixed_map, fixed_overlay
from fanplan.layers.delivery.params import CHANNELS, MARKING, OVERLAY, DesignParams
from fanplan.layers.delivery.problem import EVERYWHERE, client_homes, require_senders
from fanplan.layers.delivery.stages.make import make_routes, make_senders
from fanplan.layers.groups.problem.trees import require_brokers_joined
from fanplan.layers.marking.problem.dataset import require_regions
from fanplan.layers.marking.stages.make import make_descriptors
from fanplan.layers.overlay.params import AllocateParams, OverlayParams
from fanplan.layers.overlay.record import clients_allocated
from fanplan.layers.overlay.stages.make import make_stages
from fanplan.network.dataset import (
    distinct,
    given_clients,
    publisher_names,
    read_links,
    subscriber_names,
)
from fanplan.plan.made import Job
from fanplan.plan.stored import StoredPlan

NOWHERE = pa.array([], pa.string())
"""The brokers of a workload without any."""


@dataclass(frozen=True)
class DesignNeeds:
    """What a request to design needs of its dataset, and of plans that it takes layers from."""

    job: Job
    asked: DesignParams
    fixed: Mapping[str, StoredPlan]

    @property
    def dataset(self) -> Dataset:
        return self.job.dataset

    @cached_property
    def allocates(self) -> bool:
        """Whether clients are at no broker yet, or where a plan has allocated them."""
        if OVERLAY in self.fixed:
            return clients_allocated(self.fixed[OVERLAY])
        return distinct(self.dataset.path, "subscriptions", "broker") == {None}

    @property
    def allocating(self) -> AllocateParams:
        """What is asked of an allocation."""
        return AllocateParams(ranking=self.asked.ranking, publishers=self.asked.publishers)

    @property
    def marks(self) -> bool:
        """Whether links are to be marked, if the overlay allows it."""
        wished = MARKING not in self.asked.without and MARKING not in self.fixed
        return wished and "advertisements" in self.dataset.manifest.stages

    def require_network(self, brokers: pa.Array) -> None:
        """Links that join the brokers, and a broker for everybody, unless these are planned."""
        if self.asked.placing and not self.allocates:
            what = "clients are at brokers that the workload gives"
            raise InputError(Problem(self.asked.placing, what, "Leave it out"))
        links = read_links(self.dataset.path, brokers)
        if links is not None and not self.allocates and OVERLAY not in self.fixed:
            require_brokers_joined(links, brokers)
        if self.clients is not None:
            client_homes(self.clients, "subscriber", subscriber_names(self.dataset.path), brokers)
            client_homes(self.clients, "publisher", publisher_names(self.dataset.path), brokers)

    @cached_property
    def clients(self) -> pa.Table | None:
        """Client, role and broker; None if clients are to be allocated."""
        if OVERLAY in self.fixed:
            return fixed_overlay(self.fixed[OVERLAY]).tables["clients"]
        return None if self.allocates else given_clients(self.dataset.path)

    def require_channels(self, domain: Ints = EVERYWHERE, brokers: pa.Array = NOWHERE) -> None:
        """Channels that are fixed keep to their domains and to the limit, if homes are known."""
        clients = self.clients if len(brokers) else None
        if CHANNELS not in self.fixed or (clients is None and len(brokers)):
            return
        plan, interest = self.fixed[CHANNELS], load_classes(self.dataset.path)
        where = np.zeros(len(interest.subscribers), np.int32)
        if clients is not None:
            where = domain[client_homes(clients, "subscriber", interest.subscribers, brokers)]
        map = fixed_map(plan, self.dataset.path, interest)
        channel_domains(plan, map, where, interest.subscribers)
        self.require_share(plan, map, interest, where)

    def require_share(
        self, plan: StoredPlan, map: ChannelMap, interest: InterestProblem, where: Ints
    ) -> None:
        """The channels of a plan leave no more to unicast than the limit allows."""
        limit, share = self.asked.unicast_limit, shared_unicast(map, interest, where)
        if limit is not None and share > limit * (1 + 1e-12):
            what = f"the channels of {plan.folder} leave {share:.3g} of it"
            raise InputError(Problem("unicast_limit", what, "Raise it, or plan channels again"))

    def make_stages(self) -> None:
        """All that Spark makes for any layer; and what only that shows must be right."""
        dataset, engine = self.dataset, self.job.engine
        if OVERLAY not in self.fixed:
            params = self.allocating if self.allocates else OverlayParams()
            make_stages(dataset, params, engine, self.allocates)
        make_senders(dataset, engine)
        if self.marks:
            make_descriptors(dataset, engine, self.allocates)
        if not (dataset.manifest.exact or self.allocates):
            make_routes(dataset, engine)
        require_senders(dataset.path)
        if self.marks:
            require_regions(dataset.path, self.allocates)


def shared_unicast(map: ChannelMap, interest: InterestProblem, where: Ints) -> float:
    """Share of what is sent that goes to one alone though another of its domain wants it, too."""
    width = int(where.max(initial=0)) + 2
    row = interest.pair_rows
    several = np.bincount(row * width + where[interest.audience] + 1, minlength=1) > 1
    left, people = map.unicast.left.astype(np.int64), where[map.unicast.right]
    counted = several[left * width + people + 1] & (people >= 0)
    sent = map.assigned.counts(interest.size) + map.unicast.counts(interest.size)
    total = float(np.dot(interest.messages, sent))
    return float(interest.messages[left[counted]].sum()) / total if total else 0.0
