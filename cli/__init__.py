"""The composition root: reads configuration, builds objects, turns errors into exit codes."""
