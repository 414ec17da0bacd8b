"""One budget across delivery modes: channels, groups, direct unicast and default routing."""
