"""Families of flags, categories, counts and words.

- ``beta_bernoulli``: clusters of flags: independent features, each a Bernoulli share with a
  Beta(a, b) prior.
- ``dirichlet_categorical``: clusters of categories: independent features, each with a symmetric
  Dirichlet(beta) prior.
- ``dirichlet_multinomial``: clusters of bags of words: a multinomial with a symmetric
  Dirichlet(beta) prior over all columns.
- ``gamma_poisson``: clusters of counts: independent features, each a Poisson rate with a
  Gamma(shape, rate) prior.
- ``sparse_multinomial``: the Dirichlet-multinomial on sparse rows: every cost is that of an
  observation's own words.
- ``word_index``: from words to the blocks that have them: the density of one bag under all blocks
  at once.
"""
