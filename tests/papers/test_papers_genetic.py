"""The experiments of Guimarães & Rodrigues (2003) at small sizes: what they measure, and how."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from studies import settings_are_named_and_used

from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, map_pairs
from fanplan.layers.channels.published.genetic.plan import heavy_subscriptions
from fanplan.papers.experiment import Item, Point, Study, judge_statement
from fanplan.papers.genetic import EXPERIMENT, genetic_study
from fanplan.papers.genetic.samples import (
    METHODS,
    desired,
    draw_scenario,
    notifications,
    paper_params,
    sample_genetic,
)
from fanplan.papers.genetic.settings import (
    FIGURE_6C,
    GROUPS,
    RICH,
    SCENARIOS,
    GeneticSizes,
    Scenario,
    mapped_setting,
)

TINY = genetic_study(GeneticSizes((8,), (12,), (8, GROUPS)), 1)
CONTENT = mapped_setting(RICH["content"], 8, (8, GROUPS))
TEXT = json.dumps


@pytest.mark.parametrize("study", [EXPERIMENT.full, EXPERIMENT.quick, TINY])
def test_settings_have_names_of_their_own_and_travel_as_json(study: Study) -> None:
    settings_are_named_and_used(study)
    names = {setting["name"] for setting in study.settings}
    sides = [s for item in study.items for st in item.statements for pair in st.pairs for s in pair]
    assert {s.setting for s in sides if isinstance(s, Point)} <= names


def test_every_point_of_a_sampled_setting_is_measured() -> None:
    sampled = {
        setting["name"]: sample_genetic(json.loads(TEXT(setting)) | {"searches": 1}, 2)
        for setting in TINY.settings
        if setting.get("kind") != "content" or setting["name"] == CONTENT["name"]
    }
    points = [p for item in TINY.items for line in item.lines for p in line.points]
    for point in points:
        assert point.setting not in sampled or point.key in sampled[point.setting]
    found = {(name, key): np.array([v]) for name, own in sampled.items() for key, v in own.items()}
    subject_based = [item for item in TINY.items if item.name.startswith("Figure 6")]
    for item in subject_based:
        assert all(
            judge_statement(item, statement, found).margins.size == 1
            for statement in item.statements
        )
    # Figure 6c is there for every p that is tried.
    assert len(subject_based) == len(SCENARIOS["subjects"]) + len(FIGURE_6C) - 1


def test_the_content_based_scenario_has_the_papers_number_of_subscriptions() -> None:
    """About 450 are mapped, however many subscribers there are."""
    for subscribers in (80, 160):
        problem = draw_scenario(mapped_setting(RICH["content"], subscribers), 1)
        assert 390 < len(heavy_subscriptions(problem, paper_params(GROUPS))) < 460


def test_tables_1_to_3_are_exact() -> None:
    table = next(item for item in TINY.items if item.name == "Table 3")
    measured = sample_genetic({"task": "tables"}, 0)
    points = [point for line in table.lines for point in line.points]
    assert len(points) == 4
    assert all(measured[point.key] == point.published for point in points)


def named(name: str) -> Item:
    return next(item for item in TINY.items if item.name == name)


def test_table_4_compares_ratios_and_only_tells_seconds() -> None:
    ratios = {p.x: p.published for p in named("Table 4").lines[0].points}
    assert ratios["20/16/160/300"] == 5.66
    assert ratios["20/32/160/100"] == 0.94
    assert all(p.published is None for p in named("Table 4, seconds").lines[0].points)
    setting = {"task": "fitness", "sizes": [(2, 2, 20, 20), (20, 2, 20, 20)]}
    found = sample_genetic(setting, 0)
    assert found["2/2/20/20 ratio"] == 1.0
    quotient = found["20/2/20/20 seconds"] / found["2/2/20/20 seconds"]
    assert found["20/2/20/20 ratio"] == pytest.approx(quotient)


def test_only_the_combination_is_said_to_beat_round_robin() -> None:
    """Figure 7: genetic at 1.04 of round-robin is no better, at 1.06 it is."""
    for part, scenario in SCENARIOS["content"].items():
        item = named(f"Figure 7{part}")
        (statement,) = (s for s in item.statements if s.text.startswith("Genetic is"))
        name = scenario.setting(8)
        for ratio, better in ((1.04, False), (1.06, True)):
            found = {
                (name, f"{method} @ {GROUPS}"): np.array([value])
                for method, value in (("round-robin", 0.2), ("genetic", 0.2 * ratio))
            }
            only_above = part == "d"
            assert (judge_statement(item, statement, found).margin > 0) == (
                only_above or not better
            )


def test_advice_holds_if_every_value_outside_the_range_is_worse() -> None:
    item = named("Section 5.3, tournament")
    values = {p.key: 0.4 + 0.1 * (p.x in (0.4, 0.5)) for p in item.lines[0].points}
    setting = item.lines[0].points[0].setting
    for key, worst in (("tournament 0.5", 0.5), ("tournament 1", 0.6)):
        found = {(setting, k): np.array([v]) for k, v in (values | {key: worst}).items()}
        verdicts = [
            judge_statement(item, statement, found).margin > 0 for statement in item.statements
        ]
        assert verdicts == [key == "tournament 0.5"] * 2


@pytest.mark.parametrize("kind", ["subjects", "content"])
def test_all_methods_serve_everybody_and_map_the_heavy_part(kind: str) -> None:
    problem = draw_scenario(mapped_setting(Scenario(kind, 1, 0), 10), 1)
    wanted = analytic_ledger(problem.interest, METHODS["broadcast"](problem, 4, 0)).received_wanted
    for name, method in METHODS.items():
        ledger = analytic_ledger(problem.interest, method(problem, 4, 0))
        assert ledger.missed == pytest.approx(0.0, abs=1e-9), name
        assert ledger.received_wanted == pytest.approx(wanted)
        assert (ledger.sent_unicast > 0) == (kind == "content"), name


def test_efficiency_is_desired_of_all_received() -> None:
    problem = draw_scenario(mapped_setting(Scenario("subjects", 1, 0), 10), 1)
    sent = notifications(problem, 0)
    # Some subjects have no subscriber among ten; their notifications are not sent.
    quiet = 1.0 - problem.interest.messages.sum() / problem.topic_messages.sum()
    assert sent.messages.sum() == pytest.approx(1000.0 * (1 - quiet), abs=60)
    assert quiet > 0.1
    assert sent.messages.tolist() != notifications(problem, 1).messages.tolist()
    # One notification of a row that two of ten want: all ten are sent it.
    row = int(np.flatnonzero(sent.audience_sizes == 2)[0])
    one = replace(sent, messages=(np.arange(sent.size) == row).astype(float))
    everybody = ChannelMap(1, map_pairs([row], [0]), map_pairs([0] * 10, range(10)), NO_PAIRS)
    assert desired(one, everybody) == 0.2
    # Sent on two groups, the second copy counts as received only.
    both = map_pairs([0] * 10 + [1] * 10, [*range(10)] * 2)
    twice = ChannelMap(2, map_pairs([row, row], [0, 1]), both, NO_PAIRS)
    assert desired(one, twice) == 0.1
