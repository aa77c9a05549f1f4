"""Grafana dashboards as code; the JSON beside the code is what Grafana is provisioned with.

- ``data_quality``: what the records are like: which are bad and why, and whether the counts add
  up.
- ``model``: what the model does: clusters and their changes, the log joint, and how the kernels
  fare.
- ``overview``: the first dashboard to look at: is the stream well, how fast, how far behind, what
  goes wrong.
- ``panels``: the parts of a Grafana dashboard, and their classic JSON.
- ``queries``: PromQL over Weald's metrics, with the dashboards' variables as matchers.
- ``storage``: what is written: transactions, snapshots, and the statistics that go to Redis.
- ``workers``: refinement by workers: who is there, what became of the leases, and how stale their
  work is.
- ``__main__``: ``python -m weald.monitoring.dashboards``: write the JSON of every dashboard
  beside its code.
"""

from typing import Final

from .data_quality import DATA_QUALITY
from .model import MODEL
from .overview import OVERVIEW
from .panels import Dashboard
from .storage import STORAGE
from .workers import WORKERS

__all__ = ["DASHBOARDS"]

DASHBOARDS: Final[dict[str, Dashboard]] = {
    "overview.json": OVERVIEW,
    "model.json": MODEL,
    "data-quality.json": DATA_QUALITY,
    "storage.json": STORAGE,
    "workers.json": WORKERS,
}
