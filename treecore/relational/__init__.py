"""The infinite relational model: networks whose vertices fall into blocks.

- ``edges``: what the edges between two blocks are: conjugate likelihoods of the infinite
  relational model.
- ``family``: the infinite relational model of a stream: what its settings say, what its records
  may be.
- ``network``: A network: vertices, the edges between them, and the pairs that nobody has
  observed.
- ``ties``: statistics of every pair of blocks, kept while vertices come and go.
- ``weighing``: what it weighs to put vertices into a block, to merge blocks, and what a partition
  weighs.
"""
