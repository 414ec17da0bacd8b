"""Mechanical interest, like the WebSphere cell of Bickson et al., whose trace is not public.

Processes subscribe by configuration, so many topics have the same audience. A process has a role;
an audience is a few whole roles, give or take a few processes; a topic takes its audience from a
pool, by Zipf weight, and some topics are noisy copies. All topics have the same rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.options import Params, option
from fanplan.workload.description import Description
from fanplan.workload.generators.draws import names, streams, zipf
from fanplan.workload.generators.generated import Generated, Kind, advertisements, subscriptions
from fanplan.workload.generators.law import PublicationLaw


@dataclass(frozen=True)
class WebsphereParams(Params):
    """Sizes of the published cell. Memory: one byte per topic and process."""

    topics: int = option(6_100, "number of topics", at_least=1)
    processes: int = option(79, "number of subscribers", at_least=1)
    pool: int = option(300, "number of audiences that topics choose from", at_least=1)
    zipf: float = option(1.0, "Zipf exponent of the audiences' weights", at_least=0)
    roles: int = option(5, "number of roles a process may have", at_least=1)
    roles_per_audience: float = option(2.0, "mean number of roles in an audience", at_least=1)
    deviation: float = option(
        0.05, "chance that a process differs from its role in an audience", at_least=0, at_most=1
    )
    noisy: float = option(0.1, "fraction of topics with noise", at_least=0, at_most=1)
    noise: float = option(
        0.05, "chance that a process changes its mind on a noisy topic", at_least=0, at_most=1
    )


def generate(params: WebsphereParams, seed: int) -> Generated:
    """A workload like a WebSphere cell; O(topics × processes)."""
    topics = names("t", params.topics)
    law = PublicationLaw(
        topics,
        np.full(params.topics, params.rate),
        names("p", params.topics),
        params.message_bytes,
    )
    what, who = np.nonzero(draw_interest(params, seed))
    tables = {
        "subscriptions": subscriptions(names("u", params.processes), topics, (who, what)),
        "advertisements": advertisements(law),
    }
    return Generated(Description(name="websphere", topic_syntax="nats"), tables, law)


def draw_interest(params: WebsphereParams, seed: int) -> np.ndarray:
    """The interest matrix, topics × processes."""
    audiences, choosing, noise = streams(seed, 3)
    pool = draw_pool(params, audiences)
    interest = pool[choosing.choice(params.pool, params.topics, p=zipf(params.pool, params.zipf))]
    noisy = np.flatnonzero(noise.random(params.topics) < params.noisy)
    interest[noisy] ^= noise.random((noisy.size, params.processes)) < params.noise
    return interest


def draw_pool(params: WebsphereParams, rng: np.random.Generator) -> np.ndarray:
    """The audiences to choose from, pool × processes: whole roles with a few deviations."""
    role = rng.integers(0, params.roles, params.processes)
    count = rng.geometric(1 / params.roles_per_audience, params.pool)
    places = rng.permuted(np.tile(np.arange(params.roles), (params.pool, 1)), axis=1)
    pool = (places < count[:, None])[:, role]
    return pool ^ (rng.random(pool.shape) < params.deviation)


KIND = Kind("websphere", "mechanical interest: many equal audiences", WebsphereParams, generate)
