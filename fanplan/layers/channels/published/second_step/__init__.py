"""Moving traffic between channels and unicast, after section 4 of Bickson et al. (2010)."""
