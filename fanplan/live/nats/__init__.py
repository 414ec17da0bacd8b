"""Plans on NATS, as clients and agents of brokers see them: wire, subjects, connections."""
