"""Stage `topics`: the known topics, numbered; and which of them a subscription's pattern means."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fanplan.data.numbering import numbered
from fanplan.workload.topics import TopicSyntax, separator

# What stands for one token, and for the rest of the name.
_WILDCARDS = {"nats": ("*", ">"), "mqtt": ("+", "#")}


def number_topics(named: list[DataFrame]) -> DataFrame:
    """Topics (topic, space) of several tables, each once, numbered in the order of their names."""
    distinct = (
        reduce(DataFrame.unionByName, named).groupBy("topic").agg(F.first("space").alias("space"))
    )
    return distinct.select("topic", numbered("topic").alias("topic_id"), "space")


def topics_of_patterns(patterns: DataFrame, topics: DataFrame, syntax: TopicSyntax) -> DataFrame:
    """(pattern, topic_id, space) for every topic that a pattern matches, without a cross join."""
    exact = patterns.join(topics, on=patterns["pattern"] == topics["topic"], how="inner")
    found = exact.select("pattern", "topic_id", "space")
    if syntax == "exact":
        return found
    return found.unionByName(_wildcard_matches(patterns, topics, syntax))


def _tokens(column: str, syntax: TopicSyntax) -> Column:
    return F.split(column, "\\" + str(separator(syntax)))


def _wildcard_matches(patterns: DataFrame, topics: DataFrame, syntax: TopicSyntax) -> DataFrame:
    """Join on what a pattern says literally, then compare token by token."""
    one, rest = _WILDCARDS[syntax]
    wild = (
        patterns.withColumn("p", _tokens("pattern", syntax))
        .filter(F.array_contains("p", one) | F.array_contains("p", rest))
        .withColumn("key", _pattern_key(one, rest))
    )
    named = topics.withColumn("t", _tokens("topic", syntax)).withColumn(
        "key", F.explode(_topic_keys())
    )
    return (
        named.join(wild, on="key", how="inner")
        .filter(_tokens_match(one, rest, syntax))
        .select("pattern", "topic_id", "space")
    )


def _pattern_key(one: str, rest: str) -> Column:
    """The literal start of a pattern; failing that its first literal token; else nothing."""
    literal = F.transform("p", lambda token: ~token.isin(one, rest))
    start = F.array_position(literal, False) - 1
    position = F.array_position(literal, True).cast("int")
    return (
        F.when(start > 0, F.concat(F.lit("start:"), F.concat_ws("\0", F.slice("p", 1, start))))
        .when(position > 0, _token_key(position, F.element_at("p", position)))
        .otherwise(F.lit("any"))
    )


def _token_key(position: Column, token: Column) -> Column:
    return F.concat(F.lit("token:"), position.cast("string"), F.lit(":"), token)


def _topic_keys() -> Column:
    """All keys under which a pattern that matches the topic may stand."""
    positions = F.sequence(F.lit(1), F.size("t"))
    starts = F.transform(
        positions, lambda n: F.concat(F.lit("start:"), F.concat_ws("\0", F.slice("t", 1, n)))
    )
    tokens = F.transform(positions, lambda n: _token_key(n, F.element_at("t", n)))
    return F.concat(starts, tokens, F.array(F.lit("any")))


def _tokens_match(one: str, rest: str, syntax: TopicSyntax) -> Column:
    """Whether the tokens `t` of a topic match the tokens `p` of a pattern."""
    open_end = F.element_at("p", -1) == rest
    fixed = F.size("p") - open_end.cast("int")
    least = fixed + (1 if syntax == "nats" else 0)
    long_enough = F.when(open_end, F.size("t") >= least).otherwise(F.size("t") == fixed)
    same = F.forall(
        F.slice(F.arrays_zip("p", "t"), F.lit(1), fixed),
        lambda pair: (pair["p"] == one) | (pair["p"] == pair["t"]),
    )
    matches = long_enough & same
    if syntax == "mqtt":  # A leading wildcard does not reach the server's own `$` topics.
        first = F.element_at("p", 1)
        matches &= ~(first.isin(one, rest) & F.element_at("t", 1).startswith("$"))
    return matches
