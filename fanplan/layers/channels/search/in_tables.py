"""What was found for tables of switches, as a channel map."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem, take_audiences
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.map import ChannelMap, SwitchTables, map_pairs
from fanplan.layers.channels.problem import SwitchProblem
from fanplan.layers.channels.search.crowded import with_crowded_hosts
from fanplan.layers.channels.search.least_traffic import least_traffic
from fanplan.layers.channels.search.switches import search_switches
from fanplan.layers.channels.search.traffic import Carried, Trees, table_rows, traffic_of


def channels_in_tables(
    placed: SwitchProblem, interest: InterestProblem, channels: int, seed: int, stop: Stop
) -> tuple[ChannelMap, SwitchTables]:
    """The map with the least traffic on links that was found, and what lies in the tables."""
    found = search_switches(placed, channels, seed, stop)
    trees, carried = with_crowded_hosts(placed, *found, channels)
    traffic = traffic_of(placed, trees, carried, least_traffic(placed))._asdict()
    map = map_of(placed, interest, trees, carried)
    return map, SwitchTables(named_entries(placed, trees), traffic)


def map_of(
    placed: SwitchProblem, interest: InterestProblem, trees: Trees, carried: Carried
) -> ChannelMap:
    """Subscribers at the hosts of a channel join it if they want something on it."""
    count, hosts = len(trees.root), len(placed.fabric.hosts)
    row = np.repeat(np.arange(interest.size), np.diff(carried.starts))
    who = take_audiences(interest.indptr, interest.audience, row)
    own = np.repeat(carried.channels.astype(np.int64), interest.audience_sizes[row])
    joined = np.repeat(np.arange(count, dtype=np.int64), np.diff(trees.starts)) * hosts
    there = np.isin(own * hosts + placed.home[who], joined + trees.hosts)
    members = map_pairs(own[there], who[there])
    return completed(interest, count, map_pairs(row, carried.channels), members)


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
