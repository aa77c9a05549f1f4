"""A histogram that takes a whole batch at once.

The client library's histogram takes one number per call, a few microseconds each: for a latency
per record that would cost more than inserting the record. This one counts an array in one go.
"""

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

__all__ = ["BatchHistogram"]


class BatchHistogram(Collector):
    """Classic Prometheus histogram, one row of bucket counts per tuple of label values.

    Parameters
    ----------
    name, documentation : str
    labels : tuple of str
        Label names.
    bounds : tuple of float
        Increasing upper bounds; ``+Inf`` is added.
    registry : CollectorRegistry
        The histogram registers itself there.
    """

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: tuple[str, ...],
        bounds: tuple[float, ...],
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._bounds = np.asarray(bounds, dtype=np.float64)
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}
        registry.register(self)

    def observe(self, values: ArrayLike, label_values: tuple[str, ...]) -> None:
        """Count every value.

        Parameters
        ----------
        values : array_like of float64, shape (n,)
            In the histogram's unit. What is not finite is left out; a negative value (two clocks
            that disagree) counts as zero. An empty array only makes the row exist.
        label_values : tuple of str
            One per label name.
        """
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
        array = np.maximum(array[np.isfinite(array)], 0.0)
        slots = np.searchsorted(self._bounds, array, side="left")
        added = np.bincount(slots, minlength=self._bounds.size + 1)
        with self._lock:
            row = self._counts.setdefault(label_values, [0] * (self._bounds.size + 1))
            self._counts[label_values] = [
                old + int(new) for old, new in zip(row, added, strict=True)
            ]
            self._sums[label_values] = self._sums.get(label_values, 0.0) + float(array.sum())

    def describe(self) -> Iterable[HistogramMetricFamily]:
        """Name the family, so that the registry can refuse a second one of the same name."""
        return [HistogramMetricFamily(self._name, self._documentation, labels=self._labels)]

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """Give the cumulative counts, as the exposition format wants them."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        ends = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        with self._lock:
            for label_values, row in self._counts.items():
                cumulative = np.cumsum(row).tolist()
                buckets = list(zip(ends, map(float, cumulative), strict=True))
                family.add_metric(list(label_values), buckets, self._sums[label_values])
        return [family]
