"""The stages behind the interest problem: from checked tables to flows and audience classes.

Flows with equal audiences become one class. That is lossless: a plan for classes is a plan for
their flows. Audiences are compared by a 128-bit hash of the sorted subscriber numbers; that equal
hashes mean equal audiences is verified, not assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fanplan.core.errors import InputError, Problem, StageError
from fanplan.data import tables
from fanplan.data.ingest.cells import (
    GridRef,
    advertised_traffic,
    cell_points,
    cover_cells,
    measured_traffic,
    no_cell,
    unordered_sum,
    with_cell_extents,
    with_cells,
    with_topic_ids,
)
from fanplan.data.ingest.exact import SelectorData, exact_audiences
from fanplan.data.ingest.grid import atomic_grid, quantile_grid, uniform_grid
from fanplan.data.ingest.joins import join_audiences, join_hits, join_wants
from fanplan.data.ingest.regions import (
    advertised_boxes,
    assumed_boxes,
    number_subscribers,
    number_subscriptions,
    subscription_regions,
)
from fanplan.data.ingest.run import IngestRun
from fanplan.data.ingest.store import Stage
from fanplan.data.numbering import numbered
from fanplan.data.sizes import gathered, kept, ordered
from fanplan.workload.description_schema import GridKind
from fanplan.workload.times import LEAST_SECONDS, Span

SALTS = range(4)
"""Seeds of the hash, tried in turn until no two audiences share one."""


@dataclass(frozen=True)
class Inputs:
    """The input tables, read and checked, and what their topics and filters mean."""

    tables: Mapping[str, Stage]
    topics: Stage
    patterns: Stage
    filters: Stage
    observed: Span | None = None


@dataclass(frozen=True)
class InterestStages:
    """The finished stages, where the rates come from, the window in seconds, and the grid.

    ``counts`` are what a person should know of the traffic, as `reader.Traffic` has them.
    """

    stages: Mapping[str, Stage]
    rates: str
    seconds: float
    grid: GridKind
    counts: Mapping[str, float]


def build_interest(run: IngestRun, inputs: Inputs) -> InterestStages:
    """All stages in order."""
    rates = choose_rates(run, inputs)
    grid = chosen_grid(run, rates)
    built = region_stages(run, inputs)
    if grid == "exact":
        built |= exact_stages(run, inputs, built)
    else:
        built |= traffic_stages(run, inputs, built, rates, grid)
        built |= cell_stages(run, inputs, built, rates, grid)
    built |= class_stages(run, inputs, built)
    if rates == "measured":
        built["hits"] = hits_stage(run, inputs, built, grid)
    counts = count_traffic(run, built)
    if rates == "measured" and is_coarse(run, grid):
        counts["heard"] = count_heard(run, inputs, built)
    return InterestStages(built, rates, window(run, inputs, rates), grid, counts)


def count_traffic(run: IngestRun, built: Mapping[str, Stage]) -> dict[str, float]:
    """How much is sent, wanted and received, and what was seen once or not at all."""
    flows, classes = run.read(built["flows"]), run.read(built["classes"])
    once = F.when((F.col("messages") == 1) & (F.size("cell") > 0), 1.0).otherwise(0.0)
    silent = F.when(F.col("messages") == 0, 1.0).otherwise(0.0)
    of_flows = flows.agg(
        F.sum("messages").alias("publications"),
        F.sum(once).alias("once"),
        F.sum(silent).alias("silent_topics"),
    )
    of_classes = classes.agg(
        F.sum("wanted").alias("wanted"),
        F.sum(F.col("messages") * F.size("subscribers")).alias("copies"),
    )
    row = of_flows.unionByName(of_classes, allowMissingColumns=True)
    sums = row.agg(*(F.coalesce(F.sum(name), F.lit(0.0)).alias(name) for name in row.columns))
    counts: dict[str, float] = sums.first().asDict()  # type: ignore[union-attr]
    heard = built["hits"].rows if "hits" in built else built["subscriptions"].rows
    return counts | {"silent_subscriptions": float(built["subscriptions"].rows - heard)}


def is_coarse(run: IngestRun, kind: GridKind) -> bool:
    """Whether cells may be coarser than selectors."""
    return bool(run.description.dimensions) and kind not in ("exact", "atomic")


def count_heard(run: IngestRun, inputs: Inputs, built: Mapping[str, Stage]) -> float:
    """Publications that somebody asks for by selectors: in a coarse cell there are others too."""
    dims = run.description.dimensions
    spaced = run.read(inputs.topics).filter("space > 0")
    points = with_topic_ids(run.read(inputs.tables["publications"]), spaced)
    columns = ("topic_id", *tables.coordinates(dims))
    found = join_audiences(points.select(*columns), str(built["regions"].path), dims, ["topic_id"])
    plain = run.read(built["flows"]).filter("size(cell) = 0 AND audience_class >= 0")
    whole = plain.agg(F.coalesce(F.sum("messages"), F.lit(0.0))).first()
    return float(found.filter(F.size("subscribers") > 0).count() + (whole[0] if whole else 0.0))


def chosen_grid(run: IngestRun, rates: str) -> GridKind:
    """Without publications to match, exact flows are the cells that no region cuts."""
    asked = run.description.grid
    return "atomic" if asked == "exact" and rates != "measured" else asked


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
    seconds = inputs.observed.seconds if inputs.observed else 0.0
    return seconds if seconds >= LEAST_SECONDS else 1.0


def region_stages(run: IngestRun, inputs: Inputs) -> dict[str, Stage]:
    """Numbered subscribers and subscriptions, and the boxes they stand for."""
    checked = inputs.tables["subscriptions"]
    subscribers = run.stage(
        tables.SUBSCRIBERS,
        lambda: number_subscribers(run.read(checked), run.store.scratch(tables.SUBSCRIBERS)),
        [checked],
    )
    subscriptions = run.stage(
        tables.SUBSCRIPTIONS,
        lambda: number_subscriptions(run.read(checked), run.read(subscribers)),
        [checked, subscribers],
    )
    boxes = run.stage(
        tables.REGIONS,
        lambda: subscription_regions(
            *map(run.read, (subscriptions, inputs.patterns, inputs.filters))
        ),
        [subscriptions, inputs.patterns, inputs.filters],
    )
    return {"subscribers": subscribers, "subscriptions": subscriptions, "regions": boxes}


def grid_ref(inputs: Inputs, laid: Stage, run: IngestRun) -> GridRef:
    return GridRef(str(laid.path), laid.key, inputs.topics.rows, run.description.dimensions)


def traffic_stages(
    run: IngestRun, inputs: Inputs, built: Mapping[str, Stage], rates: str, kind: GridKind
) -> dict[str, Stage]:
    """The grid, the advertised boxes where rates need them, and the traffic of each cell."""
    laid = grid_stage(run, inputs, built, kind)
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

    sent = run.stage(tables.TRAFFIC, build, [*sources, inputs.topics, laid])
    return {"grid": laid, "traffic": sent, **extra}


def grid_stage(run: IngestRun, inputs: Inputs, built: Mapping[str, Stage], kind: GridKind) -> Stage:
    """A grid of that kind, from what it looks at; exact flows have the ends of domains alone."""
    spaces, topics = run.description.spaces, inputs.topics
    if kind == "exact":
        spaces = tuple(replace(space, cells=(1,) * space.dimensions) for space in spaces)
    if kind == "quantile" and "publications" not in inputs.tables:
        what = "a quantile grid follows the traffic, but there is no table publications"
        raise InputError(Problem("grid", what, "Add publications, or use uniform or atomic"))
    looks_at = {
        "exact": [],
        "uniform": [],
        "atomic": [built["regions"]],
        "quantile": [inputs.tables["publications"]] if kind == "quantile" else [],
    }[kind]

    def lay() -> DataFrame:
        known = run.read(topics)
        if not looks_at:
            return uniform_grid(known, spaces)
        looked = run.read(looks_at[0])
        if kind == "atomic":
            return atomic_grid(known, spaces, looked)
        return quantile_grid(known, spaces, with_topic_ids(looked, known))

    cells = [space.cells for space in spaces]
    return run.stage(tables.GRID, lay, [topics, *looks_at], params=[kind, cells, run.reading])


def advertised_stage(run: IngestRun, inputs: Inputs, rates: str) -> Stage:
    """Boxes with rates: as advertised, or one message a second on every topic."""
    meaning = (inputs.patterns, inputs.filters)
    if rates == "assumed":
        build = partial(assumed_boxes, run.read(inputs.topics), run.description.spaces)
        return run.stage(tables.ADVERTISED, build, [inputs.topics], params=run.reading)
    table = inputs.tables["advertisements"]
    return run.stage(
        tables.ADVERTISED,
        lambda: advertised_boxes(run.read(table), *map(run.read, meaning)),
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


def exact_stages(run: IngestRun, inputs: Inputs, built: Mapping[str, Stage]) -> dict[str, Stage]:
    """Who wants each publication, and the ends of the domains."""
    regions, published = built["regions"], inputs.tables["publications"]
    selectors = SelectorData(
        str(regions.path),
        str(built["subscribers"].path),
        built["subscribers"].key,
        run.description.dimensions,
    )

    def hear(keep: Callable[[DataFrame], DataFrame]) -> DataFrame:
        topics = run.read(inputs.topics)
        plain = heard_topics(run.read(published), topics.filter("space = 0"), selectors)
        if not selectors.dimensions:
            return with_silent_topics(keep(plain), topics, run.read(regions))
        points = with_topic_ids(run.read(published), topics.filter("space > 0"))
        narrow = points.select("topic_id", "bytes", *tables.coordinates(selectors.dimensions))
        heard = plain.unionByName(own_extents(exact_audiences(narrow, selectors)))
        return with_silent_topics(keep(heard), topics, run.read(regions))

    sources = [published, inputs.topics, regions, built["subscribers"]]
    with kept() as keep:
        heard = run.stage(tables.AUDIENCES, partial(hear, keep), sources, params="exact")
    return {"grid": grid_stage(run, inputs, built, "exact"), "audiences": heard}


def heard_topics(publications: DataFrame, plain: DataFrame, selectors: SelectorData) -> DataFrame:
    """The audiences of plain topics with traffic: one each."""
    traffic = measured_traffic(publications, plain, GridRef("", "", 0, 0))
    points, keep = cell_points(traffic, selectors.dimensions), traffic.columns
    return with_no_extent(join_audiences(points, selectors.regions, selectors.dimensions, keep))


def with_no_extent(rows: DataFrame) -> DataFrame:
    nothing = F.array().cast("array<double>")
    return rows.withColumns({"lo": nothing, "hi": nothing})


def own_extents(rows: DataFrame) -> DataFrame:
    """Extents on the axes that a topic has; on the others they are no numbers."""
    own = {name: F.filter(name, lambda end: ~F.isnan(end)) for name in ("lo", "hi")}
    return rows.withColumns(own)


def with_silent_topics(heard: DataFrame, topics: DataFrame, regions: DataFrame) -> DataFrame:
    """A row more for each topic without traffic, with all who asked for any of it.

    What may be sent there later needs a place in a plan too. Unless something else is known, an
    audience wants all that is sent to it.
    """
    silent = topics.select("topic_id").join(heard, on="topic_id", how="left_anti")
    asked = regions.join(silent, on="topic_id", how="left_semi").groupBy("topic_id")
    people = asked.agg(F.sort_array(F.collect_set("subscriber_id")).alias("subscribers"))
    rows = silent.join(people, on="topic_id", how="left").select(
        "topic_id",
        no_cell(),
        F.lit(0.0).alias("messages"),
        F.lit(0.0).alias("bytes"),
        F.coalesce("subscribers", F.array().cast("array<int>")).alias("subscribers"),
    )
    both = heard.unionByName(with_no_extent(rows), allowMissingColumns=True)
    everything = F.col("messages") * F.size("subscribers")
    wanted = F.coalesce("wanted", everything) if "wanted" in both.columns else everything
    return both.withColumn("wanted", wanted).select(*tables.AUDIENCES.names)


def cell_stages(
    run: IngestRun, inputs: Inputs, built: Mapping[str, Stage], rates: str, kind: GridKind
) -> dict[str, Stage]:
    """Who wants each cell of a grid, and how much of it by the selectors themselves."""
    ref = grid_ref(inputs, built["grid"], run)
    mode = run.description.cover
    covered = run.stage(
        tables.COVER,
        lambda: cover_cells(run.read(built["regions"]), ref, mode),
        [built["regions"], built["grid"]],
        params=mode,
    )
    keep = ["topic_id", "cell", "messages", "bytes"]

    def hear() -> DataFrame:
        points = cell_points(run.read(built["traffic"]), ref.dimensions)
        heard = join_audiences(points, str(covered.path), ref.dimensions, keep)
        if "publications" in inputs.tables and rates == "measured" and is_coarse(run, kind):
            heard = with_wanted(heard, wanted_of_cells(run, inputs, built["regions"], ref))
        placed = with_cell_extents(heard, ref)
        # A silent topic with attributes has no cell that could stand for all of it.
        plain = run.read(inputs.topics).filter("space = 0")
        return with_silent_topics(placed, plain, run.read(built["regions"]))

    sources = [built["traffic"], covered, inputs.topics, built["regions"]]
    sources += [inputs.tables["publications"]] if "publications" in inputs.tables else []
    heard = run.stage(tables.AUDIENCES, hear, sources, params=rates)
    return {"cover": covered, "audiences": heard}


def wanted_of_cells(run: IngestRun, inputs: Inputs, regions: Stage, ref: GridRef) -> DataFrame:
    """(topic_id, cell, wanted): copies of a cell's publications that their subscribers ask for."""
    spaced = run.read(inputs.topics).filter("space > 0")
    points = with_topic_ids(run.read(inputs.tables["publications"]), spaced)
    placed = with_cells(points.select("topic_id", *tables.coordinates(ref.dimensions)), ref)
    key = ["topic_id", "cell"]
    wants = join_wants(placed, str(regions.path), ref.dimensions, key)
    return wants.groupBy(*key).agg(F.sum("messages").alias("wanted"))


def with_wanted(heard: DataFrame, wanted: DataFrame) -> DataFrame:
    """Cells with what is wanted of them; a plain topic has no cells, and is wanted whole."""
    whole = F.when(F.size("cell") == 0, F.col("messages") * F.size("subscribers"))
    found = heard.join(wanted, on=["topic_id", "cell"], how="left")
    return found.withColumn("wanted", F.coalesce(whole, "wanted", F.lit(0.0)))


def class_stages(run: IngestRun, inputs: Inputs, built: Mapping[str, Stage]) -> dict[str, Stage]:
    """Flows, and the classes of those that the same subscribers want."""
    heard, exact = built["audiences"], "cover" not in built
    salt = cache(lambda: find_salt(wanted_audiences(run.read(heard))))
    classes = run.stage(
        tables.CLASSES,
        lambda: audience_classes(run.read(heard), salt(), run.store.scratch(tables.CLASSES)),
        [heard],
    )
    flows = run.stage(
        tables.FLOWS,
        lambda: named_flows(exact, salt(), *map(run.read, (heard, classes, inputs.topics))),
        [heard, classes, inputs.topics],
    )
    return {"classes": classes, "flows": flows}


def hits_stage(run: IngestRun, inputs: Inputs, built: Mapping[str, Stage], grid: GridKind) -> Stage:
    """How many publications each subscription asked for.

    A plain topic is one point for all its publications, and so is a cell that no region cuts;
    elsewhere each publication is matched by itself.
    """
    boxes = built["cover"] if grid == "atomic" else built["regions"]
    dimensions = run.description.dimensions
    topics, published = inputs.topics, inputs.tables["publications"]

    def count() -> DataFrame:
        known = run.read(topics)
        uncut = known if grid == "atomic" else known.filter("space = 0")
        points = cell_points(
            run.read(built["audiences"]).join(uncut, on="topic_id", how="left_semi"), dimensions
        ).select("topic_id", *tables.coordinates(dimensions), "weight")
        if dimensions and grid != "atomic":
            others = with_topic_ids(run.read(published), known.filter("space > 0"))
            points = points.unionByName(
                others.withColumn("weight", F.lit(1.0)).select(*points.columns)
            )
        hits = join_hits(points, str(boxes.path), dimensions)
        return hits.select("subscription", F.col("hits").cast("long"))

    sources = [built["audiences"], boxes, topics, published]
    return run.stage(tables.HITS, count, sources, params=grid)


def wanted_audiences(audiences: DataFrame) -> DataFrame:
    return audiences.filter(F.size("subscribers") > 0)


def audience_classes(audiences: DataFrame, salt: int, aside: Path) -> DataFrame:
    """One row per audience that somebody is in, heaviest first, with the totals of its flows."""
    totals = (
        signed(wanted_audiences(audiences), salt)
        .groupBy("high", "low")
        .agg(
            F.min("subscribers").alias("subscribers"),
            unordered_sum("messages").alias("messages"),
            unordered_sum("bytes").alias("bytes"),
            F.count(F.lit(1)).alias("flows"),
            unordered_sum("wanted").alias("wanted"),
        )
    )
    order = (F.desc("messages"), "high", "low")
    found = numbered(totals, "audience_class", *order, aside=aside)
    return found.select("audience_class", "subscribers", "messages", "bytes", "flows", "wanted")


def named_flows(
    exact: bool, salt: int, audiences: DataFrame, classes: DataFrame, topics: DataFrame
) -> DataFrame:
    """Every flow with its name, traffic and class, in the order of topics and cells."""
    numbered = signed(classes, salt).select("high", "low", "audience_class")
    per_topic = audiences.groupBy("topic_id").agg(F.count(F.lit(1)).alias("of_topic"))
    of_topics = gathered(topics.select("topic", "topic_id").join(per_topic, on="topic_id"))
    found = (
        gathered(signed(audiences, salt).join(numbered, on=["high", "low"], how="left"))
        .join(of_topics, on="topic_id", how="inner")
        .select(
            flow_name(exact).alias("flow"),
            "topic",
            "topic_id",
            "cell",
            "messages",
            "bytes",
            # The empty audience has no class, whatever its signature.
            F.when(F.size("subscribers") > 0, F.col("audience_class"))
            .otherwise(-1)
            .alias("audience_class"),
            "wanted",
            "lo",
            "hi",
        )
    )
    return ordered(found, "topic_id", "cell")


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


def flow_name(exact: bool) -> Column:
    """`topic` for all of it, `topic[i,j,…]` for a cell, `topic#…` for one of several audiences.

    Rows have topic, cell and of_topic, the number of flows of the topic.
    """
    topic, cell = F.col("topic"), F.col("cell")
    if not exact:
        numbers = F.concat(F.lit("["), F.array_join(cell.cast("array<string>"), ","), F.lit("]"))
        return F.concat(topic, F.when(F.size(cell) > 0, numbers).otherwise(F.lit("")))
    # Half of the signature is enough to tell the flows of a topic apart, and can still be read.
    words = [F.get("cell", F.lit(i)).cast("long").bitwiseAND(F.lit(2**32 - 1)) for i in range(2)]
    # Not `lower(hex(…))`: Spark would load all it knows of the world's alphabets.
    name = F.format_string("%s#%08x%08x", topic, *words)
    return F.when(F.col("of_topic") > 1, name).otherwise(topic)
