"""Running systems as workloads: what is there, who wants what, what is sent."""
