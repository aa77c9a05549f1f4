"""The schema in steps, shipped with the package so that an installed Weald can upgrade."""
