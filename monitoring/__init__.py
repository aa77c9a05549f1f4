"""Metric names, exporter, health, dashboards and alert rules."""
