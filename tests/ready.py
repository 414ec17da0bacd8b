"""Datasets that come with the stages that Spark would make: commands then start no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fanplan.data.ingest.derived import Derived
from fanplan.layers.groups.stages import groups


@contextmanager
def stages_are_there() -> Iterator[None]:
    """Whatever stage is asked for is taken as it lies in the dataset."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Derived, "stage", lambda *_: None)
        # Groups of cells look at the data before they ask for a stage.
        patch.setattr(groups, "group_stages", lambda *_: None)
        yield
