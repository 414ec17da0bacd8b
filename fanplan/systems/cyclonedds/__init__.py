"""Cyclone DDS: a channel is a partition that is mapped to a multicast group."""
