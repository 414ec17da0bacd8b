"""The experiments of Bickson et al. (2010) at small sizes: what they measure, and its orderings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from studies import all_is_measured, samples_of, settings_are_named_and_used

from fanplan.papers.experiment import Samples, Study, judge_statement
from fanplan.papers.hybrid import EXPERIMENT, hybrid_study
from fanplan.papers.hybrid.samples import (
    BINS,
    FULL,
    SHARES,
    STILL,
    HybridSizes,
    draw_traffic,
    sample_hybrid,
)

SMALL = HybridSizes(
    market=(300, 40, 8),
    small=(60, 20, 5),
    websphere=(300, 30, 12),
    channels=(4, 8),
    scales=((200, 20, 5), (240, 30, 5)),
)
TINY = hybrid_study(SMALL, 1)
TIMES = [setting for setting in TINY.settings if setting["task"] == "times"]


@pytest.fixture(scope="module")
def samples() -> Samples:
    """One run of every setting."""
    return samples_of(TINY.settings, sample_hybrid, 3)


@pytest.mark.parametrize("study", [EXPERIMENT.full, EXPERIMENT.quick, TINY])
def test_settings_have_names_of_their_own_and_travel_as_json(study: Study) -> None:
    settings_are_named_and_used(study)


def test_every_point_and_statement_is_measured(samples: Samples) -> None:
    all_is_measured(TINY, samples)


def test_what_cannot_fail_holds(samples: Samples) -> None:
    """Ends of curves are known plans, a greedy step never raises the cost, a limit only costs."""
    for name in ("market", "websphere", "random"):
        own = {key: value[0] for (setting, key), value in samples.items() if setting == name}
        for method in ("lightest-flow", "heaviest-user", "greedy-flow forced"):
            assert own[f"{method} @ 0"] == pytest.approx(own["tock"])
            assert own[f"{method} @ 100"] == pytest.approx(own["unicast"])
        for method in ("greedy-flow", "greedy-user", "kmodes"):
            values = [own[f"{method} @ {share}"] for share in SHARES]
            assert all(a >= b - 1e-9 for a, b in pairwise(values))
            assert own[f"{method} best"] == pytest.approx(values[-1])


def test_unlimited_second_steps_agree_with_the_ends_of_their_curves(samples: Samples) -> None:
    for kind in ("market", "websphere"):
        for method in ("lightest-flow", "heaviest-user", "greedy-flow", "greedy-user"):
            end = samples[f"{kind}, ends", method]
            assert end == pytest.approx(samples[kind, f"{method} best"])


def test_both_shares_begin_and_end_alike_and_differ_between(samples: Samples) -> None:
    """A message to a channel is sent once and delivered often: unicast is more of what is sent."""
    own = {key: value[0] for (setting, key), value in samples.items() if setting == "market"}
    for share in (0, 100):
        assert own[f"lightest-flow sent @ {share}"] == own[f"lightest-flow @ {share}"]
    assert own["lightest-flow sent @ 20"] > own["lightest-flow @ 20"]
    assert own["lightest-flow sent best"] == own["lightest-flow best"]
    assert own["lightest-flow sent best share"] > own["lightest-flow best share"]


def test_bmd_from_memberships_is_random_by_another_name(samples: Samples) -> None:
    at = SMALL.market[2]
    still, moved, drawn = (
        samples["table 1, large", f"{name} @ {at}"] for name in (STILL, "bmd", "random")
    )
    assert still == pytest.approx(drawn, rel=0.1)
    assert moved < still


def test_topics_of_a_cell_share_audiences_and_every_part_of_a_matrix_counts(
    samples: Samples,
) -> None:
    shared = {kind: samples[f"{kind}, matrix", "shared"][0] for kind in ("market", "websphere")}
    assert shared["websphere"] > shared["market"]
    sent = [samples["market, matrix", f"sent @ {i}"][0] for i in range(BINS)]
    assert sum(sent) == pytest.approx(100.0)


def test_times_double_one_size_at_a_time() -> None:
    base, *doubled = ([s[x] for x in ("flows", "users", "channels")] for s in TIMES[1:])
    ratios = [[a / b for a, b in zip(own, base, strict=True)] for own in doubled]
    assert ratios == [[2, 1, 1], [1, 2, 1], [1, 1, 2]]


@pytest.mark.parametrize(
    "text",
    [
        "Lightest flow is better than heaviest flow, Market",
        "Flow-user pair is worse than greedy flow, Market",
        "Heaviest user raises the cost at every share",
        "Hybrid is better than multicast only",
        "Hybrid is better than unicast only",
        "Ours: the best of kmodes is below that",
    ],
)
def test_published_orderings_hold_on_a_small_system(text: str, samples: Samples) -> None:
    found = [(item, s) for item in TINY.items for s in item.statements if s.text == text]
    assert len(found) == 1
    assert judge_statement(*found[0], samples).margin > 0


def test_a_sample_depends_on_setting_and_seed_alone() -> None:
    setting = next(s for s in TINY.settings if s["name"] == "table 1, small")
    assert sample_hybrid(dict(setting), 1) == sample_hybrid(dict(setting), 1)
    assert sample_hybrid(dict(setting), 1) != sample_hybrid(dict(setting), 2)


def test_equal_rate_changes_the_rates_and_not_the_interest() -> None:
    setting = dict(next(s for s in TINY.settings if s["name"] == "market"))
    plain, equal = draw_traffic(setting, 0), draw_traffic({**setting, "equal_rate": True}, 0)
    assert np.array_equal(plain.flow.audience, equal.flow.audience)
    assert set(equal.flow.messages) == {1.0}
    assert equal.classes.messages.sum() == equal.flow.messages.sum() == plain.flow.size


def test_the_full_sizes_are_the_papers() -> None:
    assert FULL.scales[0] == (5_000, 50, 50)
    assert FULL.scales[-1] == (10_000, 300, 50)
    assert FULL.market[:2] == (10_000, 250)
    assert FULL.websphere[:2] == (6_100, 79)
    assert FULL.small == (200, 100, 10)
