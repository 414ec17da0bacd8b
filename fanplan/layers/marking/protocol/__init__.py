"""The protocol of Ge et al. (2002), section 5, event by event: nodes that know their neighbours.

A node keeps what each neighbour told it and derives from it what it tells each neighbour. What is
told are entries (``messages``); only changes are sent (``loop``). A node (``node``) is a stack of
layers (``node_layer``): trees and counts (``trees``), who decides what is entangled (``solver``),
then marks, descriptors, matches and the way of the data (``data_path``).
"""
