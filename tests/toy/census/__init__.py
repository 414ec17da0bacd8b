"""A toy layer: it counts, for each topic, how many subscribers want it."""
