"""Observe: a running system, a capture or a topology as the tables of a workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import WORKLOAD, whole_folder
from fanplan.data.dataset import PathLike

if TYPE_CHECKING:
    from fanplan.systems.observed.tables import Observed, Writer


def observe_nats(
    monitors: Sequence[str],
    out: PathLike,
    *,
    seconds: float = 0.0,
    tap: str | None = None,
    export: PathLike | None = None,
    replace: bool = False,
) -> Observed:
    """Write who subscribes to what in a NATS network, its servers, links and traffic.

    ``monitors`` are addresses of its servers' monitors. Traffic is looked at for this many
    ``seconds``: by counters, or at the server ``tap``, where everything is subscribed to. Names,
    filters and publishers come from the ``export`` that the network runs, if there is one.
    """
    from fanplan.systems.observed.nats import observe_nats
    from fanplan.systems.observed.params import ObserveParams

    given = ObserveParams.given({"seconds": seconds, "tap": tap, "export": export})
    known = None if export is None else Path(export)
    return observed_by(
        "nats",
        out,
        replace,
        lambda writer: observe_nats([*monitors], writer, given.seconds, given.tap, known),
        monitors,
    )


def observe_pcap(files: Sequence[PathLike], out: PathLike, *, replace: bool = False) -> Observed:
    """Write the memberships and datagrams of IP multicast that captures have, pcap or pcapng."""
    from fanplan.systems.observed.pcap import observe_pcap

    paths = [Path(file) for file in files]
    return observed_by("pcap", out, replace, lambda writer: observe_pcap(paths, writer), files)


def observe_graphml(file: PathLike, out: PathLike, *, replace: bool = False) -> Observed:
    """Write the brokers and links of a topology in GraphML."""
    from fanplan.systems.observed.graphml import observe_graphml

    return observed_by("graphml", out, replace, lambda w: observe_graphml(Path(file), w), [file])


def observed_by(
    source: str,
    out: PathLike,
    replace: bool,
    observe: Callable[[Writer], tuple[str, ...]],
    given: Sequence[object],
) -> Observed:
    """A workload that appears whole or not at all."""
    from fanplan.systems.observed.tables import Observed, Writer

    if not given:
        raise InputError(Problem(source, "nothing is named to look at", "Name at least one"))
    with whole_folder(Path(out), WORKLOAD, replace) as folder:
        writer = Writer(folder)
        notes = observe(writer)
    return Observed(Path(out), source, writer.counts, notes)
