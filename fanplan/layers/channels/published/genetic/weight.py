"""What a subscription weighs (Guimarães & Rodrigues 2003, sections 3.2 to 3.5).

Its weight is that of its subject, in messages/s or bytes/s (3.5), times the probability of a
notification, by volume or by hits (3.4). Volumes (3.3) are exact: boxes are two matrices, low and
high ends, one line per box; intervals are half-open.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.layers.channels.published.genetic.problem import SubscriptionProblem

Unit = Literal["messages", "bytes"]

Kind = Literal["volume", "hits"]


def subscription_weight(
    problem: SubscriptionProblem, kind: Kind, sample: int, unit: Unit = "messages"
) -> Floats:
    """W(s_a) = W(a) · P(s_a)."""
    subject = subject_weight(problem, kind, unit)[problem.topic]
    return subject * subscription_probability(problem, kind, sample)


def row_weight(
    problem: SubscriptionProblem, kind: Kind, sample: int, unit: Unit = "messages"
) -> Floats:
    """The weight of each atomic volume; that of a union is the sum."""
    subject = subject_weight(problem, kind, unit)[problem.row_topic]
    return subject * row_probability(problem, kind, sample)


def subject_weight(problem: SubscriptionProblem, kind: Kind, unit: Unit = "messages") -> Floats:
    """W(a): what is sent on the whole topic, or what a server receives, which asks for the root."""
    messages = problem.topic_messages if kind == "volume" else problem.root_hits
    size = message_size(problem) if unit == "bytes" else 1.0
    return messages * size / problem.interest.seconds


def message_size(problem: SubscriptionProblem) -> Floats:
    """Mean bytes of a message of each topic, over those that somebody wants; 0 if there are none.

    Only what is wanted has a row. What nobody wants is taken to be of the same size.
    """
    interest, topics = problem.interest, len(problem.topic_messages)
    bytes, messages = (
        np.bincount(problem.row_topic, total, topics).astype(np.float64)
        for total in (interest.bytes, interest.messages)
    )
    return part_of_whole(bytes, messages)


def subscription_probability(problem: SubscriptionProblem, kind: Kind, sample: int) -> Floats:
    """P(s_a) of each subscription; the boxes of a problem are disjoint, so their volumes add up."""
    line = problem.boxes.values
    owner = np.repeat(np.arange(problem.size), np.diff(problem.boxes.starts))
    sizes = np.prod(problem.hi[line] - problem.lo[line], axis=1)
    volumes = np.bincount(owner, sizes, problem.size).astype(np.float64)
    found = probability(problem, kind, sample, problem.topic, volumes, problem.hits)
    # An estimate is rounded and may take another way to the root, so it can exceed it.
    return np.minimum(found, 1.0) if kind == "hits" else found


def row_probability(problem: SubscriptionProblem, kind: Kind, sample: int) -> Floats:
    """P of each atomic volume, from which that of any union follows by addition."""
    return probability(
        problem, kind, sample, problem.row_topic, problem.row_volume, problem.interest.messages
    )


def probability(
    problem: SubscriptionProblem,
    kind: Kind,
    sample: int,
    topic: Ints | Longs,
    volume: Floats,
    hits: Floats | Longs,
) -> Floats:
    """P of parts of topics with these volumes and hits.

    By volume it is ‖V(s_a)‖ / ‖V(a)‖, right if notifications are uniform. By hits it is the share
    of the root's hits, or of its volume if the root has fewer than ``sample`` hits.
    """
    if kind == "volume":
        return part_of_whole(volume, problem.topic_volume[topic])
    enough = (problem.root_hits >= sample)[topic]
    counted = part_of_whole(hits, problem.root_hits[topic])
    return np.where(enough, counted, part_of_whole(volume, root_volumes(problem)[topic]))


def part_of_whole(part: Floats | Longs, whole: Floats) -> Floats:
    """Part of the whole, 0 of nothing."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def root_volumes(problem: SubscriptionProblem) -> Floats:
    """The volume of each topic's root: the smallest box that holds its subscriptions; else 0."""
    topics, axes = len(problem.topic_volume), problem.lo.shape[1]
    line = problem.boxes.values
    topic = np.repeat(problem.topic, np.diff(problem.boxes.starts))
    low, high = np.full((topics, axes), np.inf), np.full((topics, axes), -np.inf)
    np.minimum.at(low, topic, problem.lo[line])
    np.maximum.at(high, topic, problem.hi[line])
    result: Floats = np.prod(np.maximum(high - low, 0.0), axis=1)
    return result
