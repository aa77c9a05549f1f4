"""Markov chain Monte Carlo kernels over partitions, and their schedule. Pure."""
