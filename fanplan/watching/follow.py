"""The loop: batch by batch, window by window, from a stream to versions of a plan.

`Following.advance` is one batch and a function of what stood before it and of its files. Nothing it
writes counts before the batch is committed, and all of it comes out the same if it is done again.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.core.folder import whole_folder
from fanplan.data.engine import Engine
from fanplan.data.stream.files import over_connect
from fanplan.data.stream.flows import Lost, SentBatch, count_sound, read_changes, together_lost
from fanplan.data.stream.interest import (
    CHANGES,
    Interest,
    changed_subscriptions,
    compile_interest,
    first_subscriptions,
    subscriptions_of,
    write_subscriptions,
)
from fanplan.layers.registry import load_plan
from fanplan.plan.seal import require_untouched
from fanplan.plan.stored import StoredPlan
from fanplan.watching.params import WatchParams
from fanplan.watching.planning import (
    CostsNow,
    NextStep,
    Planning,
    planning_of,
    streamed_rates,
    write_told,
    write_version,
)
from fanplan.watching.policy import InWindow, Stance, after_step, pays, seen
from fanplan.watching.rates import (
    Flows,
    Rates,
    counted_flows,
    flows_together,
    folded,
    kept_of,
    matched_again,
    no_flows,
)
from fanplan.watching.snapshot import write_snapshot
from fanplan.watching.state import VERSION, BatchState, State
from fanplan.workload.description import Description, load_description

BEFORE = -1
"""The number of the batch that stands before the first."""
REACHED = "who wants what has changed: everybody is reached again, by unicast where need be"
COUNTS = ("rows", "late", "ahead", "quarantined", "files_lost", "changes")


@dataclass
class Following:
    """A watch at work: the plan it began with, the workload it is of, and its folder."""

    plan: StoredPlan
    workload: Path
    state: State
    params: WatchParams
    engine: Engine

    @cached_property
    def description(self) -> Description:
        return load_description(self.workload)

    @cached_property
    def planning(self) -> Planning:
        return planning_of(self.plan, self.engine)

    # ---- the beginning

    def begin(self) -> None:
        """What stands before the first batch, unless a run before this one has begun."""
        told = {
            "plan": self.plan.record.seal,
            "window": self.params.window,
            "half_life": self.params.half_life,
            "lateness": self.params.lateness,
            "over_connect": over_connect(self.engine.session()),
        }
        if not self.state.agree(told):
            self.first_version()
            first_subscriptions(
                self.engine.session(), self.workload, self.description, self.state.table("0")
            )
            self.compile("0", ())
            none = no_flows(self.description.dimensions)
            first = BatchState(BEFORE, "0", (), Rates(none), none, planned_interest="0")
            self.state.commit(replace(first, counts=dict.fromkeys(COUNTS, 0)), pa.table({}))
            self.state.begin(told)
        self.state.mend_decisions()

    def first_version(self) -> None:
        """The plan as it was given is version 0."""
        if not self.state.version(0).exists():
            with whole_folder(self.state.version(0), VERSION) as folder:
                shutil.copytree(self.plan.folder, folder / "plan")
                write_told(folder, {"version": 0, "reason": "the plan that the watch began with"})

    def compile(self, name: str, topics: Sequence[str]) -> Interest:
        """A version of the subscriptions, for all topics that are known or were seen."""
        out = self.state.interest(name)
        if not (out / "manifest.json").is_file():
            with self.engine.progress.stage("compile subscriptions"):
                table, spark = self.state.table(table_of(name)), self.engine.session()
                progress = self.engine.progress
                compile_interest(
                    spark, self.description, self.workload, table, topics, out, progress
                )
        return Interest(out)

    # ---- a batch

    def advance(self, number: int, files: Sequence[Path], folder: Path) -> BatchState | None:
        """Work on a batch and let it count; None if it counts already."""
        before = self.state.last()
        if number <= before.number:
            return None
        with self.engine.progress.stage(f"batch {number}") as stage:
            batch, lost = self.worked(before, number, files, folder)
            self.state.commit(batch, lost)
            self.state.sweep_interest({before.interest, batch.interest})
            stage.rows(batch.counts["rows"] - before.counts["rows"])
        return batch

    def worked(
        self, before: BatchState, number: int, files: Sequence[Path], folder: Path
    ) -> tuple[BatchState, pa.Table]:
        """What stands after a batch, and rows that were set apart."""
        told = [path for path in files if path.parent.name == CHANGES.name]
        sent = [path for path in files if path.parent.name != CHANGES.name]
        changes, lost = read_changes(self.engine.session(), folder, told, self.description)
        name, topics = before.interest, before.topics
        if changes:
            name = str(number + 1)
            self.change_table(table_of(before.interest), name, changes)
        interest = self.compile(name, topics)
        flows, new, more = self.count(sent, folder, interest)
        if new:
            topics = tuple(sorted({*topics, *new}))
            name = f"{table_of(name)}+{number + 1}"
            interest = self.compile(name, topics)
            flows, _, more = self.count(sent, folder, interest)
        lost = Lost(together_lost([lost.rows, more.rows]), (*lost.files, *more.files))
        rates, open_ = before.rates, before.open
        if name != before.interest:
            rates = replace(rates, flows=matched_again(rates.flows, interest))
            open_ = matched_again(open_, interest)
        kept, late, ahead = self.in_time(flows, before)
        counts = {
            "rows": int(flows.messages.sum()),
            "late": late,
            "ahead": ahead,
            "quarantined": len(lost.rows),
            "files_lost": len(lost.files),
            "changes": len(changes),
        }
        batch = replace(
            before,
            number=number,
            interest=name,
            topics=topics,
            rates=rates,
            open=flows_together(open_, kept),
            counts={each: before.counts[each] + counts[each] for each in COUNTS},
            decisions=(),
        )
        return self.closed(self.with_watermark(batch), interest), told_of_files(lost)

    def change_table(self, old: str, new: str, changes: Sequence[dict[str, str]]) -> None:
        table = pq.read_table(self.state.table(old) / "subscriptions.parquet")
        write_subscriptions(changed_subscriptions(table, changes), self.state.table(new))

    def count(
        self, files: Sequence[Path], folder: Path, interest: Interest
    ) -> tuple[Flows, set[str], Lost]:
        """Flows of a batch by window, topics that are not known, and what was set apart."""
        batch, window = SentBatch(folder, files, self.state.work / "counted"), self.params.window
        spark, new = self.engine.session(), set[str]()
        counted, lost = count_sound(spark, batch, self.description, interest, window)

        def known() -> Iterator[pa.Table]:
            for table in counted:
                fine = pc.is_valid(table["high"])
                new.update(pc.unique(table.filter(pc.invert(fine))["topic"]).to_pylist())
                yield table.filter(fine)

        return counted_flows(known(), interest.dimensions), new, lost

    # ---- windows

    def in_time(self, flows: Flows, before: BatchState) -> tuple[Flows, int, int]:
        """What is neither late nor far ahead of the others, and how many rows are.

        If most rows of a batch are far ahead of those before, it is the stream that has moved on.
        """
        if not len(flows):
            return flows, 0, 0
        order = np.argsort(flows.window, kind="stable")
        half = np.searchsorted(np.cumsum(flows.messages[order]), flows.messages.sum() / 2)
        middle = int(flows.window[order[half]])
        latest = middle if before.latest is None else max(before.latest, middle)
        late = flows.window < (-math.inf if before.first_open is None else before.first_open)
        ahead = flows.window > latest + self.params.ahead / self.params.window
        fine = np.flatnonzero(~late & ~ahead)
        return flows.take(fine), rows_counted(flows, late), rows_counted(flows, ahead)

    def with_watermark(self, batch: BatchState) -> BatchState:
        """Windows that end so long before the latest that no row of theirs may come any more."""
        if not len(batch.open):
            return batch
        latest = max(int(batch.open.window.max()), batch.latest or int(batch.open.window.min()))
        behind = math.ceil(self.params.lateness / self.params.window)
        first = latest - behind
        if batch.first_open is not None:
            first = max(first, batch.first_open)
        return replace(batch, latest=latest, first_open=first)

    def closed(self, batch: BatchState, interest: Interest) -> BatchState:
        """Fold the windows that have closed into the rates, and decide after each."""
        kept = kept_of(self.params.half_life)
        due = batch.open.window < (batch.first_open or -math.inf)
        if batch.first_open is None:
            return batch
        for window in np.unique(batch.open.window[due]).tolist():
            at = batch.open.window == window
            rates = folded(batch.rates, batch.open.take(np.flatnonzero(at)), window, kept)
            batch = self.decided(replace(batch, rates=rates), interest, window)
        left = batch.open.take(np.flatnonzero(~due))
        return replace(batch, open=left)

    # ---- decisions

    def decided(self, batch: BatchState, interest: Interest, window: int) -> BatchState:
        """Hold the plan in force against a window, and change it if that pays."""
        dataset, seconds = self.state.work / "dataset", self.params.window
        write_snapshot(batch.rates, interest, seconds, dataset)
        plan = self.state.version(batch.version) / "plan"
        try:
            return self.weighed(batch, window, plan, dataset)
        except (InputError, InfeasibleError) as error:
            # Nothing is sent that anybody wants, for example: the last good plan stays in force.
            now, missed = self.planning.now(load_plan(plan), dataset)
            evidence, costs = InWindow(window, now, now, 0), CostsNow(now, now, 0.0, missed)
            told = decision(batch, evidence, costs, batch.standing.price(self.params), seconds)
            told |= {"reason": f"no other plan can be made: {error}"}
            return replace(batch, decisions=(*batch.decisions, told))

    def weighed(self, batch: BatchState, window: int, plan: Path, dataset: Path) -> BatchState:
        """The same, where there is something to plan."""
        costs = self.planning.costs(load_plan(plan), dataset)
        unreached = bool(costs.missed) and batch.planned_interest != batch.interest
        evidence = InWindow(window, costs.now, costs.fresh, costs.places, unreached)
        standing = seen(batch.standing, evidence, self.params)
        price = standing.price(self.params)
        told = decision(batch, evidence, costs, price, self.params.window)
        if standing.moving or unreached:
            batch, told, standing = self.stepped(batch, plan, dataset, evidence, standing, told)
        links = streamed_rates(self.state.version(batch.version) / "plan", dataset)
        told_so_far = (*batch.decisions, told)
        return replace(batch, standing=standing, decisions=told_so_far, links=links)

    def stepped(
        self,
        batch: BatchState,
        plan: Path,
        dataset: Path,
        evidence: InWindow,
        standing: Stance,
        told: dict[str, Any],
    ) -> tuple[BatchState, dict[str, Any], Stance]:
        """Try a step; if it does not pay, only who is not reached is seen to."""
        price = evidence.price(standing.price(self.params))
        most = self.params.most(evidence.places)
        if standing.moving:
            step = NextStep(self.planning.step(plan, dataset, most, price))
            taken = pays(evidence, step.cost, step.changes, price)
            standing = after_step(standing, taken)
            if taken:
                why = reason_of_step(evidence, step)
                return *self.new_version(batch, step, dataset, told | {"reason": why}), standing
        if evidence.unreached:
            step = NextStep(self.planning.step(plan, dataset, 0, price))
            return *self.new_version(batch, step, dataset, told | {"reason": REACHED}), standing
        return batch, told | {"reason": "no step pays"}, standing

    def new_version(
        self, batch: BatchState, step: NextStep, dataset: Path, told: dict[str, Any]
    ) -> tuple[BatchState, dict[str, Any]]:
        """Write the next version, and let the batch stand for it."""
        number, now = batch.version + 1, told["now"]
        about = {
            "version": number,
            "window": told["window"],
            "batch": batch.number,
            "reason": told["reason"],
            "changes": step.changes,
            "cost_before": now,
            "cost": step.cost,
            "gain_percent": round(100 * (1 - step.cost / now), 6) if now else 0.0,
            "interest": batch.interest,
        }
        old = self.state.version(batch.version) / "plan"
        write_version(self.state.version(number), step.made, dataset, old, about)
        told = told | {"decision": "replan", "version": number, "changes": step.changes}
        return replace(batch, version=number, planned_interest=batch.interest), told


def decision(
    batch: BatchState, evidence: InWindow, costs: CostsNow, price: float, seconds: float
) -> dict[str, Any]:
    """What is told of a window; the plan is kept unless more is said."""
    return {
        "batch": batch.number,
        "window": evidence.window,
        "end": (evidence.window + 1) * seconds,
        "version": batch.version,
        "now": costs.now,
        "fresh": costs.fresh,
        "bound": costs.bound,
        "gap_percent": round(100 * evidence.gap, 6),
        "change_price": round(price, 6),
        "missed": costs.missed,
        "flows": len(batch.rates.flows),
        "interest": batch.interest,
        "decision": "keep",
        "reason": "the plan is good enough",
    }


def reason_of_step(evidence: InWindow, step: NextStep) -> str:
    saved = 100 * (1 - step.cost / evidence.now)
    return (
        f"the plan cost {100 * evidence.gap:.1f} % more than a fresh one; "
        f"{step.changes} changes save {saved:.1f} %"
    )


def table_of(interest: str) -> str:
    """The table that a version is of; one for more topics has a second part in its name."""
    return interest.split("+", maxsplit=1)[0]


def rows_counted(flows: Flows, which: Any) -> int:
    return int(flows.messages[which].sum())


def told_of_files(lost: Lost) -> pa.Table:
    """Rows that were set apart, and a row for each file that could not be read."""
    files = [
        {"table": "", "source": p.where, "reason": p.what, "kind": "a file that cannot be read"}
        for p in lost.files
    ]
    return pa.concat_tables([lost.rows, pa.Table.from_pylist(files, schema=lost.rows.schema)])


def require_followed(plan: StoredPlan, workload: Path, description: Description) -> None:
    """A plan must be untouched, of exact flows, and made for the subscriptions that are there."""
    require_untouched(plan)
    record = plan.record.input
    if description.dimensions and record.grid != "exact":
        what = f"has cells of a grid ({record.grid}), and a stream is matched exactly"
        raise InputError(Problem(str(plan.folder), what, "Ingest without --grid, and plan again"))
    now = subscriptions_of(workload).key
    then = record.tables.get("subscriptions")
    if then is None or then.key != now:
        what = f"was not made for the subscriptions in {workload}"
        remedy = "Name the workload that it was planned for; changes go into its folder `changes`"
        raise InputError(Problem(str(plan.folder), what, remedy))
