"""The columns of every stage: the contract that a stage's output is held to."""

from __future__ import annotations

from pyspark.sql import types as T

_TYPES: dict[str, T.DataType] = {
    "string": T.StringType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "double": T.DoubleType(),
    "ints": T.ArrayType(T.IntegerType()),
    "doubles": T.ArrayType(T.DoubleType()),
    "boolean": T.BooleanType(),
    "boxes": T.ArrayType(
        T.StructType(
            [
                T.StructField("lo", T.ArrayType(T.DoubleType())),
                T.StructField("hi", T.ArrayType(T.DoubleType())),
            ]
        )
    ),
}


def _columns(**types: str) -> T.StructType:
    return T.StructType([T.StructField(name, _TYPES[type_]) for name, type_ in types.items()])


TOPICS = _columns(topic="string", topic_id="int", space="int")
SUBSCRIBERS = _columns(subscriber="string", subscriber_id="int")
CHECKED_SUBSCRIPTIONS = _columns(
    subscriber="string", topic="string", filter="string", broker="string"
)
SUBSCRIPTIONS = _columns(
    subscription="long",
    subscriber="string",
    subscriber_id="int",
    topic="string",
    filter="string",
    broker="string",
)
ADVERTISEMENTS = _columns(
    publisher="string", topic="string", filter="string", rate="double", broker="string"
)
BROKERS = _columns(
    broker="string", capacity="double", cost="double", site="string", multicast_domain="string"
)
LINKS = _columns(a="string", b="string", latency_ms="double", bandwidth="double", cost="double")
TREES = _columns(root="string", parent="string", child="string")
PATTERNS = _columns(pattern="string", topic_id="int", space="int")
FILTERS = _columns(filter="string", space="int", applies="boolean", boxes="boxes", error="string")
REGIONS = _columns(
    topic_id="int", subscription="long", subscriber_id="int", lo="doubles", hi="doubles"
)
ADVERTISED = _columns(topic_id="int", publisher="string", rate="double", lo="doubles", hi="doubles")
GRID = _columns(topic_id="int", axis="int", edges="doubles")
TRAFFIC = _columns(topic_id="int", cell="ints", messages="double", bytes="double")
HITS = _columns(subscription="long", hits="long")
AUDIENCES = _columns(
    topic_id="int",
    cell="ints",
    messages="double",
    bytes="double",
    subscribers="ints",
    wanted="double",
    lo="doubles",
    hi="doubles",
)
CLASSES = _columns(
    audience_class="int",
    subscribers="ints",
    messages="double",
    bytes="double",
    flows="long",
    wanted="double",
)
FLOWS = _columns(
    flow="string",
    topic="string",
    topic_id="int",
    cell="ints",
    messages="double",
    bytes="double",
    audience_class="int",
    wanted="double",
    lo="doubles",
    hi="doubles",
)
BROKER_REGIONS = _columns(topic_id="int", broker="int", lo="doubles", hi="doubles")
CELL_MARKS = _columns(cell="long", high="long", low="long", brokers="int", whole="boolean")
CELL_ROUTES = _columns(
    cell="long", source="int", destinations="ints", messages="double", deliveries="double"
)
GROUP_CLASSES = _columns(cell_class="int", high="long", low="long", brokers="ints")
GROUP_CELLS = _columns(cell="long", cell_class="int")
GROUP_ROUTES = _columns(
    cell_class="int", source="int", destinations="ints", messages="double", deliveries="double"
)
QUARANTINE = _columns(
    table="string", source="string", line="long", raw="string", reason="string", kind="string"
)


def coordinates(dimensions: int) -> list[str]:
    """Names of the coordinate columns: x0, x1, …"""
    return [f"x{axis}" for axis in range(dimensions)]


def publications(dimensions: int) -> T.StructType:
    """Cleaned publications of a workload whose largest space has that many attributes."""
    base = {"time": "double", "zone": "string", "publisher": "string", "topic": "string"}
    return _columns(**base, bytes="long", **dict.fromkeys(coordinates(dimensions), "double"))
