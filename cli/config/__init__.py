"""Settings: where they come from, what they mean, what of them is secret.

- ``http_settings``: where ``weald serve`` listens, and to whom it answers.
- ``secrets``: secrets: read from files where a setting says so, and kept out of whatever is
  shown.
- ``settings``: one typed settings object, composed of each room's own part.
"""
