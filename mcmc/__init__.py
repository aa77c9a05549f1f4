"""Markov chain Monte Carlo kernels over partitions, and their schedule. Pure.

- ``settings``: what people may choose about the model, its refinement, and an offline fit.
"""
