"""From a workload folder to a dataset: every stage, in order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import partial, reduce
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanplan.core.errors import NAMED, InputError, Problem
from fanplan.core.failures import explained
from fanplan.core.folder import DATASET, claimed, require_room
from fanplan.core.progress import Progress
from fanplan.core.tables import Table
from fanplan.core.version import __version__
from fanplan.data.ingest.code import code_key
from fanplan.data.ingest.interest import Inputs, InterestStages, build_interest
from fanplan.data.ingest.points import (
    mark_patterns,
    mark_topics,
    observed_times,
    to_points,
    with_space,
)
from fanplan.data.ingest.regions import (
    check_filters,
    compile_filters,
    number_topics,
    spaces_used,
    topics_of_patterns,
)
from fanplan.data.ingest.run import IngestRun
from fanplan.data.ingest.store import Stage, StageStore
from fanplan.data.links import LINK_COLUMNS, link_notes
from fanplan.data.params import QuarantineParams, ReadParams
from fanplan.data.quarantine import LossRule, count_reasons, listed, require_kept
from fanplan.data.read.rows import as_input_error, mark_unknown, quarantined, quarantined_files
from fanplan.data.read.sources import TableSource, find_sources
from fanplan.data.reader import TableCount, damage, read_manifest, read_stage
from fanplan.data.sizes import held, small_table
from fanplan.data.tables import (
    CHECKED_SUBSCRIPTIONS,
    FILTERS,
    PATTERNS,
    QUARANTINE,
    TOPICS,
    publications,
)
from fanplan.workload import tables
from fanplan.workload.description import load_description, to_toml, with_overrides
from fanplan.workload.topics import is_pattern

READ = {item.name for item in fields(ReadParams)}
REASONS = 5
"""Reasons of a table that a dataset tells first; the others are in its quarantine."""
FEW_POINTS = 1_000
"""This many publications or fewer all go the long way, which is planned in any case."""
UNCUT = ("exact", "atomic")
"""Kinds of flows that no region cuts."""


def ingest_workload(
    session: Callable[[int], SparkSession],
    workload: Path,
    out: Path,
    overrides: Mapping[str, Any],
    progress: Progress,
    *,
    temporary: bool = False,
) -> list[str]:
    """Run every stage whose inputs changed or that is damaged, and put the dataset in its place.

    If a table lost too many rows it stops, and what it did so far stays beside the place with the
    quarantine in it. A ``temporary`` dataset is gone before anybody can look. Returns what was
    damaged, which it made again.
    """
    asked = {name: value for name, value in overrides.items() if value is not None}
    reading = ReadParams.given({n: v for n, v in asked.items() if n in READ})
    description = with_overrides(
        load_description(workload), **{n: v for n, v in asked.items() if n not in READ}
    )
    with claimed(out, DATASET, replace=True):
        with progress.stage("find and hash files"):
            sources = find_sources(workload, description.attributes)
        if sources["subscriptions"].rows == 0:
            raise InputError(Problem("subscriptions", "there are no rows", "Say who wants what"))
        inputs_key = key_of(__version__, to_toml(description), *(s.key for s in sources.values()))
        damaged = verify(out, inputs_key, progress)
        if damaged == []:
            require_kept(out, reading)
            return []
        require_room(out, dataset_bytes(sources.values()))
        with StageStore(out, progress) as store, naming_files(sources.values()):
            look = f"`fanplan ingest {workload} --out DATASET` keeps them to look at"
            look = look if temporary else listed(out.with_name(store.folder.name))
            losses = LossRule(reading.lost_limit, look)
            spark = session(sum(source.rows for source in sources.values()))
            run = IngestRun(spark, store, description, sources, losses)
            inputs = read_inputs(run)
            interest = build_interest(run, inputs)
            quarantine(run, inputs.tables)
            told = {**manifest(run, inputs, interest), "inputs": inputs_key, "parameters": asked}
            store.finish(told, read_manifest)
    return damaged or []


KEPT = {"csv": 0.2, "json": 0.1, "parquet": 0.7}
"""Part of the bytes of files that a dataset takes at least, by their format."""


def dataset_bytes(sources: Iterable[TableSource]) -> int:
    """What a dataset of these files takes at least."""
    files = [file for source in sources for file in source.files]
    return int(sum(KEPT[file.format] * Path(file.path).stat().st_size for file in files))


@contextmanager
def naming_files(sources: Collection[TableSource]) -> Iterator[None]:
    """A job that fails because of an input file is an input error with that file's name."""
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise explained(error) or as_input_error(error, sources) or error from error


def key_of(*parts: str) -> str:
    """A hash of texts."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def verify(out: Path, inputs_key: str, progress: Progress) -> list[str] | None:
    """What is wrong with the dataset that is there; None if none of this input and code is."""
    if not (out / DATASET.sign).is_file():
        return None
    try:
        manifest = read_manifest(out)
    except InputError as error:
        return [f"{DATASET.sign}: {problem.what}" for problem in error.problems]
    if (manifest.inputs, manifest.code) != (inputs_key, code_key()):
        return None
    with progress.stage("verify the dataset") as told:
        found = [flaw for flaws in damage(out).values() for flaw in flaws]
        told.note("; ".join([*found[:NAMED], *["…"] * (len(found) > NAMED)]) or "as it was written")
    return found


def read_inputs(run: IngestRun) -> Inputs:
    """Read every table, quarantining what cannot be understood."""
    read = publication_stage(run) | network_stages(run)
    require_read(run, read)  # Before what they have lost makes others lose: topics are theirs.
    interest = {table.name: held(rows) for table, rows in interest_rows(run)}
    known = known_topics(run, read, interest)
    meaning = filters_meaning(run, interest, known)
    for name, rows in interest.items():
        read[name] = checked_interest(run, name, rows, meaning)
        rows.unpersist()
    require_read(run, read)
    sent = read.get("publications")
    return Inputs(read, known, *meaning, observed_times(run.read(sent)) if sent else None)


def require_read(run: IngestRun, read: Mapping[str, Stage]) -> None:
    """Stop before the expensive stages if too much is lost, with all that is set apart so far."""
    lost = run.losses.lost(
        TableCount(name, stage.rows + stage.quarantined, stage.rows, stage.quarantined)
        for name, stage in read.items()
    )
    if lost:
        raise InputError(run.losses.problems(quarantine(run, read).path.parent, lost))


def interest_rows(run: IngestRun) -> Iterator[tuple[Table, DataFrame]]:
    """Subscriptions and advertisements; no filter is the empty filter."""
    syntax = run.description.topic_syntax
    rows = run.rows(tables.SUBSCRIPTIONS).fillna("", "filter")
    yield tables.SUBSCRIPTIONS, mark_patterns(rows, syntax)
    if tables.ADVERTISEMENTS.name in run.sources:
        rows = run.rows(tables.ADVERTISEMENTS).fillna("", "filter")
        yield tables.ADVERTISEMENTS, mark_topics(rows, syntax)


def publication_stage(run: IngestRun) -> dict[str, Stage]:
    """Publications as points of their topics' spaces, in one pass over the files."""
    table = tables.PUBLICATIONS
    if table.name not in run.sources:
        return {}
    points = publications(run.description.dimensions)
    plain = run.store.scratch(table) if run.sources[table.name].rows > FEW_POINTS else None
    build = partial(_published_points, run, plain)
    return {table.name: run.table_stage(table, build, kept=points, plain=plain)}


def _published_points(run: IngestRun, plain: Path | None) -> DataFrame:
    if plain is not None:
        plain.mkdir()
    return to_points(run.rows(tables.PUBLICATIONS, plain), run.description)


def network_stages(run: IngestRun) -> dict[str, Stage]:
    """Brokers, and the links and trees between them."""
    found: dict[str, Stage] = {}
    for table, nodes in (
        (tables.BROKERS, ()),
        (tables.LINKS, ("a", "b")),
        (tables.TREES, ("root", "parent", "child")),
    ):
        if table.name in run.sources:
            brokers = [found["brokers"]] if "brokers" in found else []
            build = partial(_known_nodes, run, table, nodes, brokers)
            found[table.name] = run.table_stage(table, build, brokers)
    return found


def _known_nodes(
    run: IngestRun, table: Table, nodes: Sequence[str], brokers: Sequence[Stage]
) -> DataFrame:
    """Rows of a network table; where there are brokers, its nodes must be among them."""
    rows = run.rows(table)
    for stage in brokers:
        for node in nodes:
            rows = mark_unknown(rows, node, run.read(stage).select("broker"), "brokers")
    return rows


def known_topics(
    run: IngestRun, read: Mapping[str, Stage], interest: Mapping[str, DataFrame]
) -> Stage:
    """Declared topics, those that are sent on, and those that somebody asks for by name.

    Where topics are declared, a name that no declaration covers is not known.
    """
    published: list[Stage | TableSource] = [read[n] for n in ("publications",) if n in read]
    return run.stage(
        TOPICS,
        lambda: number_topics(list(named_topics(run, read, interest)), run.store.scratch(TOPICS)),
        [*published, *(run.sources[name] for name in interest)],
        params=run.reading,
    )


def named_topics(
    run: IngestRun, read: Mapping[str, Stage], interest: Mapping[str, DataFrame]
) -> Iterator[DataFrame]:
    """Tables of (topic, space) that say which topics there are."""
    syntax = run.description.topic_syntax
    exact = [e.pattern for e in run.description.topics if not is_pattern(e.pattern, syntax)]
    named = [small_table(run.spark, [(name,) for name in exact], "topic string")]
    if "publications" in read:
        named.append(run.read(read["publications"]))
    # A pattern is no name: nothing can be published to it.
    named.extend(mark_topics(rows, syntax).filter("_reason IS NULL") for rows in interest.values())
    for rows in named:
        known = with_space(rows.select("topic").distinct(), run.description)
        yield known.filter("space IS NOT NULL").select("topic", "space")


def filters_meaning(
    run: IngestRun, interest: Mapping[str, DataFrame], known: Stage
) -> tuple[Stage, Stage]:
    """Which topics each pattern means, and the boxes of each filter in each space it meets."""
    sources = [run.sources[name] for name in interest]
    patterns = run.stage(
        PATTERNS,
        lambda: topics_of_patterns(
            all_of(rows.select(F.col("topic").alias("pattern")) for rows in interest.values()),
            run.read(known),
            run.description.topic_syntax,
        ),
        [known, *sources],
    )
    filters = run.stage(
        FILTERS,
        lambda: compile_filters(
            all_of(spaces_used(rows, run.read(patterns)) for rows in interest.values()),
            run.description,
        ),
        [patterns, *sources],
        params=run.reading,
    )
    return patterns, filters


def all_of(frames: Iterable[DataFrame]) -> DataFrame:
    """The different rows of several tables."""
    return reduce(DataFrame.unionByName, frames).distinct()


def checked_interest(
    run: IngestRun, name: str, rows: DataFrame, meaning: tuple[Stage, Stage]
) -> Stage:
    """Subscriptions or advertisements whose topic is known and whose filter has boxes."""
    patterns, filters = meaning
    syntax = run.description.topic_syntax

    def build() -> DataFrame:
        return check_filters(rows, run.read(patterns), run.read(filters), syntax)

    if name == "advertisements":
        return run.table_stage(tables.ADVERTISEMENTS, build, meaning)
    return run.table_stage(tables.SUBSCRIPTIONS, build, meaning, kept=CHECKED_SUBSCRIPTIONS)


def quarantine(run: IngestRun, read: Mapping[str, Stage]) -> Stage:
    """What was set aside from all tables, in one table."""
    stages = {name: stage for name, stage in read.items() if stage.quarantined}

    def gather() -> DataFrame:
        parts = [
            quarantined(stage.read_quarantined(run.spark), name) for name, stage in stages.items()
        ]
        return reduce(
            DataFrame.unionByName, parts, quarantined_files(run.spark, run.sources.values())
        )

    looked_at: list[Stage | TableSource] = [*stages.values(), *run.sources.values()]
    return run.stage(QUARANTINE, gather, looked_at)


def network_notes(stage: Stage) -> Iterator[str]:
    """What is worth knowing of the links, if these are they."""
    if stage.table == tables.LINKS:
        yield from link_notes(read_stage(stage.path.parent, stage.table.name, LINK_COLUMNS))


def manifest(run: IngestRun, inputs: Inputs, interest: InterestStages) -> dict[str, Any]:
    """What a dataset says about itself."""
    description = run.description
    planned = [interest.stages[name].key for name in ("flows", "classes", "subscribers")]
    reasons = count_reasons(run.store.folder, QuarantineParams())
    return {
        "format": 1,
        "name": description.name,
        "key": key_of(*planned, str(interest.seconds)),
        "seconds": interest.seconds,
        "observed": asdict(inputs.observed) if inputs.observed else None,
        "grid": interest.grid,
        "exact": interest.grid in UNCUT or not description.dimensions,
        "cover": description.cover,
        "rates": interest.rates,
        "traffic": interest.counts,
        "dimensions": description.dimensions,
        "topic_syntax": description.topic_syntax,
        "attributes": {name: asdict(a) for name, a in description.attributes.items()},
        "spaces": [[a.name for a in space.attributes] for space in description.spaces],
        "tables": {
            name: {
                "rows": run.sources[name].rows,
                "kept": stage.rows,
                "quarantined": stage.quarantined,
                "reasons": [[r.reason, r.rows] for r in reasons if r.table == name][:REASONS],
                "notes": [*run.sources[name].notes, *network_notes(stage)],
                "key": run.sources[name].key,
            }
            for name, stage in inputs.tables.items()
        },
    }
