"""The stages behind the interest problem: from checked tables to flows and audience classes.

Flows with equal audiences become one class. That is lossless: a plan for classes is a plan for
their flows. Audiences are compared by a 128-bit hash of the sorted subscriber numbers; that equal
hashes mean equal audiences is verified, not assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fanplan.core.errors import InputError, Problem, StageError
from fanplan.data import contracts
from fanplan.data.ingest.cells import (
    GridRef,
    advertised_traffic,
    cell_points,
    cover_cells,
    measured_traffic,
    unordered_sum,
    with_quiet_topics,
    with_topic_ids,
)
from fanplan.data.ingest.grid import atomic_grid, quantile_grid, uniform_grid
from fanplan.data.ingest.joins import join_audiences, join_hits
from fanplan.data.ingest.regions import (
    advertised_boxes,
    assumed_boxes,
    dense_number,
    number_subscribers,
    number_subscriptions,
    subscription_regions,
)
from fanplan.data.ingest.run import IngestRun
from fanplan.data.ingest.store import Stage

SALTS = range(4)
"""Seeds of the hash, tried in turn until no two audiences share one."""


@dataclass(frozen=True)
class Inputs:
    """The input tables, read and checked, and what their topics and filters mean."""

    tables: Mapping[str, Stage]
    topics: Stage
    patterns: Stage
    filters: Stage


@dataclass(frozen=True)
class InterestStages:
    """The finished stages, where the rates come from, and the window in seconds.

    ``exact`` says that no region cuts a cell: topics are plain, or the grid is atomic.
    """

    stages: Mapping[str, Stage]
    rates: str
    seconds: float
    exact: bool


def build_interest(run: IngestRun, inputs: Inputs) -> InterestStages:
    """All stages in order."""
    rates = choose_rates(run, inputs)
    exact = run.description.grid == "atomic" or run.description.dimensions == 0
    built = region_stages(run, inputs)
    built |= traffic_stages(run, inputs, built, rates)
    built |= audience_stages(run, inputs, built)
    if rates == "measured":
        built["hits"] = hits_stage(run, inputs, built, exact)
    return InterestStages(built, rates, window(run, inputs, rates), exact)


def choose_rates(run: IngestRun, inputs: Inputs) -> str:
    """What the description asks for; else the best that the tables allow."""
    sources = {"measured": "publications", "advertised": "advertisements"}
    asked = run.description.rates
    if asked and sources[asked] not in inputs.tables:
        what = f"rates are to be {asked}, but there is no table {sources[asked]}"
        raise InputError(Problem("rates", what, f"Add {sources[asked]}, or leave rates out"))
    found = (rates for rates, table in sources.items() if table in inputs.tables)
    return asked or next(found, "assumed")


def window(run: IngestRun, inputs: Inputs, rates: str) -> float:
    """The length of the observed time; one second where nothing says how long it was."""
    if run.description.seconds or rates != "measured":
        return run.description.seconds or 1.0
    times = run.read(inputs.tables["publications"]).agg(F.max("time") - F.min("time"))
    return float(times.first()[0] or 1.0)  # type: ignore[index]


def region_stages(run: IngestRun, inputs: Inputs) -> dict[str, Stage]:
    """Numbered subscribers and subscriptions, and the boxes they stand for."""
    checked = inputs.tables["subscriptions"]
    subscribers = run.stage(
        "subscribers",
        lambda: number_subscribers(run.read(checked)),
        contracts.SUBSCRIBERS,
        [checked],
    )
    subscriptions = run.stage(
        "subscriptions",
        lambda: number_subscriptions(run.read(checked), run.read(subscribers)),
        contracts.SUBSCRIPTIONS,
        [checked, subscribers],
    )
    boxes = run.stage(
        "regions",
        lambda: subscription_regions(
            *map(run.read, (subscriptions, inputs.patterns, inputs.filters))
        ),
        contracts.REGIONS,
        [subscriptions, inputs.patterns, inputs.filters],
    )
    return {"subscribers": subscribers, "subscriptions": subscriptions, "regions": boxes}


def grid_ref(inputs: Inputs, laid: Stage, run: IngestRun) -> GridRef:
    return GridRef(str(laid.path), laid.key, inputs.topics.rows, run.description.dimensions)


def traffic_stages(
    run: IngestRun, inputs: Inputs, built: Mapping[str, Stage], rates: str
) -> dict[str, Stage]:
    """The grid, the advertised boxes where rates need them, and the traffic of each cell."""
    laid = grid_stage(run, inputs, built)
    ref = grid_ref(inputs, laid, run)
    if rates == "measured":
        published = inputs.tables["publications"]
        sources, extra = [published], {}

        def build() -> DataFrame:
            return measured_traffic(run.read(published), run.read(inputs.topics), ref)
    else:
        boxes = advertised_stage(run, inputs, rates)
        require_cells_within(run, laid, inputs)
        sources, extra = [boxes], {"advertised": boxes}

        def build() -> DataFrame:
            return advertised_traffic(run.read(boxes), ref)

    sent = run.stage(
        "traffic",
        lambda: with_quiet_topics(build(), run.read(inputs.topics)),
        contracts.TRAFFIC,
        [*sources, inputs.topics, laid],
    )
    return {"grid": laid, "traffic": sent, **extra}


def grid_stage(run: IngestRun, inputs: Inputs, built: Mapping[str, Stage]) -> Stage:
    """The grid the description asks for, from what that kind of grid looks at."""
    spaces, topics = run.description.spaces, inputs.topics
    kind = run.description.grid
    if kind == "quantile" and "publications" not in inputs.tables:
        what = "a quantile grid follows the traffic, but there is no table publications"
        raise InputError(Problem("grid", what, "Add publications, or use uniform or atomic"))
    looks_at = {
        "uniform": [],
        "atomic": [built["regions"]],
        "quantile": [inputs.tables["publications"]] if kind == "quantile" else [],
    }[kind]

    def lay() -> DataFrame:
        known = run.read(topics)
        if kind == "uniform":
            return uniform_grid(known, spaces)
        looked = run.read(looks_at[0])
        if kind == "atomic":
            return atomic_grid(known, spaces, looked)
        return quantile_grid(known, spaces, with_topic_ids(looked, known))

    cells = [space.cells for space in spaces]
    return run.stage(
        "grid", lay, contracts.GRID, [topics, *looks_at], params=[kind, cells, run.reading]
    )


def advertised_stage(run: IngestRun, inputs: Inputs, rates: str) -> Stage:
    """Boxes with rates: as advertised, or one message a second on every topic."""
    meaning = (inputs.patterns, inputs.filters)
    if rates == "assumed":
        build = partial(assumed_boxes, run.read(inputs.topics), run.description.spaces)
        return run.stage(
            "advertised", build, contracts.ADVERTISED, [inputs.topics], params=run.reading
        )
    table = inputs.tables["advertisements"]
    return run.stage(
        "advertised",
        lambda: advertised_boxes(run.read(table), *map(run.read, meaning)),
        contracts.ADVERTISED,
        [table, *meaning],
    )


def require_cells_within(run: IngestRun, laid: Stage, inputs: Inputs) -> None:
    """Rates are spread over all cells of a topic, so these must not be too many."""
    sizes = (
        run.read(laid)
        .groupBy("topic_id")
        .agg(F.product(F.size("edges") - 1).alias("cells"))
        .join(run.read(inputs.topics), on="topic_id", how="inner")
    )
    worst = sizes.orderBy(F.desc("cells"), "topic").first()
    limit = run.description.limits.max_cells
    if worst and worst["cells"] > limit:
        what = f"its grid has {worst['cells']:,.0f} cells, more than limits.max_cells = {limit:,}"
        remedy = (
            "Use fewer cells, give publications so that only used cells count, or raise the limit"
        )
        raise InputError(Problem(f"topic {worst['topic']}", what, remedy))


def audience_stages(run: IngestRun, inputs: Inputs, built: Mapping[str, Stage]) -> dict[str, Stage]:
    """Who wants each cell, and the classes of cells that the same subscribers want."""
    ref = grid_ref(inputs, built["grid"], run)
    mode = run.description.cover
    covered = run.stage(
        "cover",
        lambda: cover_cells(run.read(built["regions"]), ref, mode),
        contracts.REGIONS,
        [built["regions"], built["grid"]],
        params=mode,
    )
    keep = ["topic_id", "cell", "messages", "bytes"]
    heard = run.stage(
        "audiences",
        lambda: join_audiences(
            cell_points(run.read(built["traffic"]), ref.dimensions),
            str(covered.path),
            ref.dimensions,
            keep,
        ),
        contracts.AUDIENCES,
        [built["traffic"], covered],
    )
    classes = run.stage(
        "classes", lambda: audience_classes(run.read(heard)), contracts.CLASSES, [heard]
    )
    flows = run.stage(
        "flows",
        lambda: named_flows(*map(run.read, (heard, classes, inputs.topics))),
        contracts.FLOWS,
        [heard, classes, inputs.topics],
    )
    return {"cover": covered, "audiences": heard, "classes": classes, "flows": flows}


def hits_stage(run: IngestRun, inputs: Inputs, built: Mapping[str, Stage], exact: bool) -> Stage:
    """How many publications each subscription asked for.

    Where no region cuts a cell the cells stand for their publications, and there are fewer of them.
    """
    dimensions = run.description.dimensions
    topics, published = inputs.topics, inputs.tables["publications"]

    def count() -> DataFrame:
        known = run.read(topics)
        uncut = known if exact else known.filter("space = 0")
        cells = run.read(built["traffic"]).join(uncut, on="topic_id", how="left_semi")
        points = cell_points(cells, dimensions)
        hits = join_hits(points, str(built["cover"].path), dimensions)
        if not exact:
            cut = with_topic_ids(run.read(published), known.filter("space > 0"))
            others = join_hits(cut, str(built["regions"].path), dimensions)
            hits = hits.unionByName(others).groupBy("subscription").agg(F.sum("hits").alias("hits"))
        return hits.select("subscription", F.col("hits").cast("long"))

    inputs_ = [built["traffic"], built["cover"], built["regions"], topics, published]
    return run.stage("hits", count, contracts.HITS, inputs_, params=exact)


def audience_classes(audiences: DataFrame) -> DataFrame:
    """One row per audience that somebody is in, heaviest first, with the totals of its flows."""
    wanted = audiences.filter(F.size("subscribers") > 0)
    totals = (
        signed(wanted, find_salt(wanted))
        .groupBy("high", "low")
        .agg(
            F.min("subscribers").alias("subscribers"),
            unordered_sum("messages").alias("messages"),
            unordered_sum("bytes").alias("bytes"),
            F.count(F.lit(1)).alias("flows"),
        )
    )
    number = dense_number(F.desc("messages"), "high", "low").alias("audience_class")
    return totals.select(number, "subscribers", "messages", "bytes", "flows")


def named_flows(audiences: DataFrame, classes: DataFrame, topics: DataFrame) -> DataFrame:
    """Every flow with its name, traffic and class, in the order of topics and cells."""
    salt = find_salt(classes)
    numbered = signed(classes, salt).select("high", "low", "audience_class")
    return (
        signed(audiences, salt)
        .join(numbered, on=["high", "low"], how="left")
        .join(topics.select("topic", "topic_id"), on="topic_id", how="inner")
        .select(
            flow_name(F.col("topic"), F.col("cell")).alias("flow"),
            "topic",
            "topic_id",
            "cell",
            "messages",
            "bytes",
            # The empty audience has no class, whatever its signature.
            F.when(F.size("subscribers") > 0, F.col("audience_class"))
            .otherwise(-1)
            .alias("audience_class"),
        )
        .orderBy("topic_id", "cell")
    )


def signed(audiences: DataFrame, salt: int) -> DataFrame:
    """Audiences with their signature: two 64-bit hashes chained from different seeds."""
    return audiences.withColumns(
        {
            "high": F.xxhash64(F.lit(2 * salt), "subscribers"),
            "low": F.xxhash64(F.lit(2 * salt + 1), "subscribers"),
        }
    )


def collisions(audiences: DataFrame, salt: int) -> int:
    """How many signatures stand for more than one audience."""
    grouped = signed(audiences, salt).groupBy("high", "low")
    differ = F.min("subscribers") != F.max("subscribers")
    return grouped.agg(differ.alias("differ")).filter("differ").count()


def find_salt(audiences: DataFrame) -> int:
    """The first salt under which no two audiences share a signature."""
    for salt in SALTS:
        if collisions(audiences, salt) == 0:
            return salt
    raise StageError(f"audience signatures collide under all of {len(SALTS)} salts")


def flow_name(topic: Column, cell: Column) -> Column:
    """`topic`, or `topic[i,j,…]` for a cell."""
    numbers = F.concat(F.lit("["), F.array_join(cell.cast("array<string>"), ","), F.lit("]"))
    return F.concat(topic, F.when(F.size(cell) > 0, numbers).otherwise(F.lit("")))
