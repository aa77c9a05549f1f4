"""Moves of what the model's base measure and prior are set to.

- ``base_scale``: A Metropolis step for the scale of the base measure.
"""
