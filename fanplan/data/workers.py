"""Spark's Python daemon on this machine: workers are forks of it, ready for what tasks do.

Spark's own daemon imports nothing: each worker imports PySpark, numba and our modules for itself,
and pandas, which pyarrow wants once it hands out columns as arrays; and numba gets ready at its
first kernel. That takes longer than most tasks. No import here may
start a thread, since a fork would not have it; pyarrow's allocator has one, and sees to forks.
"""

from __future__ import annotations

import numpy as np
import pandas
import pyspark.worker
from pyspark.daemon import manager

import fanplan.data.ingest.exact
import fanplan.data.ingest.regions
import fanplan.data.read.formats
from fanplan.boxes import matching

__all__ = ["fanplan", "pandas", "pyspark"]


def match_one() -> None:
    """One point and one box, as `ingest.joins` has them: numba and the kernels are then loaded."""
    here, ends = np.zeros(1, np.int64), np.zeros((1, 1))
    lengths = np.ones(1, np.int32)
    index = matching.index_boxes(here, lengths, ends, ends + 1, here, here)
    matching.count_candidates(index, here, ends)
    matching.find_audiences(index, here, ends)


if __name__ == "__main__":
    match_one()
    manager()
