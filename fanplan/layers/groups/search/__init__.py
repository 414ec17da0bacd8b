"""Choice of groups (Zhang & Hu 2005): which traffic is matched once, where it enters."""
