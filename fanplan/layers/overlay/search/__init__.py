"""Trees of brokers: by similarity, and improved against the predicted ledger."""
