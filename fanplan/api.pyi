from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from fanplan.core.prices import LedgerPrices
from fanplan.core.stop import Stop
from fanplan.data.engine import EMBEDDED
from fanplan.layers.channels.params import ChannelPrices
from fanplan.layers.groups.params import GroupPrices
from fanplan.layers.marking.params import MarkingPrices
from fanplan.layers.overlay.params import LinkPrices

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.quarantine import Quarantine
from fanplan.layers.marking.replayed import replay_marks
from fanplan.simulation.simulated import Churned, Simulated
from fanplan.verbs.again import replan
from fanplan.verbs.ask import Questions
from fanplan.verbs.check import check
from fanplan.verbs.churn import churn
from fanplan.verbs.compare import compare
from fanplan.verbs.curve import Curve, curve
from fanplan.verbs.datasets import as_dataset, dataset_of_plan, generate, ingest, open_dataset
from fanplan.verbs.diff import diff
from fanplan.verbs.drift import apply_check
from fanplan.verbs.export import Exported, export
from fanplan.verbs.plan import Made
from fanplan.verbs.plans import Plan, open_plan
from fanplan.verbs.quarantine import quarantine
from fanplan.verbs.replay import replay
from fanplan.verbs.report import Report, report
from fanplan.verbs.sign import new_key, sign
from fanplan.verbs.simulate import simulate
from fanplan.verbs.trial import trial

def channels(
    dataset: Dataset | str | Path,
    channels: int,
    *,
    method: str = 'kmodes',
    unicast: str | None = None,
    unicast_limit: float | None = None,
    max_channels_per_subscriber: int | Mapping[str, int] | Path | str | list[int] | None = None,
    max_channel_rate: float | None = None,
    max_switch_entries: int | Mapping[str, int] | Path | str | None = None,
    pinned: Sequence[str] = (),
    off_multicast: Sequence[str] = (),
    start: Path | str | None = None,
    max_changes: int | None = None,
    change_price: float | None = None,
    options: Mapping[str, Any] = {},
    restarts: int = 1,
    on_spark: bool = False,
    prices: ChannelPrices | Mapping[str, float] = ...,
    seed: int = 0,
    time: float | None = None,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
    **further: Any,
) -> Made: ...
def overlay(
    dataset: Dataset | str | Path,
    metric: Literal['improved', 'overlap', 'cover', 'hybrid', 'interest', 'random'] = 'improved',
    *,
    alpha: float | None = None,
    interest: Literal['overlap', 'cover'] = 'overlap',
    scale: Literal['all', 'own'] = 'all',
    degree: int | None = None,
    degrees: Mapping[str, int] = {},
    diameter: int | None = None,
    within: Sequence[tuple[str, Sequence[str], int]] = (),
    trees: int = 1,
    start: Path | str | None = None,
    changes: int | None = None,
    change_price: float = 0.0,
    traffic: bool = False,
    rates: bool = False,
    prices: LinkPrices | Mapping[str, float] = ...,
    seed: int = 0,
    time: float | None = None,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
) -> Made: ...
def allocate(
    dataset: Dataset | str | Path,
    metric: Literal['improved', 'overlap', 'cover', 'hybrid', 'interest', 'random'] = 'improved',
    *,
    alpha: float | None = None,
    interest: Literal['overlap', 'cover'] = 'overlap',
    scale: Literal['all', 'own'] = 'all',
    degree: int | None = None,
    degrees: Mapping[str, int] = {},
    diameter: int | None = None,
    within: Sequence[tuple[str, Sequence[str], int]] = (),
    trees: int = 1,
    start: Path | str | None = None,
    changes: int | None = None,
    change_price: float = 0.0,
    traffic: bool = False,
    rates: bool = False,
    prices: LinkPrices | Mapping[str, float] = ...,
    ranking: Literal['best', 'gli', 'gi', 'gig', 'baseline'] = 'best',
    lcf: float | None = None,
    load: Literal['exact', 'estimate'] = 'exact',
    brokers: int | None = None,
    stable: bool = False,
    moves: int | None = None,
    seed: int = 0,
    time: float | None = None,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
) -> Made: ...
def groups(
    dataset: Dataset | str | Path,
    select: str = 'top:10%',
    *,
    rank: Literal['saving', 'nc', 'fc'] = 'saving',
    trees: Literal['links', 'per-publisher', 'given', 'overlay'] | None = None,
    overlay: Path | str | None = None,
    cells: int | None = None,
    mark: Literal['cover', 'overlap'] = 'cover',
    least: float = 0.0,
    shortcuts: bool = True,
    prices: GroupPrices | Mapping[str, float] = ...,
    engine: Engine = EMBEDDED,
) -> Made: ...
def mark(
    dataset: Dataset | str | Path,
    trees: str,
    *,
    raw: bool = False,
    control_by: Literal['one', 'latency', 'cost'] = 'one',
    merge: bool = False,
    prices: MarkingPrices | Mapping[str, float] = ...,
    engine: Engine = EMBEDDED,
) -> Made: ...
def design(
    dataset: Dataset | str | Path,
    channels: int = 0,
    *,
    entries: int | None = None,
    unicast_limit: float | None = None,
    multicast: Literal['site', 'everywhere'] | None = None,
    without: Sequence[str] = (),
    fixed: Mapping[str, Path | str] = {},
    prices: LedgerPrices | Mapping[str, float] = ...,
    seed: int = 0,
    time: float | None = None,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
) -> Made: ...

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
    "allocate",
    "apply_check",
    "as_dataset",
    "channels",
    "check",
    "churn",
    "compare",
    "curve",
    "dataset_of_plan",
    "design",
    "diff",
    "export",
    "generate",
    "groups",
    "ingest",
    "mark",
    "new_key",
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
    "trial",
]
