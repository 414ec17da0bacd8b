"""kmodes, the default channel planner: ours, and the code to read first.

Read in this order:

- ``model/``: the mathematics. ``demand`` has rows with audiences and prices; ``assign`` finds the
  best channel of each row; ``cover`` has several channels per row; ``rules`` has the limits, and
  the two steps that improve a cover within them.
- ``free/``: the search with one channel per row and no limits. ``search`` puts together ``seed``
  (first channels), ``lloyd`` (alternation and single moves) and ``swap`` (close one, open another).
- ``ruled/``: what limits need. ``obey`` makes any cover keep them, or tells why none does;
  ``clusters`` groups users whom unicast must not serve; ``exchange`` and ``flips`` improve on that.
- ``task``, ``solve``: a problem as demand and rules, and one cover for it from all these parts.
- ``tiny``: the optimum of a problem so small that all plans can be looked at.
- ``lines``: each row on one channel within a rate, for more rows than ``ruled`` can look at.
- ``switches``, with ``traffic`` and ``in_tables``: the least traffic on links within the tables of
  switches, which has a search of its own.
- ``unicast_limit``, ``replan``, ``kmodes``: limits on unicast and on changes, and the planner.

The methods of papers are in ``channels/published``; kmodes takes some of their maps as starts.
"""
