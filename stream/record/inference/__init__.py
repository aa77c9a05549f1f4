"""A schema from a sample of records.

- ``field_inference``: what the values of one field are, as far as a sample shows it, and why.
- ``proposal``: a schema that fits a sample of records, and why.
"""
