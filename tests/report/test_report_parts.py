"""Parts of a report: drawings, pictures and tables are right, harmless and small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_worlds import HOSTILE, Elements

from fanplan.core.prices import Weights
from fanplan.data.reader import Manifest
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions, PlanRelation
from fanplan.layers.channels.report import things
from fanplan.layers.channels.report.matrix import audience_pairs, matrix_pictures
from fanplan.layers.channels.report.section import wanted_pairs
from fanplan.page.bars import bars_of
from fanplan.page.charts import share_steps
from fanplan.page.content import MOST_ROWS, Listing, Picture, Section
from fanplan.page.details import packed, plan_things
from fanplan.page.network import DrawnBroker, DrawnLink, network_drawing, radial
from fanplan.page.saving import Saving, Step
from fanplan.page.sections import glossary
from fanplan.page.svg import tag
from fanplan.verbs.report import render


def test_hostile_words_are_harmless_everywhere() -> None:
    picture = Picture(
        HOSTILE, HOSTILE, network_drawing(HOSTILE, [DrawnBroker(HOSTILE, 1, HOSTILE)], []), HOSTILE
    )
    listing = Listing(HOSTILE, HOSTILE, [HOSTILE], [[HOSTILE]], HOSTILE)
    facts = [(HOSTILE, HOSTILE)]
    section = Section(HOSTILE, HOSTILE, HOSTILE, facts, [picture], [listing], [HOSTILE])
    words = (HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    saving = Saving(*words, steps=(Step(HOSTILE, 2), Step(HOSTILE, 1)), gains=(HOSTILE,))
    page = Elements(render(HOSTILE, HOSTILE, [saving], [section]))
    assert page.tags.count("script") == 1
    assert page.tags.count("td") == 1


def test_the_glossary_is_the_documents() -> None:
    told = dict(glossary())
    source = Path(__file__).parents[2] / "docs" / "glossary.md"
    assert len(told) == sum(line.startswith("| ") for line in source.read_text().splitlines()) - 2
    assert told["channel"] == "a multicast group"


@pytest.mark.parametrize(("flows", "people"), [(10_000, 1_000), (20_000, 2_000)])
def test_a_large_plan_gives_a_small_page(
    flows: int, people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random interest, which compresses worst, and 1,000 brokers: four times the pairs, no more."""
    random, channels = np.random.default_rng(1), 100
    truth = truth_of(random.random((flows, people), np.float32) < 0.03)
    of = random.integers(0, channels, flows)
    members = random.random((channels, people)) < 0.2
    pairs = audience_pairs(truth)
    direct = ~members[of[pairs.left], pairs.right]
    decisions = Decisions(
        PlanRelation(np.arange(flows + 1), of.astype(np.int32)),
        relation(members),
        PlanRelation(
            np.append(0, np.cumsum(np.bincount(pairs.left[direct], minlength=flows))),
            pairs.right[direct].astype(np.int32),
        ),
    )
    monkeypatch.setattr(things, "ranges_at", lambda _, told: ["all of it"] * len(told))
    record: Any = SimpleNamespace(
        weights=Weights(), params=SimpleNamespace(unicast_limit=None), channels=channels
    )
    wanted = wanted_pairs(truth, decisions, truth.messages)
    told = things.ChannelThings(Path(), record, truth, decisions, wanted, None)
    links = [DrawnLink(int(random.integers(i)), i, 1.0, f"link {i}") for i in range(1, 1000)]
    tree = network_drawing("tree", [DrawnBroker(f"b{i}", i, f"b{i}") for i in range(1000)], links)
    assert tree.count("<circle") == 1000
    pictures = matrix_pictures("m", truth, decisions)
    opens = packed([("plan", plan_things(told.shelves()))])
    assert sum(len(picture.content) for picture in pictures) + len(tree) + len(opens) < 2_500_000


def truth_of(wanted: np.ndarray) -> ChannelTruth:
    flows, people = wanted.shape
    starts = np.append(0, np.cumsum(wanted.sum(axis=1)))
    manifest = Manifest("k", 1.0, "overlap", "atomic", True, {})
    ones = np.ones(flows)
    names = pa.array([f"t{i}" for i in range(flows)])
    classes = np.arange(flows, dtype=np.int32)
    audience = np.nonzero(wanted)[1].astype(np.int32)
    subscribers = pa.array([f"s{i}" for i in range(people)])
    copies = np.diff(starts).astype(np.float64)
    return ChannelTruth(
        manifest,
        pa.table({"topic": names}),
        names,
        ones,
        ones,
        classes,
        starts,
        audience,
        subscribers,
        copies,
    )


def relation(pairs: np.ndarray) -> PlanRelation:
    return PlanRelation(
        np.append(0, np.cumsum(pairs.sum(axis=1))), np.nonzero(pairs)[1].astype(np.int32)
    )


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(0, 5), st.integers(0, 99))
def test_brokers_are_drawn_apart(size: int, more: int, seed: int) -> None:
    """Also where links are no tree, or leave the network in parts."""
    random = np.random.default_rng(seed)
    links = [(int(random.integers(i)), i) for i in range(1, size) if random.random() < 0.9]
    links += [tuple(random.integers(0, size, 2).tolist()) for _ in range(more)]
    places = radial(np.array(links, np.int64).reshape(-1, 2), size)
    assert np.all(np.hypot(*places.T) <= 1 + 1e-9)
    assert len(np.unique(np.round(places, 9), axis=0)) == size


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1))
def test_shares_rise_to_one(items: list[tuple[int, int]]) -> None:
    values, weights = np.array(items, float).T
    points = share_steps(values, weights)
    assert points[0] == (0.0, 0.0)
    assert points[-1] == pytest.approx((values.max(), 1.0))
    at = dict(points)
    assert all(at[v] == pytest.approx(weights[values <= v].sum() / weights.sum()) for v in values)


def test_numbers_of_a_column_are_written_alike() -> None:
    rows = [("a", 1, 1234.5, -2.5), ("b", 20, 0.25, None)]
    listing = Listing("n", "N", ("name", "count", "rate", "share %"), rows)
    assert listing.numeric == [False, True, True, True]
    words = [[word for _, word in row] for row in listing.shown]
    assert words == [["a", "1", "1,234", "−2.5"], ["b", "20", "0", "–"]]
    mixed = replace(listing, mixed=True)
    assert [word for _, word in mixed.shown[1]] == ["b", "20", "0.25", "–"]


def test_a_table_is_cut_where_a_browser_would_be_slow() -> None:
    listing = Listing("n", "N", ("number",), [(i,) for i in range(MOST_ROWS + 7)])
    assert (len(listing.shown), listing.left_out) == (MOST_ROWS, 7)
    page = render("t", "t", [], [Section("s", "S", listings=[listing])])
    assert "7 more are in the plan" in page


def test_attributes_are_escaped() -> None:
    assert tag("a", "<", data_tip='"<') == '<a data-tip="&#34;&lt;">&lt;</a>'


def test_what_costs_more_is_not_called_a_saving() -> None:
    steps = (Step("naive", 10.0), Step("this plan", 15.0))
    saving = Saving("x", "X", "plan", "messages", steps, ("change",), Step("least", 5.0))
    assert (saving.headline, saving.share) == ("50 % more", -0.5)
    assert saving.detail == "15 instead of 10; 200 % above least"
    assert [bar.class_ for bar in bars_of(saving)] == ["naive", "added", "planned"]
