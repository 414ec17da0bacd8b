"""`fanplan demo`: a generated market through the whole of Fanplan, with several methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from fanplan.api import Dataset, Engine
from fanplan.cli.show import show_json, show_table

CHANNELS = 100
METHODS = ("broadcast", "random", "round-robin", "unicast", "kmodes")
HEADER = (
    "method",
    "cost",
    "over perfect %",
    "unicast %",
    "unwanted %",
    "missed",
    "check",
    "replay",
)


def run_demo(out: Path, publications: int, seed: int, json: bool, engine: Engine) -> None:
    """Generate, ingest, plan with every method, check and replay; print what each costs."""
    from fanplan import api

    workload = api.generate(
        "market", out / "market", seed=seed, publications=publications, replace=True, engine=engine
    )
    dataset = api.ingest(workload, out / "dataset", engine=engine)
    results = [_try(method, dataset, out / "plans" / method, seed, engine) for method in METHODS]
    ok = all(result["check"] and result["replay"] for result in results)
    if json:
        show_json({"ok": ok, "publications": publications, "channels": CHANNELS, "plans": results})
    else:
        _show(results, dataset, publications, out)
    raise typer.Exit(0 if ok else 1)


def _try(method: str, dataset: Dataset, folder: Path, seed: int, engine: Engine) -> dict[str, Any]:
    """One method's plan: its cost, whether it holds, and what replay measured."""
    from fanplan import api

    with engine.progress.stage(f"plan, check and replay {method}"):
        made = api.channels(dataset, CHANNELS, method=method, seed=seed)
        made.save(folder, replace=True)
        checked = api.check(folder, dataset)
        replayed = api.replay(folder, dataset, engine=Engine(engine.master, engine.remote))
    told = replayed.json()
    return {
        "method": method,
        "cost": made.plan.cost,
        "excess_percent": made.plan.excess_percent,
        "unicast_percent": 100 * made.plan.unicast_fraction,
        "unwanted_percent": 100 * told["unwanted"] / (told["unwanted"] + told["delivered"]),
        "missed": told["missed"],
        "check": checked.ok,
        "replay": replayed.ok,
    }


def _show(results: list[dict[str, Any]], dataset: Dataset, publications: int, out: Path) -> None:
    facts = dataset.manifest
    words = {"check": ("holds", "does not hold"), "replay": ("agrees", "differs")}
    rows = [
        [words[key][0 if value else 1] if key in words else value for key, value in result.items()]
        for result in results
    ]
    show_table(f"A market with {publications:,} publications on {CHANNELS} channels", HEADER, rows)
    perfect = "Perfect multicast: every flow has a channel of its own, nothing unwanted."
    typer.echo(f"\n{perfect}\nDataset {facts.key[:12]} and the plans: {out}")
