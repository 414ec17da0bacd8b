"""Random interest, after section 5 of Bickson et al.: no structure that a plan could use.

Every user wants every topic with the same chance, and all topics have the same rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.options import Params, option
from fanplan.workload.description import Description
from fanplan.workload.generators.draws import keep, names, streams
from fanplan.workload.generators.generated import Generated, Kind, advertisements, subscriptions
from fanplan.workload.generators.law import PublicationLaw


@dataclass(frozen=True)
class RandomParams(Params):
    """Sizes of the market workload, which this one is compared with."""

    flows: int = option(10_000, "number of topics", at_least=1)
    users: int = option(250, "number of subscribers", at_least=1)
    interest: float = option(0.03, "chance that a user wants a topic", above=0, at_most=1)


def generate(params: RandomParams, seed: int) -> Generated:
    """A random workload; time and memory grow with the number of subscriptions."""
    topics = names("f", params.flows)
    law = PublicationLaw(
        topics,
        np.full(params.flows, params.rate),
        names("p", params.flows),
        params.message_bytes,
    )
    tables = {
        "subscriptions": subscriptions(
            names("u", params.users), topics, draw_interest(params, seed)
        ),
        "advertisements": advertisements(law),
    }
    return Generated(Description(name="random", topic_syntax="nats"), tables, law)


def draw_interest(params: RandomParams, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Who wants what, as positions of users and of topics, ordered by user."""
    (wanting,) = streams(seed, 1)
    chances = np.full(params.flows, params.interest)
    wanted = [keep(wanting, chances, 1.0) for _ in range(params.users)]
    return np.repeat(np.arange(params.users), [len(w) for w in wanted]), np.concatenate(wanted)


KIND = Kind("random", "every user wants every topic with the same chance", RandomParams, generate)
