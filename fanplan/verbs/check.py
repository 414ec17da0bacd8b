"""The independent check of a stored plan: does it do what it must, and does it cost what it says?

It reads the plan's and the dataset's tables and shares no code with planners or cost models.
"""

from __future__ import annotations

from pathlib import Path

from fanplan.core.errors import InputError
from fanplan.core.version import __version__
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.data.reader import read_manifest
from fanplan.layers.registry import bounds_of, layers_of, load_plan
from fanplan.plan.findings import CheckResult, Findings, Missed
from fanplan.plan.seal import edited, naming_edits
from fanplan.plan.signature import unsigned
from fanplan.plan.stored import StoredPlan, require_dataset_of
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, in_our_words, plan_at


@in_our_words
def check(
    plan: AnyPlan, dataset: AnyDataset, *, key: PathLike | None = None, engine: Engine = EMBEDDED
) -> CheckResult:
    """Prove that a stored plan does what it must, or name what it does not.

    With the public ``key`` of whoever approved it, it must be signed with it. What tables alone do
    not prove, as method and seed, the result names as ``stated``: `fanplan.replan` proves it.

    Spark starts only if the dataset lacks stages that the plan was made from.
    """
    plan, dataset = plan_at(plan), dataset_at(dataset)
    stored = load_plan(Path(plan))
    try:
        with naming_edits(stored):
            make_stages(plan, dataset, engine)
        result = check_plan(Path(plan), dataset.path)
    except InputError:
        # A dataset that lacks brokers, say, is first of all not the plan's.
        require_dataset_of(stored, dataset.path)
        raise
    if key is not None and (why := unsigned(Path(plan), Path(key))):
        result = result.with_violation(f"signature: {why}")
    return result


def make_stages(plan: PathLike, dataset: Dataset, engine: Engine) -> None:
    """The stages of a dataset that a stored plan was made from, unless they are there."""
    stored = load_plan(Path(plan))
    bounds = bounds_of(stored)
    for layer in layers_of(stored):
        layer.make_stages(stored, dataset, engine, bounds[layer.name])


def check_plan(folder: Path, dataset: Path) -> CheckResult:
    """Hold a plan folder against the dataset, layer by layer. Unreadable files raise InputError.

    The dataset must have the stages that the layers were planned from.
    """
    plan, findings = load_plan(folder), Findings()
    check_untouched(plan, findings)
    check_input(plan, dataset, findings)
    bounds = bounds_of(plan)
    with naming_edits(plan):
        layers = layers_of(plan)
        missed = [layer.check(plan, dataset, findings, bounds[layer.name]) for layer in layers]
    return result_of(missed, findings, stated_by(plan))


def stated_by(plan: StoredPlan) -> tuple[str, ...]:
    """What plan.json says that its tables do not prove."""
    own = [f"{layer.name}.{name}" for layer in layers_of(plan) for name in layer.stated(plan)]
    return ("version", "seed", *own)


def result_of(
    missed: list[Missed], findings: Findings, stated: tuple[str, ...] = ()
) -> CheckResult:
    return CheckResult(
        sum(found.count for found in missed),
        tuple(findings.violations),
        tuple(findings.warnings),
        tuple(pair for found in missed for pair in found.first),
        stated,
    )


def check_untouched(plan: StoredPlan, findings: Findings) -> None:
    """What was checked when it was written must be what is there."""
    names = edited(plan)
    findings.violate("edited since it was written, hash differs", len(names), names)


def check_input(plan: StoredPlan, dataset: Path, findings: Findings) -> None:
    """The plan must have been made for this dataset, and say of it what its manifest says."""
    told, found = plan.record.input, read_manifest(dataset)
    if told.key != found.key:
        what = f"input key {told.key}, dataset key {found.key}"
        findings.violate("planned for other input", 1, [what])
        return
    tables = {table.name: (table.key, table.kept) for table in found.tables}
    # The hash of all inputs is one of the version, too.
    said = SAID if plan.record.version == __version__ else SAID[:-1]
    wrong = [name for name in said if getattr(told, name) != getattr(found, name)]
    wrong += ["tables"] if {n: (t.key, t.kept) for n, t in told.tables.items()} != tables else []
    findings.violate("plan.json: input is not that of the dataset", len(wrong), wrong)


SAID = ("seconds", "grid", "cover", "exact", "parameters", "inputs")
"""What a plan says of its dataset as the manifest does."""
