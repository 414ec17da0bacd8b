"""Plans side by side on a page: figures, and what changes for brokers and subscribers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fanplan.core.errors import InputError
from fanplan.page.bars import dumbbells
from fanplan.page.content import Listing, Picture, Section
from fanplan.page.material import Now
from fanplan.plan.stored import StoredPlan
from fanplan.verbs.compare import compare_plans, names_of
from fanplan.verbs.diff import diff_plans

NAIVE = "if everything went everywhere"
CHANGES_LEAD = (
    "What each broker processes and each subscriber receives, {} and {}, with what is to be done "
    "there. What changes most comes first."
)
NOTHING = "nothing here"
"""What is done where others do something, if anything: more or less may come all the same."""
MOST_NAMED = 4
"""Things that an action names; of more, how many there are."""
ALL_AT_ONCE = 1 << 30
"""Changes in a step: here steps do not matter."""


def compared_section(plans: Sequence[StoredPlan]) -> Section:
    """The figures of two or more plans, and the parameters in which they differ."""
    found = compare_plans(plans)
    rows = [
        (line.layer, line.name, *line.values, ", ".join(found.plans[i] for i in line.best))
        for line in found.lines
    ]
    header = ("layer", "figure", *found.plans, "best")
    listings = [Listing("compared", "Figures of the plans", header, rows, mixed=True)]
    if found.differing:
        told = [(name, *map(str, values)) for name, values in found.differing.items()]
        listings.append(Listing("differing", "What differs", ("parameter", *found.plans), told))
    notes = [f"{note[:1].upper()}{note[1:]}." for note in found.notes]
    lead = "The same figures of every plan, in the words of the ledger."
    return Section("plans", "Plans side by side", lead, (), (), listings, notes)


@dataclass(frozen=True)
class Change:
    """What a thing gets before and after, messages a second, and what is done there."""

    name: str
    before: float
    after: float
    action: str

    @property
    def row(self) -> tuple[Any, ...]:
        share = 100 * (self.after - self.before) / self.before if self.before else None
        change = self.after - self.before
        return self.name, self.before, self.after, change, share and round(share, 1), self.action


def changes_section(
    told: Sequence[Now],
    name: str,
    plan: int,
    words: tuple[str, str],
    changes: Sequence[list[Change]],
) -> Section:
    """A picture and a table for each kind of thing."""
    pictures, listings = list[Picture](), list[Listing]()
    for now, rows in zip(told, changes, strict=True):
        kind, of = now.kind, f"{now.kind.capitalize()}s, before and after"
        drawn = [(one.name, one.before, one.after) for one in rows]
        pictures.append(dumbbells(f"{name}-{kind}s-drawn", of, drawn, words))
        header = (kind, *(f"{word}, messages/s" for word in ("before", "after", "change")))
        table = (*header, "change %", "what to do")
        own = [one.row for one in rows]
        title = f"{kind.capitalize()}s: what changes, and what to do"
        listings.append(Listing(f"{name}-{kind}s", title, table, own, opens={kind: kind}))
    lead = CHANGES_LEAD.format(*words)
    title = "Before and after" + (f": {words[0]} and {words[1]}" if name != "changes" else "")
    return Section(name, title, lead, (), pictures, listings, plan=plan)


def change_sections(
    plans: Sequence[StoredPlan], told: Mapping[int, Sequence[Now]]
) -> Iterator[Section]:
    """One plan beside the naive system; several beside the first of them."""
    if len(plans) == 1 and told.get(0):
        changes = [sorted_changes(from_naive(now)) for now in told[0]]
        yield changes_section(told[0], "changes", 0, (NAIVE, "with this plan"), changes)
    first = {now.kind: now for now in told.get(0, ())}
    names = names_of(plans)
    for number, plan in enumerate(plans[1:], 1):
        both = [now for now in told.get(number, ()) if now.kind in first]
        if both:
            actions = actions_between(plans[0], plan)
            changes = [
                sorted_changes(altered(first[now.kind], now, actions[now.kind])) for now in both
            ]
            words = (names[0], names[number])
            yield changes_section(both, f"changes-{number}", number, words, changes)


def from_naive(now: Now) -> list[Change]:
    rows = zip(now.names, now.rates, now.actions, strict=True)
    return [Change(name, now.naive, rate, action) for name, rate, action in rows]


def altered(old: Now, new: Now, actions: Mapping[str, str]) -> list[Change]:
    """What only one plan has gets nothing under the other."""
    before, after = (dict(zip(now.names, now.rates, strict=True)) for now in (old, new))
    return [
        Change(name, before.get(name, 0.0), after.get(name, 0.0), actions.get(name, NOTHING))
        for name in dict.fromkeys((*old.names, *new.names))
    ]


def sorted_changes(changes: list[Change]) -> list[Change]:
    return sorted(changes, key=lambda one: (-abs(one.after - one.before), one.name))


# ---- what is done, from the changes that lead from one plan to the other

CONCERNED = {"broker": ("broker", "from_broker", "to_broker"), "subscriber": ("subscriber",)}
"""The columns of changes that say where something is done, by kind."""
OBJECTS = ("channel", "group", "tree", "mark", "flow", "client", "from_broker", "to_broker")
"""The columns that say with what."""


def actions_between(old: StoredPlan, new: StoredPlan) -> dict[str, dict[str, str]]:
    """By kind and name what is to be done; nothing where plans have no layer in common."""
    done: dict[str, dict[str, dict[str, list[str]]]] = {kind: {} for kind in CONCERNED}
    try:
        rows = diff_plans(old, new, None, ALL_AT_ONCE).changes().to_pylist()
    except InputError:
        rows = []
    for row in rows:
        if row["role"] == "subscriber":
            row["subscriber"] = row["client"]
        for kind, columns in CONCERNED.items():
            for name in {row[column] for column in columns} - {None}:
                own = done[kind].setdefault(name, defaultdict(list))
                own[row["action"]].append(object_of(row, name))
    return {
        kind: {name: "; ".join(map(action_words, own, own.values())) for name, own in found.items()}
        for kind, found in done.items()
    }


def object_of(row: Mapping[str, Any], name: str) -> str:
    """With what something is done, in a word or two."""
    told = [(column, row[column]) for column in OBJECTS]
    return " ".join(
        f"{column} {value}" if column in ("channel", "group", "tree", "mark") else str(value)
        for column, value in told
        if value is not None and value != name
    )


def action_words(action: str, objects: list[str]) -> str:
    different = list(dict.fromkeys(filter(None, objects)))
    more = len(different) - MOST_NAMED
    named = ", ".join(different[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{action.replace('_', ' ')} {named}".strip()
