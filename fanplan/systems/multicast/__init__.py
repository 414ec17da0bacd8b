"""IP multicast: a channel is a group that its members join."""
