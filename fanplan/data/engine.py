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

    def session(self) -> Any:
        from fanplan.data.spark import session

        with self.progress.stage("start Spark"):
            return session(self.master, self.remote)


EMBEDDED = Engine()
