"""Sign: approve a plan, so that whoever applies it can tell that it is the approved one."""

from __future__ import annotations

from pathlib import Path

from fanplan.data.dataset import PathLike
from fanplan.layers.registry import load_plan
from fanplan.plan.seal import require_untouched
from fanplan.plan.signature import new_key as make_key
from fanplan.plan.signature import sign_folder
from fanplan.verbs.given import AnyPlan, plan_at


def sign(plan: AnyPlan, key: PathLike) -> Path:
    """Sign a plan with a private key; the signature is a file in its folder."""
    folder = plan_at(plan)
    require_untouched(load_plan(folder))
    return sign_folder(folder, Path(key))


def new_key(path: PathLike) -> Path:
    """Make a pair of keys to sign with: a private one at this path, and ``path.pub`` to give away.

    Files that are there already are not overwritten.
    """
    return make_key(Path(path))
