"""Attacks on the whole of Fanplan, seeded and counted: `make chaos`."""
