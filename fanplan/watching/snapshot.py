"""A dataset of now: the flows that were seen, at their rates, and who wants them.

It is written without Spark from what the driver has: a version of the subscriptions, whose stages
it shares, and rates. All that plans from a dataset plans from it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fanplan.core.arrays import Bools, Floats, Ints, Longs, starts_of
from fanplan.core.folder import DATASET, whole_folder
from fanplan.core.hashes import SEAL, content_hash, sealed
from fanplan.core.tables import Table, arrow_schema
from fanplan.data import tables
from fanplan.data.build import equal_audiences
from fanplan.data.ingest.store import link_file
from fanplan.data.integrity import MANIFEST, read_record, write_record
from fanplan.data.reader import read_stage
from fanplan.data.signatures import WORDS, as_words
from fanplan.data.stream.interest import Interest
from fanplan.watching.rates import Rates

PLANNED = ("flows", "classes", "subscribers")
"""Stages that a plan depends on."""


def write_snapshot(rates: Rates, interest: Interest, seconds: float, out: Path) -> None:
    """The dataset of a window of ``seconds``."""
    with whole_folder(out, DATASET, replace=True) as folder:
        shutil.copytree(interest.path, folder, dirs_exist_ok=True, copy_function=link_file)
        told = json.loads((interest.path / MANIFEST).read_text(encoding="utf-8"))
        (folder / MANIFEST).unlink()
        flows, classes = flow_tables(rates, interest)
        for table, rows in ((tables.FLOWS, flows), (tables.CLASSES, classes)):
            told["stages"][table.name] = lay_stage(folder / table.name, table, rows)
        content = {**told, "seconds": seconds, "key": "", "traffic": traffic_told(flows, classes)}
        # Not of the stages' seals: Spark gives files names at random.
        planned = [told["stages"][name]["key"] for name in PLANNED]
        content["key"] = content_hash({"of": [planned, seconds]})
        text = json.dumps(sealed(content), indent=2, sort_keys=True) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")


def lay_stage(folder: Path, table: Table, rows: pa.Table) -> dict[str, Any]:
    """A stage as ingest leaves it, and what the manifest says of it."""
    folder.mkdir()
    pq.write_table(rows.cast(arrow_schema(table)), folder / "part-00000.parquet")
    counts = {"rows": len(rows), "quarantined": 0}
    write_record(folder, {"key": "", "code": "", "counts": counts, "dataset": None})
    record = read_record(folder)
    assert record is not None
    return {"key": record[SEAL], "rows": len(rows), SEAL: record[SEAL]}


def flow_tables(rates: Rates, interest: Interest) -> tuple[pa.Table, pa.Table]:
    """The stages `flows` and `classes`; heaviest classes first, as ingest numbers them."""
    flows = rates.flows
    number = interest.numbers(flows.topic)
    known = np.flatnonzero(number >= 0)
    topic, x = number[known], flows.x[known]
    silent = np.setdiff1d(np.arange(len(interest.topics)), topic)
    starts, audience, _ = interest.audiences(topic, x)
    starts, audience = with_silent(starts, audience, silent, interest)
    topic = np.append(topic, silent)
    messages, size = (
        np.append(each[known], np.zeros(len(silent))) for each in (rates.messages, rates.bytes)
    )
    spaced = np.append(interest.spaces[topic[: len(known)]] > 0, np.zeros(len(silent), np.bool_))
    sign = np.append(flows.sign[known], np.zeros((len(silent), 2), np.uint64), axis=0)
    classes, of = class_table(starts, audience, messages, size)
    wanted = messages * np.diff(starts)
    names = flow_names(interest.topics, topic, sign, spaced)
    points = np.append(x, np.full((len(silent), x.shape[1]), np.nan), axis=0)
    place = points_of(points, spaced)
    table = pa.table(
        {
            "flow": names,
            "topic": interest.topics.take(pa.array(topic)),
            "topic_id": topic,
            "cell": signature_cells(sign, spaced),
            "messages": messages,
            "bytes": size,
            "audience_class": of,
            "wanted": wanted,
            "lo": place,
            "hi": place,
        }
    )
    return table.take(pa.array(np.lexsort((sign[:, 1], sign[:, 0], topic)))), classes


def with_silent(
    starts: Longs, audience: Ints, silent: Longs, interest: Interest
) -> tuple[Longs, Ints]:
    """Audiences with those of topics without traffic: all who asked for any of it."""
    boxes = read_stage(interest.path, "regions", ("topic_id", "subscriber_id"))
    pairs = np.column_stack([boxes[name].to_numpy() for name in boxes.column_names])
    pairs = np.unique(pairs[np.isin(pairs[:, 0], silent)], axis=0)
    counts = np.bincount(np.searchsorted(silent, pairs[:, 0]), minlength=len(silent))
    ends = starts[-1] + np.cumsum(counts)
    return np.append(starts, ends), np.append(audience, pairs[:, 1].astype(np.int32))


def class_table(
    starts: Longs, audience: Ints, messages: Floats, size: Floats
) -> tuple[pa.Table, Ints]:
    """The table of classes, and the class of each flow; −1 if nobody wants it."""
    wanted = np.flatnonzero(np.diff(starts))
    first, group = equal_audiences(starts, audience, wanted)
    sums = [np.bincount(group, each[wanted], len(first)) for each in (messages, size)]
    people = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), pa.array(audience))
    order = np.lexsort((first, -sums[0]))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    of = np.full(len(starts) - 1, -1, np.int32)
    of[wanted] = rank[group]
    heard = sums[0] * np.diff(starts)[first]
    columns = {
        "audience_class": np.arange(len(order), dtype=np.int32),
        "subscribers": people.take(pa.array(first[order])),
        "messages": sums[0][order],
        "bytes": sums[1][order],
        "flows": np.bincount(group, minlength=len(first))[order],
        "wanted": heard[order],
    }
    return pa.table(columns), of


def flow_names(topics: pa.Array, topic: Longs, sign: Any, spaced: Bools) -> pa.Array:
    """As ingest names them: the topic, or with half of the signature if it has several flows."""
    several = (np.bincount(topic, minlength=len(topics))[topic] > 1) & spaced
    names = topics.take(pa.array(topic)).to_pylist()
    words = as_words(sign)[:, :2].astype(np.int64) & 0xFFFFFFFF
    told = zip(names, several.tolist(), words.tolist(), strict=True)
    return pa.array(f"{name}#{a:08x}{b:08x}" if many else name for name, many, (a, b) in told)


def signature_cells(sign: Any, spaced: Bools) -> pa.ListArray:
    """Signatures in the place of cells; none for plain topics."""
    ends = starts_of(WORDS * spaced).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(as_words(sign[spaced]).ravel()))


def points_of(x: Floats, spaced: Bools) -> pa.ListArray:
    """Where a flow was seen: its point, on the axes that its topic has."""
    own = ~np.isnan(x) & spaced[:, None]
    ends = starts_of(own.sum(axis=1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(x[own]))


def traffic_told(flows: pa.Table, classes: pa.Table) -> dict[str, float]:
    """What a person should know of the traffic."""
    messages, heard = flows["messages"].to_numpy(), classes["wanted"].to_numpy()
    return {
        "publications": float(messages.sum()),
        "silent_topics": float((messages == 0).sum()),
        "wanted": float(heard.sum()),
        "copies": float(heard.sum()),
    }
