"""Random draws and names that the kinds share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fanplan.core.kernels import compiled


def streams(seed: int, purposes: int) -> list[np.random.Generator]:
    """One independent generator per purpose, so that one draw more here moves nothing there."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(purposes)]


def zipf(count: int, exponent: float) -> np.ndarray:
    """Zipf weights of ranks 1 to ``count``, adding up to one."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    result: np.ndarray = weights / weights.sum()
    return result


def with_mean(values: np.ndarray, mean: float) -> np.ndarray:
    """The values scaled to a mean; their ratios stay."""
    result: np.ndarray = values * (mean / values.mean())
    return result


def choose_by_weight(
    rng: np.random.Generator, choosers: int, weights: np.ndarray, count: int
) -> np.ndarray:
    """For each chooser ``count`` different positions, drawn one after another by weight.

    A row of the answer is sorted. The ``count`` largest of log(weight) + Gumbel noise have exactly
    this law.
    """
    scores = np.log(weights) + rng.gumbel(size=(choosers, weights.size))
    return np.sort(np.argsort(-scores, axis=1)[:, :count], axis=1)


@compiled
def keep(rng: np.random.Generator, chance: np.ndarray, factor: float) -> np.ndarray:
    """Positions kept independently of each other, position i with chance min(1, factor·chance[i]).

    ``chance`` must not increase. Then the chance at one position bounds all later ones, and the
    walk can leap to the next candidate: the time grows with what is kept, not with what is asked.
    """
    kept = np.empty(chance.size, np.int32)
    count = 0
    position = 0
    bound = min(1.0, factor * chance[0])
    while bound > 0.0:
        if bound < 1.0:
            leap = np.log(1.0 - rng.random()) / np.log1p(-bound)
            position = chance.size if leap >= chance.size else position + int(leap)
        if position >= chance.size:
            break
        here = min(1.0, factor * chance[position])
        if rng.random() * bound < here:
            kept[count] = position
            count += 1
        bound = here
        position += 1
    return kept[:count].copy()


def grouped_names(group: str, groups: np.ndarray, item: str, items: np.ndarray) -> pa.Array:
    """Names such as ``m03.s0127``: numbers of groups and of items, each of equal width."""
    wide, deep = len(str(groups.max())), len(str(items.max()))
    pairs = zip(groups, items, strict=True)
    return pa.array([f"{group}{g:0{wide}d}.{item}{i:0{deep}d}" for g, i in pairs])


def names(prefix: str, count: int) -> pa.Array:
    """``count`` names of equal width, so that their order is that of their numbers."""
    width = len(str(count - 1))
    return pa.array([f"{prefix}{i:0{width}d}" for i in range(count)])
