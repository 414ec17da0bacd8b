"""The table `links` as it is planned with: one link between two brokers, whatever rows say it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LINK_COLUMNS = ("a", "b", "latency_ms", "bandwidth", "cost")

HOP = 1.0
"""What every link takes where no latency is known: delays are hops then."""


def joined_links(rows: pa.Table) -> pa.Table:
    """Each link once, a before b by name: of parallel ones the lowest latency and the lowest cost,
    and their bandwidths added up.

    No bandwidth is no limit, so the sum has none either.
    """
    turned = pc.less(rows["b"], rows["a"])
    ends = [pc.if_else(turned, rows[y], rows[x]) for x, y in (("a", "b"), ("b", "a"))]
    known = pc.ScalarAggregateOptions(skip_nulls=False)
    links = pa.table([*ends, *rows.select(LINK_COLUMNS[2:]).columns], names=list(LINK_COLUMNS))
    found = links.group_by(["a", "b"], use_threads=False).aggregate(
        [("latency_ms", "min"), ("bandwidth", "sum", known), ("cost", "min")]
    )
    return found.rename_columns(LINK_COLUMNS)


def assumed_latency(links: pa.Table) -> float:
    """What a link without a latency is taken to have, in ms: the median of the others."""
    given = links["latency_ms"].drop_null()
    return float(np.median(given.to_numpy())) if len(given) else HOP


def link_notes(rows: pa.Table) -> Iterator[str]:
    """What is worth knowing of the table: parallel links, and latencies that are not given."""
    links = joined_links(rows)
    parallel, unknown = len(rows) - len(links), links["latency_ms"].null_count
    if parallel:
        yield (
            f"links: {parallel} of {len(rows)} rows are parallel to others. Between two brokers "
            "the lowest latency and the lowest cost count, and bandwidths add up"
        )
    if 0 < unknown == len(links):
        yield "links: no latency is given, so delays are counted in hops"
    elif unknown:
        yield (
            f"links: {unknown} of {len(links)} have no latency; {assumed_latency(links):g} ms "
            "is assumed for each, the median of the others"
        )
