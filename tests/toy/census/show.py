"""How a person is told of a census."""

from __future__ import annotations

from fanplan.plan.made import Answer, Facts, Shown


def show_census(answer: Answer) -> Shown:
    least = answer.facts["params"]["least"]
    counts = {name: answer.facts[name] for name in ("subscriptions", "topics")}
    yield Facts("Census, checked", {"fewest subscribers": least} | counts)


SHOWS = {"census": show_census}
