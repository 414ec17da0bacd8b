"""What was found for tables of switches, as a channel map."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE, Ints
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.map import ChannelMap, SwitchTables, map_pairs
from fanplan.layers.channels.problem import SwitchProblem
from fanplan.layers.channels.search.least_traffic import least_traffic
from fanplan.layers.channels.search.switches import search_switches
from fanplan.layers.channels.search.traffic import Trees, table_rows, traffic_of


def channels_in_tables(
    placed: SwitchProblem, interest: InterestProblem, channels: int, seed: int, stop: Stop
) -> tuple[ChannelMap, SwitchTables]:
    """The map with the least traffic on links that was found, and what lies in the tables."""
    trees, channel = search_switches(placed, channels, seed, stop)
    traffic = traffic_of(placed, trees, channel, least_traffic(placed))._asdict()
    map = map_of(placed, interest, trees, channel)
    return map, SwitchTables(named_entries(placed, trees), traffic)


def map_of(
    placed: SwitchProblem, interest: InterestProblem, trees: Trees, channel: Ints
) -> ChannelMap:
    """Subscribers at the hosts of a channel join it if they want something on it."""
    count, hosts = len(trees.root), len(placed.fabric.hosts)
    row = np.repeat(np.arange(interest.size), interest.audience_sizes)
    own = channel[row]
    joined = np.repeat(np.arange(count, dtype=np.int64), np.diff(trees.starts)) * hosts
    there = np.isin(own * np.int64(hosts) + placed.home[interest.audience], joined + trees.hosts)
    there &= own != NONE
    members = map_pairs(own[there], interest.audience[there])
    rows = np.flatnonzero(channel != NONE)
    return completed(interest, count, map_pairs(rows, channel[rows]), members)


def named_entries(placed: SwitchProblem, trees: Trees) -> pa.Table:
    channel, switch, neighbour = table_rows(placed, trees)
    nodes = pa.concat_arrays([placed.fabric.switches, placed.fabric.hosts])
    return pa.table(
        {
            "switch": nodes.take(pa.array(switch)),
            "channel": pa.array(channel),
            "neighbour": nodes.take(pa.array(neighbour)),
        }
    )
