"""Clients on brokers: how many brokers are needed, and which client goes where."""
