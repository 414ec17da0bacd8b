"""How a person is told of channels, and why a flow or a subscriber is where it is."""

from __future__ import annotations

from typing import Any

from fanplan.core.result import plain_number
from fanplan.plan.made import Answer, Facts, Grid, Lines, Note, Row, Shown, in_words

WORDS = {
    "perfect": "perfect multicast",
    "excess_percent": "over perfect %",
    "bound_percent": "no plan is below %",
    "single_bound_percent": "with one channel per flow %",
    "unicast_fraction": "share sent by unicast",
    "unicast_counted": "share by unicast that several want",
    "channels_used": "of these in use",
    "audience_classes": "audience classes",
    "link_traffic": "messages × links",
    "link_excess_percent": "over ideal multicast on links %",
    "link_unicast_percent": "all by unicast, over that %",
    "link_bound_percent": "lower bound, over that %",
    "switch_entries": "entries in all switches",
    "fullest_switch": "entries in the fullest switch",
    "ended_early_by": "ended early by",
    "restarts": "costs of all restarts",
    "joins": "subscribers join channels",
    "leaves": "subscribers leave channels",
    "added": "flows added to channels",
    "removed": "flows removed from channels",
    "gone": "pairs no longer there",
    "fresh_cost": "cost if planned afresh",
    "given_up_percent": "cost given up %",
}
METHODS = ("method", "cost", "over perfect %", "unicast %", "seconds")
BESIDE_TABLES = (
    "the plan keeps to the tables of switches and aims at messages × links; "
    "the other methods know neither"
)
JOINED = {
    "channel": "channel",
    "rate": "messages/s",
    "wanted_rate": "wanted",
    "unwanted_rate": "unwanted",
    "only_here": "only here",
    "saves": "joining saves",
}


def show_channels(answer: Answer) -> Shown:
    """The plan, other methods beside it, dearest first, and what was asked about."""
    yield Facts("Plan, checked", in_words(answer.facts, WORDS))
    if answer.compared:
        able = [row for row in answer.compared if "refused" not in row]
        rows = sorted([*able, dict(answer.facts)], key=lambda row: -row["cost"])
        yield Grid("Compared", METHODS, [compared_row(row) for row in rows])
        if "link_traffic" in answer.facts:
            yield Note(BESIDE_TABLES)
    for row in answer.compared:
        if "refused" in row:
            yield Note(f"{row['method']} is not compared: {row['refused']}")
    for item in answer.explained:
        yield from told_flow(item) if "flow" in item else told_subscriber(item)


def compared_row(row: Row) -> list[Any]:
    share = 100 * row["unicast_fraction"]
    return [row["method"], row["cost"], row["excess_percent"], share, row["seconds"]]


def told_flow(item: Row) -> Shown:
    """Where one flow goes, what that costs, and the next best place."""
    who = f"{plain_number(item['rate'])} messages/s for {item['audience']} subscribers"
    lines = [f"Flow {item['flow']}: {who}", f"  {item['description']}"]
    if item["asked_for"]:
        lines.append(f"  {item['asked_for']}, as asked for")
    for carried in item["channels"]:
        unwanted = plain_number(carried["unwanted_rate"])
        lines.append(
            f"  channel {carried['channel']}: {carried['wanting']} of its {carried['members']} "
            f"members want it; unwanted {unwanted} messages/s"
        )
    own = f"with a channel of its own {plain_number(item['perfect'])}"
    lines.append(f"  by unicast: {item['unicast']} subscribers")
    lines.append(f"  cost {plain_number(item['cost'])} per second; {own}")
    if item["runner_up_cost"] is None:
        lines.append("  no other place would do what was asked for")
    else:
        price = plain_number(item["runner_up_cost"])
        lines.append(f"  next best: {item['runner_up']}, cost {price}")
    yield Lines(tuple(lines))


def told_subscriber(item: Row) -> Shown:
    """Where one subscriber gets its messages from, and the channel it nearly joined."""
    wanted = plain_number(item["wanted_rate"])
    yield Lines((f"Subscriber {item['subscriber']} wants {wanted} messages/s",))
    if item["joined"]:
        rows = [[joined[name] for name in JOINED] for joined in item["joined"]]
        yield Grid("", tuple(JOINED.values()), rows)
    rate = plain_number(item["unicast_rate"])
    lines = [
        f"  by unicast: {item['unicast_rows']} flows or classes, {rate} messages/s",
        f"  cost of receiving {plain_number(item['cost'])} per second",
    ]
    nearly = item["runner_up"]
    if nearly is not None:
        verb = "save" if nearly["saves"] > 0 else "cost"
        worth = plain_number(abs(nearly["saves"]))
        lines.append(f"  next best: joining channel {nearly['channel']} would {verb} {worth}")
    yield Lines(tuple(lines))


SHOWS = {"channels": show_channels}
