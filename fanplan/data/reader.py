"""Reading a dataset: its manifest and its tables, with pyarrow alone (no JVM)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fanplan.core.errors import NAMED, InputError, Problem
from fanplan.core.hashes import SEAL, is_intact
from fanplan.data.integrity import DIFFERS, MANIFEST, RECORD, DamagedError, flaws
from fanplan.workload.space import Attribute, CategoryAttribute, NumberAttribute, Space
from fanplan.workload.times import Moment, Span
from fanplan.workload.topics import TopicSyntax

INGEST_AGAIN = "Write the dataset again with `fanplan ingest`"


@dataclass(frozen=True)
class TableCount:
    """Rows of an input table: every one was kept or quarantined. ``key`` hashes its files.

    ``reasons`` has those with most rows, and how many rows.
    """

    name: str
    rows: int
    kept: int
    quarantined: int
    notes: tuple[str, ...] = ()
    key: str = ""
    reasons: tuple[tuple[str, int], ...] = ()

    def json(self) -> dict[str, Any]:
        reasons = [{"reason": reason, "rows": rows} for reason, rows in self.reasons]
        counts = {"rows": self.rows, "kept": self.kept, "quarantined": self.quarantined}
        return {**counts, "reasons": reasons}


@dataclass(frozen=True)
class Traffic:
    """What was counted while the traffic was read.

    Of ``publications``, ``once`` are the only ones that their audience wants. ``copies`` are what
    the audiences of all flows get, ``wanted`` what selectors ask for. ``heard`` are publications
    that somebody asks for, counted where cells are coarser than selectors.
    """

    publications: float = 0.0
    once: float = 0.0
    copies: float = 0.0
    wanted: float = 0.0
    heard: float = 0.0
    silent_topics: float = 0.0
    silent_subscriptions: float = 0.0

    def notes(self, grid: str) -> Iterator[str]:
        """What a person should know before believing in a plan."""
        if self.copies > self.wanted * (1 + 1e-9):
            yield (
                f"the cells of the {grid} grid are coarser than the filters: their audiences get "
                f"{self.copies:,.0f} messages where {self.wanted:,.0f} are wanted; flows without "
                "a grid (the default) are exact"
            )
        if grid == "exact" and self.once:
            # Good and Turing: what was seen once tells how much was not seen yet.
            yield (
                f"{self.once:,.0f} of {self.publications:,.0f} publications are the only one of "
                f"their audience: expect about {self.once / self.publications:.1%} of what comes "
                "next to have an audience not seen before, and to take the default way"
            )
        if self.silent_subscriptions or self.silent_topics:
            yield (
                f"topics without publications: {self.silent_topics:,.0f}; subscriptions that "
                f"none matched: {self.silent_subscriptions:,.0f}. They have a place in plans with "
                "rate 0, and what comes takes the default way"
            )


@dataclass(frozen=True)
class Manifest:
    """What a dataset says about itself. Totals in its tables are over ``seconds``.

    ``exact``: no region cuts a flow. ``parameters`` are the options to ingest it alike again.
    ``stages`` has the number of rows of each stage. ``key`` is a hash of what can be planned;
    ``inputs`` of all that went in, and ``code`` of what made it. ``spaces`` are those of the table
    ``topics``; none if the dataset does not say. ``seal`` is its own hash, ``seals`` has those of
    the stages.
    """

    key: str
    seconds: float
    cover: str
    grid: str
    exact: bool
    parameters: dict[str, Any]
    name: str = ""
    rates: str = "measured"
    dimensions: int = 0
    tables: tuple[TableCount, ...] = ()
    stages: dict[str, int] = field(default_factory=dict)
    inputs: str = ""
    traffic: Traffic = Traffic()
    spaces: tuple[Space, ...] = ()
    observed: Span | None = None
    topic_syntax: TopicSyntax = "exact"
    code: str = ""
    seal: str = ""
    seals: dict[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing of the tables and of the traffic."""
        of_tables = (note for table in self.tables for note in table.notes)
        return (*of_tables, *self.traffic.notes(self.grid))

    @property
    def matched(self) -> bool:
        """Whether flows are found by matching publications, not by the cells of a grid."""
        return self.grid == "exact"

    @property
    def counted(self) -> bool:
        """Whether a plan's ledger must be that of the publications.

        It need not be if rates are only stated, or if cells leave out what is not fully covered.
        """
        return self.rates == "measured" and (self.exact or self.cover == "overlap")

    @property
    def boxes(self) -> str:
        """The stage with the boxes that places of flows are matched with."""
        return "regions" if self.matched else "cover"

    @property
    def by_place(self) -> bool:
        """Whether a place (a topic or a cell) stands for all its publications."""
        return self.exact and not (self.matched and self.dimensions)

    def require_places(self, what: str) -> None:
        """Refuse exact flows to what works on parts of the content space."""
        if self.matched and self.dimensions:
            remedy = "Ingest again with --grid atomic, where no filter cuts a cell"
            raise InputError(Problem(what, "needs cells, and exact flows have none", remedy))

    def facts(self) -> dict[str, Any]:
        """What a person wants to know first."""
        counted = ("topics", "subscribers", "subscriptions", "regions", "flows", "classes")
        facts = {name: self.stages[name] for name in counted if name in self.stages}
        cells = self.dimensions and not self.matched
        grid = {"grid": self.grid, "cover": self.cover} if cells else {}
        return facts | grid | {"rates": self.rates, **self.window()}

    def window(self) -> dict[str, Any]:
        """When the first and the last were published, in their own zones, and how long it took."""
        told = {}
        if self.observed:
            first, last = self.observed.first.told, self.observed.last.told
            told = {"first publication": first, "last publication": last}
        return told | {"window seconds": self.seconds}

    def summary(self) -> dict[str, Any]:
        """The same and more, as JSON."""
        return {
            "name": self.name,
            "key": self.key,
            "seconds": self.seconds,
            "first_publication": self.observed.first.told if self.observed else None,
            "last_publication": self.observed.last.told if self.observed else None,
            "grid": self.grid,
            "cover": self.cover,
            "rates": self.rates,
            "exact": self.exact,
            "traffic": asdict(self.traffic),
            "stages": self.stages,
            "tables": {table.name: table.json() for table in self.tables},
            "notes": list(self.notes),
        }


def read_manifest(dataset: Path) -> Manifest:
    """Read ``manifest.json``, which ``ingest`` writes last: without it a dataset is unfinished."""
    path = dataset / MANIFEST
    try:
        content = sealed_content(path)
        manifest = Manifest(
            key=str(content["key"]),
            seconds=float(content["seconds"]),
            cover=str(content["cover"]),
            grid=str(content["grid"]),
            exact=bool(content["exact"]),
            parameters=dict(content.get("parameters", {})),
            name=str(content.get("name", "")),
            rates=str(content.get("rates", "measured")),
            dimensions=int(content.get("dimensions", 0)),
            tables=tuple(table_count(*item) for item in content.get("tables", {}).items()),
            inputs=str(content.get("inputs", "")),
            traffic=Traffic(**content.get("traffic", {})),
            observed=observed_of(content.get("observed")),
            stages={name: int(s["rows"]) for name, s in content.get("stages", {}).items()},
            spaces=read_spaces(content),
            topic_syntax=content.get("topic_syntax", "exact"),
            code=str(content.get("code", "")),
            seal=str(content[SEAL]),
            seals={name: str(s[SEAL]) for name, s in content.get("stages", {}).items()},
        )
    except FileNotFoundError:
        raise InputError(Problem(str(dataset), "no manifest.json here", INGEST_AGAIN)) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"cannot be understood ({error!r})"
        raise InputError(Problem(str(path), what, INGEST_AGAIN)) from error
    if not (math.isfinite(manifest.seconds) and manifest.seconds > 0):
        what = f"seconds is {manifest.seconds}, not a positive number"
        raise InputError(Problem(str(path), what, INGEST_AGAIN))
    return manifest


def sealed_content(path: Path) -> dict[str, Any]:
    """What manifest.json says, if it is as it was written."""
    text = path.read_bytes()
    try:
        content = json.loads(text)
    except ValueError as error:
        what = f"{DIFFERS}: it is not the JSON that was written ({error})"
        raise InputError(Problem(str(path), what, INGEST_AGAIN)) from error
    if not is_intact(content):
        older = isinstance(content, dict) and SEAL not in content
        what = "has no hashes: an older version wrote it" if older else f"{DIFFERS}: it was edited"
        raise InputError(Problem(str(path), what, INGEST_AGAIN))
    return dict(content)


def observed_of(content: dict[str, Any] | None) -> Span | None:
    ends = () if content is None else (content["first"], content["last"])
    moments = [Moment(float(end["seconds"]), end["zone"]) for end in ends]
    return Span(*moments) if moments else None


def table_count(name: str, counts: dict[str, Any]) -> TableCount:
    rows, kept, quarantined = (int(counts[key]) for key in ("rows", "kept", "quarantined"))
    notes, key = tuple(counts.get("notes", ())), str(counts.get("key", ""))
    reasons = tuple((str(reason), int(rows)) for reason, rows in counts.get("reasons", ()))
    return TableCount(name, rows, kept, quarantined, notes, key, reasons)


def read_spaces(content: dict[str, Any]) -> tuple[Space, ...]:
    """The attributes of each space, in order."""
    known = {name: read_attribute(name, a) for name, a in content.get("attributes", {}).items()}
    return tuple(Space(tuple(known[name] for name in names)) for names in content.get("spaces", ()))


def read_attribute(name: str, content: dict[str, Any]) -> Attribute:
    if "values" in content:
        return CategoryAttribute(name, tuple(map(str, content["values"])))
    return NumberAttribute(
        name, float(content["min"]), float(content["max"]), str(content.get("unit", ""))
    )


def verified(dataset: Path, stage: str) -> Path:
    """The folder of a stage, if its files are those that were written there.

    In a folder without a manifest is work under way, for which nobody vouches yet.
    """
    folder = dataset / stage
    if (dataset / MANIFEST).exists():
        manifest = read_manifest(dataset)
        if stage in manifest.seals or folder.is_dir():
            found = flaws_of(dataset, stage, manifest)
            if found:
                raise DamagedError(Problem(str(dataset), f, INGEST_AGAIN) for f in found[:NAMED])
    return folder


def flaws_of(dataset: Path, stage: str, manifest: Manifest) -> list[str]:
    """What is wrong with a stage, in words that name it."""
    try:
        found = flaws(dataset / stage, manifest.seals.get(stage), manifest.seal)
    except OSError as error:
        found = [f"cannot be read ({error})"]
    return [f"stage {stage}: {flaw}" for flaw in found]


def damage(dataset: Path) -> dict[str, list[str]]:
    """What is wrong with any stage, those included that were made later, by its name."""
    manifest = read_manifest(dataset)
    later = (each.name for each in dataset.iterdir() if (each / RECORD).is_file())
    stages = sorted({*manifest.seals, *later})
    found = {stage: flaws_of(dataset, stage, manifest) for stage in stages}
    return {stage: flaws for stage, flaws in found.items() if flaws}


def stage_files(dataset: Path, stage: str) -> list[Path]:
    """The Parquet files of a stage in stored order, which is the order of their names."""
    files = sorted(verified(dataset, stage).glob("*.parquet"))
    if not files:
        raise InputError(Problem(str(dataset / stage), "no Parquet files here", INGEST_AGAIN))
    return files


def read_stage(dataset: Path, stage: str, columns: Sequence[str] | None = None) -> pa.Table:
    """A stage's rows in stored order; the named columns, or all."""
    files = stage_files(dataset, stage)
    return pa.concat_tables([read_parquet(path, columns, INGEST_AGAIN) for path in files])


def stage_batches(
    dataset: Path, stage: str, columns: Sequence[str], rows: int
) -> Iterator[pa.RecordBatch]:
    """The named columns of a stage in batches of at most ``rows``, in stored order."""
    for path in stage_files(dataset, stage):
        file = open_parquet(path, columns, INGEST_AGAIN)
        try:
            yield from file.iter_batches(batch_size=rows, columns=list(columns))
        except (pa.ArrowException, OSError) as error:
            raise unreadable_table(path, error, INGEST_AGAIN) from error


def read_parquet(
    path: Path, columns: Sequence[str] | None, remedy: str, codes: Sequence[str] = ()
) -> pa.Table:
    """One file's columns; those in ``codes`` come as dictionary codes instead of strings."""
    file = open_parquet(path, columns or (), remedy, codes)
    try:
        return file.read(columns=list(columns) if columns else None)
    except (pa.ArrowException, OSError) as error:
        raise unreadable_table(path, error, remedy) from error


def open_parquet(
    path: Path, columns: Sequence[str], remedy: str, codes: Sequence[str] = ()
) -> pq.ParquetFile:
    """Open a file and make sure that it has the columns: pyarrow itself leaves out missing ones."""
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise unreadable_table(path, error, remedy) from error
    missing = [name for name in columns if name not in file.schema_arrow.names]
    if missing:
        raise InputError(Problem(str(path), f"no column {', '.join(missing)}", remedy))
    return pq.ParquetFile(path, read_dictionary=list(codes), metadata=file.metadata)


def unreadable_table(path: Path, error: Exception, remedy: str) -> InputError:
    """The error for a file that is missing, truncated or not Parquet."""
    return InputError(Problem(str(path), f"cannot be read ({error})", remedy))


def require_understood(dataset: Path, manifest: Manifest, used: tuple[str, ...]) -> None:
    """No row of these tables may be in quarantine: a tree without it would be another tree."""
    if not any(table.quarantined for table in manifest.tables if table.name in used):
        return
    rows = read_stage(dataset, "quarantine", ("table", "source", "line", "raw", "reason"))
    # An empty file has an entry too, without a line.
    rows = rows.filter(pc.and_(pc.is_in(rows["table"], pa.array(used)), pc.is_valid(rows["line"])))
    first = rows.sort_by([(name, "ascending") for name in ("table", "source", "line")])[:NAMED]
    raise InputError(
        Problem(
            f"{row['source']}, line {row['line']}", f"{row['raw']!r}: {row['reason']}", "Mend it"
        )
        for row in first.to_pylist()
    )
