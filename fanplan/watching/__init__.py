"""Watch: a plan follows its workload. Read `policy`, which decides, then `follow`, the loop."""
