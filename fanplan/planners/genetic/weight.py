"""Subject and subscription weight (Guimarães & Rodrigues 2003, section 3.5), messages/s."""

from __future__ import annotations

from fanplan.planners.genetic.probability import Kind, row_probability, subscription_probability
from fanplan.problem.interest import Floats
from fanplan.problem.subscriptions import SubscriptionProblem


def subject_weight(problem: SubscriptionProblem, kind: Kind) -> Floats:
    """W(a): what is sent on the whole topic, or what a server receives, which asks for the root."""
    messages = problem.topic_messages if kind == "volume" else problem.root_hits
    return messages / problem.interest.seconds


def subscription_weight(problem: SubscriptionProblem, kind: Kind, sample: int) -> Floats:
    """W(s_a) = W(a) · P(s_a)."""
    subject = subject_weight(problem, kind)[problem.topic]
    return subject * subscription_probability(problem, kind, sample)


def row_weight(problem: SubscriptionProblem, kind: Kind, sample: int) -> Floats:
    """The weight of each atomic volume; that of a union is the sum."""
    return subject_weight(problem, kind)[problem.row_topic] * row_probability(problem, kind, sample)
