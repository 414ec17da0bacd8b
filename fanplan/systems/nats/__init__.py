"""NATS: one server for each broker, leafnodes along the trees, agents for what leaves them."""
