"""From one delivery to another: at every step all layers together still reach everybody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from delivery_worlds import audience_of, delivery_world, kept, way_up
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.core.prices import LedgerPrices, Weights
from fanplan.data.reader import Manifest
from fanplan.layers.channels.changes.world import SentByPlan, world_between
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions, PlanRelation
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.map import MapPairs, map_pairs
from fanplan.layers.delivery.changes import changes as staging
from fanplan.layers.delivery.changes.changes import StepTerms, stage
from fanplan.layers.delivery.changes.world import BrokerWorld, DeliveryWorld, Senders, movers
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.search.in_turn import with_groups
from fanplan.layers.delivery.search.joint import JudgedDelivery, judge_delivery
from fanplan.layers.delivery.search.params import DeliveryParams
from fanplan.layers.groups.changes import Group, GroupWorld, running_numbers
from fanplan.layers.groups.problem.trees import hung_at
from fanplan.layers.overlay.changes.shape import Shape, by_name, matched_trees
from fanplan.layers.overlay.record import LimitsRecord
from fanplan.plan.steps import Staged

PRICES = LedgerPrices(direct=1.3, matched=0.7, forwarded=1.1, entry=2.0, control=0.5)
SEEDS = st.integers(0, 10_000)


# ---- two deliveries


@dataclass(frozen=True)
class Two:
    """Two deliveries of the same traffic, where the tree and places of subscribers may differ."""

    problems: tuple[DeliveryProblem, DeliveryProblem]
    found: tuple[JudgedDelivery, JudgedDelivery]

    def world(self) -> DeliveryWorld:
        old, new = self.problems
        shapes = shape_of(old), shape_of(new)
        before, after = (groups_of(p, f) for p, f in zip(self.problems, self.found, strict=True))
        running = running_numbers(before, after, True)
        after = {running[number]: group for number, group in after.items()}
        sites = {name: f"z{z}" for name, z in zip(names_of(old), old.domain, strict=True) if z >= 0}
        channels = world_between(truth_of(old), sent(self.found[0]), sent(self.found[1]), True)
        brokers = BrokerWorld(
            *shapes,
            matched_trees(*shapes),
            GroupWorld(before, after, {}, True),
            (sites, sites),
            Senders(old.row.astype(np.int64), old.tree.astype(np.int64), old.messages, ROOTS),
            (old.homes, new.homes),
        )
        return DeliveryWorld(channels, brokers, movers(brokers, channels.truth.subscribers))


ROOTS = pa.array(["p0", "p1"])


def two_deliveries(seed: int, moved: bool, limit: int | None = None) -> Two:
    old, draw = delivery_world(seed, flows=7), np.random.default_rng((seed, 1))
    new = old
    if moved:
        size = len(old.brokers)
        links = np.array([(draw.integers(0, b), b) for b in range(1, size)], np.int32)
        home = np.where(draw.random(len(old.home)) < 0.3, draw.integers(0, size), old.home)
        trees = hung_at(links, old.trees.root, size)
        new = replace(old, home=home.astype(np.int32), trees=trees, homes=bool(seed % 3 == 0))
    params = DeliveryParams(2, entries=limit, prices=PRICES)
    found = [random_delivery(p, params, seed + i) for i, p in enumerate((old, new))]
    return Two((old, new), (found[0], found[1]))


def random_delivery(problem: DeliveryProblem, params: DeliveryParams, seed: int) -> JudgedDelivery:
    """Channels, members and direct classes drawn at random, with the best groups for them."""
    draw = np.random.default_rng(seed)
    domain = np.sort(draw.integers(0, max(problem.domains, 1), problem.domains * 2))
    where = problem.domain[problem.home]
    here = (domain[:, None] == where) & (draw.random((len(domain), len(where))) < 0.6)
    used = draw.random((problem.interest.size, len(domain))) < 0.4
    direct = draw.random(problem.interest.size) < 0.3
    used[direct] = False
    map = completed(
        problem.interest, len(domain), map_pairs(*np.nonzero(used)), map_pairs(*np.nonzero(here))
    )
    return judge_delivery(
        problem, params, with_groups(problem, params, map, domain.astype(np.int32), direct)
    )


def names_of(problem: DeliveryProblem) -> list[str]:
    names: list[str] = problem.brokers.to_pylist()
    return names


def shape_of(problem: DeliveryProblem) -> Shape:
    names, parent = names_of(problem), problem.trees.parent[0]
    links = {by_name(names[p], names[b]) for b, p in enumerate(parent) if p >= 0}
    people = problem.interest.subscribers.to_pylist()
    clients = {(who, "subscriber"): {names[b]} for who, b in zip(people, problem.home, strict=True)}
    clients |= {(f"p{t}", "publisher"): {names[r]} for t, r in enumerate(problem.trees.root)}
    return Shape(set(names), {0: links}, dict.fromkeys(names, 0), clients)


def groups_of(problem: DeliveryProblem, found: JudgedDelivery) -> dict[int, Group]:
    names, groups = np.array(names_of(problem)), found.delivery.groups
    made = {}
    for place, g in enumerate(np.flatnonzero(found.delivery.selected).tolist()):
        tree = int(groups.span[g])
        ends = set(groups.members[groups.starts[g] : groups.starts[g + 1]].tolist())
        visited = {b for end in ends for b in way_up(problem, tree, end)}
        stays = kept(problem, tree, visited, ends)
        root = int(problem.trees.root[tree])
        above = {b: next((x for x in way_up(problem, tree, b)[1:] if x in stays), root)
                 for b in stays}  # fmt: skip
        short = sum(x != problem.trees.parent[tree, b] for b, x in above.items())
        control = len(ends - {root}) + 2 * len(visited) + short
        entries = frozenset((str(names[x]), str(names[b])) for b, x in above.items())
        members = frozenset(map(str, names[sorted(ends)]))
        made[place] = Group(str(names[root]), members, entries, frozenset(), 1.0, control)
    return made


def truth_of(problem: DeliveryProblem) -> ChannelTruth:
    interest = problem.interest
    return ChannelTruth(
        Manifest("", 1.0, "overlap", "atomic", True, {}),
        pa.table({}),
        pa.array([f"t{i}" for i in range(interest.size)], pa.large_string()),
        interest.messages,
        interest.messages,
        np.arange(interest.size, dtype=np.int32),
        interest.indptr,
        interest.audience,
        interest.subscribers,
        interest.messages * interest.audience_sizes,
    )


def sent(found: JudgedDelivery) -> SentByPlan:
    delivery = found.delivery
    size, map = len(delivery.direct), delivery.map
    decisions = Decisions(
        relation(map.assigned, size),
        relation(map.members, map.channels),
        relation(map.unicast, size),
    )
    domains = tuple(f"z{z}" for z in delivery.domain)
    return SentByPlan(decisions, domains, np.flatnonzero(delivery.direct))


def relation(found: MapPairs, size: int) -> PlanRelation:
    return PlanRelation(found.starts(size), found.right)


# ---- what stands, by hand


NAMES = {"join": "members", "leave": "members", "carry": "carried", "drop": "carried"}
NAMES |= {"unicast": "unicast", "end_unicast": "unicast", "direct": "direct"}
NAMES |= {"end_direct": "direct", "entry": "entries", "end_entry": "entries"}
NAMES |= {"use_group": "used", "end_group": "used", "link": "links", "unlink": "links"}
KEYS: dict[str, tuple[str, ...]]
KEYS = {"members": ("channel", "subscriber"), "carried": ("channel", "flow")}
KEYS |= {"unicast": ("flow", "subscriber"), "direct": ("flow",), "used": ("group",)}
KEYS |= {"entries": ("group", "from_broker", "to_broker"), "links": ("from_broker", "to_broker")}
ENDS = ("leave", "drop", "end_unicast", "end_direct", "end_entry", "end_group", "unlink")


class ByHand:
    """What stands, as sets of names."""

    def __init__(self, two: Two, world: DeliveryWorld, new: bool) -> None:
        assert world.brokers is not None
        self.problem, self.world, self.brokers = two.problems[0], world, world.brokers
        self.domain = dict(enumerate(world.channels.domains))
        channels, groups = world.channels, (self.brokers.groups.old, self.brokers.groups.new)[new]
        plan, shape = ((channels.old, self.brokers.old), (channels.new, self.brokers.new))[new]
        users, width = channels.users, channels.channels
        self.sets: dict[str, set[tuple[Any, ...]]] = {
            "members": {(k // users, f"s{k % users}") for k in plan.members.tolist()},
            "carried": {(k % width, f"t{k // width}") for k in plan.carried.tolist()},
            "unicast": {(f"t{k // users}", f"s{k % users}") for k in plan.unicast.tolist()},
            "direct": {(f"t{k}",) for k in plan.direct.tolist()},
            "entries": {(n, *entry) for n, group in groups.items() for entry in group.entries},
            "used": {(n,) for n in groups},
            "links": set(shape.trees[0]),
        }
        self.home = {who: min(at) for (who, role), at in shape.clients.items() if role[0] == "s"}

    def apply(self, row: dict[Any, Any]) -> None:
        if row["action"] == "move":
            assert self.home[row["client"]] == row["from_broker"]
            self.home[row["client"]] = row["to_broker"]
            return
        name = NAMES[row["action"]]
        item, ends = tuple(row[key] for key in KEYS[name]), row["action"] in ENDS
        assert (item in self.sets[name]) == ends, "nothing is done twice or in vain"
        (self.sets[name].remove if ends else self.sets[name].add)(item)

    def require_reached(self) -> None:
        """Every message of every flow, from every entry, to everybody who wants it."""
        for channel, who in self.sets["members"]:
            assert self.domain[channel] == self.site(self.home[who]), "a member elsewhere"
        for row, tree in zip(self.problem.row.tolist(), self.problem.tree.tolist(), strict=True):
            wanting = {f"s{s}" for s in audience_of(self.problem, row)}
            alone = {who for flow, who in self.sets["unicast"] if flow == f"t{row}"}
            if (f"t{row}",) in self.sets["direct"]:
                assert wanting <= alone, "somebody is not sent it directly"
                continue
            own = {c for c, flow in self.sets["carried"] if flow == f"t{row}"}
            heard = {who for c, who in self.sets["members"] if c in own} & wanting
            assert wanting <= alone | heard, "somebody has neither a channel nor a last hop"
            root = names_of(self.problem)[self.problem.trees.root[tree]]
            self.require_carried(root, frozenset(self.needed(root, wanting - heard, heard)))

    def site(self, broker: str) -> str | None:
        return self.brokers.sites[0].get(broker)

    def needed(self, root: str, lone: set[str], heard: set[str]) -> Iterator[str]:
        """Home brokers of those without a channel, and the nearest one of every other domain."""
        ends = {self.home[who] for who in lone}
        yield from ends
        for site in {self.site(self.home[who]) for who in heard}:
            if site not in {self.site(b) for b in ends} | {self.site(root)}:
                inside = [b for b in sorted(self.brokers.sites[0]) if self.site(b) == site]
                yield min(inside, key=lambda b: (self.hops(root)[b], b))

    def hops(self, root: str) -> dict[str, int]:
        """Over links that stand."""
        found, waiting = {root: 0}, [root]
        for here in waiting:
            for link in self.sets["links"]:
                other = link[link[0] == here]
                if here in link and other not in found:
                    found[other] = found[here] + 1
                    waiting.append(other)
        return found

    def require_carried(self, root: str, ends: frozenset[str]) -> None:
        """By the group of just these brokers, if one is in use; else over the tree."""
        assert ends <= self.hops(root).keys(), "the tree is cut"
        known = self.brokers.groups.old | self.brokers.groups.new
        for (number,) in self.sets["used"]:
            group = known[number]
            if (group.root, group.members) == (root, ends):
                reached = {root}
                for _ in names_of(self.problem):
                    hops = [e[1:] for e in self.sets["entries"] if e[0] == number]
                    reached |= {b for a, b in hops if a in reached and self.goes(number, a, b)}
                assert ends <= reached, "a group does not reach its members"

    def goes(self, number: int, a: str, b: str) -> bool:
        """Whether an entry is a shortcut, or over a link that stands."""
        brokers = self.brokers
        both = ((brokers.groups.old, brokers.old), (brokers.groups.new, brokers.new))
        over = all(by_name(a, b) in s.trees[0] for groups, s in both if number in groups)
        return not over or by_name(a, b) in self.sets["links"]


# ---- tests


def staged(world: DeliveryWorld, limit: int, entries: float = np.inf) -> Staged:
    weights = Weights(PRICES.received, PRICES.sent, 1.0)
    return stage(world, StepTerms(weights, PRICES, LimitsRecord(), entries), limit)


def in_small_steps(world: DeliveryWorld, limit: int, entries: float = np.inf) -> tuple[int, Staged]:
    """In steps of the limit, or of the number that the refusal of it names.

    A link is exchanged for another; who goes to another domain changes its channels too.
    """
    try:
        return limit, staged(world, limit, entries)
    except InputError as error:
        limit = int(str(error).split("Use ")[1].split()[0])
        return limit, staged(world, limit, entries)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.booleans(), st.integers(1, 20), st.sampled_from([None, 6]))
def test_any_delivery_becomes_any_other(seed: int, moved: bool, limit: int, entries: Any) -> None:
    two = two_deliveries(seed, moved, entries)
    world = two.world()
    most = np.inf if entries is None else entries
    limit, made = in_small_steps(world, limit, most)
    now, target = ByHand(two, world, False), ByHand(two, world, True)
    now.require_reached()
    rows = made.changes.to_pylist()
    for number in range(made.steps):
        for place in np.flatnonzero(made.step == number).tolist():
            now.apply(rows[place])
        now.require_reached()
        assert entries is None or len(now.sets["entries"]) <= entries
    assert (now.sets, now.home) == (target.sets, target.home)
    assert np.bincount(made.step, minlength=1).max() <= limit
    assert not any(state.broken for state in made.states)
    costs = [state.figures["cost"] for state in made.states]
    assert [costs[0], costs[-1]] == pytest.approx([found.cost for found in two.found])


def test_wrong_orders_are_found_by_the_check_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of the way backwards: each kind of harm is named."""
    right = staging.lined_up
    monkeypatch.setattr(staging, "lined_up", lambda *args: reversed(list(right(*args))))
    said = set()
    for seed in range(12):
        _, made = in_small_steps(two_deliveries(seed, True).world(), 1)
        said |= {text.split(" (")[0] for state in made.states for text in state.broken}
    assert said >= {
        "somebody is not served any more",
        "member of a channel of another domain",
        "group in use over a link that is gone",
    }


def test_a_class_that_leaves_direct_has_all_it_needs_first() -> None:
    """Its unicasts stay until it goes through brokers, and its group is in use by then."""
    seen = 0
    for seed in range(8):
        two = two_deliveries(seed, False)
        world = two.world()
        rows = staged(world, 1).changes.to_pylist()
        at: dict[tuple[str, str], list[int]] = {}
        for place, row in enumerate(rows):
            at.setdefault((row["action"], row["flow"]), []).append(place)
        last_group = max((p for p, r in enumerate(rows) if r["action"] == "use_group"), default=-1)
        for flow in [flow for action, flow in at if action == "end_direct"]:
            (place,) = at["end_direct", flow]
            seen += 1
            assert last_group < place
            assert all(place > before for before in at.get(("carry", flow), []))
            assert all(place < after for after in at.get(("end_unicast", flow), []))
    assert seen > 3
