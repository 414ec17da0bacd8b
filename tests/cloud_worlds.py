"""A small cloud of switches, hosts and tenants' groups as a dataset, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from datasets import Flow, World, write_dataset, write_stage
from sealing import amend

from fanplan.workload.generators.cloud import CloudParams, cloud_links, draw_cloud, host_names

CLOUD = CloudParams(pods=2, leaves=3, hosts=6, planes=2, cores=1, tenants=6, groups=60)


def write_cloud_dataset(folder: Path) -> Path:
    """A cloud as ingest leaves it, with all that planning reads of it."""
    cloud, hosts, links = draw_cloud(CLOUD, 4), host_names(CLOUD).to_pylist(), cloud_links(CLOUD)
    audiences = np.split(cloud.members, cloud.starts[1:-1])
    flows = tuple(Flow(frozenset(map(int, members)), 2.0) for members in audiences)
    write_dataset(folder, World(flows, len(hosts)))
    wanted = {"subscriber": "s{0}", "topic": "t0", "broker": "{1}"}
    rows = {
        "subscriptions": [
            {name: text.format(i, host) for name, text in wanted.items()}
            for i, host in enumerate(hosts)
        ],
        "advertisements": [
            {"publisher": hosts[source], "topic": f"t{i}", "broker": hosts[source]}
            for i, source in enumerate(cloud.source)
        ],
    }
    for name, table in rows.items():
        schema = pa.schema([pa.field(column, pa.string()) for column in table[0]])
        write_stage(folder / name, schema, [table])
    for name in ("bandwidth", "cost"):
        links = links.append_column(name, pa.nulls(len(links), pa.float64()))
    write_stage(folder / "links", links.schema, [links.to_pylist()])
    stages = {name: {"rows": len(table)} for name, table in (rows | {"links": links}).items()}
    return amend(folder, stages=stages)
