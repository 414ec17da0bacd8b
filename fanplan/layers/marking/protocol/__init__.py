"""The protocol of Ge et al. (2002), section 5, event by event: nodes that know their neighbours.

A node keeps what each neighbour told it and derives from it what it tells each neighbour. What is
told are entries (``messages``); only changes are sent (``links``). A node (``node``) is a stack of
layers: trees and counts (``shared_tree``, ``source_trees``), marks (``marks``, ``solver``),
descriptors (``descriptors``), matches and the way of the data (``data_path``).
"""
