"""``weald serve``: the stored state over HTTP, for questions only."""
