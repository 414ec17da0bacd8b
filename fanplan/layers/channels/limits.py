"""What users say about single flows, subscribers and older plans, as parameters of a planner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fanplan.core.errors import InputError, Problem, similar
from fanplan.data.dataset import Dataset, PathLike
from fanplan.layers.channels.record import ChannelsRecord

if TYPE_CHECKING:
    from fanplan.data.interest import Rows
    from fanplan.layers.channels.methods import Method
    from fanplan.layers.channels.names import StartMap
    from fanplan.layers.channels.params import ChannelsParams

PER_FLOW = ("pinned", "off_multicast", "max_channel_rate", "start")
"""Options that speak of single flows: a class of flows must not be decided as one then."""


def require_options(method: Method, options: Mapping[str, Any]) -> None:
    """Every option must be one of the method's."""
    known = {item.name for item in fields(method.params)}
    problems = [
        Problem(name, f"is not an option of the method {method.name}", "Leave it out")
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
    seconds = dataset.manifest.seconds
    if "max_channel_rate" in result:
        result["max_channel_rate"] = float(result["max_channel_rate"]) * seconds
    if "max_channels_per_subscriber" in result:
        limit = result["max_channels_per_subscriber"]
        result["max_channels_per_subscriber"] = subscriber_limits(dataset, channels, limit)
    if "start" in result:
        result["start"] = load_start(dataset, channels, result["start"]).map
    return result | pins(dataset, options)


def as_recorded(params: ChannelsParams) -> ChannelsParams:
    """What a plan records: as the user gave it, not as rows and totals, and lists in order."""
    limits = params.max_channels_per_subscriber
    if isinstance(limits, Path | str):
        limits = read_limits(Path(limits))
    return replace(
        params,
        pinned=tuple(sorted(params.pinned)),
        off_multicast=tuple(sorted(params.off_multicast)),
        max_channels_per_subscriber=limits,
    )


def pins(dataset: Dataset, options: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Rows of the flows that must, and that must not, go by multicast."""
    from fanplan.layers.channels.names import FlowNames

    given: dict[str, Iterable[str]] = {
        name: options[name] for name in ("pinned", "off_multicast") if name in options
    }
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


def subscriber_limits(
    dataset: Dataset, channels: int, limit: int | Mapping[str, int] | PathLike
) -> int | list[int]:
    """A number for all, or one for each from a mapping or a file."""
    from fanplan.layers.channels.record import subscriber_names

    if isinstance(limit, int):
        return limit
    option = "max_channels_per_subscriber"
    given = limit if isinstance(limit, Mapping) else read_limits(Path(limit))
    return limits_in_order(given, subscriber_names(dataset.path), channels, option)


def load_start(dataset: Dataset, channels: int, folder: PathLike) -> StartMap:
    """The map of an older plan, which must not have more channels than there are now."""
    from fanplan.layers.channels.names import start_from
    from fanplan.layers.registry import load_plan

    plan = load_plan(Path(folder))
    if plan.section(ChannelsRecord).channels > channels:
        what = (
            f"has {plan.section(ChannelsRecord).channels} channels, and {channels} are allowed now"
        )
        raise InputError(
            Problem(str(folder), what, f"Allow {plan.section(ChannelsRecord).channels}")
        )
    return start_from(plan, dataset.path)


COLUMNS = ("subscriber", "channels")


NAMED = 10
"""How many wrong rows an error names."""


def read_limits(path: Path) -> dict[str, int]:
    """Subscribers and the most channels each may join, from CSV or Parquet with these columns."""
    table = read_table(path)
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        what = f"no column {', '.join(missing)}"
        raise InputError(Problem(str(path), what, "Give the columns subscriber and channels"))
    names, limits = (table[name].to_pylist() for name in COLUMNS)
    rows = list(zip(names, limits, strict=True))
    wrong = [
        Problem(f"{path}: row {number}", f"{limit!r} is not a limit for {name!r}", "Use 0 or more")
        for number, (name, limit) in enumerate(rows, start=1)
        if name is None or not isinstance(limit, int) or limit < 0
    ]
    counts = Counter(names)
    twice = sorted(str(name) for name, times in counts.items() if times > 1)
    wrong += [Problem(str(path), f"{name!r} is given twice", "Keep one row") for name in twice]
    if wrong:
        raise InputError(wrong[:NAMED])
    return {str(name): limit for name, limit in rows}


def read_table(path: Path) -> pa.Table:
    try:
        if path.suffix == ".parquet":
            return pq.read_table(path)
        options = pa.csv.ConvertOptions(column_types={"subscriber": pa.string()})
        return pa.csv.read_csv(path, convert_options=options)
    except (pa.ArrowException, OSError) as error:
        remedy = "Give a number, or a CSV or Parquet file with columns subscriber and channels"
        raise InputError(Problem(str(path), f"cannot be read ({error})", remedy)) from error


def limits_in_order(
    limits: Mapping[str, int], subscribers: pa.Array, unlimited: int, option: str
) -> list[int]:
    """A limit for each subscriber in the problem's order; ``unlimited`` where none is given."""
    names = subscribers.to_pylist()
    position = {name: i for i, name in enumerate(names)}
    unknown = [name for name in limits if name not in position]
    if unknown:
        raise InputError(
            Problem(
                option,
                f"there is no subscriber {name!r}",
                similar(name, names) or "Leave it out",
            )
            for name in unknown[:NAMED]
        )
    result = np.full(len(names), unlimited, dtype=np.int64)
    for name, limit in limits.items():
        result[position[name]] = limit
    return [int(limit) for limit in result]
