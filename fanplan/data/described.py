"""What is in a flow and who wants it, in words.

``price 10 to 20 USD, venue N or Q; 12 subscribers: ana, bob, carl and 9 more``. The ranges of an
exact flow are those that its publications lie in, those of a cell its ends. They are rounded
outwards, and an attribute that spans its domain is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.errors import readable
from fanplan.data.ranges import cell_ranges, closed_ranges
from fanplan.data.reader import read_manifest, read_stage, stage_batches
from fanplan.workload.space import Attribute, CategoryAttribute, NumberAttribute, Space

ALL, PART = "all of it", "a part of it"
"""What nothing narrows; and a cell in a dataset that does not say what its attributes are."""
NAMED = 3
"""Subscribers who are named."""
LISTED = 3
"""Values of a category that are listed; of more, the first and the last are told."""
MOST_ATTRIBUTES = 4
"""Attributes that are told, those first that narrow a flow most."""
TOPIC_LETTERS = 60
"""Of a topic, which is often a path, before it is cut."""
ALMOST = float(np.nextafter(1.0, 0.0))
"""The largest share of a domain that is not all of it."""
BATCH_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class RegionWords:
    """All that the words for parts of topics are made from.

    ``space_of`` has the number of each topic's space. With ``closed`` ranges the upper end is
    inside. A part has topic_id, lo and hi; where spaces are not known, its cell.
    """

    spaces: tuple[Space, ...]
    space_of: Ints
    closed: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of parts that are needed."""
        return ("topic_id", "lo", "hi") if self.spaces else ("cell",)

    def describe(self, parts: pa.RecordBatch) -> pa.Array:
        """Where in the space of its topic each part lies."""
        if not self.spaces:
            narrow = pc.greater(pc.list_value_length(parts["cell"]), 0)
            return pc.if_else(narrow, PART, ALL)
        narrow = parts["lo"].value_lengths().to_numpy() > 0
        space = np.where(narrow, self.space_of[parts["topic_id"].to_numpy()], 0)
        order = np.argsort(space, kind="stable")
        texts = [
            self.in_space(self.spaces[number], parts.take(pa.array(order[space[order] == number])))
            for number in np.unique(space)
        ]
        return pa.concat_arrays([pa.array([], pa.string()), *texts]).take(np.argsort(order))

    def in_space(self, space: Space, parts: pa.RecordBatch) -> pa.Array:
        if not space.attributes:
            return pa.repeat(ALL, len(parts))
        shape = (len(parts), space.dimensions)
        lo, hi = (parts[name].flatten().to_numpy().reshape(shape) for name in ("lo", "hi"))
        return box_words(space.attributes, lo, hi, self.closed)


@dataclass(frozen=True, eq=False)
class FlowWords:
    """The same for flows, and who wants them.

    Of each audience class there are the size and the first subscribers; last comes an empty
    class, for flows that nobody wants.
    """

    regions: RegionWords
    sizes: Longs
    first: Longs
    names: pa.Array

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of flows that are needed."""
        return ("audience_class", *self.regions.columns)

    def describe(self, flows: pa.RecordBatch) -> pa.Array:
        """A description of each flow."""
        where, who = self.regions.describe(flows), self.audiences(flows)
        return pc.binary_join_element_wise(where, who, "; ")

    def audiences(self, flows: pa.RecordBatch) -> pa.Array:
        """Who wants each flow: how many, and some by name."""
        classes = flows["audience_class"].to_numpy()
        size, who = self.sizes[classes], self.first[classes]
        names = [self.names.take(pa.array(w, mask=w < 0)).fill_null("") for w in who.T]
        before = pa.array(["", " and ", ", "])
        parts = [texts_of(size, how_many), names[0]]
        for place in range(1, NAMED):
            parts += [before.take(pa.array(np.sign(size - place - 1) + 1)), names[place]]
        return pc.binary_join_element_wise(*parts, texts_of(size, and_more), "")


def how_many(size: int) -> str:
    return f"{size:,} subscriber{'s' * (size > 1)}: " if size else "nobody"


def and_more(size: int) -> str:
    return f" and {size - NAMED:,} more" if size > NAMED else ""


def texts_of(values: Longs, text: Callable[[int], str]) -> pa.Array:
    """A text for each number, made once for each different one."""
    different, at = np.unique(values, return_inverse=True)
    return pa.array(map(text, different.tolist()), pa.string()).take(pa.array(at))


# ---- boxes


def box_words(attributes: tuple[Attribute, ...], lo: Floats, hi: Floats, closed: bool) -> pa.Array:
    """The ranges of boxes, by attribute; a row is a box."""
    share = np.stack(
        [domain_share(a, lo[:, i], hi[:, i], closed) for i, a in enumerate(attributes)], axis=1
    )
    told = share < 1
    kept = told & most_telling(share)
    parts = [
        spread(range_words(a, lo[own, i], hi[own, i], closed), own)
        for i, (a, own) in enumerate(zip(attributes, kept.T, strict=True))
    ]
    # Every part begins with a comma and a space, which the first of them loses.
    text = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), 2)
    text = pc.if_else(pa.array(kept.any(axis=1)), text, ALL)
    more = texts_of(np.count_nonzero(told & ~kept, axis=1), more_attributes)
    return pc.binary_join_element_wise(text, more, "")


def most_telling(share: Floats) -> Bools:
    """The attributes of each box that span the least of their domains."""
    if share.shape[1] <= MOST_ATTRIBUTES:
        return np.ones(share.shape, bool)
    kept = np.zeros(share.shape, bool)
    least = np.argsort(share, axis=1, kind="stable")[:, :MOST_ATTRIBUTES]
    np.put_along_axis(kept, least, True, axis=1)
    return kept


def more_attributes(more: int) -> str:
    return f" and {more} more attribute{'s' * (more > 1)}" if more else ""


def spread(texts: pa.Array, own: Bools) -> pa.Array:
    """Texts where they belong, and empty ones elsewhere."""
    return texts.take(pa.array(np.cumsum(own) - 1, mask=~own)).fill_null("")


def domain_share(attribute: Attribute, lo: Floats, hi: Floats, closed: bool) -> Floats:
    """How much of its domain an attribute spans in each box: 1 is all, and nothing to tell of."""
    width, end = hi - lo, attribute.hi
    if closed and isinstance(attribute, NumberAttribute):
        end = attribute.max
    elif closed:
        width, end = width + 1, end - 1
    whole = (lo <= attribute.lo) & (hi >= end)
    return np.where(whole, 1.0, np.minimum(width / (attribute.size or 1.0), ALMOST))


def range_words(attribute: Attribute, lo: Floats, hi: Floats, closed: bool) -> pa.Array:
    """``, price 10 to 20 USD`` or ``, venue N or Q``"""
    if isinstance(attribute, CategoryAttribute):
        texts, unit = values_words(attribute, lo, hi if closed else np.ceil(hi) - 1), ""
    else:
        texts = closed_ranges(lo, hi) if closed else cell_ranges(lo, hi, attribute.hi)
        unit = f" {readable(attribute.unit)}" if attribute.unit else ""
    return pc.binary_join_element_wise(f", {readable(attribute.name)} ", texts, unit, "")


def values_words(attribute: CategoryAttribute, first: Floats, last: Floats) -> pa.Array:
    count = len(attribute.values)

    def words(code: int) -> str:
        return some_of(attribute.values, *divmod(code, count))

    return texts_of((first * count + last).astype(np.int64), words)


def some_of(values: tuple[str, ...], first: int, last: int) -> str:
    """Values from the first to the last: listed if they are few."""
    if last - first >= LISTED:
        return f"{readable(values[first])} to {readable(values[last])}"
    *others, end = (readable(value) for value in values[first : last + 1])
    return f"{', '.join(others)} or {end}" if others else end


# ---- reading


def load_words(dataset: Path) -> FlowWords:
    """Memory: a few numbers for each audience class, and the names of subscribers."""
    names = read_stage(dataset, "subscribers", ("subscriber", "subscriber_id"))
    by_number = names.sort_by("subscriber_id")["subscriber"].to_pylist()
    regions = load_regions(dataset, read_manifest(dataset).matched)
    return FlowWords(
        regions, *class_heads(dataset), pa.array(map(readable, by_number), pa.string())
    )


def load_regions(dataset: Path, closed: bool) -> RegionWords:
    spaces = read_manifest(dataset).spaces
    of = spaces_of_topics(dataset) if spaces else np.zeros(0, np.int32)
    return RegionWords(spaces, of, closed)


def spaces_of_topics(dataset: Path) -> Ints:
    topics = read_stage(dataset, "topics", ("topic_id", "space")).sort_by("topic_id")
    result: Ints = topics["space"].to_numpy()
    return result


def class_heads(dataset: Path) -> tuple[Longs, Longs]:
    """How many are in each audience class, and the first of them; nobody is in one more class."""
    columns = ("audience_class", "subscribers")
    batches = stage_batches(dataset, "classes", columns, BATCH_ROWS)
    nobody = np.array([[np.iinfo(np.int64).max, 0, *[-1] * NAMED]])
    heads = np.concatenate([*map(heads_of, batches), nobody])
    heads = heads[np.argsort(heads[:, 0])]
    return heads[:, 1], heads[:, 2:]


def heads_of(classes: pa.RecordBatch) -> Longs:
    """Number, size and first subscribers of classes; −1 where there are fewer."""
    size = classes["subscribers"].value_lengths().to_numpy().astype(np.int64)
    members = np.append(classes["subscribers"].flatten().to_numpy(), -1)
    at = (np.cumsum(size) - size)[:, None] + np.arange(NAMED)
    first = members[np.where(np.arange(NAMED) < size[:, None], at, -1)]
    return np.column_stack([classes["audience_class"].to_numpy(), size, first])


def wanted_words(dataset: Path) -> pa.ChunkedArray:
    """Descriptions of all flows that somebody wants, in stored order."""
    words = load_words(dataset)
    return pa.chunked_array(
        map(words.describe, wanted_batches(dataset, words.columns)), pa.string()
    )


def words_at(dataset: Path, numbers: Longs) -> list[str]:
    """Descriptions of the wanted flows at these positions, which ascend."""
    words = load_words(dataset)
    return at_positions(dataset, words.columns, words.describe, numbers)


def ranges_at(dataset: Path, numbers: Longs) -> list[str]:
    """The same without who wants them."""
    words = load_regions(dataset, read_manifest(dataset).matched)
    columns = ("audience_class", *words.columns)
    return at_positions(dataset, columns, words.describe, numbers)


def at_positions(
    dataset: Path,
    columns: tuple[str, ...],
    describe: Callable[[pa.RecordBatch], pa.Array],
    numbers: Longs,
) -> list[str]:
    start, found = 0, list[str]()
    for batch in wanted_batches(dataset, columns):
        here = numbers[(numbers >= start) & (numbers < start + len(batch))] - start
        found += describe(batch.take(pa.array(here))).to_pylist()
        start += len(batch)
    return found


def wanted_batches(dataset: Path, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    for batch in stage_batches(dataset, "flows", columns, BATCH_ROWS):
        yield batch.filter(pc.greater_equal(batch["audience_class"], 0))


def titled(topic: str, description: str) -> str:
    """A flow in a list of several: its topic, and its description."""
    return f"{readable(topic, TOPIC_LETTERS)}: {description}"
