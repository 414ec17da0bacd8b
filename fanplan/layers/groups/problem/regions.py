"""What the clients of each broker want: their regions, and signatures of sets of brokers.

A signature has 128 bits. Every broker has two words of 64 bits, and the signature of a set is the
sum of its members' words, modulo 2⁶⁴. So it grows member by member, in any order, and along the
axes of a grid. Two different sets have the same one by chance only: one in 2¹²⁸ for a pair of sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints, Longs, Words
from fanplan.core.bits import mix
from fanplan.core.kernels import compiled
from fanplan.data.reader import read_manifest, read_stage
from fanplan.data.subscription_cells import padded

REGION_COLUMNS = ("topic_id", "broker", "lo", "hi")


@dataclass(frozen=True, eq=False)
class BrokerRegions:
    """Boxes, one per line; the first ``dimensions`` columns of ``lo`` and ``hi`` count.

    ``broker`` is a position among the brokers of the dataset. Boxes of a broker may overlap.
    """

    topic: Longs
    dimensions: Ints
    broker: Longs
    lo: Floats
    hi: Floats


def read_broker_regions(dataset: Path) -> BrokerRegions:
    table = read_stage(dataset, "broker_regions", REGION_COLUMNS).combine_chunks()
    return regions_of(table, read_manifest(dataset).dimensions)


def regions_of(table: pa.Table, axes: int) -> BrokerRegions:
    """Boxes from columns of the stage; axes that a topic does not have are [0, 1)."""
    return BrokerRegions(
        topic=table["topic_id"].to_numpy().astype(np.int64),
        dimensions=pc.list_value_length(table["lo"]).to_numpy().astype(np.int32),
        broker=table["broker"].to_numpy().astype(np.int64),
        lo=padded(table["lo"], axes, 0.0),
        hi=padded(table["hi"], axes, 1.0),
    )


@compiled
def set_signatures(starts: Longs, members: Ints) -> Words:
    """The signature of each set ``members[starts[s]:starts[s + 1]]``."""
    signatures = np.zeros((len(starts) - 1, 2), np.uint64)
    words = broker_words(members.astype(np.int64))
    for s in range(len(starts) - 1):
        for k in range(starts[s], starts[s + 1]):
            signatures[s, 0] += words[k, 0]
            signatures[s, 1] += words[k, 1]
    return signatures


@compiled
def broker_words(brokers: Longs) -> Words:
    """Two words for each of some brokers, given by their positions."""
    words = np.empty((len(brokers), 2), np.uint64)
    for i in range(len(brokers)):
        # The finaliser of splitmix64 on two sequences that have no number in common.
        words[i, 0] = mix(np.uint64(2 * brokers[i] + 1) * np.uint64(0x9E3779B97F4A7C15))
        words[i, 1] = mix(np.uint64(2 * brokers[i] + 2) * np.uint64(0x9E3779B97F4A7C15))
    return words
