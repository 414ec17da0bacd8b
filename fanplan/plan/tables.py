"""The tables of a plan folder: one description feeds the Parquet schemas and the documentation."""

from __future__ import annotations

from fanplan.core.tables import Column, Table

_CHANNEL = Column("channel", "integer", "number of the channel, from 0", required=True)
_FLOW = Column("flow", "string", "a flow of the plan", required=True)
_LINK_A = Column("a", "string", "a broker", required=True)
_LINK_B = Column("b", "string", "another one, after a by name", required=True)
_TREE = Column("tree", "integer", "number of the tree, from 0", required=True)
_GROUP = Column("group", "integer", "number of the group, from 0", required=True)
_TOPIC = Column("topic", "string", "a topic", required=True)

PLAN_FLOWS = Table(
    "flows",
    "the flows that somebody wants",
    (
        Column(
            "flow",
            "string",
            "the topic; topic#… if there are several flows of it, topic[i,j,…] for a cell",
            required=True,
        ),
        Column("topic", "string", "its topic", required=True),
        Column(
            "cell",
            "integers",
            "cell number on each axis; of an exact flow the four numbers of its audience's "
            "signature; null for a whole topic",
        ),
        Column("rate", "number", "how much is sent", unit="messages/s", required=True),
        Column("bytes_rate", "number", "how much is sent", unit="bytes/s", required=True),
        Column("audience_class", "integer", "flows with this number have one audience", True),
        Column("description", "string", "what is in it and who wants it, in words", True),
    ),
    key=("flow",),
)

CHANNEL_FLOWS = Table(
    "channel_flows", "which channels carry a flow", (_CHANNEL, _FLOW), key=("channel", "flow")
)

CHANNEL_SUBSCRIBERS = Table(
    "channel_subscribers",
    "who joins a channel",
    (_CHANNEL, Column("subscriber", "string", "who joins it", required=True)),
    key=("channel", "subscriber"),
)

UNICAST = Table(
    "unicast",
    "what is sent point to point",
    (_FLOW, Column("subscriber", "string", "who gets it", required=True)),
    key=("flow", "subscriber"),
)

CHANNEL_TABLES = (PLAN_FLOWS, CHANNEL_FLOWS, CHANNEL_SUBSCRIBERS, UNICAST)

DUAL_VALUES = Table(
    "dual_values",
    "the proof of a dual bound: what each audience pays at least beyond perfect multicast",
    (
        Column("audience_class", "integer", "the class; one that is missing has 0", True),
        Column("value", "number", "its dual value, in units of the cost", required=True),
    ),
    key=("audience_class",),
)

SWITCH_ENTRIES = Table(
    "switch_entries",
    "tables of switches, a row for each port of an entry",
    (
        Column("switch", "string", "the switch", required=True),
        _CHANNEL,
        Column("neighbour", "string", "the switch or broker at the port", required=True),
    ),
    key=("switch", "channel", "neighbour"),
)

PLAN_BROKERS = Table(
    "brokers",
    "the brokers that are used",
    (
        Column("broker", "string", "name of the broker", required=True),
        Column("capacity", "number", "what it can process; null if not limited", unit="messages/s"),
        Column("load", "number", "what it has to process, forwarding included", True, "messages/s"),
        Column(
            "client_load",
            "number",
            "what its clients bring, by the rule of the allocation; null if none was made",
            unit="messages/s",
        ),
    ),
    key=("broker",),
)

CLIENTS = Table(
    "clients",
    "which client is at which broker",
    (
        Column("client", "string", "a publisher or a subscriber", required=True),
        Column("role", "string", "publisher or subscriber", required=True),
        Column("broker", "string", "where it is", required=True),
    ),
    key=("client", "role", "broker"),
)

PLAN_LINKS = Table(
    "links",
    "which brokers are linked",
    (
        _LINK_A,
        _LINK_B,
        Column("weight", "number", "similarity of the two by the plan's metric", required=True),
        Column("rate", "number", "what crosses it, both ways", True, "messages/s"),
    ),
    key=("a", "b"),
)

TREE_LINKS = Table(
    "tree_links",
    "which links form which tree; only if there are several trees",
    (_TREE, _LINK_A, _LINK_B),
    key=("tree", "a", "b"),
)

TREE_SOURCES = Table(
    "tree_sources",
    "which tree takes what enters at a broker; only if there are several trees",
    (Column("broker", "string", "where messages enter", required=True), _TREE),
    key=("broker",),
)

MARKS = Table(
    "marks",
    "what travels on the directed links of the trees",
    (
        Column("from_node", "string", "where the link begins", required=True),
        Column("to_node", "string", "where it ends", required=True),
        Column("mark", "string", "p: advertisements downstream; s: subscriptions upstream", True),
        Column("sigma", "long", "descriptors on it as a p-link", required=True),
        Column("tau", "long", "descriptors on it as an s-link", required=True),
        Column("price", "number", "what each of them costs, sent and stored", required=True),
        Column("merged_sigma", "long", "sigma without those that another one on it covers"),
        Column("merged_tau", "long", "tau without those that another one on it covers"),
    ),
    key=("from_node", "to_node"),
)

GROUP_TREES = Table(
    "group_trees",
    "the trees that groups hang on, one for each broker where messages enter",
    (
        Column("root", "string", "where messages enter", required=True),
        Column("parent", "string", "the broker before it on the way from the root; null there"),
        Column("child", "string", "a broker of the tree", required=True),
    ),
    key=("root", "child"),
)

VIRTUAL_GROUPS = Table(
    "virtual_groups",
    "the groups that are set up, best first",
    (
        _GROUP,
        Column("root", "string", "where its messages enter and are matched", required=True),
        Column("members", "integer", "how many brokers it is sent to", required=True),
        Column("messages", "number", "what is sent to it in the window", required=True),
        Column("unwanted", "number", "what of that members do not want", required=True),
        Column("entries", "integer", "its entries in forwarding tables", required=True),
        Column("control", "integer", "control messages that set it up", required=True),
        Column("benefit", "number", "what it was ranked by", required=True),
    ),
    key=("group",),
)

GROUP_MEMBERS = Table(
    "group_members",
    "which brokers a group is sent to",
    (_GROUP, Column("broker", "string", "a member", required=True)),
    key=("group", "broker"),
)

GROUP_LINKS = Table(
    "group_links",
    "links of its tree that a group uses; with its shortcuts they are its forwarding entries",
    (
        _GROUP,
        Column("from_broker", "string", "who forwards", required=True),
        Column("to_broker", "string", "to whom", required=True),
    ),
    key=("group", "to_broker"),
)

SHORTCUTS = Table(
    "shortcuts",
    "where a group bypasses brokers that would only forward",
    (
        *GROUP_LINKS.columns,
        Column("bypassed", "integer", "brokers between the two on the tree", required=True),
    ),
    key=("group", "to_broker"),
)

GROUP_CELLS = Table(
    "group_cells",
    "the cells whose messages a group has; only if groups come from cells",
    (
        _GROUP,
        _TOPIC,
        Column("cell", "integers", "cell number on each axis; empty for a whole topic", True),
        Column("description", "string", "the ranges of the cell, in words", required=True),
    ),
    key=("group", "topic", "cell"),
)

GROUP_AXES = Table(
    "group_axes",
    "the grid of these cells; only if groups come from cells",
    (
        _TOPIC,
        Column("axis", "integer", "number of the axis, from 0", required=True),
        Column("edges", "numbers", "cell i is from edge i to the next, without it", True),
    ),
    key=("topic", "axis"),
)

CHANNEL_DOMAINS = Table(
    "channel_domains",
    "the multicast domain of each channel: a site, or everywhere",
    (_CHANNEL, Column("domain", "string", "where it reaches; empty: everywhere", required=True)),
    key=("channel",),
)

DIRECT_CLASSES = Table(
    "direct_classes",
    "what is sent to each subscriber past the brokers",
    (Column("audience_class", "integer", "as in the table flows", required=True),),
    key=("audience_class",),
)

OVERLAY_TABLES = (PLAN_BROKERS, CLIENTS, PLAN_LINKS)
TREE_TABLES = (TREE_LINKS, TREE_SOURCES)
MARKING_TABLES = (MARKS,)
GROUPS_TABLES = (GROUP_TREES, VIRTUAL_GROUPS, GROUP_MEMBERS, GROUP_LINKS, SHORTCUTS)
DELIVERY_TABLES = (CHANNEL_DOMAINS, DIRECT_CLASSES)
CELL_TABLES = (GROUP_CELLS, GROUP_AXES)
