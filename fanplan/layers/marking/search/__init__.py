"""Marking of links (Ge et al. 2002): where advertisements travel and where subscriptions do."""
