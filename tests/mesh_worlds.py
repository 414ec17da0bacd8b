"""Tiny datasets of topics and those who want them, for tests of meshes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from overlays import write_manifest, write_stage

import fanplan
from fanplan.data.dataset import Dataset

NAMES = ["ann", "bob", "cat", "dan", "eve"]
WANTED = {"news": "ann bob cat", "sport": "ann bob", "music": "cat dan", "own": "eve"}
LATER = {**WANTED, "music": "cat dan eve"}
FLOWS = ["ann bob", "cat", "ann cat"]
"""Those who want each class of flows."""


def write_mesh_dataset(folder: Path, wanted: dict[str, str], key: str) -> Dataset:
    folder.mkdir(parents=True)
    number = {name: i for i, name in enumerate(NAMES)}
    topics = sorted(wanted)
    pairs = [(i, number[who]) for i, topic in enumerate(topics) for who in wanted[topic].split()]
    # Two boxes of one subscriber on a topic are one want.
    regions = list(zip(*pairs, pairs[0], strict=True))
    lists = pa.array(
        [[number[who] for who in some.split()] for some in FLOWS], pa.list_(pa.int32())
    )
    rows = {
        "subscribers": write_stage(
            folder, "subscribers", {"subscriber": NAMES, "subscriber_id": list(range(5))}
        ),
        "topics": write_stage(
            folder, "topics", {"topic": topics, "topic_id": list(range(len(topics)))}
        ),
        "regions": write_stage(
            folder, "regions", {"topic_id": regions[0], "subscriber_id": regions[1]}
        ),
        "classes": write_stage(
            folder, "classes", {"audience_class": [0, 1, 2], "subscribers": lists}
        ),
    }
    write_manifest(folder, 1.0, rows, key=key)
    return fanplan.open_dataset(folder)
