"""Grafana dashboards as code; the JSON beside the code is what Grafana is provisioned with."""

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
