"""What `make setup` does once: small workloads through what a new user does first.

Its JVM leaves its classes to all that follow, and the kernels that it calls are compiled and kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from fanplan import api
from fanplan.cli.run import rehearsing
from fanplan.core.owned import scratch
from fanplan.data.frames import store_tables
from fanplan.data.sizes import FEW_ROWS
from fanplan.data.spark import session, stop

TABLES: dict[str, list[dict[str, Any]]] = {
    "subscriptions": [
        {"subscriber": "ann", "topic": "quotes.*", "filter": "price > 50", "broker": "east"},
        {"subscriber": "bob", "topic": "quotes.ibm", "filter": "price > 2000", "broker": "east"},
        {"subscriber": "bob", "topic": "alerts", "filter": None, "broker": "west"},
    ],
    "publications": [
        {"time": 0.0, "topic": "quotes.ibm", "price": 55.5, "bytes": 120, "publisher": "desk"},
        {"time": 1.0, "topic": "alerts", "price": None, "bytes": 80, "publisher": "desk"},
    ],
    "advertisements": [
        {"publisher": "desk", "topic": "quotes.ibm", "broker": "west"},
        {"publisher": "desk", "topic": "alerts", "broker": "west"},
    ],
    "brokers": [{"broker": "east", "site": "a"}, {"broker": "west", "site": "b"}],
}
DESCRIPTION = {
    "topic_syntax": "nats",
    "attributes": {"price": {"type": "number", "min": 0.0, "max": 1000.0}},
    "topics": {"quotes.*": {"attributes": ["price"]}, "alerts": {}},
}


def main() -> None:
    """Ingest, plan and replay, so that all that this needs is kept, and end Spark."""
    with scratch("prepare") as folder, rehearsing() as others:
        store_tables(TABLES, folder / "workload", DESCRIPTION)
        dataset = api.ingest(folder / "workload", folder / "dataset")
        for planner in (api.channels, api.design):
            made = planner(dataset, channels=1)
            api.replay(made.save(folder / planner.__name__), dataset)
        write_many(folder / "many")
        api.ingest(folder / "many", folder / "many.dataset")
        for other in others:
            other.wait()
    stop()
    # The first JVM wrote the classes; how one that reads them is called is kept by the next.
    session(rows=1)
    stop()


def write_many(folder: Path) -> None:
    """So many publications, as text, that they take the ways of a real workload."""
    others = {name: rows for name, rows in TABLES.items() if name != "publications"}
    store_tables(others, folder, DESCRIPTION)
    sent = pa.Table.from_pylist(TABLES["publications"] * FEW_ROWS)
    pyarrow.csv.write_csv(sent, folder / "publications.csv")


if __name__ == "__main__":
    main()
