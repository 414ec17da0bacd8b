"""Who gets which message by the tables of a plan, in plain Python, with nothing of Fanplan."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Row = dict[str, Any]


def holds(plan: Path, dataset: Path) -> bool:
    """Whether everybody gets all that is wanted, and the ledgers say how much that takes."""
    told = json.loads((plan / "plan.json").read_text())
    counts = {"channels": channel_ledger, "overlay": overlay_ledger, "groups": group_ledger}
    if "mesh" in told:
        return mesh_holds(plan, dataset, told["mesh"])
    if not told.keys() & counts.keys():
        return False
    for layer, count in counts.items():
        if layer not in told or (layer == "groups" and len(told["layers"]) > 1):
            continue
        own, stated = count(plan, dataset), told[layer]["ledger"]
        if own.pop("missed", 0):
            return False
        if any(not math.isclose(stated[n], v, rel_tol=1e-9, abs_tol=1e-9) for n, v in own.items()):
            return False
    return True


def table(plan: Path, name: str) -> list[Row]:
    rows: list[Row] = pq.read_table(plan / f"{name}.parquet").to_pylist()
    return rows


def stage(dataset: Path, name: str) -> list[Row]:
    return [row for path in sorted((dataset / name).glob("*.parquet")) for row in rows_of(path)]


def rows_of(path: Path) -> list[Row]:
    rows: list[Row] = pq.read_table(path).to_pylist()
    return rows


def related(rows: Iterable[Row], key: str, value: str) -> defaultdict[Any, list[Any]]:
    found = defaultdict(list)
    for row in rows:
        found[row[key]].append(row[value])
    return found


def channel_ledger(plan: Path, dataset: Path) -> dict[str, float]:
    """What publishers send, and who is reached."""
    people = {row["subscriber_id"]: row["subscriber"] for row in stage(dataset, "subscribers")}
    audience = {
        row["audience_class"]: {people[who] for who in row["subscribers"]}
        for row in stage(dataset, "classes")
    }
    if (plan / "switch_entries.parquet").exists():
        return {"missed": 1}  # What goes over which switch is not counted here.
    carried = related(table(plan, "channel_flows"), "flow", "channel")
    members = related(table(plan, "channel_subscribers"), "channel", "subscriber")
    alone = related(table(plan, "unicast"), "flow", "subscriber")
    total: defaultdict[str, float] = defaultdict(float)
    for flow in stage(dataset, "flows"):
        if flow["audience_class"] < 0:
            continue
        channels, direct = carried[flow["flow"]], alone[flow["flow"]]
        got = {who for channel in channels for who in members[channel]} | {*direct}
        total["missed"] += len(audience[flow["audience_class"]] - got)
        total["sent_multicast"] += flow["messages"] * len(channels)
        total["sent_unicast"] += flow["messages"] * len(direct)
    return dict(total)


def routes_of(dataset: Path, plan: Path, allocated: bool) -> Iterator[tuple[str, set[str], float]]:
    """Where messages enter, where they must go, and how many."""
    names = sorted(row["broker"] for row in stage(dataset, "brokers"))
    if not allocated:
        for row in stage(dataset, "routes"):
            ends = {names[end] for end in row["destinations"]}
            yield names[row["source"]], ends, row["messages"]
        return
    home = {(row["client"], row["role"]): row["broker"] for row in table(plan, "clients")}
    senders = sorted({row["publisher"] for row in stage(dataset, "advertisements")})
    people = {row["subscriber_id"]: row["subscriber"] for row in stage(dataset, "subscribers")}
    for row in stage(dataset, "client_routes"):
        ends = {home[people[who], "subscriber"] for who in row["destinations"]}
        yield home[senders[row["source"]], "publisher"], ends, row["messages"]


def overlay_ledger(plan: Path, dataset: Path) -> dict[str, float]:
    """Messages on links: each goes from where it enters along the ways to all who want it."""
    record = json.loads((plan / "plan.json").read_text())["overlay"]
    several = record["trees"] > 1
    near: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for row in table(plan, "tree_links" if several else "links"):
        for one, other in ((row["a"], row["b"]), (row["b"], row["a"])):
            near[row.get("tree", 0), one].append(other)
    tree = {}
    if several:
        tree = {row["broker"]: row["tree"] for row in table(plan, "tree_sources")}
    total: defaultdict[str, float] = defaultdict(float)
    for source, ends, messages in routes_of(dataset, plan, record["clients"] == "allocated"):
        before = {source: source}
        queue = [source]
        for here in queue:
            for there in near[tree.get(source, 0), here]:
                if there not in before:
                    before[there] = here
                    queue.append(there)
        total["missed"] += len(ends - before.keys())
        used = set()
        for end in ends & before.keys():
            while end not in used and end != source:
                used.add(end)
                end = before[end]
        total["link_messages"] += messages * len(used)
    return dict(total)


def group_ledger(plan: Path, dataset: Path) -> dict[str, float]:
    """Who is reached: by the entries of a group with just these members, else along the tree."""
    members = related(table(plan, "group_members"), "group", "broker")
    if "group_cells" in {path.stem for path in plan.glob("*.parquet")}:
        return {"missed": 1}  # Which message is in which cell is not counted here.
    roots = {row["group"]: row["root"] for row in table(plan, "virtual_groups")}
    above = {
        (row["root"], row["child"]): row["parent"]
        for row in table(plan, "group_trees")
        if row["parent"] is not None
    }
    entries = defaultdict(list)
    for row in table(plan, "group_links") + table(plan, "shortcuts"):
        entries[row["group"]].append((row["from_broker"], row["to_broker"]))
    groups = {(roots[group], frozenset(who)): group for group, who in members.items()}
    total: defaultdict[str, float] = defaultdict(float)
    for source, ends, messages in routes_of(dataset, plan, allocated=False):
        group = groups.get((source, frozenset(ends)))
        links = entries[group] if group is not None else on_tree(source, ends, above)
        reached, grown = {source}, True
        while grown:
            more = {head for tail, head in links if tail in reached} - reached
            reached |= more
            grown = bool(more)
        total["missed"] += len(ends - reached)
        total["link_messages"] += messages * len(links)
    return dict(total)


def on_tree(root: str, ends: set[str], above: dict[tuple[str, str], str]) -> list[tuple[str, str]]:
    """The links of a tree that lead from its root to some brokers."""
    links = set()
    for end in ends:
        while (root, end) in above and (above[root, end], end) not in links:
            links.add((above[root, end], end))
            end = above[root, end]
    return sorted(links)


def mesh_holds(plan: Path, dataset: Path, told: Row) -> bool:
    """Whether those who want the same reach each other over links among them, as few as stated."""
    people = {row["subscriber_id"]: row["subscriber"] for row in stage(dataset, "subscribers")}
    wanted = defaultdict(set)
    if told["params"]["connect"] == "topics":
        for row in stage(dataset, "regions"):
            wanted[row["topic_id"]].add(people[row["subscriber_id"]])
    else:
        for row in stage(dataset, "classes"):
            wanted[row["audience_class"]] = {people[who] for who in row["subscribers"]}
    links = {frozenset((row["a"], row["b"])) for row in table(plan, "mesh_links")}
    degree = Counter(end for link in links for end in link)
    figures = (len(links), max(degree.values(), default=0))
    joined = all(connected(who, [link for link in links if link <= who]) for who in wanted.values())
    return joined and figures == (told["links"], told["degree_max"])


def connected(nodes: set[str], links: list[frozenset[str]]) -> bool:
    reached = set(list(nodes)[:1])
    while more := {end for link in links if link & reached for end in link} - reached:
        reached |= more
    return reached == nodes
