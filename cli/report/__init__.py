"""``weald report``: one page and its pictures."""
