"""One offline page about one or more plans: a module per section, drawn without a browser."""
