"""The delivery problem of a dataset, on given trees of brokers and with clients at them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import NONE, Ints
from fanplan.core.errors import InputError, Problem
from fanplan.data.interest import InterestProblem, load_classes
from fanplan.data.reader import read_stage
from fanplan.layers.delivery.problem.delivery import DeliveryProblem
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.layers.groups.problem.trees import TreeSource
from fanplan.network.dataset import publisher_names

EVERYWHERE = np.zeros(1, np.int32)
"""The domain of the only broker there is, where there are none: multicast reaches everybody."""


def load_delivery(
    dataset: Path, brokers: pa.Array, clients: pa.Table, source: TreeSource, domain: Ints
) -> DeliveryProblem:
    """Traffic that enters where publishers are, on trees hung there.

    ``clients`` has client, role and broker; who is at several is taken to be at the first by name.
    """
    interest = load_classes(dataset)
    home = homes(clients, "subscriber", interest.subscribers, brokers)
    entry = homes(clients, "publisher", publisher_names(dataset), brokers)
    row, broker, messages = parcels(dataset, interest, entry)
    trees = source.hung(np.unique(broker))
    tree = trees.of(broker)
    for lost in broker[tree == NONE][:1]:
        what = f"broker {brokers[int(lost)].as_py()!r} sends, but is no root"
        raise InputError(Problem("trees", what, "Give a tree for every broker that sends"))
    return DeliveryProblem(interest, brokers, trees, home, domain, row, tree, messages)


def load_flat(dataset: Path) -> DeliveryProblem:
    """The problem of a dataset without brokers: whoever publishes, channels reach everybody."""
    interest = load_classes(dataset)
    nowhere = np.full((1, 1), NONE, np.int32)
    return DeliveryProblem(
        interest=interest,
        brokers=pa.array([""]),
        trees=BrokerTrees(np.zeros(1, np.int32), nowhere),
        home=np.zeros(len(interest.subscribers), np.int32),
        domain=EVERYWHERE,
        row=np.arange(interest.size, dtype=np.int32),
        tree=np.zeros(interest.size, np.int32),
        messages=interest.messages,
    )


def homes(clients: pa.Table, role: str, names: pa.Array, brokers: pa.Array) -> Ints:
    """The broker of each client, as positions."""
    rows = clients.filter(pc.equal(clients["role"], role)).sort_by(
        [("client", "ascending"), ("broker", "descending")]
    )
    at, broker = pc.index_in(rows["client"], names), pc.index_in(rows["broker"], brokers)
    home = np.full(len(names), NONE, np.int32)
    known = np.flatnonzero(at.is_valid().to_numpy())
    # Of several the last counts, and brokers descend.
    home[at.fill_null(NONE).to_numpy()[known]] = broker.fill_null(NONE).to_numpy()[known]
    for lost in np.flatnonzero(home == NONE)[:1]:
        what = "has no broker"
        remedy = "Give it one in the workload, or allocate clients"
        raise InputError(Problem(f"{role} {names[int(lost)].as_py()!r}", what, remedy))
    return home


def parcels(dataset: Path, interest: InterestProblem, entry: Ints) -> tuple[Ints, Ints, np.ndarray]:
    """Class, broker and messages of what enters; shares of what the class has in all."""
    table = read_stage(dataset, "senders", ("publisher", "audience_class", "messages"))
    row = table["audience_class"].to_numpy().astype(np.int64)
    broker = entry[table["publisher"].to_numpy()].astype(np.int64)
    brokers = int(broker.max(initial=0)) + 1
    key, place = np.unique(row * brokers + broker, return_inverse=True)
    sent = np.bincount(place, table["messages"].to_numpy(), len(key))
    row, broker = key // brokers, key % brokers
    totals = np.bincount(row, sent, interest.size)
    if (totals[interest.messages > 0] <= 0).any():
        lost = int(np.flatnonzero((totals <= 0) & (interest.messages > 0))[0])
        what = f"nobody is known to send what audience class {lost} wants"
        raise InputError(Problem(str(dataset), what, "Name publishers in the publications"))
    used = sent > 0
    row, broker, sent = row[used], broker[used], sent[used]
    # Where totals are the same, as with measured rates, whole numbers stay whole.
    messages = sent * (interest.messages[row] / totals[row])
    return row.astype(np.int32), broker.astype(np.int32), messages
