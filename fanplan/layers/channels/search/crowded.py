"""Hosts with several subscribers: one copy for all of them instead of one for each.

Trees and sets at switches have two hosts at least. What they leave of the tables goes to channels
of one host, those first that save most. All rows share it that several want there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Longs, starts_of
from fanplan.layers.channels.problem import SwitchProblem
from fanplan.layers.channels.search.traffic import Carried, Trees, net_rows, tree_switches


class Crowds(NamedTuple):
    """Several at ``host`` get a copy of ``row`` each: ``links`` would be saved by one for all.

    Links are messages times links.
    """

    row: Longs
    host: Longs
    links: Floats


def with_crowded_hosts(
    problem: SwitchProblem, trees: Trees, carried: Carried, channels: int
) -> tuple[Trees, Carried]:
    """The trees, and channels of single hosts as far as tables and the number of channels go."""
    if problem.copies.max(initial=1) == 1:
        return trees, carried
    crowds = crowds_left(problem, trees, carried)
    chosen = hosts_that_fit(problem, trees, crowds, channels - len(trees.root))
    number = np.full(len(problem.fabric.hosts), NONE, np.int32)
    number[chosen] = len(trees.root) + np.arange(len(chosen))
    served = crowds.row[number[crowds.host] != NONE]
    row = np.append(np.repeat(np.arange(problem.size), np.diff(carried.starts)), served)
    own = np.append(carried.channels, number[crowds.host][number[crowds.host] != NONE])
    both = Trees(
        np.append(trees.root, problem.fabric.at[chosen]).astype(np.int32),
        starts_of(np.append(np.diff(trees.starts), np.ones(len(chosen), np.int64))),
        np.append(trees.hosts, chosen).astype(np.int32),
    )
    starts = starts_of(np.bincount(row, minlength=problem.size))
    return both, Carried(starts, own[np.argsort(row, kind="stable")].astype(np.int32))


def crowds_left(problem: SwitchProblem, trees: Trees, carried: Carried) -> Crowds:
    """Where several subscribers of a host are served one by one."""
    p, net = problem, net_rows(problem)
    row = np.repeat(np.arange(p.size), np.diff(p.starts))
    crowded = (p.copies > 1) & (p.hosts != p.source[row])
    row, host, copies = row[crowded], p.hosts[crowded].astype(np.int64), p.copies[crowded]
    keys = row * len(p.fabric.hosts) + host
    alone = ~np.isin(keys, served_pairs(p, trees, carried, np.unique(row)))
    row, host, copies = row[alone], host[alone], copies[alone]
    way = 2 + net.depth[net.at[p.source[row]], net.at[host]]
    return Crowds(row, host, p.messages[row] * (copies - 1) * way)


def served_pairs(problem: SwitchProblem, trees: Trees, carried: Carried, rows: Longs) -> Longs:
    """Keys of (row, host) that channels serve, for some rows."""
    hosts = len(problem.fabric.hosts)
    lists = [
        row * hosts + trees.hosts[trees.starts[j] : trees.starts[j + 1]].astype(np.int64)
        for row in rows
        for j in carried.channels[carried.starts[row] : carried.starts[row + 1]]
    ]
    return np.concatenate(lists) if lists else np.empty(0, np.int64)


def hosts_that_fit(problem: SwitchProblem, trees: Trees, crowds: Crowds, most: int) -> Longs:
    """At most so many hosts that save most, each within the table of its switch."""
    at = problem.fabric.at
    _, switches = tree_switches(net_rows(problem), trees)
    room = problem.limit - np.bincount(switches, minlength=len(problem.limit))
    saved = np.bincount(crowds.host, crowds.links, len(at))
    order = np.lexsort((-saved, at))
    rank = np.arange(len(order)) - np.searchsorted(at[order], at[order])
    fit = order[(rank < room[at[order]]) & (saved[order] > 0)]
    return fit[np.argsort(-saved[fit], kind="stable")[: max(most, 0)]]
