"""Which flows share which channels; what can be asked for by name is in `methods`."""
