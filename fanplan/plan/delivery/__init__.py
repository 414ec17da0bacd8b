"""The layer that chooses between channels, groups, unicast and default routing."""
