"""What users say by name, in the numbers of a dataset: flows, limits of subscribers, older plans.

Rows are flows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fanplan.core.arrays import Ints, Longs
from fanplan.core.errors import InputError, Problem, similar
from fanplan.core.files import require_regular
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.interest import Rows
from fanplan.data.reader import read_stage
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, MapPairs, map_pairs
from fanplan.layers.channels.methods import Method
from fanplan.layers.channels.params import ChannelsParams
from fanplan.layers.channels.record import ChannelsRecord, subscriber_names
from fanplan.layers.registry import load_plan
from fanplan.plan.stored import StoredPlan

PER_FLOW = ("pinned", "off_multicast", "max_channel_rate", "start")
"""Options that speak of single flows: a class of flows must not be decided as one then."""
SIMILAR_AMONG = 100_000
"""Names that are searched for one like a misspelt one."""
NAMED = 10
"""How many wrong rows an error names."""
COLUMNS = ("subscriber", "channels")
SWITCHES = ("switch", "entries")


# ---- options of a method


def require_options(method: Method, options: Mapping[str, Any]) -> None:
    """Every option must be one of the method's."""
    known = {item.name for item in fields(method.params)}
    problems = [
        Problem(
            name,
            f"is not an option of the method {method.name}",
            similar(name, [*known, *(item.name for item in fields(ChannelsParams))])
            or "Leave it out",
        )
        for name in options
        if name not in known
    ]
    if problems:
        raise InputError(problems)


def rows_for(method: Method, options: Mapping[str, Any]) -> Rows:
    """What a row of the problem must be."""
    return "flow" if any(name in options for name in PER_FLOW) else method.rows


def translate(dataset: Dataset, channels: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options in the numbers of the problem: names become rows, rates totals."""
    result = dict(options)
    if "max_channel_rate" in result:
        result["max_channel_rate"] = float(result["max_channel_rate"]) * dataset.manifest.seconds
    limit = result.get("max_channels_per_subscriber")
    if limit is not None and not isinstance(limit, int):
        given = limit if isinstance(limit, Mapping) else read_limits(Path(limit))
        limits = limits_in_order(given, subscriber_names(dataset.path), channels)
        result["max_channels_per_subscriber"] = limits
    if "start" in result:
        result["start"] = load_start(dataset, channels, result["start"]).map
    return result | pins(dataset, options)


def as_recorded(params: ChannelsParams) -> ChannelsParams:
    """What a plan records: as the user gave it, not as rows and totals, and lists in order."""
    limits, entries = params.max_channels_per_subscriber, params.max_switch_entries
    if isinstance(limits, Path | str):
        limits = read_limits(Path(limits))
    if isinstance(entries, Path | str):
        entries = read_limits(Path(entries), SWITCHES)
    return replace(
        params,
        pinned=tuple(sorted(params.pinned)),
        off_multicast=tuple(sorted(params.off_multicast)),
        max_channels_per_subscriber=limits,
        max_switch_entries=entries,
    )


# ---- flows


class FlowNames:
    """The flows of a dataset that somebody wants, by name; a topic's name means all its flows."""

    def __init__(self, dataset: Path) -> None:
        flows = read_stage(dataset, "flows", ("flow", "topic", "messages", "audience_class"))
        self.all = flows
        self.wanted = flows.filter(pc.greater_equal(flows["audience_class"], 0)).combine_chunks()

    @property
    def classes(self) -> Longs:
        """The audience class of each wanted flow."""
        result: Longs = self.wanted["audience_class"].to_numpy().astype(np.int64)
        return result

    def rows(self, name: str) -> Longs:
        """Positions among the wanted flows: the flow of that name, or all flows of that topic."""
        return rows_named(self.wanted, name)

    def require_rows(self, names: Iterable[str], option: str) -> list[int]:
        """The rows of all names, ascending, each once; an error that tells every unknown name."""
        found = [(name, self.rows(name)) for name in names]
        problems = [self.unknown(name, option) for name, rows in found if not len(rows)]
        if problems:
            raise InputError(problems)
        return sorted({int(row) for _, rows in found for row in rows})

    def unknown(self, name: str, option: str) -> Problem:
        if len(rows_named(self.all, name)):
            what = f"nobody wants {name!r}, so it is not sent"
            return Problem(option, what, "Leave it out")
        topics = self.all["topic"].slice(0, SIMILAR_AMONG).unique().to_pylist()
        flows = self.all["flow"].slice(0, SIMILAR_AMONG).to_pylist()
        remedy = similar(name, [*topics, *flows]) or "Use a flow of the plan's table flows"
        return Problem(option, f"there is no flow or topic {name!r}", remedy)


def rows_named(flows: pa.Table, name: str) -> Longs:
    """Where a table of flows has that flow, or else that topic."""
    for column in ("flow", "topic"):
        found = np.flatnonzero(pc.equal(flows[column], name).to_numpy())
        if len(found):
            return found
    return found


def pins(dataset: Dataset, options: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Rows of the flows that must, and that must not, go by multicast."""
    given = {name: options[name] for name in ("pinned", "off_multicast") if name in options}
    if not given:
        return {}
    names = FlowNames(dataset.path)
    rows = {option: names.require_rows(wanted, option) for option, wanted in given.items()}
    both = sorted(set(rows.get("pinned", ())) & set(rows.get("off_multicast", ())))
    if both:
        flow = names.wanted["flow"][both[0]].as_py()
        what = f"flow {flow!r} must go by multicast and must not"
        raise InputError(Problem("pinned", what, "Take it out of one of the two lists"))
    if rows.get("off_multicast") and options.get("unicast_limit") == 0:
        flow = names.wanted["flow"][rows["off_multicast"][0]].as_py()
        what = f"flow {flow!r} must go by unicast, but the unicast limit is 0"
        raise InputError(Problem("off_multicast", what, "Leave it out, or raise the limit"))
    return {option: tuple(found) for option, found in rows.items()}


# ---- limits of subscribers


def read_limits(path: Path, columns: tuple[str, str] = COLUMNS) -> dict[str, int]:
    """Subscribers and the most channels each may join, from CSV or Parquet with these columns."""
    table = read_table(path, columns)
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        what = f"no column {', '.join(missing)}"
        raise InputError(Problem(str(path), what, f"Give the columns {' and '.join(columns)}"))
    names, limits = (table[name].to_pylist() for name in columns)
    rows = list(zip(names, limits, strict=True))
    wrong = [
        Problem(f"{path}: row {number}", f"{limit!r} is not a limit for {name!r}", "Use 0 or more")
        for number, (name, limit) in enumerate(rows, start=1)
        if name is None or not isinstance(limit, int) or limit < 0
    ]
    twice = sorted(str(name) for name, times in Counter(names).items() if times > 1)
    wrong += [Problem(str(path), f"{name!r} is given twice", "Keep one row") for name in twice]
    if wrong:
        raise InputError(wrong[:NAMED])
    return {str(name): limit for name, limit in rows}


def read_table(path: Path, columns: tuple[str, str]) -> pa.Table:
    remedy = f"Give a number, or a CSV or Parquet file with columns {' and '.join(columns)}"
    try:
        require_regular(path, remedy)
        if path.suffix == ".parquet":
            return pq.read_table(path)
        options = pa.csv.ConvertOptions(column_types={columns[0]: pa.string()})
        return pa.csv.read_csv(path, convert_options=options)
    except (pa.ArrowException, OSError) as error:
        raise InputError(Problem(str(path), f"cannot be read ({error})", remedy)) from error


def limits_in_order(limits: Mapping[str, int], subscribers: pa.Array, unlimited: int) -> list[int]:
    """A limit for each subscriber in the problem's order; ``unlimited`` where none is given."""
    names = subscribers.to_pylist()
    known, option = set(names), "max_channels_per_subscriber"
    unknown = [name for name in limits if name not in known][:NAMED]
    if unknown:
        raise InputError(
            Problem(option, f"there is no subscriber {n!r}", similar(n, names) or "Leave it out")
            for n in unknown
        )
    return [int(limits.get(name, unlimited)) for name in names]


# ---- an older plan to start from


@dataclass(frozen=True)
class StartMap:
    """The map of an older plan; ``gone`` counts its pairs whose flow or subscriber is no more."""

    map: ChannelMap
    gone: int


def load_start(dataset: Dataset, channels: int, folder: PathLike) -> StartMap:
    """The map of an older plan, which must not have more channels than there are now.

    The dataset may differ from the one the plan was made for: flows and subscribers are found by
    name. Unicast follows from the rest, so it is left out.
    """
    plan = load_plan(Path(folder))
    used = plan.section(ChannelsRecord).channels
    if used > channels:
        what = f"has {used} channels, and {channels} are allowed now"
        raise InputError(Problem(str(folder), what, f"Allow {used}"))
    wanted = FlowNames(dataset.path).wanted["flow"].combine_chunks()
    carried, lost = translated(plan, "channel_flows", "flow", wanted)
    subscribers = subscriber_names(dataset.path)
    members, left = translated(plan, "channel_subscribers", "subscriber", subscribers)
    assigned = map_pairs(carried.right, carried.left)
    return StartMap(ChannelMap(used, assigned, members, NO_PAIRS), lost + left)


def translated(plan: StoredPlan, table: str, column: str, values: pa.Array) -> tuple[MapPairs, int]:
    """(channel, number) pairs of a table of a plan, and how many name nothing that is there."""
    content = plan.read(table, ("channel", column))
    found = pc.index_in(content[column], value_set=values.cast(pa.string())).fill_null(-1)
    numbers: Ints = found.to_numpy().astype(np.int32)
    known = numbers >= 0
    return map_pairs(content["channel"].to_numpy()[known], numbers[known]), int((~known).sum())
