"""Families, partition priors, the forest of guide trees and the partition. Pure.

- ``errors``: errors of treecore.
"""
