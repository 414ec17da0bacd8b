"""Selectors: what boxes mean, what is refused, and with which words."""

from __future__ import annotations

import itertools
import math
import operator
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from meanings import common, holds

from fanplan.workload.selector import SelectorError, attributes_of, compile_selector
from fanplan.workload.selector.parse import parse
from fanplan.workload.selector.tree import (
    And,
    Between,
    Compare,
    Constant,
    In,
    Node,
    Not,
    Or,
    check_tree,
)
from fanplan.workload.space import PLAIN, Box, CategoryAttribute, NumberAttribute, Space, just_above

PRICE = NumberAttribute("price", 0.0, 1000.0)
CHANGE = NumberAttribute("change", -1.0, 1.0)
VENUE = CategoryAttribute("venue", ("N", "Q", "Z"))
SYMBOL = CategoryAttribute("the symbol", ("ibm", "i_m", "o'neill", "sun", "%"))
SPACE = Space((VENUE, PRICE, SYMBOL, CHANGE), (3, 16, 5, 16))
MANY = 10_000


def boxes(text: str | None, space: Space = SPACE, max_boxes: int = MANY) -> tuple[Box, ...]:
    return compile_selector(text, space, max_boxes)


def refusal(text: str, space: Space = SPACE, max_boxes: int = MANY) -> SelectorError:
    with pytest.raises(SelectorError) as caught:
        compile_selector(text, space, max_boxes)
    return caught.value


# Random selectors, as text

NUMBERS = st.one_of(
    st.sampled_from([-1.0, -0.5, 0.0, 5e-324, 0.1, 0.5, 1.0, 10.0, 20.0, 999.0, 1000.0, 2000.0]),
    st.floats(-2.0, 1100.0, allow_nan=False),
)


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@st.composite
def number_questions(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["price", "change", '"change"']))
    low, high, operator = (
        draw(NUMBERS),
        draw(NUMBERS),
        draw(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="])),
    )
    maybe = draw(st.sampled_from(["", "NOT "]))
    return draw(
        st.sampled_from(
            [
                f"{name} {operator} {low!r}",
                f"{low!r} {operator} {name}",
                f"{name} {maybe}BETWEEN {low!r} AND {high!r}",
                f"{name} {maybe}IN ({low!r}, {high!r}, {low!r})",
            ]
        )
    )


@st.composite
def category_questions(draw: st.DrawFn) -> str:
    attribute, name = draw(st.sampled_from([(VENUE, "venue"), (SYMBOL, '"the symbol"')]))
    values = draw(st.lists(st.sampled_from(attribute.values), min_size=1, max_size=3))
    maybe = draw(st.sampled_from(["", "NOT "]))
    pattern = draw(st.text("im_%nQ", max_size=4))
    return draw(
        st.sampled_from(
            [
                f"{name} {draw(st.sampled_from(['=', '<>']))} {quoted(values[0])}",
                f"{name} {maybe}in ({', '.join(map(quoted, values))})",
                f"{name} {maybe}LIKE {quoted(pattern)}",
            ]
        )
    )


QUESTIONS = st.one_of(number_questions(), category_questions(), st.sampled_from(["TRUE", "false"]))
SELECTORS = st.recursive(
    QUESTIONS,
    lambda inner: st.one_of(
        inner.map(lambda item: f"NOT ({item})"),
        inner.map(lambda item: f"({item})"),
        st.tuples(inner, inner).map(lambda items: f"({items[0]}) AND ({items[1]})"),
        st.lists(inner, min_size=2, max_size=4).map(" OR ".join),
        st.lists(inner, min_size=2, max_size=4).map(" and ".join),
    ),
    max_leaves=8,
)


def coordinates_near(ends: set[float], attribute: NumberAttribute) -> list[float]:
    """End points and their float neighbours, as far as they lie in the domain."""
    near = {y for x in ends for y in (x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf))}
    inside = sorted(y for y in near if attribute.lo <= y < attribute.hi)
    return [attribute.min, attribute.max, *inside]


def point_strategy(found: tuple[Box, ...]) -> st.SearchStrategy[tuple[float, ...]]:
    axes = []
    for axis, attribute in enumerate(SPACE.attributes):
        if isinstance(attribute, CategoryAttribute):
            axes.append(st.sampled_from([float(i) for i in range(len(attribute.values))]))
            continue
        ends = {end for box in found for end in (box.lo[axis], box.hi[axis])}
        near = st.sampled_from(coordinates_near(ends, attribute))
        axes.append(st.one_of(near, near, st.floats(attribute.min, attribute.max)))
    return st.tuples(*axes)


def named(point: tuple[float, ...]) -> dict[str, float | str]:
    return {
        attribute.name: attribute.values[int(x)] if isinstance(attribute, CategoryAttribute) else x
        for attribute, x in zip(SPACE.attributes, point, strict=True)
    }


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(text: str, space: Space, point: Mapping[str, float | str]) -> bool:
    """The meaning of a selector: its truth at a point, from the parse tree and without boxes."""
    tree = parse(text)
    check_tree(tree, space)
    return is_true(tree, point)


def is_true(node: Node, point: Mapping[str, Any]) -> bool:
    match node:
        case Constant(value):
            return value
        case Not():
            return not is_true(node.items[0], point)
        case And():
            return all(is_true(item, point) for item in node.items)
        case Or():
            return any(is_true(item, point) for item in node.items)
    x = point[node.attribute]
    match node:
        case Compare():
            return COMPARISONS[node.operator](x, node.literal.value)
        case Between():
            return bool(node.low.value <= x <= node.high.value)
        case In():
            return any(x == literal.value for literal in node.literals)
    return node.pattern.fullmatch(x) is not None


def compiled_or_refused(text: str) -> tuple[Box, ...] | SelectorError:
    try:
        return boxes(text)
    except SelectorError as error:
        return error


def compiled_or_nothing(text: str) -> tuple[Box, ...]:
    """Boxes, or none for a filter that can never be true."""
    result = compiled_or_refused(text)
    if isinstance(result, SelectorError):
        assert "can never be true" in result.reason
        return ()
    return result


@settings(max_examples=300, deadline=None)
@given(st.data(), SELECTORS)
def test_boxes_mean_what_the_selector_means(data: st.DataObject, text: str) -> None:
    found = compiled_or_nothing(text)
    for point in data.draw(st.lists(point_strategy(found), min_size=5, max_size=20)):
        homes = [box for box in found if holds(box, point)]
        assert len(homes) == evaluate(text, SPACE, named(point))


@settings(max_examples=200, deadline=None)
@given(SELECTORS)
def test_boxes_are_disjoint_merged_sorted_and_inside_the_domain(text: str) -> None:
    found = compiled_or_nothing(text)
    assert list(found) == sorted(found, key=lambda box: (box.lo, box.hi))
    for box in found:
        assert common(box, SPACE.whole()) == box
    for a, b in itertools.combinations(found, 2):
        assert common(a, b) is None
        assert not could_be_one(a, b)


def could_be_one(a: Box, b: Box) -> bool:
    differ = [i for i in range(len(a.lo)) if (a.lo[i], a.hi[i]) != (b.lo[i], b.hi[i])]
    return len(differ) == 1 and (
        a.hi[differ[0]] == b.lo[differ[0]] or b.hi[differ[0]] == a.lo[differ[0]]
    )


@settings(max_examples=100, deadline=None)
@given(SELECTORS, SELECTORS)
def test_filters_that_mean_the_same_give_the_same_boxes(a: str, b: str) -> None:
    assert compiled_or_nothing(f"({a}) OR ({b})") == compiled_or_nothing(
        f"NOT (NOT ({b}) AND NOT ({a}))"
    )


WORDS = ["price", "venue", "(", ")", ",", "=", "<>", "<", "'N'", "10", "-1e3"]
WORDS += ["AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "ESCAPE", "TRUE"]


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(
        st.text(max_size=40),
        st.text("ab price'\"()=<>!,.-+e019 \n\t\x00;*", max_size=40),
        st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join),
    )
)
@example("ı LıKE 'x'")
@example("\ud800")
@example("price < 1" + "0" * 400)
def test_any_text_is_compiled_or_refused_with_a_position(text: str) -> None:
    result = compiled_or_refused(text)
    if isinstance(result, SelectorError):
        assert result.position is not None
        assert 1 <= result.position <= len(text) + 1
        assert str(result.position) in str(result)


# Exact end points

TOP = just_above(1000.0)


@pytest.mark.parametrize(
    ("text", "intervals"),
    [
        ("price = 10", [(10.0, just_above(10.0))]),
        ("price < 10", [(0.0, 10.0)]),
        ("price <= 10", [(0.0, just_above(10.0))]),
        ("price > 10", [(just_above(10.0), TOP)]),
        ("price >= 10", [(10.0, TOP)]),
        ("10 < price", [(just_above(10.0), TOP)]),
        ("10 >= price", [(0.0, just_above(10.0))]),
        ("10 != price", [(0.0, 10.0), (just_above(10.0), TOP)]),
        ("price BETWEEN 10 AND 20", [(10.0, just_above(20.0))]),
        ("price NOT BETWEEN 10 AND 20", [(0.0, 10.0), (just_above(20.0), TOP)]),
        ("price IN (20, 10)", [(10.0, just_above(10.0)), (20.0, just_above(20.0))]),
        ("price < 10 OR price >= 10", [(0.0, TOP)]),
        ("price < 10 OR price > 10 OR price = 1e1", [(0.0, TOP)]),
        ("price <> 5000", [(0.0, TOP)]),
        ("NOT (price BETWEEN 20 AND 10)", [(0.0, TOP)]),
        ("price >= 1.5e+2 and price<+.25E3", [(150.0, 250.0)]),
        ("price <= -0.0", [(0.0, 5e-324)]),
        ("NOT NOT price < 7.", [(0.0, 7.0)]),
    ],
)
def test_end_points_are_exact(text: str, intervals: list[tuple[float, float]]) -> None:
    space = Space((PRICE,), (4,))
    assert [(box.lo[0], box.hi[0]) for box in boxes(text, space)] == intervals


def test_no_box_starts_at_minus_zero() -> None:
    for text in ("change >= -0", "change > -5e-324", "change IN (-0.0)"):
        (box,) = boxes(text, Space((CHANGE,), (4,)))
        assert math.copysign(1.0, box.lo[0]) == 1.0


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("\"the symbol\" = 'o''neill'", {"o'neill"}),
        ("\"the symbol\" LIKE 'i_m'", {"ibm", "i_m"}),
        ("\"the symbol\" LIKE 'i!_m' ESCAPE '!'", {"i_m"}),
        ("\"the symbol\" LIKE '%n%'", {"o'neill", "sun"}),
        ("\"the symbol\" LIKE '!%' ESCAPE '!'", {"%"}),
        ("\"the symbol\" NOT LIKE '%'  OR \"the symbol\" in ('sun')", {"sun"}),
    ],
)
def test_category_values(text: str, values: set[str]) -> None:
    space = Space((SYMBOL,), (5,))
    found = boxes(text, space)
    positions = [i for box in found for i in range(int(box.lo[0]), int(box.hi[0]))]
    assert sorted(SYMBOL.values[i] for i in positions) == sorted(values)


@pytest.mark.parametrize("text", [None, "", " \n", "TRUE", "venue LIKE '%'", "price >= 0 OR FALSE"])
@pytest.mark.parametrize("space", [SPACE, PLAIN])
def test_everything(text: str | None, space: Space) -> None:
    if space is PLAIN and text and "e " in text:
        assert "has no attributes" in refusal(text, PLAIN).reason
    else:
        assert boxes(text, space) == (space.whole(),)


def test_touching_boxes_are_joined_across_axes() -> None:
    text = "venue = 'N' AND price IN (1, 2) OR venue = 'Q' AND price = 1"
    space = Space((VENUE, PRICE), (3, 4))
    assert boxes(text, space) == (
        Box((0.0, 1.0), (2.0, just_above(1.0))),
        Box((0.0, 2.0), (1.0, just_above(2.0))),
    )


def test_precedence_is_not_then_and_then_or() -> None:
    loose = "venue = 'N' OR NOT price > 5 AND price > 2"
    assert boxes(loose) == boxes("(venue = 'N') OR ((NOT (price > 5)) AND (price > 2))")


def test_keywords_need_no_capitals_and_names_do() -> None:
    assert boxes("price BeTwEeN 1 aNd 2") == boxes("price BETWEEN 1 AND 2")
    assert "Price" in refusal("Price > 1").reason


def test_names_that_begin_with_a_keyword() -> None:
    space = Space(tuple(NumberAttribute(n, 0.0, 1.0) for n in ("interest", "android", "notes")))
    assert len(boxes("interest < 1 AND android < 1 OR notes < 1", space)) > 0


# What is refused, and why

REFUSALS = [
    ("volume > 1", ("volume", "venue, price, the symbol, change"), 1, "volume"),
    ("price = 'ten'", ("price is a number", "'ten'"), 9, "price"),
    ("price IN (1, 'ten')", ("price is a number", "'ten'"), 14, "price"),
    ("price LIKE '1%'", ("price is a number", "LIKE"), 1, "price"),
    ("venue = 1", ("venue is a category", "number 1"), 9, "venue"),
    ("venue < 'Q'", ("venue is a category", "<"), 1, "venue"),
    ("'Q' < venue", ("venue is a category", ">"), 7, "venue"),
    ("venue BETWEEN 'N' AND 'Q'", ("venue is a category", "BETWEEN"), 1, "venue"),
    ("venue IN ('N', 'X')", ("'X'", "venue", "'N', 'Q', 'Z'"), 16, "venue"),
    ("price > 5 AND venue = 'n'", ("'n'", "venue"), 23, "venue"),
    ("price BETWEEN 20 AND 10", ("never be true", "BETWEEN 20 AND 10"), 1, "price"),
    ("price = 2000.5", ("never be true", "domain of price is from 0 to 1000"), 1, "price"),
    ("venue='N' AND price < 0", ("never be true", "domain of price"), 15, "price"),
    ("venue LIKE 'x%'", ("never be true", "no value of venue"), 1, "venue"),
    ("price > 5 AND price < 3", ("never be true", "exclude each other"), 1, None),
    ("FALSE", ("never be true",), 1, None),
    ("price IS NULL", ("IS NULL is not supported",), 7, None),
    ("price IS NOT NULL", ("IS NULL is not supported",), 7, None),
    ("price = NULL", ("NULL is not supported",), 9, None),
    ("price + 1 > 2", ("arithmetic",), 7, None),
    ("price > 2 -1", ("arithmetic",), 11, None),
    ("price > 2 * 3", ("arithmetic",), 11, None),
    ("-price > 2", ("arithmetic",), 1, None),
    ("venue = 'N' || 'Q'", ("arithmetic",), 13, None),
    ("abs(price) > 2", ("function call",), 4, None),
    ("price > abs(2)", ("not with another attribute: abs",), 9, None),
    ("price > change", ("not with another attribute: change",), 9, None),
    ('venue = "N"', ("single quotes", "not with another attribute"), 9, None),
    ("5 = 5", ("needs an attribute",), 5, None),
    ("'N' = 'N'", ("needs an attribute",), 7, None),
    ("price IN (SELECT 1)", ("subquery",), 11, None),
    ("SELECT 1", ("subquery",), 1, None),
    ("EXISTS (SELECT 1)", ("subquery",), 1, None),
    ("CASE WHEN price > 1 THEN TRUE END", ("CASE",), 1, None),
    ("CAST(price AS INT) > 1", ("function call",), 1, None),
    ("price > 5 AS p", ("alias",), 11, None),
    ("price > 5 p", ("unexpected 'p'",), 11, None),
    ("price > 5;", ("';'",), 10, None),
    ("price > 5 -- and more", ("comment",), 11, None),
    ("price > 5 /* x */", ("comment",), 11, None),
    ("/*+ hint */ price > 5", ("comment",), 1, None),
    ("price > :limit", ("parameter",), 9, None),
    ("price > ?", ("parameter",), 9, None),
    ("q.price > 1", ("'.'", "double quotes"), 2, None),
    ("price > NaN", ("NaN",), 9, None),
    ("price < -Infinity", ("arithmetic",), 9, None),
    ("price < Infinity", ("infinity",), 9, None),
    ("price < 1e999", ("1e999", "too large"), 9, None),
    ("price > 1_000", ("badly written",), 9, None),
    ("price > 0x10", ("badly written",), 9, None),
    ("price > 10AND price < 20", ("badly written",), 9, None),
    ("price == 5", ("unexpected '='",), 8, None),
    ("price <=> 5", ("unexpected '>'",), 9, None),
    ("5 < price < 7", ("unexpected '<'",), 11, None),
    ("price BETWEEN SYMMETRIC 3 AND 1", ("unexpected 'SYMMETRIC'",), 15, None),
    ("price = TRUE", ("TRUE and FALSE",), 9, None),
    ("venue = 'N", ("no closing quote",), 9, None),
    ('"venue = 1', ("no closing quote",), 1, None),
    ("venue = 'N' 'Q'", ("unexpected",), 13, None),
    ("venue = N'Q'", ("another attribute",), 9, None),
    ("venue IN ()", ("unexpected ')'",), 11, None),
    ("(price > 1", ("ends too early",), 11, None),
    ("price > 1)", ("unexpected ')'",), 10, None),
    ("price", ("ends too early",), 6, None),
    ("price > 1 AND", ("ends too early",), 14, None),
    ("venue LIKE 'N' ESCAPE 'ab'", ("ESCAPE", "one character"), 23, None),
    ("venue LIKE 5", ("LIKE needs a string",), 12, None),
    ("venue LIKE 'N!' ESCAPE '!'", ("escape character",), 12, None),
    ("NOT (price > 1 AND " * 150 + "TRUE" + ")" * 150, ("nested",), 1, None),
]


@pytest.mark.parametrize(("text", "words", "position", "attribute"), REFUSALS)
def test_refusals_say_why_and_where(
    text: str, words: tuple[str, ...], position: int, attribute: str | None
) -> None:
    error = refusal(text)
    assert all(word in error.reason for word in words), error.reason
    assert (error.position, error.attribute) == (position, attribute)
    assert str(error) == error.reason


def test_a_long_list_of_allowed_values_is_shortened() -> None:
    many = Space((CategoryAttribute("symbol", tuple(f"s{i}" for i in range(1000))),), (1000,))
    reason = refusal("symbol = 'x'", many).reason
    assert "and 995 more" in reason
    assert len(reason) < 200


def cube(dimensions: int) -> Space:
    return Space(tuple(NumberAttribute(f"a{i}", 0.0, 10.0) for i in range(dimensions)))


def test_too_many_boxes_name_the_limit() -> None:
    text = " AND ".join(f"a{i} <> 5" for i in range(4))
    assert len(boxes(text, cube(4), 16)) == 16
    error = refusal(text, cube(4), 15)
    assert "more than 15 boxes" in error.reason
    assert "limits.max_boxes in workload.toml" in error.reason


def test_a_filter_that_would_explode_is_refused() -> None:
    wide = [f"a{i} <> 5" for i in range(40)]
    assert "boxes" in refusal(" AND ".join(wide[:12]), cube(12), 1024).reason
    assert "too intricate" in refusal(" AND ".join(wide), cube(40), 1024).reason


def test_a_long_filter_is_no_problem() -> None:
    text = " OR ".join(f"(price BETWEEN {i} AND {i}.5 AND venue = 'N')" for i in range(900))
    assert len(boxes(text)) == 900


def test_no_like_pattern_takes_long() -> None:
    space = Space((CategoryAttribute("x", ("a" * 200, "a" * 200 + "b")),), (2,))
    (box,) = boxes(f"x LIKE '{'%a' * 50}%b'", space)
    assert (box.lo, box.hi) == ((1.0,), (2.0,))


@pytest.mark.parametrize("part", ["1", "1.", "a", "'", '"', "(", "NOT ", "1e", "-", "''"])
def test_long_nonsense_is_refused_in_linear_time(part: str) -> None:
    assert refusal(f"price > {part * 20_000}!").position


def test_deep_parentheses_are_no_problem() -> None:
    assert boxes("(" * 5000 + "price < 1" + ")" * 5000) == boxes("price < 1")


def test_attributes_of() -> None:
    assert attributes_of(None) == frozenset()
    assert attributes_of("price > 1 AND (x IN ('a') OR NOT \"y z\" LIKE 'b')") == {
        "price",
        "x",
        "y z",
    }
    with pytest.raises(SelectorError, match="ends too early"):
        attributes_of("price >")


def test_the_error_survives_pickling() -> None:
    error = refusal("volume > 1")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.reason, copy.position, copy.attribute) == (error.reason, 1, "volume")
