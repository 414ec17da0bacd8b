"""Trees of what is read are those of the search, though neither knows of the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fanplan.network.trees import depths, downward, hang, sums_below
from fanplan.plan.walks import added_up, climbed, descend, passes


@st.composite
def forests(draw: st.DrawFn) -> np.ndarray:
    """Links in any order and direction: the tree of broker 0, and perhaps others beside it."""
    size = draw(st.integers(1, 12))
    names = [0, *draw(st.permutations(range(1, size)))]
    above = [draw(st.integers(-1 if i else 0, i)) for i in range(size - 1)]
    links = [[names[a], names[i + 1]] for i, a in enumerate(above) if a >= 0]
    turned = [draw(st.permutations(link)) for link in links]
    return np.array(draw(st.permutations(turned)), np.int32).reshape(-1, 2)


@given(forests(), st.integers(0, 3))
def test_both_hang_up_the_same_trees(links: np.ndarray, more: int) -> None:
    size = int(links.max(initial=0)) + 1 + more
    tree = hang(links, 0, size)
    parent, depth = passes(links[:, 0].copy(), links[:, 1].copy(), size)
    assert parent.tolist() == tree.parent.tolist()
    assert depth.tolist() == tree.depth.tolist()
    order, deep = descend(0, parent)
    assert order.tolist() == tree.order.tolist()
    assert deep.tolist() == tree.depth.tolist()
    counts = np.arange(size)
    below = sums_below(tree.order, tree.parent, counts)
    assert climbed(parent, counts).tolist() == below.tolist()
    hops = added_up(parent[None], np.ones_like(parent)[None])[0]
    assert hops.tolist() == depths(parent).tolist()
    assert len(downward(parent)) == (parent >= 0).sum()


def test_what_hangs_in_a_circle_is_not_below_the_root() -> None:
    order, depth = descend(0, np.array([-1, 0, 3, 2], np.int32))
    assert (order.tolist(), depth.tolist()) == ([0, 1], [0, 1, -1, -1])
