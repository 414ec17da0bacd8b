"""Where Spark runs, and where progress is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fanplan.core.progress import Progress, quiet


@dataclass(frozen=True)
class Engine:
    """Where Spark runs (embedded unless said otherwise) and where progress is shown."""

    master: str | None = None
    remote: str | None = None
    progress: Progress = field(default_factory=quiet)

    def session(self, rows: int | None = None) -> Any:
        """A session, set for queries over that many rows; None: nobody knows, and many."""
        from fanplan.data.server import address
        from fanplan.data.sizes import fit_session
        from fanplan.data.spark import session

        remote = self.remote or (None if self.master else address())
        with self.progress.stage("start Spark"):
            spark = session(self.master, remote, rows=rows)
        fit_session(spark, rows)
        return spark


EMBEDDED = Engine()
