"""Who hears what is published where, told by a plan alone: what a probe or an end marker reaches.

A message of a tree's account reaches everybody on that tree who listens, one of the account `local`
only those at its server; agents send it on as they do with messages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property

from fanplan.live.nats.plan import DEFAULT, LOCAL, NatsPlan, Target

Place = tuple[int, str]
"""A broker and an account."""


class PlanReach:
    """Where messages of a plan come to."""

    def __init__(self, plan: NatsPlan) -> None:
        self.plan = plan

    # ---- messages

    def copies(
        self, entry: int, targets: tuple[Target, ...], flow: str, topic: str
    ) -> Counter[str]:
        """How many copies each subscriber gets of what is published so."""
        found: Counter[str] = Counter()
        for place, way in self._walked(entry, targets, flow):
            for key in (
                (way, f"{flow}.>"),
                ("*", f"{flow}.>"),
                (way, ">"),
                (way, f"{flow}.{topic}"),
            ):
                found.update(
                    who
                    for at, who in self._listeners.get((place[1], *key), ())
                    if self._near(place, at)
                )
        return found

    def _walked(
        self, entry: int, targets: tuple[Target, ...], flow: str
    ) -> Iterator[tuple[Place, str]]:
        """Where it is published, by the publisher and then by agents: the place and the way."""
        waiting = [((entry, account), way) for account, way in targets]
        while waiting:
            place, way = waiting.pop()
            yield place, way
            for broker in self._agents_on(place, way):
                agent = self.plan.agents[broker]
                waiting += [((head, LOCAL), way) for head in agent.forward.get(way, ())]
                names = agent.channels.get(way, {}).get(flow, ())
                waiting += [((broker, LOCAL), name) for name in names]

    def _near(self, place: Place, other: int) -> bool:
        """Whether what is published at a place comes to another broker."""
        broker, account = place
        return broker == other or (
            account != LOCAL and self._island(account)[broker] == self._island(account)[other]
        )

    def _agents_on(self, place: Place, way: str) -> list[int]:
        listening = self._agents.get((place[1], way), ())
        return [broker for broker in listening if self._near(place, broker)]

    @cached_property
    def _agents(self) -> dict[Target, list[int]]:
        """Agents by the account and the way that they listen to."""
        found: dict[Target, list[int]] = defaultdict(list)
        for broker, agent in self.plan.agents.items():
            for each in agent.listens:
                found[each.account, each.subject.split(".")[2]].append(broker)
        return found

    @cached_property
    def _listeners(self) -> dict[tuple[str, str, str], list[tuple[int, str]]]:
        """Subscribers by the account, the way and the rest of what they listen to."""
        found: dict[tuple[str, str, str], list[tuple[int, str]]] = defaultdict(list)
        for who, heard in self.plan.listens.items():
            for each in heard:
                way, rest = each.subject.split(".", 3)[2:]
                found[each.account, way, rest].append((each.broker, who))
        return found

    def _island(self, account: str) -> list[int]:
        """Of each broker the first one that the tree of an account joins it to."""
        return self._islands[account]

    @cached_property
    def _islands(self) -> dict[str, list[int]]:
        found = {account: [*range(len(self.plan.servers))] for account in self.plan.trees}
        for tail, remotes in self.plan.remotes.items():
            for account, head in remotes:
                first = found[account]
                low, high = sorted((first[tail], first[head]))
                found[account] = [low if each == high else each for each in first]
        return found

    # ---- end markers

    def marked(self, entry: int) -> dict[str, list[str]]:
        """By account, the ways on which publishers at an entry send end markers.

        The default way in each: in an account messages of a publisher stay in order, whatever their
        way. And all ways on which agents listen, for what they send on has to end as well.
        """
        ways = {account: {DEFAULT} for account in self.plan.accounts_at(entry)}
        for targets in self.plan.publish.get(entry, {}).values():
            for account, way in targets:
                if self._agents_on((entry, account), way):
                    ways[account].add(way)
        return {account: sorted(own) for account, own in ways.items()}

    def ends(self, entry: int, who: str) -> int:
        """How many end markers of a publisher at an entry a subscriber gets."""
        places = {(each.broker, each.account) for each in self.plan.listens.get(who, ())}
        found = 0
        for account, ways in self.marked(entry).items():
            near = [at for at, own in places if own == account and self._near((entry, account), at)]
            # In a tree markers of the default way alone are listened to.
            found += len(near) * (len(ways) if account == LOCAL else 1)
            for way in ways:
                found += self._ends_sent_on((entry, account), way, places)
        return found

    def _ends_sent_on(self, place: Place, way: str, places: set[Place]) -> int:
        """The same, of those that agents send."""
        found, waiting = 0, [place]
        while waiting:
            for broker in self._agents_on(waiting.pop(), way):
                agent = self.plan.agents[broker]
                heads: list[Place] = [(head, LOCAL) for head in agent.forward.get(way, ())]
                found += sum(head in places for head in heads)
                found += bool(agent.channels.get(way)) and (broker, LOCAL) in places
                waiting += heads
        return found
