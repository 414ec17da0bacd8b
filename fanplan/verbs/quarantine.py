"""Looking at rows that could not be understood."""

from __future__ import annotations

from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.params import QuarantineParams
from fanplan.data.quarantine import Quarantine, read_quarantine
from fanplan.verbs.given import path_at


def quarantine(
    dataset: Dataset | PathLike,
    *,
    table: str | None = None,
    reason: str | None = None,
    rows: int = 10,
) -> Quarantine:
    """Rows that could not be understood: reasons, how many rows each has, and the first rows.

    ``table`` and ``reason``, a part of its text, limit what is counted and shown. The dataset may
    also be the folder that a refused ingest left. Spark is not needed.
    """
    remedy = "Give a Dataset, or the folder that fanplan.ingest wrote"
    folder = dataset.path if isinstance(dataset, Dataset) else path_at(dataset, "dataset", remedy)
    return read_quarantine(folder, QuarantineParams(table, reason, rows))
