"""The metrics of chapter 4 against the formulas, written out pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.boxes.covering import BATCH, GROUP, MOST
from fanplan.boxes.extents import SMALLEST, Extents, make_extents
from fanplan.boxes.volumes import union_volume
from fanplan.layers.overlay.problem import (
    broker_similarity,
    client_similarity,
    owner_cover,
    owner_matrix,
    owner_overlap,
)

OWNERS = 4


@st.composite
def extent_sets(draw: st.DrawFn, most: int = 14) -> Extents:
    """Extents of four owners in two topics: one box, or two that a topic or a cut keeps apart."""
    count = draw(st.integers(0, most))
    rows, owner, weight = [], [], []
    for extent in range(count):
        owner.append(draw(st.integers(0, OWNERS - 1)))
        weight.append(draw(st.integers(1, 3)))
        lo = [draw(st.integers(0, 5)) for _ in range(2)]
        hi = [low + draw(st.integers(1, 4)) for low in lo]
        topic = draw(st.integers(0, 1))
        rows.append((extent, topic, lo, hi))
        second = draw(st.sampled_from(["none", "none", "topic", "beside"]))
        if second == "topic":
            rows.append((extent, 1 - topic, lo, hi))
        if second == "beside":
            rows.append((extent, topic, [hi[0], lo[1]], [hi[0] + 2, hi[1]]))
    number, topic_of, lo_of, hi_of = zip(*rows, strict=True) if rows else ((), (), (), ())
    lows, highs = (np.array(side, dtype=np.float64).reshape(-1, 2) for side in (lo_of, hi_of))
    return make_extents(owner, number, topic_of, lows, highs, weight)


def boxes(extents: Extents, e: Any) -> tuple[np.ndarray, np.ndarray]:
    rows = slice(extents.starts[e], extents.starts[e + 1])
    return extents.lo[rows], extents.hi[rows]


def shared(x: Extents, e: int, y: Extents, f: Any) -> float:
    (lo, hi), (low, high) = boxes(x, e), boxes(y, f)
    sides = np.minimum(hi[:, None], high) - np.maximum(lo[:, None], low)
    return float(np.prod(np.maximum(sides, 0), axis=2).sum())


def dense(subscriptions: Extents, advertisements: Extents) -> dict[str, np.ndarray]:
    """Eq. 4.2, 4.5 and 4.7 by loops over all pairs."""
    found = {name: np.zeros((OWNERS, OWNERS)) for name in ("overlap", "cover", "interest")}
    s, a = subscriptions, advertisements
    for x in range(len(s)):
        for j in set(s.owner) - {s.owner[x]}:
            own = np.flatnonzero(s.owner == j)
            alpha = np.array([shared(s, x, s, y) for y in own])
            shares = alpha**2 / (s.volume[x] * s.volume[own])
            found["overlap"][s.owner[x], j] += s.weight[x] * (shares * s.weight[own]).sum()
            inside = own[alpha == s.volume[own]]
            if len(inside):
                parts = [boxes(s, y) for y in inside]
                merged = union_volume(*map(np.concatenate, zip(*parts, strict=True)))
                gamma = s.weight[inside].sum() / s.weight[own].sum()
                found["cover"][s.owner[x], j] += s.weight[x] * merged / s.volume[x] * gamma
    for x in range(len(a)):
        for y in np.flatnonzero(s.owner != a.owner[x]):
            share = shared(a, x, s, y) / a.volume[x]
            found["interest"][a.owner[x], s.owner[y]] += a.weight[x] * s.weight[y] * share
    return found


@settings(max_examples=40)
@given(extent_sets(), extent_sets(most=5))
def test_all_metrics_are_the_formulas(subscriptions: Extents, advertisements: Extents) -> None:
    found = broker_similarity(subscriptions, advertisements, OWNERS)
    for name, wanted in dense(subscriptions, advertisements).items():
        assert getattr(found, name).toarray() == pytest.approx(wanted, rel=1e-9), name
    assert (found.overlap != found.overlap.T).nnz == 0


def test_many_boxes_in_many_blocks() -> None:
    """Boxes fill several blocks of the index, of which most are passed over."""
    draw = np.random.default_rng(5)
    count = 250
    lo = draw.integers(0, 60, (count, 2)).astype(np.float64)
    hi = lo + draw.integers(1, 12, (count, 2))
    topic = draw.integers(0, 2, count)
    made = make_extents(draw.integers(0, OWNERS, count), np.arange(count), topic, lo, hi)
    found = broker_similarity(made, made, OWNERS)
    for name, wanted in dense(made, made).items():
        assert getattr(found, name).toarray() == pytest.approx(wanted, rel=1e-9), name


def test_cover_of_very_many() -> None:
    """Coverers fill several batches, and the covered of one owner several tables."""
    draw = np.random.default_rng(6)
    many, few = BATCH + 100, 2 * GROUP + 10
    lo = draw.integers(0, 60, (many, 2)).astype(np.float64)
    hi = lo + draw.integers(1, 12, (many, 2))
    low = draw.integers(0, 60, (few, 2)).astype(np.float64)
    high = low + draw.integers(1, 6, (few, 2))
    large = make_extents(np.zeros(many), np.arange(many), np.zeros(many), lo, hi)
    small = make_extents(np.ones(few), np.arange(few), np.zeros(few), low, high)
    wanted = 0.0
    for x in range(many):
        inside = np.all((low >= lo[x]) & (high <= hi[x]), axis=1)
        merged = union_volume(low[inside], high[inside])
        wanted += merged / np.prod(hi[x] - lo[x]) * inside.sum() / few
    _, _, value = owner_cover(large, small)
    assert value == pytest.approx([wanted], rel=1e-9)


def filled_cells(lo: np.ndarray, hi: np.ndarray, side: int) -> int:
    """How many unit cells of a cube some boxes fill: counts begin at low ends, end at high ones."""
    change = np.zeros((side + 1,) * lo.shape[1])
    for corner in np.ndindex((2,) * lo.shape[1]):
        ends = np.where(corner, hi, lo).astype(int)
        np.add.at(change, tuple(ends.T), (-1.0) ** sum(corner))
    for axis in range(lo.shape[1]):
        change = np.cumsum(change, axis=axis)
    return int((change > 0.5).sum())


@pytest.mark.parametrize("seed", [0, 1])
def test_cover_of_a_huge_owner(seed: int) -> None:
    """Sets too large for a table of all that lie within each, in two topics; many are equal."""
    chance, side, few = np.random.default_rng(seed), 16, 40
    count = 2 * MOST + 500
    low = chance.integers(0, side - 1, (count, 3)).astype(np.float64)
    high = np.minimum(low + chance.integers(1, side if seed else 4, low.shape), side)
    wide = chance.random(low.shape) < 0.4
    low[wide], high[wide] = 0, side
    topic = chance.integers(0, 2, count)
    lo = chance.integers(0, 4, (few, 3)).astype(np.float64)
    hi = side - chance.integers(0, 4, lo.shape)
    lo[:5], hi[:5] = low[:5], high[:5]
    of = np.append(topic[:5], chance.integers(0, 2, few - 5))
    huge = make_extents(np.ones(count), np.arange(count), topic, low, high)
    wanted = np.zeros(few)
    for x in range(few):
        inside = (topic == of[x]) & np.all((low >= lo[x]) & (high <= hi[x]), axis=1)
        merged = filled_cells(low[inside], high[inside], side)
        wanted[x] = merged / np.prod(hi[x] - lo[x]) * inside.sum() / count
    owner = np.arange(few)
    found = owner_cover(make_extents(owner, owner, of, lo, hi), huge)
    assert min(np.bincount(topic)) > MOST
    values = owner_matrix(found, (few, 2)).toarray()[:, 1]
    assert values == pytest.approx(wanted, rel=1e-9)


@given(extent_sets())
def test_weights_stand_for_equal_extents(extents: Extents) -> None:
    """An extent with weight n is the same as n of them."""
    times = extents.weight.astype(int)
    copies = np.repeat(np.arange(len(extents)), times)
    parts = [boxes(extents, e) for e in copies]
    number = np.repeat(np.arange(len(copies)), [len(lo) for lo, _ in parts])
    lo, hi = (np.concatenate([np.empty((0, 3)), *side]) for side in _sides(parts))
    single = make_extents(extents.owner[copies], number, lo[:, 0], lo[:, 1:], hi[:, 1:])
    for metric in (owner_overlap, owner_cover):
        for got, wanted in zip(metric(single, single), metric(extents, extents), strict=True):
            assert got == pytest.approx(wanted, rel=1e-9)


def _sides(parts: list[tuple[np.ndarray, np.ndarray]]) -> list[list[np.ndarray]]:
    return [[part[side] for part in parts] for side in (0, 1)]


def of_two(
    first: tuple[list[float], list[float]], second: tuple[list[float], list[float]]
) -> float:
    lo, hi = zip(first, second, strict=True)
    pair = make_extents([0, 1], [0, 1], [0, 0], np.array(lo), np.array(hi))
    return float(broker_similarity(pair, pair, 2).overlap[0, 1])


def test_figure_4_1() -> None:
    """Areas of overlap 15 and 10; 40 % of s1 matches s2, and 67 % of s3 matches s4."""
    # 15² / (37.5 · 60) = 0.10, and 10² / (15 · 21.5) = 0.31.
    assert of_two(([0, 0], [7.5, 5]), ([4.5, 0], [16.5, 5])) == pytest.approx(0.10, abs=0.005)
    assert of_two(([0, 0], [3, 5]), ([1, 0], [5.3, 5])) == pytest.approx(0.31, abs=0.005)


def test_figure_4_2() -> None:
    """A region common to two covered subscriptions counts once, one outside does not count."""
    lo = np.array([[0, 0], [1, 1], [2, 2], [6, 6], [8, 8]], dtype=np.float64)
    hi = np.array([[10, 10], [4, 4], [5, 5], [8, 8], [12, 9]], dtype=np.float64)
    made = make_extents([0, 1, 1, 1, 1], np.arange(5), np.zeros(5), lo, hi)
    found = broker_similarity(made, made, 2).cover
    assert found[0, 1] == pytest.approx((9 + 9 - 4 + 4) / 100 * 3 / 4)
    assert found[1, 0] == 0.0


def test_points_have_a_volume() -> None:
    """`x = 0` is an interval as short as can be; it is still like itself."""
    least = np.nextafter(0.0, 1.0)
    point = ([0.0, 0.0], [least, least])
    assert of_two(point, point) == pytest.approx(1.0)
    whole = make_extents([0], [0], [0], np.array([[0.0, 0.0]]), np.array([[least, 1.0]]))
    assert whole.volume[0] == SMALLEST


def test_an_extent_without_boxes_is_like_nothing_but_counts() -> None:
    lo, hi = np.array([[0.0], [0.0]]), np.array([[4.0], [2.0]])
    made = make_extents([0, 1, 1], [0, 1], [0, 0], lo, hi)
    assert broker_similarity(made, made, 2).cover[0, 1] == pytest.approx(0.5 * 0.5)


def test_clients_are_numbered_apart() -> None:
    """Publisher 0 and subscriber 0 are different clients."""
    lo, hi = np.zeros((2, 1)), np.array([[4.0], [2.0]])
    subscribed = make_extents([0, 1], [0, 1], [0, 0], lo, hi)
    advertised = make_extents([0], [0], [0], np.array([[0.0]]), np.array([[8.0]]), weight=[1.0])
    interest, common = client_similarity(subscribed, advertised, 2, 1)
    assert interest.toarray().tolist() == [[0.5, 0.25]]
    assert common.toarray().tolist() == [[0.0, 0.5], [0.5, 0.0]]
