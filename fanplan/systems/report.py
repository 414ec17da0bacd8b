"""A trial on the page of its plan: predicted beside measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import TRIAL
from fanplan.page.content import Listing, Section
from fanplan.plan.stored import StoredPlan

TRY_AGAIN = "Name a folder that `fanplan trial --out` wrote for one of the plans"


def read_trial(folder: Path, plans: list[StoredPlan]) -> dict[str, Any]:
    """What a trial found; an error if it was of none of the plans."""
    try:
        told: dict[str, Any] = json.loads((folder / TRIAL.sign).read_text(encoding="utf-8"))
        seal = told["seal"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(Problem(str(folder), f"is not a trial ({error})", TRY_AGAIN)) from error
    if seal not in {plan.record.seal for plan in plans}:
        raise InputError(Problem(str(folder), "is a trial of another plan", TRY_AGAIN))
    return told


def trial_section(told: dict[str, Any], number: int) -> Section:
    """Sums by kind, every figure, and what cannot be measured."""
    good = sum(row["agree"] for row in told["totals"])
    count = sum(row["rows"] for row in told["totals"])
    name = f"trial-{number}" if number else "trial"
    return Section(
        name,
        f"Trial on {told['system']}",
        f"The plan ran on {told['system']}, with real servers and publications of the workload: "
        f"{good:,} of {count:,} figures are as predicted.",
        facts=[(name.replace("_", " "), value) for name, value in told["facts"].items()]
        + [(f"{name} of delays, ms", value) for name, value in told["delays_ms"].items()],
        listings=[
            Listing(
                f"{name}-totals",
                "Predicted and measured",
                ("of", "predicted", "measured", "figures", "that agree"),
                [
                    (row["of"], row["predicted"], row["measured"], row["rows"], row["agree"])
                    for row in told["totals"]
                ],
            ),
            Listing(
                f"{name}-rows",
                "Every figure",
                ("of", "what", "predicted", "measured", "agrees"),
                [
                    (row["of"], " ".join(row["names"]), row["predicted"], row["measured"],
                     "yes" if row["agrees"] else "no")
                    for row in sorted(told["rows"], key=lambda row: row["agrees"])
                ],
                "Differences come first.",
            ),
        ],
        notes=[f"Not measurable: {each}." for each in told["not_measurable"]]
        + [f"{note}." for note in told["notes"]],
    )  # fmt: skip
