"""What stands between two deliveries, judged as a whole: channels, brokers and groups together."""

from __future__ import annotations

import itertools

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.prices import LedgerPrices
from fanplan.layers.channels.changes.changes import (
    ChannelStanding,
    channels_used,
    fed,
    least_reached,
    require_still_served,
)
from fanplan.layers.channels.changes.order import ChannelChanges
from fanplan.layers.channels.check.check import count_ledger, find_service
from fanplan.layers.channels.check.evidence import Decisions
from fanplan.layers.delivery.changes.world import (
    BrokerWorld,
    DeliveryWorld,
    Senders,
    Sites,
    broker_ledger,
    problem_on,
    state_sites,
    unicast_beyond,
)
from fanplan.layers.delivery.check.check import priced_parts
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.groups.changes import Group, Setting
from fanplan.layers.overlay.changes.shape import Evidence, Link, Shape, by_name, judge_overlay
from fanplan.layers.overlay.record import LimitsRecord
from fanplan.network.brokers import Routes
from fanplan.plan.changes import Row
from fanplan.plan.findings import EXAMPLES, Findings
from fanplan.plan.steps import State

UNKNOWN = Evidence(lambda shape, names: Routes.none(), {}, None, 1.0)


class BrokersStanding:
    """What stands of brokers, trees, clients and groups: at first the old plan."""

    def __init__(self, brokers: BrokerWorld, limits: LimitsRecord) -> None:
        self.plans, self.limits = brokers, limits
        self.shape, self.setting = brokers.old.copy(), brokers.groups.setting()
        self._judged: State | None = None

    def do(self, overlay: list[Row], groups: list[Row]) -> None:
        """Carry out some changes."""
        for row in overlay:
            self.shape.apply(row)
        for row in groups:
            self.setting.apply(row)
        if overlay or groups:
            self._judged = None

    def judge(self) -> State:
        """Trees are trees, groups are whole, and hang on links that stand."""
        if self._judged is None:
            tree, findings = judge_overlay(self.shape, self.limits, UNKNOWN), Findings()
            groups = self.setting.judge()
            require_linked(self.plans, self.setting, set(self.shape.links()), findings)
            broken = (*tree.broken, *groups.broken, *findings.violations)
            figures = {name: groups.figures[name] for name in ("groups", "entries")}
            self._judged = State(figures, broken, tree.exceeded)
        return self._judged

    def groups_used(self) -> list[Group]:
        """Groups in use; what one took to set up depends on the trees that it is in."""
        trees, known = self.plans.new.trees, self.plans.groups
        latest = known.old | known.new if self.shape.trees == trees else known.new | known.old
        return [latest[number] for number in sorted(self.setting.used)]

    def place(self, name: str) -> str | None:
        """The domain of a subscriber where it stands; None if that cannot be told."""
        client = (name, "subscriber")
        now, old, new = (
            shape.clients.get(client, set())
            for shape in (self.shape, self.plans.old, self.plans.new)
        )
        before, after = self.plans.domains(name)
        if before == after or now == old != new:
            return before
        return after if now == new != old else None


def require_linked(
    brokers: BrokerWorld, setting: Setting, links: set[Link], findings: Findings
) -> None:
    """Groups in use go over links that stand; a shortcut needs none."""
    planned = [set(shape.links()) for shape in (brokers.old, brokers.new)]
    groups = (brokers.groups.old, brokers.groups.new)
    cut = []
    for number in sorted(setting.used):
        # What is no link of each plan that has the group is a shortcut in one of them.
        own = set.intersection(
            *(p for p, has in zip(planned, groups, strict=True) if number in has)
        )
        over = {by_name(*entry) for entry in setting.known[number].entries} & own
        cut += [f"group {number}, {a!r} to {b!r}" for a, b in sorted(over - links)]
    findings.violate("group in use over a link that is gone", len(cut), cut)


class DeliveryStanding:
    """What stands of a whole delivery."""

    def __init__(
        self,
        world: DeliveryWorld,
        changes: ChannelChanges,
        prices: LedgerPrices,
        limits: LimitsRecord,
    ) -> None:
        self.world, self.prices = world, prices
        self.channels = ChannelStanding(world.channels, changes)
        self.brokers = BrokersStanding(world.brokers, limits) if world.brokers else None
        self.least = least_reached(world.channels)
        self._problem: tuple[Sites, bool, Shape, DeliveryProblem] | None = None

    def do(self, channels: Longs, overlay: list[Row], groups: list[Row]) -> None:
        """Carry out a step: changes of channels by their numbers, others as rows."""
        self.channels.do(channels)
        if self.brokers:
            self.brokers.do(overlay, groups)

    def judge(self) -> State:
        """Everybody is served, channels stay in their domains, and brokers hold."""
        findings = Findings()
        require_still_served(self.channels, self.least, findings)
        beside = State({})
        if self.brokers:
            self.require_domains(self.brokers, findings)
            beside = self.brokers.judge()
        broken = (*findings.violations, *beside.broken)
        figures = self.channel_figures() if broken or not self.known else self.all_figures()
        return State(figures | beside.figures, broken, beside.exceeded)

    @property
    def known(self) -> bool:
        """Whether a dataset tells who wants what."""
        return self.world.channels.known

    def require_domains(self, brokers: BrokersStanding, findings: Findings) -> None:
        """Members of a channel are where it reaches, and nobody is in two domains."""
        world = self.world.channels
        channel, member = self.channels.decisions().members.sides()
        names = world.truth.subscribers.to_pylist()
        pairs = sorted({(m, world.domains[c]) for c, m in zip(channel, member, strict=True)})
        pairs = [(m, domain) for m, domain in pairs if domain]
        place = {m: brokers.place(names[m]) for m, _ in pairs}
        strange = [(m, d) for m, d in pairs if place[m] and place[m] != d]
        said = [f"{names[m]!r} in {place[m]!r} on one of {d!r}" for m, d in strange[:EXAMPLES]]
        findings.violate("member of a channel of another domain", len(strange), said)
        twice = sorted({one for (one, _), (other, _) in itertools.pairwise(pairs) if one == other})
        said = [repr(names[m]) for m in twice[:EXAMPLES]]
        findings.violate("member of channels of two domains", len(twice), said)

    def channel_figures(self) -> dict[str, float]:
        """What channels and unicast cost."""
        parts = self.parts({})
        near = {name: parts[name] for name in ("multicast", "last hop", "direct unicast")}
        return spaceless(near) | self.counts()

    def all_figures(self) -> dict[str, float]:
        """What all costs, and its parts."""
        truth, direct = self.world.channels.truth, self.channels.direct()
        decisions = fed(self.channels.decisions(), direct)
        parts = self.parts(self.far(decisions, direct))
        wanted = np.diff(truth.audience_starts)[truth.classes]
        missed = truth.messages @ (wanted - find_service(truth, decisions).reached)
        figures = {"cost": sum(parts.values()), **parts, "missed": float(missed)}
        return spaceless(figures) | self.counts()

    def counts(self) -> dict[str, float]:
        direct = float(len(self.channels.direct()))
        return {"used_channels": channels_used(self.channels.decisions()), "direct_flows": direct}

    def parts(self, far: dict[str, float]) -> dict[str, float]:
        """The parts of the cost, with the ledger of brokers.

        A flow that is on a channel already, but still goes past the brokers, counts as both. Where
        it is not known who sends, all that goes past brokers is taken to go to other domains.
        """
        truth, decisions = self.world.channels.truth, self.channels.decisions()
        counted = count_ledger(truth, decisions, find_service(truth, decisions))
        direct = self.channels.direct()
        past = float(truth.messages[direct] @ np.diff(decisions.unicast.starts)[direct])
        past = far.get("past", past)
        return priced_parts(self.prices, counted, past, far, float(truth.messages.sum()))

    def far(self, decisions: Decisions, direct: Longs) -> dict[str, float]:
        """The ledger of brokers, and messages past them to other domains; none without them."""
        plans = self.world.brokers
        if self.brokers is None or plans is None or plans.senders is None:
            return {}
        problem = self.problem(self.brokers, plans, plans.senders, decisions)
        ledger = broker_ledger(problem, decisions, direct, self.brokers.groups_used())
        past = unicast_beyond(problem, self.channels.decisions(), direct)
        return ledger | {"entries": float(len(self.brokers.setting.entries)), "past": past}

    def problem(
        self, brokers: BrokersStanding, plans: BrokerWorld, senders: Senders, decisions: Decisions
    ) -> DeliveryProblem:
        """Where brokers and clients stand; made anew only when that changes."""
        domains = self.world.channels.domains
        sites = state_sites(plans, {domains[c] for c in np.unique(decisions.channels.right)})
        homes = self.homes(plans)
        if self._problem is None or self._problem[:3] != (sites, homes, brokers.shape):
            truth = self.world.channels.truth
            problem = problem_on(brokers.shape, sites, truth, senders, homes)
            self._problem = sites, homes, brokers.shape.copy(), problem
        return self._problem[3]

    def homes(self, plans: BrokerWorld) -> bool:
        """Whether only home brokers send to one alone; on the way they do if by either plan."""
        done = self.channels.done
        ends = plans.homes if done in (0.0, 1.0) else (any(plans.homes),) * 2
        return ends[int(done)]


def spaceless(figures: dict[str, float]) -> dict[str, float]:
    return {name.replace(" ", "_"): value for name, value in figures.items()}
