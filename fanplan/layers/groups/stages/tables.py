"""The stages that groups are planned from; all but the first only for cells."""

from __future__ import annotations

from dataclasses import replace

from fanplan.core.tables import Column, Table
from fanplan.data.tables import GRID, HI, LO, TOPIC_ID
from fanplan.layers.overlay.stages.tables import ROUTES

_CELL = Column("cell", "long", "number of a cell, from 0 through all topics")
_CLASS = Column("cell_class", "integer", "cells that the same brokers want; −1: no class")
_SIGNED = (
    Column("high", "long", "first half of the signature of the brokers that want it"),
    Column("low", "long", "second half"),
)
BROKER_REGIONS = Table(
    "broker_regions",
    "the different regions of brokers",
    (TOPIC_ID, Column("broker", "integer", "number of a broker"), LO, HI),
)
GROUP_GRID = replace(GRID, name="group_grid", meaning="the grid of the cells of groups")
CELL_MARKS = Table(
    "cell_marks",
    "cells that some broker wants",
    (
        _CELL,
        *_SIGNED,
        Column("brokers", "integer", "how many brokers want it"),
        Column("whole", "boolean", "whether all of them want all of it"),
    ),
)
CELL_ROUTES = Table("cell_routes", "routes in each cell", (_CELL, *ROUTES.columns))
GROUP_CLASSES = Table(
    "group_classes",
    "sets of brokers that want the same cells",
    (_CLASS, *_SIGNED, Column("brokers", "integers", "their numbers, ascending")),
)
CLASS_OF_CELLS = Table("group_cells", "the class of each cell", (_CELL, _CLASS))
GROUP_ROUTES = Table("group_routes", "routes in each class", (_CLASS, *ROUTES.columns))

STAGES = (
    BROKER_REGIONS, GROUP_GRID, CELL_MARKS, CELL_ROUTES, GROUP_CLASSES, CLASS_OF_CELLS,
    GROUP_ROUTES,
)  # fmt: skip
