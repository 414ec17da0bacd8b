"""What a durable publisher sent comes in order, also if some of it was lost and asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from delivery_datasets import world_of
from ready import stages_are_there
from system_worlds import design

from fanplan.core.errors import InputError
from fanplan.live import Publisher, chains, kept
from fanplan.live.chains import Chains
from fanplan.live.entry import DEFAULT, Entry, read_entry
from fanplan.live.kept import Chain, Kept
from fanplan.live.message import GONE, KEPT, LAST, REDELIVERED, Header, Message
from fanplan.live.transport import Batch, Range
from fanplan.systems.multicast.export import export as export_multicast
from fanplan.systems.params import ExportParams

EPOCH = b"plan"


def message(number: int, before: int, channel: int = KEPT, flow: int = 0) -> Message:
    return Message(Header(EPOCH, flow, 0, number, channel, before), "t", (), b"")


class Source:
    """A source that sends one flow, some of which is lost, and is asked for it."""

    def __init__(self, count: int, forgotten: int = 0) -> None:
        numbers = [*range(100, 100 + 3 * count, 3)]
        self.sent = [message(n, b) for n, b in zip(numbers, [0, *numbers], strict=False)]
        self.forgotten = forgotten
        self.got: list[int] = []
        self.asked = 0
        self.chains = Chains(self.answer, lambda m: self.got.append(m.header.number))

    @property
    def numbers(self) -> list[int]:
        return [each.header.number for each in self.sent]

    def heard(self, each: Message, whole: bool = True) -> None:
        self.chains.take(each, whole)

    async def answer(self, epoch: bytes, source: int, ranges: Sequence[Range]) -> None:
        assert (epoch, source) == (EPOCH, 0)
        self.asked += 1
        for low, high in ranges:
            if low < self.forgotten:
                self.heard(message(self.forgotten, high, GONE))
            for each in self.sent:
                if max(low, self.forgotten) < each.header.number <= high:
                    number, before = each.header.number, each.header.sequence
                    self.heard(message(number, before, REDELIVERED))

    async def rest(self) -> None:
        while self.chains.missing(EPOCH, 0):
            await asyncio.sleep(0.01)
        self.chains.close()


@pytest.mark.parametrize("seed", range(8))
def test_all_comes_in_order_whatever_is_lost_and_doubled(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are many gaps to ask for, one after the other, so no time is left between."""
    monkeypatch.setattr(chains, "MOST_SECONDS", chains.FIRST_SECONDS)

    async def losing() -> None:
        draw, source = Random(seed), Source(40)
        for each in source.sent:
            for _ in range(draw.choice((0, 1, 1, 2))):
                source.heard(each)
        # The last one tells of what was lost at the end.
        source.heard(message(source.numbers[-1], source.numbers[-1], LAST))
        await source.rest()
        assert [*dict.fromkeys(source.got)] == source.numbers
        assert source.got == sorted(source.got)

    asyncio.run(losing())


def test_who_comes_later_asks_for_nothing_before() -> None:
    async def late() -> None:
        source = Source(9)
        for each in (*source.sent[4:6], source.sent[7]):
            source.heard(each, whole=False)
        await source.rest()
        assert source.got == source.numbers[4:8]
        assert source.asked == 1

    asyncio.run(late())


def test_what_is_not_kept_any_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgotten() -> None:
        source = Source(9, forgotten=112)  # Those up to the fifth.
        source.heard(source.sent[0])
        source.heard(source.sent[8])
        await source.rest()
        assert source.got == [*source.numbers[:1], *source.numbers[5:]]
        assert source.chains.given_up == 1

    async def silent() -> None:
        source = Source(3)
        monkeypatch.setattr(source.chains, "_ask", nobody)
        monkeypatch.setattr(chains, "GIVEN_UP_SECONDS", 0.1)
        source.heard(source.sent[0])
        source.heard(source.sent[2])
        await source.rest()
        assert source.got == [source.numbers[0], source.numbers[2]]

    async def nobody(*_: object) -> None: ...

    asyncio.run(forgotten())
    asyncio.run(silent())


# ---- what is kept


def batch(entry: Entry, chain: Chain, flow: list[int], first: int) -> Batch:
    number = np.arange(first, first + len(flow))
    topic = np.zeros(len(flow), np.int64)
    before = chain.follow(np.array(flow), topic, number)
    x, starts = np.full((len(flow), 1), 5.0), np.zeros(len(flow) + 1, np.int64)
    return Batch(entry.topics, np.array(flow), number, topic, x, b"", starts, 7, {}, before)


def test_what_is_asked_for_is_found_by_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stages_are_there():
        _, dataset, _ = design(tmp_path, 1, sent=60)
    entry, own = Entry(read_entry(dataset)), Kept()
    chain = Chain(entry)
    own.add(batch(entry, chain, [0, 1, 0, DEFAULT], 10))
    own.add(batch(entry, chain, [1, 0, DEFAULT], 20))

    def found(low: int, high: int) -> tuple[list[tuple[int, int]], int]:
        lost, gone = own.lost((low, high))
        return [(one.number, before) for one, before in lost], gone

    assert found(0, 21) == ([(10, 0), (12, 10), (21, 12)], 0)
    assert found(10, 21) == ([(12, 10), (21, 12)], 0)
    assert found(0, 20) == ([(11, 0), (20, 11)], 0)
    assert found(0, 22) == ([(13, 0), (22, 13)], 0)
    ends = chain.ends()
    assert {*zip(ends.flow.tolist(), ends.number.tolist(), strict=True)} == {
        (0, 21), (1, 20), (DEFAULT, 22)
    }  # fmt: skip
    own.forget(14)
    assert found(0, 21) == ([(21, 12)], 12)
    monkeypatch.setattr(kept, "MOST_KEPT", 0)
    own.add(batch(entry, chain, [0], 30))
    assert own.dropped == 4


def test_nobody_keeps_datagrams(tmp_path: Path) -> None:
    with stages_are_there():
        plan, dataset, traffic = design(tmp_path / "world", 1, sent=60)
        out = tmp_path / "export"
        out.mkdir()
        export_multicast(plan, dataset, traffic.ways, ExportParams(), out)
        with pytest.raises(InputError, match="cannot be asked"):
            Publisher(out, sorted({sent[1] for sent in world_of(1, sent=60).sent})[0], durable=True)
