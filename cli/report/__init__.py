"""``weald report``: one page and its pictures.

- ``blocks``: A network's blocks drawn: its adjacency matrix with the vertices in the order of
  their blocks.
- ``command``: ``weald report``: what a stream or a fit found, as one page and its pictures.
- ``explorer``: The part of a page that is explored: a map, a tree of groups, members,
  distributions. Its script, style and HTML lie beside it; ``vendor`` has what the script needs.
- ``flow``: sizes over time, with what moved between clusters from one publication to the next.
- ``of_fit``: A report's subject from a file that was fitted, and the trace of the fit.
- ``of_stream``: A report's subject from a stream's database.
- ``page``: one HTML page without a network: facts, what can be explored, pictures, tables.
- ``pictures``: the pictures of a report, each drawn for light and for dark surroundings.
- ``theme``: colours of the pictures and of the page, for light and for dark surroundings.
- ``timeline``: the timeline of a page: a line for each cluster, forking where it splits, joining
  where it is merged.
"""
