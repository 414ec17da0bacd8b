"""Runs of a stored plan: what a simulation shows beside the ledger, and what its protocols do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fanplan.core.errors import InputError, Problem
from fanplan.core.result import Result
from fanplan.data.dataset import Dataset, PathLike

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.network.brokers import OverlayProblem, Routes
    from fanplan.simulation.legs import DelayCounts
    from fanplan.simulation.params import SimulationParams
    from fanplan.simulation.simulate import SimulationResult


@dataclass(frozen=True)
class Agreement:
    """``compared`` are the figures that must agree; ``differences`` says which do not, in words."""

    compared: tuple[str, ...]
    differences: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool | None:
        """None if nothing can be compared."""
        return not self.differences if self.compared else None


@dataclass(frozen=True)
class AssumedLatency:
    """The latency of this many (``count``) of the ways between brokers is not known for certain.

    ``ms`` was taken for each link without one.
    """

    count: int
    of: int
    ms: float

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.count:
            return ()
        if self.count == self.of:
            return (f"No latency is known: a link takes {self.ms:g} ms, on all {self.of} ways.",)
        what = f"The latency of {self.count} of {self.of} ways between brokers is not wholly known"
        return (f"{what}: {self.ms:g} ms is assumed for each link that has none.",)


class Delays(NamedTuple):
    """How long deliveries to subscribers took: in the plan, and by content-based routing alone."""

    plan: DelayCounts
    naive: DelayCounts


Times = Literal["measured", "drawn"]


@dataclass(frozen=True, eq=False, repr=False)
class Simulated(Result):
    """What a run showed, and what it was told.

    ``times`` says when messages entered: as measured, or drawn evenly over the window with
    ``seed``. They follow each other ``speed`` times as fast. ``naive`` is a run with the same
    messages by content-based routing alone, of a plan whose delivery leaves less to brokers;
    ``delivered`` has what subscribers saw of both, ``notes`` say what is simulated then.
    """

    result: SimulationResult
    problem: OverlayProblem
    trees: int
    params: SimulationParams
    times: Times
    speed: float
    seed: int
    agreement: Agreement
    assumed: AssumedLatency
    naive: SimulationResult | None = None
    delivered: Delays | None = None
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool | None:
        """Whether the run agrees with the plan's ledger; None if they cannot be compared."""
        return self.agreement.agrees

    def summary(self) -> dict[str, Any]:
        """All figures that are one number, as JSON."""
        drawn = {"seed": self.seed} if self.times == "drawn" else {}
        return {
            **asdict(self.params),
            "times": self.times,
            **drawn,
            "speed": self.speed,
            "brokers": self.problem.size,
            "links": len(self.result.links),
            "trees": self.trees,
            "ways_assumed": self.assumed.count,
            "latency_assumed_ms": self.assumed.ms if self.assumed.count else None,
            **self.result.summary(),
            **(self.delivered.plan.figures() if self.delivered else {}),
            "agrees": self.agrees,
            "compared": list(self.agreement.compared),
            "differences": list(self.agreement.differences),
            **self._beside(),
        }

    def _beside(self) -> dict[str, Any]:
        """The naive system with the same figures."""
        if self.naive is None or self.delivered is None:
            return {}
        return {"naive": self.naive.summary() | self.delivered.naive.figures()}

    @property
    def broker_table(self) -> pa.Table:
        """One row per broker; ``capacity`` is messages per second, null if not limited."""
        return self.result.broker_table(self.problem)

    @property
    def link_table(self) -> pa.Table:
        """One row per link, with the messages in each direction."""
        return self.result.link_table(self.problem)

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write summary.json and the tables as Parquet, whole or not at all."""
        import pyarrow.parquet as pq

        from fanplan.core.folder import SIMULATION, whole_folder

        with whole_folder(Path(out), SIMULATION, replace) as folder:
            for name, table in (("brokers", self.broker_table), ("links", self.link_table)):
                pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
            text = json.dumps(self.summary(), indent=2, allow_nan=False)
            (folder / "summary.json").write_text(text + "\n", encoding="utf-8")
        return Path(out)


def choose_times(dataset: Dataset, asked: str | None) -> Times:
    """Measured times where they are known, unless drawn ones are asked for."""
    from fanplan.simulation.messages import times_known

    if asked not in (None, "measured", "drawn"):
        raise InputError(Problem("times", f"{asked!r} is unknown", "Use measured or drawn"))
    if asked == "drawn":
        return "drawn"
    known = times_known(dataset.path)
    if asked == "measured" and not known:
        what = "not every message has a measured time"
        raise InputError(Problem("times", what, "Give publications with times, or draw them"))
    return "measured" if known else "drawn"


def assumed_links(result: SimulationResult, ms: float) -> AssumedLatency:
    """Of a run whose messages travel on its links alone."""
    return AssumedLatency(int(result.assumed.sum()), len(result.links), ms)


def require_no_clients(params: SimulationParams) -> None:
    """The way to clients is known of plans of all layers alone."""
    if params.client_ms:
        what = "this plan does not include the way from brokers to clients"
        raise InputError(Problem("client_ms", what, "Leave it out, or simulate a design"))


def require_messages(routes: Routes, dataset: Dataset) -> None:
    if not routes.messages.any():
        what = "there is no traffic to simulate"
        remedy = "Add publications, or advertisements with rates"
        raise InputError(Problem(str(dataset.path), what, remedy))


class ChurnListing(NamedTuple):
    """A table of a run with churn."""

    title: str
    header: tuple[str, ...]
    rows: list[list[Any]]


@dataclass(frozen=True, repr=False)
class Churned(Result):
    """What the protocols of a layer did. ``ok``: nothing was lost, doubled or left wrong.

    ``facts`` and ``listing`` are what a person reads of the figures.
    """

    layer: str
    ok: bool
    figures: dict[str, Any]
    title: str
    facts: dict[str, Any]
    listing: ChurnListing

    def summary(self) -> dict[str, Any]:
        """All figures, as JSON."""
        return {"layer": self.layer, "ok": self.ok, **self.figures}


def require_fields(kind: type, options: Mapping[str, Any], layer: str) -> None:
    """Only options that mean something to the layer."""
    known = {field.name for field in fields(kind)}
    for name in options.keys() - known:
        what = f"means nothing to {layer}"
        raise InputError(Problem(name, what, "Leave it out"))
