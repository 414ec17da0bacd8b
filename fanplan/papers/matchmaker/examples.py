"""The worked examples of Ge et al. (2002): Figures 2, 5 and 7, with nodes of one letter each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fanplan.layers.marking.ledger import DescriptorCounts, pub_everywhere, sub_everywhere
from fanplan.layers.marking.problem.marking import MarkedNetwork, MarkingProblem
from fanplan.layers.marking.problem.trees import given_problem, source_problem
from fanplan.layers.marking.search.marking import exact_marking
from fanplan.network.brokers import Links
from fanplan.papers.experiment import Item, PaperLine, Point, each_pair

EXAMPLES = "examples"

FIGURE_7_LINKS = {"PX": "a", "XY": "b", "QP": "c", "YZ": "d", "YS": "e", "ZS": "f", "PT": "g"}
"""The paper's letters. Its text fixes them: σ, τ and the pairs of L follow."""


def network_of_figure_2() -> MarkedNetwork:
    return lettered_network("ABCD", ["AB", "BC", "BD"], {"A": 2}, {"C": 1, "D": 3})


def problem_of_figure_5() -> MarkingProblem:
    """P and Q publish, S subscribes; from B the trees take different ways."""
    return given_problem(
        lettered_network("PQABCDS", None, {"P": 2, "Q": 2}, {"S": 3}),
        lettered_trees(P="PA AB BC CS", Q="QA AB BD DS"),
    )


def problem_of_figure_7() -> MarkingProblem:
    """P and Q publish 3 and 1, S and T subscribe to 3 and 2; Y to S is as long as over Z."""
    return given_problem(
        lettered_network("PQXYZST", None, {"P": 3, "Q": 1}, {"S": 3, "T": 2}),
        lettered_trees(P="PX XY YS PT", Q="QP PX XY YZ ZS PT"),
    )


def lettered_network(
    names: str,
    pairs: list[str] | None,
    published: dict[str, int],
    subscribed: dict[str, int],
    **prices: np.ndarray,
) -> MarkedNetwork:
    """A pair of letters is a link with latency 1; without pairs, trees may use any link."""
    return MarkedNetwork(
        pa.array(list(names)),
        np.array([published.get(name, 0) for name in names]),
        np.array([subscribed.get(name, 0) for name in names]),
        None
        if pairs is None
        else links_between([(names.index(pair[0]), names.index(pair[1])) for pair in pairs]),
        **prices,
    )


def links_between(pairs: list[tuple[int, int]], latency: list[float] | None = None) -> Links:
    a, b = np.array(pairs, np.int32).reshape(-1, 2).T
    ones = np.ones(len(pairs))
    return Links(a, b, ones if latency is None else np.array(latency), ones * np.inf, ones)


def lettered_trees(**trees: str) -> pa.Table:
    """A tree per root, as pairs of letters with spaces between."""
    rows = [(root, *pair) for root, tree in trees.items() for pair in tree.split()]
    root, parent, child = zip(*rows, strict=True)
    return pa.table({"root": list(root), "parent": list(parent), "child": list(child)})


# ---- what is measured


def example_figures() -> dict[str, float]:
    """The same in every run."""
    return {**costs_of_figure_2(), **counts_of_figure_5(), **cut_of_figure_7()}


def costs_of_figure_2() -> dict[str, float]:
    problem = source_problem(network_of_figure_2())
    best = exact_marking(problem)
    counts = DescriptorCounts(best.sigma, best.tau)
    return {
        "figure 2 SubE": sub_everywhere(problem, counts),
        "figure 2 PubE": pub_everywhere(problem, counts),
        "figure 2 MCM": best.cost,
    }


def counts_of_figure_5() -> dict[str, float]:
    """σ of a link and of one that follows it."""
    problem = problem_of_figure_5()
    sigma = dict(zip(link_names(problem), exact_marking(problem).sigma, strict=True))
    return {f"figure 5 {link}": float(sigma[link]) for link in ("AB", "BC")}


def cut_of_figure_7() -> dict[str, float]:
    """The links that are s-links, and the maximum flow.

    The flow equals the minimum cut: what all gains together promise, less what is gained.
    """
    problem = problem_of_figure_7()
    best = exact_marking(problem)
    gain = best.sigma - best.tau
    gained = gain[~best.publish].sum()
    result = {"figure 7 flow": float(gain[gain > 0].sum() - gained)}
    for link, publish in zip(link_names(problem), best.publish, strict=True):
        result[f"figure 7 s-link {FIGURE_7_LINKS[link]}"] = float(not publish)
    return result


def link_names(problem: MarkingProblem) -> list[str]:
    """Links by the letters of their ends."""
    nodes = problem.nodes.to_pylist()
    return [nodes[a] + nodes[b] for a, b in zip(problem.tail, problem.head, strict=True)]


# ---- items


def marked_examples() -> tuple[Item, ...]:
    """Figures 2, 5 and 7."""
    return (item_of_figure_2(), item_of_figure_5(), item_of_figure_7())


def item_of_figure_2() -> Item:
    costs = {"SubE": 8, "PubE": 6, "MCM": 5}
    points = tuple(example_point(f"figure 2 {key}", key, value) for key, value in costs.items())
    title = "Edge markings of one publisher and two subscribers"
    return Item("Figure 2", title, (PaperLine("cost", points),), "descriptors")


def item_of_figure_5() -> Item:
    first, second = (
        example_point(f"figure 5 {link}", link, value) for link, value in (("AB", 4), ("BC", 2))
    )
    return Item(
        "Figure 5",
        "σ of a link and of one that follows it, trees per source",
        (PaperLine("σ", (first, second)),),
        "descriptors",
        statements=(
            each_pair("“σ(AB) > σ(BC), violating the Monotonicity property”", ((second, first),)),
        ),
    )


def item_of_figure_7() -> Item:
    marks = [
        example_point(f"figure 7 s-link {name}", f"s-link {name}", float(name in "eg"))
        for name in sorted(FIGURE_7_LINKS.values())
    ]
    points = (example_point("figure 7 flow", "maximum flow", 2), *marks)
    return Item(
        "Figure 7",
        "Maximum flow and s-links of two trees",
        (PaperLine("measured", points),),
        "flow, or 1 for an s-link",
        reading=(
            "The trees are given as drawn: by latency one of them has a second path of equal "
            "length. The flow is the minimum cut, which is what all gains promise less what the "
            "best marking gains."
        ),
    )


def example_point(key: str, name: str, published: float) -> Point:
    return Point(EXAMPLES, key, name, published)
