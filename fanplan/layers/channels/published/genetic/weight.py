"""Subject and subscription weight, in messages/s or bytes/s (Guimarães & Rodrigues 2003, 3.5)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.layers.channels.published.genetic.probability import (
    Kind,
    ratio,
    row_probability,
    subscription_probability,
)
from fanplan.layers.channels.published.genetic.problem import SubscriptionProblem

Unit = Literal["messages", "bytes"]


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
    return ratio(bytes, messages)


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
