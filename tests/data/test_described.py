from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Flow, World, unhurried, write_dataset, write_stage
from hypothesis import given
from hypothesis import strategies as st
from sealing import seal_dataset

from fanplan.core.errors import readable
from fanplan.data.described import FlowWords, RegionWords, box_words, load_words, wanted_words
from fanplan.data.ranges import cell_ranges, closed_ranges, decimal_text
from fanplan.data.reader import read_stage
from fanplan.workload.space import Attribute, CategoryAttribute, NumberAttribute, Space, just_above

PRICE = NumberAttribute("price", 0.0, 1000.0, "USD")
VENUE = CategoryAttribute("venue", ("N", "Q", "Z", "X", "Y"))
numbers = st.floats(-1e9, 1e9) | st.integers(-(10**12), 10**12).map(float)


def closed(lo: float, hi: float) -> str:
    return str(closed_ranges(np.array([lo]), np.array([hi]))[0])


def cell(lo: float, hi: float, top: float = math.inf) -> str:
    return str(cell_ranges(np.array([lo]), np.array([hi]), top)[0])


@pytest.mark.parametrize(
    ("lo", "hi", "text"),
    [
        (10, 20, "10 to 20"),
        (10.34567, 98.76543, "10.34 to 98.77"),
        (0.3, 0.7, "0.3 to 0.7"),
        (-120.53, -118, "-120.6 to -118"),
        (227.842, 237.774, "227.8 to 237.8"),
        (1_000_000.123, 1_000_000.345, "1,000,000.12 to 1,000,000.35"),
        (1_234_567, 7_654_321, "1,234,000 to 7,655,000"),
        (123_456, 123_456, "123,456"),
        (52.520008, 52.520008, "52.52 to 52.53"),
        (0, 0, "0"),
        (-1e308, 1e308, "-1e+308 to 1e+308"),
        (0, 5e-324, "0 to 1e-300"),
    ],
)
def test_ranges_have_few_digits(lo: float, hi: float, text: str) -> None:
    assert closed(lo, hi) == text


@pytest.mark.parametrize(
    ("lo", "hi", "text"),
    [
        (10, 20, "from 10 to below 20"),
        (980, just_above(1000), "from 980 to 1,000"),
        (just_above(20), 30, "above 20 to below 30"),
        (just_above(5), just_above(20), "above 5 to 20"),
        (5, just_above(5), "5"),
        (1 / 3, 2 / 3, "from 0.3333 to below 0.6667"),
        (998.7654321, just_above(999.87654321), "from 998.7 to 999.9"),
    ],
)
def test_cells_say_which_ends_are_inside(lo: float, hi: float, text: str) -> None:
    assert cell(lo, hi, just_above(999.87654321) if hi > 999 else math.inf) == text


@given(numbers, numbers)
def test_a_range_is_rounded_outwards_and_hardly(a: float, b: float) -> None:
    lo, hi = sorted((a, b))
    said = [as_number(text) for text in closed(lo, hi).split(" to ")]
    assert said[0] <= lo
    assert hi <= said[-1]
    largest = max(abs(lo), abs(hi))
    unit = min(largest / 1000, (hi - lo) / 10 or 1.0)
    assert said[-1] - said[0] <= (hi - lo) + 2 * unit + 1e-14 * largest + 2e-300


@given(numbers, numbers)
def test_a_cell_is_rounded_outwards(a: float, b: float) -> None:
    lo, hi = sorted((a, b))
    hi = max(hi, just_above(lo))
    found = re.fullmatch(r"(?:(from|above) )?(\S+)(?: to (below )?(\S+))?", cell(lo, hi))
    assert found
    lead, first, below, last = found.groups()
    assert as_number(first) < lo if lead == "above" else as_number(first) <= lo
    end = as_number(last or first)
    assert hi <= end if below else np.nextafter(hi, -np.inf) <= end


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(-20, 20))
def test_decimals_are_written_as_they_are(count: int, exponent: int) -> None:
    assert as_number(decimal_text(count, exponent)) == float(f"{count}e{exponent}")


def as_number(text: str) -> float:
    return float(text.replace(",", ""))


# ---- boxes


@st.composite
def point_sets(draw: st.DrawFn) -> tuple[tuple[Attribute, ...], list[tuple[float, ...]]]:
    """Attributes of a space and points in it."""
    attributes: list[Attribute] = []
    for i in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            low, high = sorted(draw(st.tuples(numbers, numbers)))
            unit = draw(st.sampled_from(["", "USD"]))
            attributes.append(NumberAttribute(f"n{i}", low, high, unit))
        else:
            count = draw(st.integers(1, 6))
            attributes.append(CategoryAttribute(f"c{i}", tuple(f"v{j}" for j in range(count))))
    axes = [
        st.floats(a.min, a.max)
        if isinstance(a, NumberAttribute)
        else st.integers(0, len(a.values) - 1).map(float)
        for a in attributes
    ]
    return tuple(attributes), draw(st.lists(st.tuples(*axes), min_size=1, max_size=5))


@unhurried
@given(point_sets())
def test_what_is_said_of_points_holds_for_each(
    drawn: tuple[tuple[Attribute, ...], list[tuple[float, ...]]],
) -> None:
    attributes, points = drawn
    x = np.array(points)
    said = box_words(attributes, x.min(axis=0)[None], x.max(axis=0)[None], True)[0].as_py()
    parts = {} if said == "all of it" else parsed(said, attributes)
    for axis, attribute in enumerate(attributes):
        inside = parts.get(attribute.name)
        if inside is None:
            assert (x[:, axis].min(), x[:, axis].max()) == (attribute.lo, last_of(attribute))
        elif isinstance(attribute, CategoryAttribute):
            assert {attribute.values[int(v)] for v in x[:, axis]} <= inside
        else:
            assert inside[0] <= x[:, axis].min()
            assert x[:, axis].max() <= inside[-1]


def last_of(attribute: Attribute) -> float:
    return attribute.max if isinstance(attribute, NumberAttribute) else attribute.hi - 1


def parsed(said: str, attributes: tuple[Attribute, ...]) -> dict[str, Any]:
    """Ranges of numbers, and sets of values, by attribute."""
    result: dict[str, Any] = {}
    by_name = {a.name: a for a in attributes}
    for part in re.split(r", (?=[nc]\d )", said):
        name, words = part.split(" ", 1)
        attribute = by_name[name]
        if isinstance(attribute, NumberAttribute):
            assert words.endswith(f" {attribute.unit}" if attribute.unit else words[-1])
            ends = words.removesuffix(f" {attribute.unit}").split(" to ")
            result[name] = [as_number(end) for end in ends]
        elif " to " in words:
            first, last = (attribute.values.index(v) for v in words.split(" to "))
            result[name] = set(attribute.values[first : last + 1])
        else:
            result[name] = set(re.split(r", | or ", words))
    return result


def test_categories_by_their_values() -> None:
    ends = [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]
    lo, hi = (np.array(side, float)[:, None] for side in zip(*ends, strict=True))
    said = ["venue N", "venue N or Q", "venue N, Q or Z", "venue N to X", "all of it"]
    assert box_words((VENUE,), lo, hi, closed=True).to_pylist() == said
    assert box_words((VENUE,), lo, hi + 1, closed=False).to_pylist() == said


def test_of_many_attributes_those_are_told_that_narrow_most() -> None:
    attributes = tuple(NumberAttribute(f"a{i}", 0.0, 100.0) for i in range(8))
    hi = np.array([[100.0, 50, 1, 40, 2, 3, 60, 4]])
    text = box_words(attributes, np.zeros((1, 8)), hi, closed=True)[0].as_py()
    assert text == "a2 0 to 1, a4 0 to 2, a5 0 to 3, a7 0 to 4 and 3 more attributes"


# ---- flows of a dataset


def words_for(sizes: list[int], names: list[str]) -> FlowWords:
    """Words where class ``i`` has the first ``sizes[i]`` subscribers, and topic 1 has a space."""
    first = [[j if j < size else -1 for j in range(3)] for size in [*sizes, 0]]
    spaces = (Space(), Space((PRICE, VENUE)))
    return FlowWords(
        RegionWords(spaces, np.array([0, 1], np.int32), closed=True),
        np.array([*sizes, 0]),
        np.array(first),
        pa.array([readable(name) for name in names]),
    )


def test_a_flow_is_told_by_region_and_audience() -> None:
    words = words_for([1, 2, 3, 1204], ["ana", "bob", "carl", "dan"])
    flows = pa.RecordBatch.from_pylist(
        [
            {"topic_id": 1, "lo": [10.0, 0.0], "hi": [20.0, 1.0], "audience_class": 3},
            {"topic_id": 0, "lo": [], "hi": [], "audience_class": 0},
            {"topic_id": 1, "lo": [0.0, 2.0], "hi": [1000.0, 2.0], "audience_class": 1},
            {"topic_id": 1, "lo": [], "hi": [], "audience_class": 2},
            {"topic_id": 1, "lo": [0.0, 0.0], "hi": [1000.0, 4.0], "audience_class": -1},
        ]
    )
    assert words.describe(flows).to_pylist() == [
        "price 10 to 20 USD, venue N or Q; 1,204 subscribers: ana, bob, carl and 1,201 more",
        "all of it; 1 subscriber: ana",
        "venue Z; 2 subscribers: ana and bob",
        "all of it; 3 subscribers: ana, bob and carl",
        "all of it; nobody",
    ]
    assert words.describe(flows.slice(0, 0)).to_pylist() == []
    assert words.describe(flows.slice(2, 1)).to_pylist() == ["venue Z; 2 subscribers: ana and bob"]


def test_names_cannot_do_harm() -> None:
    words = words_for([3], ["\x1b[31mred", "x" * 5000, "a\nb\u202ec"])
    flows = pa.RecordBatch.from_pylist(
        [{"topic_id": 0, "lo": [], "hi": [], "audience_class": 0}],
        pa.schema(
            {
                "topic_id": pa.int32(),
                "lo": pa.list_(pa.float64()),
                "hi": pa.list_(pa.float64()),
                "audience_class": pa.int32(),
            }
        ),
    )
    text = words.describe(flows)[0].as_py()
    assert text.isprintable()
    assert len(text) < 120
    evil = CategoryAttribute("\x07name" * 99, ("\r\n" * 500, "b"))
    unit = NumberAttribute("n", 0, 1, "\x1b" * 50)
    zero = np.zeros((1, 2))
    said = box_words((evil, unit), zero, zero, closed=True)[0].as_py()
    assert said.isprintable()
    assert len(said) < 120


def test_a_dataset_that_does_not_know_its_attributes(tmp_path: Path) -> None:
    flows = (Flow(frozenset({0, 2})), Flow(frozenset()), Flow(frozenset({1}), cell=(3, 1)))
    dataset = write_dataset(tmp_path / "data", World(flows, 3))
    assert wanted_words(dataset).to_pylist() == [
        "all of it; 2 subscribers: s0 and s2",
        "a part of it; 1 subscriber: s1",
    ]


def test_a_dataset_with_attributes(tmp_path: Path) -> None:
    world = World((Flow(frozenset({0}), cell=(1, 0)), Flow(frozenset({0, 1}))), 2)
    dataset = write_dataset(tmp_path / "data", world)
    manifest = json.loads((dataset / "manifest.json").read_text())
    manifest["attributes"] = {
        "price": {"name": "price", "min": 0, "max": 1000, "unit": "USD"},
        "venue": {"name": "venue", "values": ["N", "Q"]},
    }
    manifest["spaces"] = [[], ["price", "venue"]]
    (dataset / "manifest.json").write_text(json.dumps(manifest))
    seal_dataset(dataset)
    topics = [{"topic_id": 0, "space": 1}, {"topic_id": 1, "space": 0}]
    schema = pa.schema({"topic_id": pa.int32(), "space": pa.int32()})
    write_stage(dataset / "topics", schema, [topics])
    flows = read_stage(dataset, "flows").combine_chunks()
    ends = pa.list_(pa.float64())
    flows = flows.append_column("lo", pa.array([[500.0, 0.0], []], ends))
    flows = flows.append_column("hi", pa.array([[just_above(1000.0), 1.0], []], ends))
    words = load_words(dataset)
    assert words.describe(flows.to_batches()[0]).to_pylist() == [
        "price from 500 to 1,000 USD, venue N; 1 subscriber: s0",
        "all of it; 2 subscribers: s0 and s1",
    ]
