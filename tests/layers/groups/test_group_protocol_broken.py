"""Protocols that are broken on purpose: each must be caught, or the check could not fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from group_churn_worlds import churned, slow_down
from overlays import routes_of

from fanplan.core.errors import CheckError
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.trees import hung_at
from fanplan.layers.groups.protocol.broker import Broker, RouteInterest
from fanplan.layers.groups.protocol.churn import GroupSystem
from fanplan.layers.groups.protocol.links import OrderedLinks, TreeLink
from fanplan.layers.groups.protocol.messages import Message, Numbered, Removal
from fanplan.layers.groups.protocol.params import GroupsChurn
from fanplan.layers.groups.protocol.root import Rebuild, Root

Patch = pytest.MonkeyPatch


def no_waiting(patch: Patch) -> None:
    """The root uses new groups at once, holding nothing back."""
    begin = Root.set_up

    def hasty(root: Root, groups: tuple[int, ...]) -> None:
        assert root.rebuild
        root.carrier = dict(root.rebuild.carrier)
        begin(root, groups)

    patch.setattr(Root, "set_up", hasty)


def early_removal(patch: Patch) -> None:
    """Brokers are told to forget a group ahead of its last publications."""
    send = OrderedLinks.send

    def overtake(links: OrderedLinks, link: TreeLink, message: Message, after_ms: float) -> None:
        if isinstance(message, Removal):
            links.receivers[link[1]](link[0][1], message)
        else:
            send(links, link, message, after_ms)

    patch.setattr(OrderedLinks, "send", overtake)


def no_eviction(patch: Patch) -> None:
    """A cell stays in its group though somebody else wants it now."""
    patch.setattr(Root, "evict", lambda root, cell: None)


def interest_by_arrival(patch: Patch) -> None:
    """Brokers go by what they want now, not by what was in force at the root."""
    wanted = RouteInterest.wanted
    patch.setattr(RouteInterest, "wanted", lambda self, route, number: wanted(self, route, 10**9))


def repeating_links(patch: Patch) -> None:
    """Receivers take a publication again that was sent again."""
    arrive = OrderedLinks._arrive

    def careless(links: OrderedLinks, link: TreeLink, number: int, message: Message) -> None:
        if isinstance(message, Numbered) and not links.is_new(link, number):
            links.receivers[link[1]](link[0][1], message)
        arrive(links, link, number, message)

    patch.setattr(OrderedLinks, "_arrive", careless)


def no_merging_of_entries(patch: Patch) -> None:
    """A bypassed broker's way stays beside the shortcut."""
    receive = Broker.receive

    def keep_both(broker: Broker, sender: int, message: Any) -> None:
        via = getattr(message, "via", None)
        receive(broker, sender, message)
        if via is not None:
            broker.groups[message.group].to.add(via)
            broker.groups[message.group].complete.add(via)

    patch.setattr(Broker, "receive", keep_both)
    patch.setattr(Broker, "forget", lambda broker, group: broker.groups[group])


# With what is slow when it shows.
BROKEN = [
    (no_waiting, "group_messages"),
    (early_removal, "in groups"),
    (no_eviction, "nothing"),
    (interest_by_arrival, "in groups"),
    (repeating_links, "nothing"),
    (no_merging_of_entries, "nothing"),
]


@pytest.mark.parametrize(("break_it", "slow"), BROKEN)
def test_a_broken_protocol_is_caught(
    break_it: Callable[[Patch], None], slow: str, monkeypatch: Patch
) -> None:
    break_it(monkeypatch)
    with pytest.raises(CheckError, match=r"publication \d+ of tree 0, on route \d+: broker"):
        stir_worlds(slow, 0.3 if break_it is repeating_links else 0.0)


def stir_worlds(slow: str, loss: float) -> None:
    for seed in range(30):
        churn = GroupsChurn(60, seed, 0.4, 1, "none", loss=loss)
        churned(seed, churn, slow, overlap=True)


def publish_ahead_of_the_acceptance() -> None:
    """Broker 2 wants route 1 too, which is in a cell of its group; acceptances are slow."""
    trees = hung_at(np.array([(0, 1), (1, 2)]), np.array([0]), 3)
    routes = routes_of({(0, ()): 1.0, (0, (2,)): 1.0})
    problem = exact_groups(pa.array(["a", "b", "c"]), trees, routes)
    churn = GroupsChurn(rebuild_every=0, hold="none", latency_ms=(1.0, 1.0))
    system = GroupSystem(
        problem, churn, lambda found: np.ones(found.size, bool), np.zeros(2, np.int32)
    )
    system.start()
    slow_down(system, "acceptances")
    root, begin = system.roots[0], system.links.now
    system.links.at(begin, system.toggle, 0, 2)
    # The same members want the same cell: the group is there already, with a shortcut to broker 2.
    system.links.at(begin + 10, system.coordinators[0].begin)
    system.links.at(begin + 20, system.publish, 0)
    system.links.run()
    assert root.carrier == {0: 0}
    system.audit.close()


def test_groups_wait_until_members_know_what_they_want(monkeypatch: Patch) -> None:
    publish_ahead_of_the_acceptance()
    monkeypatch.setattr(Rebuild, "ready", property(lambda rebuild: not rebuild.unfinished))
    with pytest.raises(CheckError, match="on route 0: broker 'c' wanted it, but never got it"):
        publish_ahead_of_the_acceptance()
