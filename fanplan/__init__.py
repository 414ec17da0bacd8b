"""Fanplan plans publish/subscribe dissemination, proves the plan and shows what it saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "Churned",
    "Curve",
    "Dataset",
    "Engine",
    "Exported",
    "Made",
    "Plan",
    "Quarantine",
    "Questions",
    "Report",
    "Simulated",
    "Watched",
    "allocate",
    "apply_check",
    "as_dataset",
    "channels",
    "check",
    "churn",
    "compare",
    "curve",
    "design",
    "diff",
    "export",
    "generate",
    "groups",
    "ingest",
    "mark",
    "mesh",
    "new_key",
    "observe_graphml",
    "observe_nats",
    "observe_pcap",
    "open_dataset",
    "open_plan",
    "overlay",
    "quarantine",
    "replan",
    "replay",
    "replay_marks",
    "report",
    "sign",
    "simulate",
    "switch",
    "trial",
    "watch",
]

if TYPE_CHECKING:
    from fanplan.api import (
        Churned,
        Curve,
        Dataset,
        Engine,
        Exported,
        Made,
        Plan,
        Quarantine,
        Questions,
        Report,
        Simulated,
        Watched,
        allocate,
        apply_check,
        as_dataset,
        channels,
        check,
        churn,
        compare,
        curve,
        design,
        diff,
        export,
        generate,
        groups,
        ingest,
        mark,
        mesh,
        new_key,
        observe_graphml,
        observe_nats,
        observe_pcap,
        open_dataset,
        open_plan,
        overlay,
        quarantine,
        replan,
        replay,
        replay_marks,
        report,
        sign,
        simulate,
        switch,
        trial,
        watch,
    )


def __getattr__(name: str) -> Any:
    """Import the interface when it is first used: `import fanplan` costs nothing."""
    if name in __all__:
        from fanplan import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
