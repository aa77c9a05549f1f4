"""``weald demo``: the whole path on a bundled stream, with nothing to install."""
