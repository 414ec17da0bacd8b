"""What `make setup` does once: a tiny ingest, whose JVM leaves its classes to all that follow."""

from __future__ import annotations

from fanplan.core.owned import scratch
from fanplan.core.progress import quiet
from fanplan.data.frames import write_workload
from fanplan.data.ingest.ingest import ingest_workload
from fanplan.data.spark import session, stop

TABLES = {
    "subscriptions": [
        {"subscriber": "ann", "topic": "quotes.*", "filter": "price > 50"},
        {"subscriber": "bob", "topic": "quotes.ibm", "filter": "price > 2000"},
        {"subscriber": "bob", "topic": "alerts", "filter": None},
    ],
    "publications": [
        {"time": 0.0, "topic": "quotes.ibm", "price": 55.5, "bytes": 120},
        {"time": 1.0, "topic": "alerts", "price": None, "bytes": 80},
    ],
}
DESCRIPTION = {
    "topic_syntax": "nats",
    "attributes": {"price": {"type": "number", "min": 0.0, "max": 1000.0}},
    "topics": {"quotes.*": {"attributes": ["price"]}, "alerts": {}},
}


def main() -> None:
    """Ingest, so that the JVM has all classes in memory that an ingest needs, and end it."""
    with scratch("prepare") as folder:
        write_workload(TABLES, folder / "workload", DESCRIPTION)
        out = folder / "dataset"
        ingest_workload(lambda rows: session(rows=rows), folder / "workload", out, {}, quiet())
        stop()


if __name__ == "__main__":
    main()
