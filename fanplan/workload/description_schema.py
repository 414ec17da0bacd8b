"""The keys of ``workload.toml``, and plain words for what is wrong with them."""

from __future__ import annotations

import copy
import difflib
import functools
import json
import operator
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from fanplan.core.errors import Problem, shorten
from fanplan.workload.times import TimeUnit
from fanplan.workload.topics import TopicSyntax

FILE = "workload.toml"
GridKind = Literal["exact", "uniform", "atomic", "quantile"]
CoverMode = Literal["overlap", "full"]
RateSource = Literal["measured", "advertised"]

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]


class Strict(BaseModel):
    """A table of the file: no unknown keys, no conversion between types, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class TopKeys(Strict):
    name: Text | None = None
    topic_syntax: TopicSyntax = "exact"
    rates: RateSource | None = None
    seconds: Annotated[float, Field(gt=0)] | None = None
    grid: GridKind | None = None
    cover: CoverMode = "overlap"
    cells: Count | None = None
    time_format: Text | None = None
    time_zone: Text | None = None
    time_unit: TimeUnit = "s"
    limits: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    topics: dict[str, Any] = {}


class WorkloadLimits(Strict):
    """Bounds on one filter's boxes, one field's characters and one topic's grid cells."""

    model_config = ConfigDict(frozen=True)

    max_boxes: Count = 1024
    max_field_chars: Count = 65_536
    max_cells: Count = 1_000_000


class AttributeKind(Strict):
    """The key that decides which others there are."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["number", "category"]


class NumberKeys(Strict):
    type: Literal["number"]
    min: float
    max: float
    unit: str = ""


class CategoryKeys(Strict):
    type: Literal["category"]
    values: Annotated[list[Text], Field(min_length=1)]


class TopicKeys(Strict):
    attributes: list[Text] = []
    grid: dict[str, Count] = {}


K = TypeVar("K", bound=Strict)

# What was expected, by pydantic's name of the error; the braces are filled from its context.
EXPECTED = {
    "float_type": "a number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "string_type": "text in quotes",
    "string_too_short": "non-empty text",
    "list_type": "a list",
    "too_short": "a list with at least one item",
    "dict_type": "a table",
    "model_type": "a table",
    "literal_error": "one of {expected}",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a whole number of at least {ge}",
}


def read_keys(keys: type[K], raw: Any, path: tuple[str, ...], problems: list[Problem]) -> K | None:
    """One table of the file; its problems are added to the list.

    What is wrong is left out, so that the rest can be checked further; None if too little is left.
    """
    try:
        return keys.model_validate(raw)
    except ValidationError as error:
        details = error.errors()
    problems += [_problem(detail, path, keys) for detail in details]
    try:
        return keys.model_validate(_cut_out(raw, [detail["loc"] for detail in details]))
    except ValidationError:
        return None


def _cut_out(raw: Any, places: list[tuple[Any, ...]]) -> Any:
    """A copy without what stands at the places; from the back, so that list positions stay true."""
    rest = copy.deepcopy(raw)
    for *parents, last in sorted(filter(None, places), reverse=True):
        table = functools.reduce(operator.getitem, parents, rest)
        if isinstance(table, list) or last in table:
            del table[last]
    return rest


def where(*path: str | int) -> str:
    """A place in the file, written as TOML writes keys: ``topics."quotes.*".grid``."""
    keys = "".join(f"[{key}]" if isinstance(key, int) else f".{_key(key)}" for key in path)
    return f"{FILE}: {keys.removeprefix('.')}" if keys else FILE


def toml_string(text: str) -> str:
    """A TOML basic string: as in JSON, but DEL has to be escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def suggestion(name: str, known: Iterable[str]) -> str:
    """The nearest known name, or all of them when none is near."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Known here: {', '.join(names) or 'none'}."


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_string(key)


def _problem(error: ErrorDetails, path: tuple[str, ...], keys: type[Strict]) -> Problem:
    place = (*path, *error["loc"])
    if error["type"] == "extra_forbidden":
        key = str(place[-1])
        return Problem(
            where(*place[:-1]), f"unknown key '{key}'", suggestion(key, keys.model_fields)
        )
    if error["type"] == "missing":
        return Problem(where(*place[:-1]), f"the key '{place[-1]}' is missing", "Add it.")
    expected = EXPECTED.get(error["type"], error["msg"]).format(**error.get("ctx", {}))
    return Problem(
        where(*place), f"{_shown(error['input'])} is not {expected}", f"Write {expected}."
    )


def _shown(value: Any) -> str:
    return shorten(toml_string(value) if isinstance(value, str) else str(value))
