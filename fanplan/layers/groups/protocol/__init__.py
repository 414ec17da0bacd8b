"""The protocols of Zhang & Hu (2005), sections 3.2 and 4, as messages between brokers."""
