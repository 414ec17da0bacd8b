"""Plans on IP multicast: channels are groups, the rest goes by UDP to each subscriber."""
