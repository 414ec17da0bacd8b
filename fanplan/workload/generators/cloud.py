"""*cloud*: groups of tenants in a data centre, after Shahbaz et al. (2019), section 5.1.

The network is a fat tree of three tiers: pods of leaf switches with hosts, a spine switch of every
plane in each pod, and core switches that join the spines of their plane. Of a tenant's machines
each is on another host, drawn inside a pod until there is no room, then in the next. A group is a
topic; its members are some of the tenant's machines, and one of them sends. Hosts subscribe for
their machines, so that subscribers are brokers; nodes of links that are no brokers are switches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import starts_of
from fanplan.core.errors import Problem
from fanplan.core.kernels import compiled
from fanplan.core.options import option
from fanplan.workload.generators.draws import grouped_names, streams
from fanplan.workload.generators.generated import (
    Generated,
    GeneratorParams,
    PublicationLaw,
    WorkloadKind,
    describe,
    generated_links,
)

FEWEST = 5
"""Members of a group."""
FEWEST_MACHINES = 10


@dataclass(frozen=True)
class CloudParams(GeneratorParams):
    """Sizes of the paper, with a million groups."""

    rate: float = option(1.0, "rate of a group, messages/s", above=0)
    pods: int = option(12, "pods", at_least=1)
    leaves: int = option(48, "leaf switches of a pod", at_least=1)
    hosts: int = option(48, "hosts at a leaf switch", at_least=1)
    planes: int = option(4, "spine switches of a pod", at_least=1)
    cores: int = option(12, "core switches of a plane", at_least=1)
    machines: int = option(20, "limit on the machines of a host", at_least=1)
    tenants: int = option(3_000, "number of tenants", at_least=1)
    groups: int = option(1_000_000, "number of groups, each a topic", at_least=1)
    large: float = option(
        0.02, "share of large tenants, and of large groups", at_least=0, at_most=1
    )
    largest: int = option(5_000, "machines of the largest tenant", at_least=FEWEST_MACHINES)
    uniform: bool = option(False, "sizes of groups are uniform, not heavy-tailed")

    @property
    def all_hosts(self) -> int:
        return self.pods * self.leaves * self.hosts

    def relations(self) -> Iterator[Problem]:
        if self.all_hosts < FEWEST_MACHINES:
            what = f"{self.all_hosts} hosts"
            yield Problem("hosts", what, f"Give room for {FEWEST_MACHINES} machines of a tenant")
        if self.tenants * FEWEST_MACHINES > self.all_hosts * self.machines:
            what = f"{self.tenants} tenants do not fit on {self.all_hosts} hosts"
            yield Problem("tenants", what, "Give fewer, or more hosts or machines on each")


@dataclass(frozen=True, eq=False)
class Cloud:
    """Groups by tenant: members of group i are the hosts ``members[starts[i]:starts[i + 1]]``."""

    tenant: np.ndarray
    starts: np.ndarray
    members: np.ndarray
    source: np.ndarray
    """the host that sends to each group"""


def generate_cloud(params: CloudParams, seed: int) -> Generated:
    """The tables; time and memory grow with memberships."""
    cloud, hosts = draw_cloud(params, seed), host_names(params)
    inside = np.arange(params.groups) - np.searchsorted(cloud.tenant, cloud.tenant)
    topics = grouped_names("t", cloud.tenant, "g", inside)
    senders = hosts.take(pa.array(cloud.source))
    rates = np.full(params.groups, params.rate)
    law = PublicationLaw(topics, rates, senders, params.message_bytes)
    topic = np.repeat(np.arange(params.groups, dtype=np.int32), np.diff(cloud.starts))
    host = pa.DictionaryArray.from_arrays(pa.array(cloud.members), hosts)
    wanted = pa.DictionaryArray.from_arrays(pa.array(topic), topics)
    sent = {"publisher": senders, "topic": topics, "rate": pa.array(rates), "broker": senders}
    tables = {
        "subscriptions": pa.table({"subscriber": host, "topic": wanted, "broker": host}),
        "advertisements": pa.table(sent),
        "links": cloud_links(params),
    }
    return Generated(describe("cloud"), tables, law)


# ---- the network


def host_names(params: CloudParams) -> pa.Array:
    """Hosts, leaf by leaf."""
    leaf, host = np.divmod(np.arange(params.all_hosts), params.hosts)
    pod, leaf = np.divmod(leaf, params.leaves)
    return pa.array(
        [f"host{p:02d}-{at:02d}-{h:02d}" for p, at, h in zip(pod, leaf, host, strict=True)]
    )


def cloud_links(params: CloudParams) -> pa.Table:
    """Hosts to leaves, leaves to the spines of their pod, spines to the cores of their plane."""
    pods, leaves, planes, cores = params.pods, params.leaves, params.planes, params.cores
    nodes = host_names(params).to_pylist()
    first_leaf = len(nodes)
    nodes += [f"leaf{p:02d}-{at:02d}" for p in range(pods) for at in range(leaves)]
    first_spine = len(nodes)
    nodes += [f"spine{p:02d}-{plane:02d}" for p in range(pods) for plane in range(planes)]
    first_core = len(nodes)
    nodes += [f"core{plane:02d}-{at:02d}" for plane in range(planes) for at in range(cores)]
    host = np.arange(params.all_hosts)
    leaf, spine = (grid.ravel() for grid in np.indices((pods * leaves, planes)))
    pod, plane, core = (grid.ravel() for grid in np.indices((pods, planes, cores)))
    a = (host, first_leaf + leaf, first_spine + pod * planes + plane)
    b = (
        first_leaf + host // params.hosts,
        first_spine + leaf // leaves * planes + spine,
        first_core + plane * cores + core,
    )
    ends = np.concatenate(a), np.concatenate(b)
    return generated_links(pa.array(nodes), *ends, np.full(len(ends[0]), 0.001))


# ---- tenants and groups


def draw_cloud(params: CloudParams, seed: int) -> Cloud:
    """The groups of a seed as arrays, for those who need no files."""
    sizing, placing, sharing, grouping, choosing = streams(seed, 5)
    machines = draw_machines(params, sizing)
    starts, where = place_machines(params, placing, machines)
    owned = np.diff(starts)
    tenant = np.sort(sharing.choice(params.tenants, params.groups, p=owned / owned.sum()))
    sizes = draw_sizes(params, grouping, owned[tenant])
    bounds = starts_of(sizes)
    members = np.empty(bounds[-1], np.int32)
    source = choose_members(choosing, starts, where, tenant, bounds, members)
    return Cloud(tenant, bounds, members, source)


def draw_machines(params: CloudParams, rng: np.random.Generator) -> np.ndarray:
    """Machines of each tenant; fewer, in proportion, where they would not fit."""
    few = 10 + 499 * rng.exponential(1 / 4.05, params.tenants)
    many = rng.uniform(FEWEST_MACHINES, params.largest, params.tenants)
    drawn = np.where(rng.random(params.tenants) < params.large, many, few)
    drawn = np.minimum(drawn, params.all_hosts)
    room = params.all_hosts * params.machines - FEWEST_MACHINES * params.tenants
    share = min(1.0, 0.98 * room / drawn.sum())
    count: np.ndarray = np.maximum(FEWEST_MACHINES, np.floor(drawn * share)).astype(np.int64)
    return count


def place_machines(
    params: CloudParams, rng: np.random.Generator, machines: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The hosts of each tenant, one after the other: (starts, hosts)."""
    size, found = params.leaves * params.hosts, []
    room = np.full(params.all_hosts, params.machines)
    for wanted, first in zip(machines, rng.integers(0, params.pods, len(machines)), strict=True):
        own = np.empty(0, np.int64)
        for pod in (first + np.arange(params.pods)) % params.pods:
            free = pod * size + np.flatnonzero(room[pod * size : (pod + 1) * size] > 0)
            own = np.append(own, rng.permutation(free)[: wanted - len(own)])
            if len(own) == wanted:
                break
        room[own] -= 1
        found.append(own)
    return starts_of([len(own) for own in found]), np.concatenate(found)


def draw_sizes(params: CloudParams, rng: np.random.Generator, owned: np.ndarray) -> np.ndarray:
    """Members of each group, of a tenant with this many machines."""
    if params.uniform:
        drawn = rng.uniform(FEWEST, owned + 1)
    else:
        unit = owned / 15
        most = owned - rng.gamma(2.0, 0.1, len(owned)) * unit
        few = FEWEST + rng.gamma(2.0, 0.2, len(owned)) * unit
        drawn = np.where(rng.random(len(owned)) < params.large, most, few)
    count: np.ndarray = np.minimum(np.maximum(np.floor(drawn), FEWEST), owned).astype(np.int64)
    return count


@compiled
def choose_members(
    rng: np.random.Generator,
    starts: np.ndarray,
    where: np.ndarray,
    tenant: np.ndarray,
    bounds: np.ndarray,
    members: np.ndarray,
) -> np.ndarray:
    """Fill in the members of each group, ascending, and tell who sends to it."""
    source = np.empty(len(tenant), np.int32)
    for group in range(len(tenant)):
        first, end = starts[tenant[group]], starts[tenant[group] + 1]
        low, high = bounds[group], bounds[group + 1]
        for k in range(high - low):
            other = first + k + int(rng.random() * (end - first - k))
            where[first + k], where[other] = where[other], where[first + k]
            members[low + k] = where[first + k]
        source[group] = members[low]
        members[low:high].sort()
    return source


CLOUD = WorkloadKind(
    "cloud", "groups of tenants in a data centre, with its switches", CloudParams, generate_cloud
)
