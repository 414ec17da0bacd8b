"""The kinds options and cloud, small: sizes, shapes, and what a night changes."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from fanplan.core.errors import InputError
from fanplan.workload.generators.cloud import (
    FEWEST,
    CloudParams,
    cloud_links,
    draw_cloud,
    draw_machines,
    generate_cloud,
)
from fanplan.workload.generators.listed_options import (
    OptionsParams,
    draw_follows,
    draw_listing,
    generate_options,
    listed_days,
)
from fanplan.workload.topics import to_regex

SMALL = OptionsParams(symbols=4_000, underlyings=60, users=40)
TINY_CLOUD = CloudParams(pods=3, leaves=4, hosts=6, planes=2, cores=2, tenants=12, groups=300)


def wanted_symbols(params: OptionsParams, seed: int) -> dict[str, set[str]]:
    made = generate_options(params, seed)
    topics = made.law.topics.to_pylist()
    found: dict[str, set[str]] = {}
    for row in made.tables["subscriptions"].to_pylist():
        meant = re.compile(to_regex(row["topic"], "nats"))
        own = found.setdefault(row["subscriber"], set())
        own |= {topic for topic in topics if meant.fullmatch(topic)}
    return found


def test_patterns_mean_what_was_drawn() -> None:
    params = OptionsParams(symbols=500, underlyings=8, users=5, follows=3)
    listing, follows = draw_listing(params, 3), draw_follows(params, 3)
    expected: dict[str, set[str]] = {}
    for i, user in enumerate(follows.user):
        u = follows.underlying[i]
        expected.setdefault(f"u{user}", set()).update(
            f"{listing.tickers[u]}.{day:04d}.{side}.{strike:04d}"
            for day in listing.expiries[u][: follows.near[i]]
            for strike in range(follows.lo[i], follows.hi[i])
            for side in "CP"
        )
    assert wanted_symbols(params, 3) == expected


def test_sizes_and_rates_of_options_are_skewed() -> None:
    made, listing = generate_options(SMALL, 1), draw_listing(SMALL, 1)
    assert len(made.law.topics) == 2 * listing.cells().sum()
    assert abs(len(made.law.topics) / SMALL.symbols - 1) < 0.3
    assert len(set(made.law.topics.to_pylist())) == len(made.law.topics)
    assert listing.cells()[0] == listing.cells().max()
    assert made.law.rates.mean() == pytest.approx(SMALL.rate)
    assert np.sort(made.law.rates)[-len(made.law.rates) // 10 :].sum() > 0.5 * made.law.rates.sum()
    assert generate_options(SMALL, 1).tables == made.tables


def test_a_night_ends_expiries_lists_new_ones_and_moves_interest() -> None:
    later = OptionsParams(**(vars(SMALL) | {"day": 1}))
    first, second = (generate_options(params, 1) for params in (SMALL, later))
    before, after = (set(made.law.topics.to_pylist()) for made in (first, second))
    assert before - after
    assert after - before
    assert len(before & after) > 0.8 * len(before)
    ended = {topic.split(".")[1] for topic in before - after}
    assert ended == {"0001"}
    pairs = [
        set(zip(*(c.tolist() for c in (f.user, f.underlying)), strict=True))
        for f in (draw_follows(params, 1) for params in (SMALL, later))
    ]
    assert 0 < len(pairs[0] - pairs[1]) < 0.2 * len(pairs[0])


def test_listed_days_of_a_level_contain_those_of_the_level_below() -> None:
    for day in (0, 1, 20, 21):
        days = [set(listed_days(day, level).tolist()) for level in range(4)]
        assert days[0] < days[1] < days[2] < days[3]
        assert min(days[3]) == day + 1


def test_too_few_symbols_are_refused() -> None:
    with pytest.raises(InputError, match="24 for each"):
        OptionsParams(symbols=100, underlyings=10)


def test_a_cloud_has_a_fat_tree_of_switches() -> None:
    links = cloud_links(TINY_CLOUD)
    degree = Counter([*links["a"].to_pylist(), *links["b"].to_pylist()])
    assert {degree[name] for name in degree if name.startswith("host")} == {1}
    assert {degree[name] for name in degree if name.startswith("leaf")} == {6 + 2}
    assert {degree[name] for name in degree if name.startswith("spine")} == {4 + 2}
    assert {degree[name] for name in degree if name.startswith("core")} == {3}
    assert Counter(name[:4] for name in degree) == {"host": 72, "leaf": 12, "spin": 6, "core": 4}


def test_groups_are_of_one_tenant_and_their_senders_are_members() -> None:
    made, cloud = generate_cloud(TINY_CLOUD, 2), draw_cloud(TINY_CLOUD, 2)
    sizes = np.diff(cloud.starts)
    assert sizes.min() >= FEWEST
    homes: dict[int, set[int]] = {}
    for group, tenant in enumerate(cloud.tenant):
        members = cloud.members[cloud.starts[group] : cloud.starts[group + 1]]
        assert (np.diff(members) > 0).all()
        assert cloud.source[group] in members
        homes.setdefault(int(tenant), set()).update(members.tolist())
    on_host = Counter(host for hosts in homes.values() for host in hosts)
    assert max(on_host.values()) <= TINY_CLOUD.machines
    assert len(made.tables["subscriptions"]) == sizes.sum()
    sent = made.tables["advertisements"]
    assert sent["publisher"] == sent["broker"]


def test_machines_fit_on_the_hosts() -> None:
    for seed in range(5):
        params = CloudParams(pods=1, leaves=4, hosts=5, tenants=30, machines=20, groups=10)
        assert draw_machines(params, np.random.default_rng(seed)).sum() <= 20 * 20
