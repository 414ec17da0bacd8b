"""`fanplan demo`: a generated enterprise through the whole of Fanplan, ending with its report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from fanplan.api import Dataset, Engine, Made
from fanplan.cli.run import rehearsing
from fanplan.cli.show import say, show_facts, show_json, show_part
from fanplan.core.folder import locked

CHANNELS = 16
"""Multicast groups on each site."""

TRIED = 4000
"""Publications that are sent through real servers: a few seconds of traffic."""

STEPS_OF = 200
"""Changes in a step from the smaller plan to the plan."""


@dataclass(frozen=True)
class Size:
    """How large the enterprise is."""

    sites: int
    users: int
    symbols: int
    publications: int


def run_demo(out: Path, size: Size, seed: int, json: bool, engine: Engine) -> None:
    """Generate, ingest, design, prove, compare, try on real servers, and write the report."""
    with locked(out.absolute()):
        told, made = shown_off(out, size, seed, engine)
    show_json(told) if json else show(told, made, made.dataset, out)
    raise typer.Exit(0 if told["ok"] else 1)


def shown_off(out: Path, size: Size, seed: int, engine: Engine) -> tuple[dict[str, Any], Made]:
    """All of it, as JSON, and the plan."""
    with rehearsing():
        dataset = make_dataset(out, size, seed, engine)
        smaller = ("groups", "direct")
        before = designed(dataset, out / "before", CHANNELS // 2, smaller, seed, engine)
    made = designed(dataset, out / "plan", CHANNELS, (), seed, engine)
    proof = proved(dataset, out, engine)
    proof["trial"] = tried(dataset, out, engine)
    page = reported(dataset, out, proof["trial"] is not None, engine)
    return summary(size, before, made, proof) | {"report": page}, made


def make_dataset(out: Path, size: Size, seed: int, engine: Engine) -> Dataset:
    """An enterprise and its dataset; what an earlier demo left is used again where it fits."""
    from fanplan import api

    workload = api.generate(
        "enterprise",
        out / "enterprise",
        seed=seed,
        publications=size.publications,
        replace=True,
        engine=engine,
        sites=size.sites,
        users=size.users,
        flows=size.symbols,
    )
    return api.ingest(workload, out / "dataset", engine=engine)


def designed(
    dataset: Dataset, folder: Path, channels: int, without: tuple[str, ...], seed: int, on: Engine
) -> Made:
    """A plan of all layers, stored."""
    from fanplan import api

    made = api.design(dataset, channels=channels, without=without, seed=seed, engine=on)
    made.save(folder, replace=True)
    return made


def proved(dataset: Dataset, out: Path, engine: Engine) -> dict[str, Any]:
    """The plan checked, replayed, held against the workload, and reached from the smaller one."""
    from fanplan import api

    plan = out / "plan"
    replayed = api.replay(plan, dataset, engine=engine)
    changes = api.diff(out / "before", plan, dataset, steps_of=STEPS_OF, engine=engine)
    changes.save(out / "changes", replace=True)
    return {
        "check": api.check(plan, dataset, engine=engine).ok,
        "replay": replayed.ok,
        "missed": replayed.json()["missed"],
        "apply": api.apply_check(plan, dataset, engine=engine).ok,
        "changes": changes.total,
        "steps": len(list(changes.steps())),
        "steps_hold": changes.ok,
    }


def tried(dataset: Dataset, out: Path, engine: Engine) -> dict[str, Any] | None:
    """The plan on real NATS servers, one for each broker, and its result stored.

    None where there is no server: it comes with an extra.
    """
    from fanplan import api
    from fanplan.systems.nats.servers import find_server

    if find_server() is None:
        return None
    found = api.trial(out / "plan", dataset, "nats", publications=TRIED, engine=engine)
    found.save(out / "trial", replace=True)
    told = {"ok": found.ok, "figures": len(found.rows), "differences": len(found.differences)}
    return told | {name: found.facts[name] for name in ("servers", "deliveries")}


def summary(size: Size, before: Made, made: Made, proof: dict[str, Any]) -> dict[str, Any]:
    """What the demo shows, as JSON."""
    figures = made.summary()
    return {
        "ok": all(proof[name] for name in ("check", "replay", "apply", "steps_hold"))
        and (proof["trial"] is None or proof["trial"]["ok"]),
        "publications": size.publications,
        "channels": CHANNELS,
        "before": before.summary()["steps"][-1]["cost"],
        "plan": figures["steps"][-1]["cost"],
        "waterfall": figures["steps"],
        "proof": proof,
    }


def reported(dataset: Dataset, out: Path, shown: bool, engine: Engine) -> str:
    """The page about the plan; with its trial, if that is to be ``shown``."""
    from fanplan import api

    made = api.report(
        [out / "plan"],
        out / "report",
        workload=dataset.path,
        trials=[out / "trial"] if shown else [],
        replace=True,
        engine=engine,
    )
    return str(made.page)


def show(told: dict[str, Any], made: Made, dataset: Dataset, out: Path) -> None:
    """For a person: the enterprise, the waterfall, the proof, and where all of it is."""
    from fanplan.layers.delivery.show import waterfall_grid

    proof, dearer = told["proof"], 100 * (told["before"] / told["plan"] - 1)
    show_facts("An enterprise on several sites", {
        "sites": len(made.summary()["domains"]),
        "publications": told["publications"],
        "multicast groups on each site": CHANNELS,
        "layers planned": ", ".join(section.layer for section in made.sections),
    })  # fmt: skip
    show_part(waterfall_grid(made.summary()["steps"]))
    say("")
    show_facts("Can it be trusted?", {
        "independent check": "holds" if proof["check"] else "does not hold",
        "replay of all publications": "agrees" if proof["replay"] else "differs",
        "messages that somebody missed": proof["missed"],
        "on real NATS servers": trial_in_words(proof["trial"]),
        "workload since planning": "unchanged" if proof["apply"] else "has drifted",
        "with half the channels, no groups": f"costs {dearer:.1f} % more",
        "every step from there": "valid" if proof["steps_hold"] else "not valid",
        "changes from there to the plan": f"{proof['changes']:,} in {proof['steps']:,} steps",
    })  # fmt: skip
    say("", f"Dataset {dataset.manifest.key[:12]}, plans and changes: {out}")
    say(f"Report: {told['report']}")


def trial_in_words(trial: dict[str, Any] | None) -> str:
    if trial is None:
        return 'not tried: pip install "fanplan[trial]" brings them'
    agree = trial["figures"] - trial["differences"]
    good = f"{agree:,} of {trial['figures']:,} figures as predicted"
    return f"{trial['deliveries']:,} deliveries, {good}"
