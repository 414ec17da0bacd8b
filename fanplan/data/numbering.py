"""Dense numbers for names and classes."""

from __future__ import annotations

from pyspark.sql import Column, Window
from pyspark.sql import functions as F


def numbered(*order: Column | str) -> Column:
    """0, 1, 2, … in that order.

    One task does the numbering: it is for what the driver will hold too (names of topics and
    subscribers, audience classes), not for what grows with traffic.
    """
    alone = Window.partitionBy(F.lit(0)).orderBy(*order)
    return F.row_number().over(alone) - 1
