"""Channel planners: one file per method; the table of methods is in `fanplan.layers.channels.methods`."""
