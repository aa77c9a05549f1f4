"""Metric names, exporter, health, dashboards and alert rules.

- ``exporter``: serves ``/metrics``, ``/livez`` and ``/readyz`` with the standard library's HTTP
  server.
- ``health``: is the process alive, is it ready, and if not, why. Pure: the clock is passed in.
- ``histogram``: A histogram that takes a whole batch at once.
- ``host_names``: which names a server on this machine may be asked under.
- ``metrics``: what the engine is measured by: one object, one method per thing that happens.
- ``names``: every metric Weald exposes: name, kind, meaning, labels, in the order of a record's
  journey.
- ``settings``: settings of the monitoring room: where metrics and health are served, and to whom.
"""
