"""workload.toml: what it means, and every way it can be wrong."""

from __future__ import annotations

import contextlib
import math
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meanings import space_of

from fanplan.core.errors import InputError
from fanplan.workload.description import (
    Description,
    TopicEntry,
    load_description,
    parse_description,
    to_toml,
    with_overrides,
)
from fanplan.workload.description_schema import WorkloadLimits
from fanplan.workload.space import PLAIN, Attribute, CategoryAttribute, NumberAttribute, Space
from fanplan.workload.times import Clock

DESK = """
name = "desk"
topic_syntax = "nats"
rates = "measured"
cells = 8

[attributes]
price  = { type = "number", min = 0.0, max = 1000, unit = "USD" }
change = { type = "number", min = -1, max = 1 }
venue  = { type = "category", values = ["N", "Q", "Z"] }

[topics."quotes.*"]
attributes = ["venue", "price"]
grid = { price = 20 }

[topics."quotes.ibm"]
attributes = ["change"]

[topics."trades.>"]
attributes = ["venue", "price"]
grid = { price = 20 }

[topics.alerts]
"""
PRICE = NumberAttribute("price", 0.0, 1000.0, "USD")
CHANGE = NumberAttribute("change", -1.0, 1.0)
VENUE = CategoryAttribute("venue", ("N", "Q", "Z"))


def desk() -> Description:
    return parse_description(DESK, "folder")


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse_description(text, "folder")
    return [str(problem) for problem in caught.value.problems]


def test_the_example_of_the_design() -> None:
    assert desk() == Description(
        name="desk",
        topic_syntax="nats",
        rates="measured",
        grid="uniform",
        attributes={"price": PRICE, "change": CHANGE, "venue": VENUE},
        topics=(
            TopicEntry("quotes.*", 1),
            TopicEntry("quotes.ibm", 2),
            TopicEntry("trades.>", 1),
            TopicEntry("alerts", 0),
        ),
        spaces=(PLAIN, Space((VENUE, PRICE), (3, 20)), Space((CHANGE,), (8,))),
    )
    assert desk().dimensions == 2


def test_the_space_of_a_topic() -> None:
    spaces = {t: space_of(desk(), t) for t in ("quotes.ibm", "quotes.sun", "trades.a.b", "alerts")}
    assert spaces == {"quotes.ibm": 2, "quotes.sun": 1, "trades.a.b": 1, "alerts": 0}
    assert space_of(desk(), "news") is None
    assert space_of(desk(), "quotes") is None


def test_the_first_matching_pattern_counts() -> None:
    text = 'topic_syntax = "mqtt"\nattributes.x = { type = "number", min = 0, max = 1 }\n'
    text += '[topics."a/+"]\nattributes = ["x"]\n[topics."#"]\n'
    description = parse_description(text, "w")
    assert (space_of(description, "a/b"), space_of(description, "b")) == (1, 0)


def test_without_entries_every_topic_is_plain() -> None:
    empty = parse_description("", "folder")
    assert empty == Description("folder")
    assert space_of(empty, "anything") == 0
    assert empty.dimensions == 0


def test_loading(tmp_path: Path) -> None:
    assert load_description(tmp_path) == Description(tmp_path.name)
    (tmp_path / "workload.toml").write_text(DESK, encoding="utf-8")
    assert load_description(tmp_path) == desk()
    (tmp_path / "workload.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(InputError, match=r"workload\.toml: it cannot be read"):
        load_description(tmp_path)


def test_a_description_can_be_pickled() -> None:
    description = desk()
    assert space_of(description, "quotes.ibm") == 2
    assert pickle.loads(pickle.dumps(description)) == description


def test_minus_zero_does_not_enter_a_domain() -> None:
    text = "attributes.x = { type = 'number', min = -0.0, max = 1 }"
    attribute = parse_description(text, "w").attributes["x"]
    assert math.copysign(1.0, attribute.lo) == 1.0


# Overrides


def test_overrides() -> None:
    changed = with_overrides(desk(), grid="atomic", cover="full", rates="advertised", cells=5)
    assert (changed.grid, changed.cover, changed.rates) == ("atomic", "full", "advertised")
    assert changed.spaces == (PLAIN, Space((VENUE, PRICE), (3, 5)), Space((CHANGE,), (5,)))
    assert changed.topics == desk().topics
    assert with_overrides(desk()) == desk()


def test_overrides_share_spaces_that_become_equal() -> None:
    before, after = DESK.split('[topics."trades.>"]')
    text = before + '[topics."trades.>"]' + after.replace("price = 20", "price = 9")
    assert len(parse_description(text, "w").spaces) == 4
    changed = with_overrides(parse_description(text, "w"), cells=7)
    assert len(changed.spaces) == 3
    assert space_of(changed, "trades.x") == space_of(changed, "quotes.x")


def test_overrides_are_checked() -> None:
    small = replace(desk(), limits=WorkloadLimits(max_cells=100))
    with pytest.raises(InputError, match=r"3 × 50 cells, more than limits.max_cells = 100"):
        with_overrides(small, cells=50)
    assert with_overrides(small, cells=50, grid="atomic").spaces[1].cells == (3, 50)
    with pytest.raises(InputError, match="below 1"):
        with_overrides(small, cells=0)


# Writing

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
TOPICS = st.text("ab_ é\"\\'\n\x7f\x00", min_size=1)
NUMBERS = st.floats(-1e100, 1e100).map(lambda x: x + 0.0)


@st.composite
def descriptions(draw: st.DrawFn) -> Description:
    attributes: dict[str, Attribute] = {}
    for name in draw(st.lists(NAMES, max_size=4, unique_by=str.lower)):
        ends = sorted(draw(st.lists(NUMBERS, min_size=2, max_size=2, unique=True)))
        number = NumberAttribute(name, ends[0], ends[1], draw(st.text(max_size=3)))
        category = CategoryAttribute(name, tuple(draw(st.lists(NAMES, min_size=1, unique=True))))
        attributes[name] = number if draw(st.booleans()) else category
    spaces, topics = [PLAIN], []
    for topic in draw(
        st.lists(st.text("ab_ é\"\\'\n\x7f\x00", min_size=1), unique=True, max_size=4)
    ):
        space = draw(spaces_of(list(attributes.values())))
        spaces += [space] if space not in spaces else []
        topics.append(TopicEntry(topic, spaces.index(space)))
    return Description(
        name=draw(NAMES),
        rates=draw(st.sampled_from([None, "measured", "advertised"])),
        seconds=draw(st.sampled_from([None, 1.0, 0.1, 86_400.0])),
        grid=draw(st.sampled_from(["uniform", "atomic", "quantile"])),
        cover=draw(st.sampled_from(["overlap", "full"])),
        attributes=attributes,
        topics=tuple(topics),
        spaces=tuple(spaces),
        limits=WorkloadLimits(
            max_boxes=draw(st.integers(1, 9)), max_field_chars=draw(st.integers(1, 9))
        ),
        clock=Clock(
            draw(st.sampled_from([None, '%d.%m.%Y "%H:%M:%S"'])),
            draw(st.sampled_from([None, "Europe/Berlin", "-03:30"])),
            draw(st.sampled_from(["s", "ns"])),
        ),
    )


@st.composite
def spaces_of(draw: st.DrawFn, attributes: list[NumberAttribute | CategoryAttribute]) -> Space:
    own = draw(st.lists(st.sampled_from(attributes), unique=True)) if attributes else []
    cells = [
        len(a.values) if isinstance(a, CategoryAttribute) else draw(st.integers(1, 9)) for a in own
    ]
    return Space(tuple(own), tuple(cells))


RESERVED = {"time", "publisher", "topic", "attributes", "bytes"}


@settings(max_examples=200, deadline=None)
@given(descriptions())
def test_to_toml_can_be_read_back(description: Description) -> None:
    if RESERVED.isdisjoint(map(str.lower, description.attributes)):
        assert parse_description(to_toml(description), "other") == description


def test_to_toml_is_canonical() -> None:
    spaced = DESK.replace(" = ", "  =  ").replace("[topics", "# a remark\n[topics")
    assert to_toml(parse_description(spaced, "w")) == to_toml(desk())


# What is wrong

ATTRIBUTES = """
[attributes]
price = { type = "number", min = 0, max = 10 }
venue = { type = "category", values = ["N", "Q"] }
"""

WRONG = [
    ('name = "a', ("not valid TOML", "line 1")),
    ("x = 1\nx = 2", ("not valid TOML", "line 2")),
    ("a = " + "[" * 100_000, ("not valid TOML",)),
    ("gird = 'uniform'", ("unknown key 'gird'", "Did you mean 'grid'?")),
    ("zzz = 1", ("unknown key 'zzz'", "Known here:", "topic_syntax")),
    ("name = 3", ("workload.toml: name: 3 is not text in quotes",)),
    ("name = ''", ("name", "non-empty")),
    ("topic_syntax = 'amqp'", ("topic_syntax", "'exact', 'nats' or 'mqtt'")),
    ("rates = 'guessed'", ("rates", "'measured' or 'advertised'")),
    ("grid = 'fine'", ("grid", "'uniform', 'atomic' or 'quantile'")),
    ("cover = 'some'", ("cover", "'overlap' or 'full'")),
    ("seconds = 0", ("seconds", "above 0")),
    ("seconds = nan", ("seconds", "finite")),
    ("seconds = '1'", ("seconds", "number")),
    ("cells = 0", ("cells", "at least 1")),
    ("cells = 2.5", ("cells", "whole number")),
    ("cells = true", ("cells", "whole number")),
    ("limits = 3", ("limits", "table")),
    ("[limits]\nmax_boxs = 3", ("limits", "unknown key 'max_boxs'", "'max_boxes'")),
    ("[limits]\nmax_boxes = 0", ("limits.max_boxes", "at least 1")),
    ("attributes = []", ("attributes", "table")),
    ("attributes.x = 3", ("attributes.x", "table")),
    ("attributes.x = {min = 1, max = 2}", ("attributes.x", "'type' is missing")),
    ("attributes.x = {type = 'text'}", ("attributes.x.type", "'number' or 'category'")),
    ("attributes.x = {type = 'number', min = 1}", ("attributes.x", "'max' is missing")),
    ("attributes.x = {type = 'number', min = 1, max = 1}", ("attributes.x", "not below")),
    ("attributes.x = {type = 'number', min = 2, max = 1}", ("min = 2.0", "max = 1.0")),
    ("attributes.x = {type = 'number', min = nan, max = 1}", ("attributes.x.min", "finite")),
    ("attributes.x = {type = 'number', min = 1, max = inf}", ("attributes.x.max", "finite")),
    ("attributes.x = {type = 'number', min = -1e308, max = 1e308}", ("x", "too far from")),
    ("attributes.x = {type = 'number', min = 'a', max = 1}", ("attributes.x.min", "number")),
    ("attributes.x = {type = 'category'}", ("attributes.x", "'values' is missing")),
    ("attributes.x = {type = 'category', values = []}", ("x.values", "at least one item")),
    ("attributes.x = {type = 'category', values = ['']}", ("x.values[0]", "non-empty")),
    ("attributes.x = {type = 'category', values = ['a', 1]}", ("x.values[1]", "text")),
    ("attributes.x = {type = 'category', values = ['a', 'a']}", ('"a" is there twice',)),
    ("attributes.Topic = {type = 'category', values = ['a']}", ("column of publications",)),
    ("attributes.'' = {type = 'category', values = ['a']}", ("name is empty",)),
    (ATTRIBUTES + "Price = {type = 'number', min = 0, max = 1}", ("Price", "apart from capitals")),
    (ATTRIBUTES + "price = 1", ("not valid TOML",)),
    ("time_unit = 'minutes'", ("time_unit", "'ms'")),
    ("time_zone = 'Europe/Berln'", ("time_zone", "Europe/Berln", "+02:00")),
    ("time_zone = '../etc/passwd'", ("time_zone", "is not known")),
    ("time_zone = '+25:00'", ("time_zone", "is not known")),
    ("time_format = '%Y-%m-%d %Q'", ("time_format", "'%Q' is not known", "%H")),
    ("time_format = '%Y-%m-%d %'", ("time_format", "'%' is not known")),
    ("time_format = '%b %d %H:%M:%S'", ("time_format", "no year")),
    ("time_format = '%Y %b'", ("time_format", "no day")),
    ("time_format = '%Y-%m-%d %m'", ("time_format", "the month 2 times")),
    ("time_format = '%Y-%m-%d %I:%M'", ("time_format", "%I and %p")),
    ("time_format = '%Y%m%d%H%M%S%f'", ("time_format", "%f touches")),
    ("topics = 1", ("topics", "table")),
    ("topics.a = 1", ("topics.a", "table")),
    (
        ATTRIBUTES + "[topics.a]\nattribute = ['price']",
        ("'attribute'", "Did you mean 'attributes'"),
    ),
    (ATTRIBUTES + "[topics.a]\nattributes = 'price'", ("topics.a.attributes", "list")),
    (ATTRIBUTES + "[topics.a]\nattributes = ['prize']", ("prize is not declared", "'price'")),
    (ATTRIBUTES + "[topics.a]\nattributes = ['price', 'price']", ("price is there twice",)),
    (ATTRIBUTES + "[topics.a]\ngrid = { price = 3 }", ("topics.a.grid.price", "no attribute")),
    (
        ATTRIBUTES + "[topics.a]\nattributes = ['price']\ngrid = { price = 0 }",
        ("topics.a.grid.price", "at least 1"),
    ),
    (
        ATTRIBUTES + "[topics.a]\nattributes = ['venue']\ngrid = { venue = 2 }",
        ("topics.a.grid.venue", "one cell per value"),
    ),
    (
        ATTRIBUTES + "[topics.a]\nattributes = ['price']\ngrid = { price = 1_000_001 }",
        ("topics.a", "1000001 cells", "limits.max_cells = 1000000"),
    ),
    ("[topics.'quotes.*']", ('topics."quotes.*"', 'topic_syntax = "nats"')),
    ("[topics.'quotes/#']", ('topics."quotes/#"', 'topic_syntax = "mqtt"')),
    ("topic_syntax = 'nats'\n[topics.'a..b']", ('topics."a..b"', "nats", "empty token")),
    ("topic_syntax = 'nats'\n[topics.'a.>.b']", ("last token",)),
    ("topic_syntax = 'mqtt'\n[topics.'a#']", ("whole level",)),
    ("[topics.'']", ("topics", "empty")),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=[text[-40:] for text, _ in WRONG])
def test_what_is_wrong_is_named(text: str, words: tuple[str, ...]) -> None:
    (problem,) = problems(text)
    assert problem.startswith("workload.toml")
    assert all(word in problem for word in words), problem


def test_all_problems_are_reported_together() -> None:
    text = """
cells = 0
colour = "red"
[limits]
max_boxes = "many"
[attributes]
price = { type = "number", min = 10, max = 1 }
venue = { type = "category", values = ["N", "N", 3] }
[topics.a]
attributes = ["prices", "venue"]
grid = { venue = 1, price = 0, size = 2 }
"""
    found = "\n".join(problems(text))
    for place in (
        "cells: 0",
        "'colour'",
        "limits.max_boxes",
        "attributes.price: min",
        'attributes.venue.values: the value "N"',
        "attributes.venue.values[2]: 3",
        "topics.a.attributes: prices",
        "topics.a.grid.venue: a category",
        "topics.a.grid.price: 0",
        "topics.a.grid.size: the topic has no attribute",
    ):
        assert place in found
    assert len(found.splitlines()) == 10


@settings(deadline=None)
@given(st.one_of(st.text(), st.text("[]{}=.'\"\n#ax1", max_size=30)))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        assert parse_description(text, "w").spaces[0] == PLAIN
