"""The folder of a watch: everything is a file that appears whole or not at all.

    watch.json        what is watched, and what must not change between runs
    checkpoint/       which input each batch has (Spark's)
    interest/         versions of the subscriptions, by the batch that made them
    batches/N/        what stands after batch N, with its counts, decisions and quarantined rows
    versions/N/       each plan that was in force: its plan, changes in steps, dataset and reason
    applied/N.json    versions that were begun to be carried out, and done
    decisions.jsonl   all decisions, a line each; they are those of batches
    status.json       what the page shows

A batch counts when its folder has its name. All that a batch writes before, it writes again in the
same way if it was interrupted.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import Kind, locked, recover, remove, whole_folder, write_whole
from fanplan.watching.policy import Stance
from fanplan.watching.rates import Flows, Rates, load_flows, save_flows

WATCH = Kind("the state of a watch", "watch.json")
DECISIONS = "decisions.jsonl"
BATCH = Kind("a batch", "batch.json")
VERSION = Kind("a version", "version.json")
KEPT = 2
"""Batches whose tables are kept: the last one, and the one before for whoever reads it now."""


@dataclass(frozen=True, eq=False)
class BatchState:
    """What stands after a batch.

    ``interest`` names the version of subscriptions that it was matched with, ``topics`` those seen
    in traffic that nothing else names. Windows before ``first_open`` are closed; ``latest`` is the
    last with traffic. ``version`` is the plan in force. ``counts`` are rows of all batches so far,
    ``links`` what channels carry, in messages/s.
    """

    number: int
    interest: str
    topics: tuple[str, ...]
    rates: Rates
    open: Flows
    first_open: int | None = None
    latest: int | None = None
    standing: Stance = Stance()
    version: int = 0
    planned_interest: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    decisions: tuple[dict[str, Any], ...] = ()
    links: dict[str, float] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        names = ("number", "interest", "topics", "first_open", "latest", "version")
        told = {
            name: getattr(self, name) for name in (*names, "planned_interest", "counts", "links")
        }
        told |= {"windows": self.rates.windows, "last": self.rates.last}
        return told | {"standing": asdict(self.standing), "decisions": list(self.decisions)}


class State:
    """A folder of a watch, held by one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def interest(self, name: str) -> Path:
        return self.folder / "interest" / name

    def table(self, name: str) -> Path:
        """The subscriptions that a version is compiled from."""
        return self.folder / "interest" / f"{name}.table"

    def batch(self, number: int) -> Path:
        return self.folder / "batches" / str(number)

    def version(self, number: int) -> Path:
        return self.folder / "versions" / str(number)

    @property
    def work(self) -> Path:
        """Where datasets are that no version needs."""
        return self.folder / "work"

    @contextmanager
    def held(self) -> Iterator[None]:
        """No other run may follow with this folder."""
        with locked(self.folder):
            self.require_own()
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in PARTS:
                (self.folder / name).mkdir(exist_ok=True)
                for left in (self.folder / name).glob("*.partial-*"):
                    remove(left)
            recover(self.folder / WATCH.sign)
            remove(self.work)
            try:
                yield
            finally:
                if not (self.folder / WATCH.sign).is_file():
                    self.leave_nothing()

    def require_own(self) -> None:
        """What a watch makes it also sweeps, so that it keeps out of a folder of anything else."""
        there = {each.name for each in self.folder.iterdir()} if self.folder.exists() else set()
        others = {name.partition(".partial-")[0] for name in there} - OWN - {WATCH.sign}
        if there and WATCH.sign not in there and (others or PARTS[0] not in there):
            what = f"already exists and is not {WATCH.name}"
            raise InputError(Problem(str(self.folder), what, "Name another folder"))

    def leave_nothing(self) -> None:
        """Remove what is empty: the watch did not begin."""
        for name in (*PARTS, ""):
            with suppress(OSError):
                (self.folder / name).rmdir()

    def agree(self, told: dict[str, Any]) -> bool:
        """Whether the folder is of this watch already; an error if it is of another one."""
        path = self.folder / WATCH.sign
        if not path.is_file():
            return False
        known = json.loads(path.read_text(encoding="utf-8"))
        differ = [name for name in told if known.get(name) != told[name]]
        if differ:
            name = differ[0]
            what = f"was begun with {name} {known.get(name)}, and this is {told[name]}"
            remedy = "Go on as it was begun, or name another folder"
            raise InputError(Problem(str(self.folder), what, remedy))
        return True

    def begin(self, told: dict[str, Any]) -> None:
        write_whole(self.folder / WATCH.sign, json.dumps(told, indent=2) + "\n")

    # ---- batches

    def numbers(self) -> list[int]:
        found = (self.folder / "batches").iterdir()
        return sorted(int(each.name) for each in found if each.name.lstrip("-").isdigit())

    def last(self) -> BatchState:
        return self.load(self.numbers()[-1])

    def record(self, number: int) -> dict[str, Any]:
        """What a batch says of itself, without its tables."""
        text = (self.batch(number) / BATCH.sign).read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(text)
        return found

    def load(self, number: int) -> BatchState:
        folder, told = self.batch(number), self.record(number)
        rates = Rates(load_flows(folder / "rates.parquet"), told.pop("windows"), told.pop("last"))
        told["standing"] = Stance(**told["standing"])
        told |= {name: tuple(told[name]) for name in ("topics", "decisions")}
        return BatchState(rates=rates, open=load_flows(folder / "open.parquet"), **told)

    def commit(self, batch: BatchState, lost: pa.Table) -> None:
        """From now on the batch counts; tables of those long before are not needed any more."""
        if self.batch(batch.number).exists():
            return
        with whole_folder(self.batch(batch.number), BATCH) as folder:
            save_flows(batch.rates.flows, folder / "rates.parquet")
            save_flows(batch.open, folder / "open.parquet")
            if len(lost):
                pq.write_table(lost, folder / "quarantine.parquet")
            text = json.dumps(batch.record(), indent=2, allow_nan=False)
            (folder / BATCH.sign).write_text(text + "\n", encoding="utf-8")
        for number in self.numbers()[:-KEPT]:
            for name in ("rates", "open"):
                remove(self.batch(number) / f"{name}.parquet")
        with (self.folder / DECISIONS).open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(decision)}\n" for decision in batch.decisions)

    def decisions(self) -> list[dict[str, Any]]:
        """Of all batches that count."""
        return [d for number in self.numbers() for d in self.record(number)["decisions"]]

    def latest_decisions(self, most: int) -> list[dict[str, Any]]:
        """The last lines of the file; one that is being written is left out."""
        with (self.folder / DECISIONS).open(encoding="utf-8") as file:
            lines = deque(file, most)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def sweep_interest(self, used: Collection[str]) -> None:
        """Remove versions of the subscriptions that no batch will be matched with again."""
        kept = {*used, *(f"{name.split('+')[0]}.table" for name in used)}
        for path in (self.folder / "interest").iterdir():
            if path.name not in kept:
                remove(path)

    def mend_decisions(self) -> None:
        """A killed run may have left the file without its last lines, or with a part of one."""
        lines = [json.dumps(decision) for decision in self.decisions()]
        write_whole(self.folder / DECISIONS, "".join(f"{line}\n" for line in lines))

    def versions(self) -> list[dict[str, Any]]:
        """What is said of each version that a batch stands for."""
        newest = self.record(self.numbers()[-1])["version"]
        records = [self.version(number) / VERSION.sign for number in range(newest + 1)]
        return [json.loads(path.read_text(encoding="utf-8")) for path in records]


PARTS = ("interest", "batches", "versions", "applied")
OWN = {*PARTS, "page.json", "checkpoint", "work", "spool", "jvm.json"}
"""What is there before a watch has begun."""
