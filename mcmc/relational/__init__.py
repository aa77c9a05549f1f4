"""Kernels and fits for the infinite relational model. Pure."""
