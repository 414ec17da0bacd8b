"""Systems that plans run on: what each can express, its configuration, and trials on real ones."""

SYSTEMS = ("nats", "multicast", "cyclonedds", "mosquitto")
"""Names of systems: each is a folder here, with a `system` module."""
